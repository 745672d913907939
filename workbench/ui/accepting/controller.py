"""Actions that accept the agent's actual behavior as expected, in one case or in many."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.store.details import read_details
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.criteria.controller import Criteria
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.edit import Edit
from workbench.ui.editing.files import Files
from workbench.ui.running.run import Run
from workbench.ui.screen.controller import Controller
from workbench.ui.tree.outline import Row

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry, Workspace
    from workbench.editing.accept import Comparison
    from workbench.editing.accept_turn import Hunk
    from workbench.editing.criteria_change import ConfigDraft
    from workbench.editing.whole_cases import Proposal
    from workbench.files.criteria import Criterion
    from workbench.store.execution import CaseRecord, Execution
    from workbench.ui.accepting.outcome import Transcript
    from workbench.ui.accepting.screen import Acceptance
    from workbench.ui.screen.view import View


Pair = tuple[int, int]


class Accept(Controller):
    """The action "accept actual", for one case or for a list of cases that the user reviews."""

    def __init__(self, view: "View", files: Files, edit: Edit, run: Run, criteria: Criteria) -> None:
        super().__init__(view)
        self._files, self._edit, self._run, self._criteria = files, edit, run, criteria

    def accept(self) -> None:
        """Let the user choose differences between actual and expected behavior, and save actual values as expected.

        After a thaw, drifted tool answers are saved to the recordings instead. If one of the cases failed, the user
        chooses between the two.
        """
        pairs = self.view.targets("freeze")  # Those whose recordings could be written.
        every = [record for pair in dict.fromkeys(pairs) for record in self.session.verdicts.records(*pair)]
        if drifted := [record for record in every if record.finished and record.drifted]:
            failed = any(record.state == "failed" for record in every)
            self.view.work(partial(self._accept_drift, drifted, ask=failed), "edit")
        else:
            self._accept_expected()

    def _accept_expected(self) -> None:
        """Let the user save the actual behavior as expected. The recordings stay unchanged."""
        pairs, row = self.view.targets("accept"), self.view.rows.cursor
        if not pairs:
            self.view.say(self.session.why_nothing_found("no case here failed: nothing to accept"))
            return
        if row is None or pairs != [(row.evalset, row.case)]:
            self.view.work(partial(self.accept_cases, pairs), "edit")
            return
        record = self.session.record(row)
        if record is not None and not record.finished:
            self.view.say("the case is still running: wait until it ends", warning=True)
            return
        self.view.work(partial(self.accept_row, row, record), "edit")

    async def accept_cases(self, pairs: Sequence[Pair]) -> bool:
        """Let the user choose differences in several cases, and save them as one edit. Return whether any was saved.

        The changed cases are then scored again, unless a run is active.
        """
        from workbench.editing.whole_cases import written
        from workbench.ui.editing.proposals import SeveralScreen

        # The rows may have moved when a file is read again.
        names, opened = self.view.rows.names(), self.session.opened
        records = {pair: self.session.verdicts.record(*pair) for pair in pairs}
        proposals, left_out = await asyncio.to_thread(self._proposals, opened, records)
        note = "; ".join(f"{counted(number, 'case')} left out: {why}" for why, number in left_out.most_common(2))
        if not proposals:
            self.view.notify(note or "no case has differences", title="nothing to accept", severity="warning")
            return False
        title = f"accept actual as expected › {counted(len(proposals), 'case')}"
        choice = await self.view.ask(SeveralScreen(title, list(proposals.values()), self.view.keys, note=note))
        if choice is None:
            return False
        chosen = [pair for pair, proposal in proposals.items() if proposal in choice]
        label = f"accept what the agent did in {counted(len(chosen), 'case')}"
        entries = [opened.evalsets[number] for number in sorted({evalset for evalset, _ in chosen})]
        if not await self._files.change_cases(entries, lambda opened: (label, written(opened, choice))):
            return False
        if not self.session.store.activity.busy:
            self._run.score_by_new_references(self.view.rows.current_pairs(names, chosen))
        return True

    def _proposals(
        self, workspace: "Workspace", records: "Mapping[Pair, Execution | None]"
    ) -> "tuple[dict[Pair, Proposal], Counter[str]]":
        """Return the differences of each case, and how many cases are left out for each reason. Runs in a thread."""
        from workbench.editing.whole_cases import Proposal

        found: dict[Pair, Proposal] = {}
        left_out: Counter[str] = Counter()
        for pair, chosen, before in self._files.cases_on_disk(workspace, records, left_out):
            try:
                record = records[pair]
                details = None if record is None else read_details(record)
                _, comparison = self._compared(workspace.evalsets[pair[0]], pair[1], details, before)
            except (OSError, ValueError) as error:
                left_out[one_line(str(error), limit=200)] += 1
                continue
            if comparison.hunks:
                found[pair] = Proposal(chosen, before, comparison.hunks, comparison.accepted)
        return found, left_out

    def _compared(
        self, entry: "EvalsetEntry", case: int, record: "CaseRecord | None", expected: Any
    ) -> "tuple[Transcript, Comparison]":
        """Return the transcript of a case, and its differences from the JSON that is expected. Runs in a thread.

        Raises:
            NotComparableError: There is no transcript, or it cannot be compared.
        """
        from workbench.criteria.session_state import rules_of
        from workbench.editing.accept import Comparison, NotComparableError
        from workbench.store.transcripts import stored_case
        from workbench.ui.accepting.outcome import of_last_run, transcript_of

        found = None if record is None else transcript_of(record.run_id, stored_case(record))
        if found is None:
            found = of_last_run(self.session.state_dir, entry.relative, entry.document.cases[case].eval_id)
        if found is None:
            broke = record is not None and record.state == "error"
            why = "ended before the agent answered" if broke else "has no transcript: run it first"
            raise NotComparableError(f"this case {why}")
        criteria = self._criteria_of(entry)
        found = found.compared(criteria)
        return found, Comparison(expected, found.turns, found.state, rules_of(criteria))

    async def accept_row(self, row: Row, record: "Execution | None") -> bool:
        """Let the user choose differences of one case, and save them. Return whether something was saved.

        The case is then scored again, unless a run is active or some of its turns cannot be compared.
        """
        names = self.view.rows.names()
        details = None if record is None else await asyncio.to_thread(read_details, record)
        about = await self._acceptance(row, details)
        if about is None:
            return False
        from workbench.ui.accepting.screen import AcceptScreen

        screen = AcceptScreen(about, self.session.saver, self.view.keys)
        if not await self.view.ask(screen):
            return False
        await self._files.reopen(about.draft.file)
        if screen.list.offers:
            await self._files.folder.read_again()
        if about.comparison.notes or self.session.store.activity.busy:
            self.view.say("saved; press r to run the case again, u to undo")
            return True
        self.view.say("saved, scoring again; press u to undo")
        self._run.score_by_new_references(self.view.rows.current_pairs(names, [(row.evalset, row.case)]))
        return True

    async def _acceptance(self, row: Row, record: "CaseRecord | None") -> "Acceptance | None":
        """Return the differences that can be accepted. If nothing can be accepted, show why and return None."""
        from workbench.editing.accept import NotComparableError
        from workbench.ui.accepting.screen import Acceptance

        entry = self.session.entry(row.evalset)
        draft = await self._edit.draft(row)
        if draft is None:
            return None
        try:
            transcript, comparison = await asyncio.to_thread(self._compared, entry, row.case, record, draft.value)
        except NotComparableError as error:
            self.view.notify(str(error), title="nothing to accept", severity="warning", timeout=8)
            return None
        except (OSError, ValueError) as error:
            self._files.show_error(error, "not compared")
            return None
        if not comparison.hunks:
            self.view.say("no differences: the agent did what is expected")
            return None
        failed = _failed_of(record)
        verdicts = [turn.metrics for turn in record.turns] if record is not None else []
        config = await self._config_for_rules(entry)
        return Acceptance(draft, transcript, comparison, self._criteria_of(entry), failed, verdicts, *config)

    def _criteria_of(self, entry: "EvalsetEntry") -> "tuple[Criterion, ...]":
        return self.session.draft.apply(entry.criteria).config.criteria

    async def _config_for_rules(self, entry: "EvalsetEntry") -> "tuple[ConfigDraft | None, str]":
        """Return the config for new argument rules and a text about it, or None and why rules cannot be added."""
        from workbench.editing.accept import obstacle

        if why := obstacle(entry.criteria.config):
            return None, why
        if self.session.draft.apply(entry.criteria).changed:
            return None, "criteria are changed for the next run: press esc, then o to save or discard them"
        config = await self._criteria.config_of(entry)
        if config is None:
            return None, "the criteria config cannot be edited"
        governed = counted(len(self._criteria.with_same_config(entry)), "evalset")
        new = "new, " if config.before is None else ""
        return config, one_line(f"{self.session.below_root(config.file)} ({new}for {governed})")

    async def _accept_drift(self, records: "Sequence[Execution]", *, ask: bool) -> None:
        """Let the user save drifted tool answers to the recordings. With `ask`, also offer to accept the behavior."""
        from workbench.editing.saving import ChangedOnDiskError
        from workbench.editing.thawing import accepted_contents
        from workbench.project.freezing import thawed_files
        from workbench.ui.editing.proposals import SeveralScreen

        if ask:
            items = [
                Item("drifted answers, into the recordings", True, help="Choose the changes. u undoes."),
                Item("actual behavior, as expected", False, help="Changes the evalset, not the recordings."),
            ]
            wanted = await self.view.pick("accept what?", items)
            if not wanted:
                if wanted is False:
                    self.view.call_later(self._accept_expected)
                return
        root = self.session.opened.root
        try:
            files, left_out = await asyncio.to_thread(thawed_files, records, root, self.session.state_dir)
            changed = [file for file in files.values() if file.proposal.parts]
            note = one_line("; ".join(dict.fromkeys(left_out.values())), limit=300)
            if not changed:
                self.view.notify(note or "the recordings already have these answers", title="nothing to accept")
                return
            title = f"accept drift into recordings › {counted(len(changed), 'case')}"
            proposals = [file.proposal for file in changed]
            choice = await self.view.ask(SeveralScreen(title, proposals, self.view.keys, note=note))
            if not choice:
                return
            chosen = {file: choice[file.proposal] for file in changed if file.proposal in choice}
            contents = await asyncio.to_thread(accepted_contents, chosen)
        except (OSError, ChangedOnDiskError) as error:
            self._files.show_error(error)
            return
        await self._files.put(f"accept drift of {counted(len(chosen), 'case')}", contents)


def _failed_of(record: "CaseRecord | None") -> "Callable[[Hunk], str]":
    """Return a function that names the failed criteria that a hunk can affect, or returns "" if there are none."""
    from workbench.criteria.registry import descriptions
    from workbench.ui.accepting.outcome import concerns

    def failed(hunk: "Hunk") -> str:
        if record is None:
            return ""
        metrics = record.turns[hunk.turn].metrics if hunk.turn < len(record.turns) else record.metrics
        names = [name for name, result in metrics.items() if result.status == "failed"]
        return ", ".join(descriptions()[name].short_name or name for name in concerns(hunk.kind, names))

    return failed
