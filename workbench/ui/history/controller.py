"""Actions on stored runs: list them, open one, or compare two."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.text.safe_text import one_line
from workbench.ui.chat.controller import Keep
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.faults.controller import Faults
from workbench.ui.forking.controller import Fork
from workbench.ui.screen.controller import Controller
from workbench.ui.session import relative_times
from workbench.ui.terminal.host import Host

if TYPE_CHECKING:
    from workbench.store.execution import CaseRecord
    from workbench.store.history.summary import ListedRun
    from workbench.ui.screen.view import View

_OFFERED = 500
"""Maximum number of runs offered for a comparison."""


class History(Controller):
    """The actions "history" and "compare". Their screens cover the main screen, which keeps working."""

    def __init__(self, view: "View", files: Files, keep: Keep, fork: Fork, faults: Faults, host: Host) -> None:
        super().__init__(view)
        self._files, self._keep, self._fork, self._faults, self._host = files, keep, fork, faults, host

    def history(self) -> None:
        """Open the list of stored runs."""
        if self.workspace() is not None:
            self.view.work(self._show_history, "history")

    async def _show_history(self) -> None:
        await asyncio.to_thread(_import_screens)
        from workbench.ui.history.screen import HistoryScreen

        self.view.push(HistoryScreen(self.view, self._host, self._runs, show=self._show_run, compare=self._compare))

    def compare(self) -> None:
        """Compare the newest run with another one, which the user chooses."""
        if self.workspace() is not None:
            self.view.work(self._compare_last, "compare")

    def _show_run(self, run: "ListedRun") -> None:
        self.view.work(partial(self._show_stored, run), "history")

    async def _show_stored(self, run: "ListedRun") -> None:
        """Show a run with all faults of all tools as a table, and any other run with its cases."""
        from workbench.ui.history.run_screen import RunScreen

        if run.is_foreign or not run.injected or not await self._faults.show_stored(run):
            compare = partial(self._compare, None, run)
            screen = RunScreen(run, self.view, self._host, self._files, self._fork, self._keep_stored, compare)
            self.view.push(screen)

    def _keep_stored(self, record: "CaseRecord") -> None:
        workspace, ref = self.session.opened, record.ref
        entry = next((entry for entry in workspace.evalsets if entry.relative == ref.evalset_file), None)
        agent = entry.agent if entry is not None else None
        agent = agent or next((one for one in workspace.agents if one.name == ref.agent), None)
        place = self.session.verdicts.place(ref.evalset_file, ref.eval_id)
        case = self.session.case(*place) if place is not None else None
        app_name = agent.folder.name if agent is not None else ref.agent
        self._keep.keep_execution(record, case, agent, app_name, entry.file if entry is not None else None)

    def _compare(self, before: "ListedRun | None", after: "ListedRun") -> None:
        """Show what changed between two runs. If `before` is None, let the user choose it."""
        if before is None:
            self.view.work(partial(self._choose_and_compare, after), "compare")
            return
        from workbench.project.targets import compare_command
        from workbench.ui.history.compare_screen import CompareScreen

        first, second = (str(run.path) if run.is_foreign else run.run_id for run in (before, after))
        root, state = self.session.opened.root, self.session.state_dir
        self.session.last_command = partial(compare_command, first, second, root, state)
        self.view.push(CompareScreen(before, after, self.view, self._host, self._files))

    async def _compare_last(self) -> None:
        """Compare the last run of this session, else the newest run with verdicts, with one that the user picks."""
        runs, _ = await asyncio.to_thread(self._runs)
        here = self.session.store.run.run_id
        known = [run for run in runs if not run.trouble]
        own = (run for run in known if run.run_id == here)
        judged = (run for run in known if not (run.is_foreign or run.injected or run.fork))
        run = next(own, None) or next(judged, None)
        if run is None:
            self.view.say("no stored runs yet: r runs the cases under the cursor")
        else:
            await self._choose_and_compare(run, runs)

    async def _choose_and_compare(self, after: "ListedRun", runs: "list[ListedRun] | None" = None) -> None:
        from workbench.store.history.run_list import runs_by_question
        from workbench.store.history.run_names import baseline

        if after.injected or after.fork:
            why = "runs with injected faults and runs of forks have no verdicts"
            self.view.say(f"nothing to compare: {why}", warning=True)
            return
        await asyncio.to_thread(_import_screens)
        known = runs if runs is not None else (await asyncio.to_thread(self._runs))[0]
        pinned = await asyncio.to_thread(baseline, self.session.state_dir)
        others = [run for run in known if run.path != after.path and not (run.trouble or run.injected or run.fork)]
        if not others:
            self.view.notify("there is no other run to compare with: r runs the cases again")
            return
        today = relative_times.now().date()
        named = await asyncio.to_thread(runs_by_question, after, others, pinned, today)
        items = _items([run for _, run in named], pinned, [question for question, _ in named])
        items += [Item("all runs", heading=True)] if named else []
        items += _items(others[:_OFFERED], pinned)
        from workbench.ui.session import run_labels

        when = run_labels.exact_time(after.started, relative_times.now())
        title = f"compare {when} with{'' if named else f' ({_why_none(after, others)})'}"
        before = await self.view.pick(title, items)
        if before is not None:
            earlier, later = sorted([before, after], key=lambda run: run.started)
            self._compare(earlier, later)

    def _runs(self) -> "tuple[list[ListedRun], list[str]]":
        from workbench.store.history.run_list import list_all_runs

        workspace = self.session.opened
        return list_all_runs(self.session.state_dir, workspace.root, [agent.folder for agent in workspace.agents])


def _why_none(run: "ListedRun", others: "Sequence[ListedRun]") -> str:
    """Return why no run can be compared with `run`: frozen runs are only compared with frozen ones, live with live."""
    alike = any(bool(other.frozen) == bool(run.frozen) for other in others)
    return "none is comparable" if alike else "no other is frozen" if run.frozen else "all others are frozen"


def _import_screens() -> None:
    """Import the screens ahead of their use. Called in a thread."""
    import workbench.ui.history.compare_screen
    import workbench.ui.history.run_screen
    import workbench.ui.history.screen  # noqa: F401


def _items(runs: "list[ListedRun]", pinned: str | None, questions: Sequence[str] = ()) -> list[Item]:
    """Return runs as menu items. With `questions`, the items are labelled with these and the runs' IDs."""
    from workbench.results.cells import fit
    from workbench.results.plain_lines import commit_words
    from workbench.ui.session import run_labels

    now = relative_times.now()
    width = max(map(len, questions), default=0)
    items = []
    for number, run in enumerate(runs):
        special = run_labels.flags(run, baseline=pinned, running="")
        hint = "" if questions else "".join(text for text, _ in run_labels.counts(run.outcomes))
        name = "  ".join([run_labels.agents_and_evalsets(run), *map(run_labels.sign_of, special)])
        details = ", ".join([f"{run.run_id}: {run_labels.counts_in_words(run.outcomes)}", *special])
        if run.commit:
            details += f", commit {commit_words(run.commit, run.dirty)}"
        time = fit(run_labels.short_time(run.started, now), 12)
        shown = f"{fit(questions[number], width)}  {one_line(run.run_id)}" if questions else name
        items.append(Item(shown, run, hint=hint, help=one_line(details), kind=time, also=name))
    return items
