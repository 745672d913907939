"""The screen of one stored run: its cases with answers and scores, and the deletion of runs."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import BindingType
from textual.content import Content

from workbench.agents.discovery import AgentFolder
from workbench.agents.workspace import CriteriaChoice, EvalsetEntry, Workspace
from workbench.events.events import CaseName, CaseRef
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import CaseSummary, EvalsetDocument
from workbench.files.opening import Opened
from workbench.files.run_options import UsageFaultError
from workbench.results.document import Subject
from workbench.results.repeats import summarize
from workbench.store.details import end_all, read_records
from workbench.store.execution import CaseRecord, Execution
from workbench.store.history.reading import open_summary
from workbench.store.history.retention import delete_runs
from workbench.store.history.run_names import baseline
from workbench.store.history.summary import ListedRun, Summary
from workbench.store.store import Store
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.editing.files import Files
from workbench.ui.forking.controller import Fork
from workbench.ui.screen.list_screen import CASE_KEYS, SplitScreen
from workbench.ui.screen.sides import Cases, Right
from workbench.ui.screen.view import View
from workbench.ui.session import run_labels
from workbench.ui.session.run_labels import ended_in, evalset_name, state_of
from workbench.ui.session.session import Session
from workbench.ui.terminal.host import Host
from workbench.ui.tree.case_tree import CaseTree
from workbench.ui.tree.outline import WHOLE_EVALSET
from workbench.ui.tree.verdicts import Verdicts
from workbench.ui.widgets.basics import Line, start_work
from workbench.ui.widgets.footer import bindings, bindings_of
from workbench.ui.widgets.rows import Piece


def reason_undeletable(runs: Sequence[ListedRun], running: str) -> str:
    """Return why these runs cannot be deleted, or "" if they can. `running` is the ID of the active run."""
    if any(run.is_foreign for run in runs):
        return "results of other programs cannot be deleted here"
    if any(run.run_id == running for run in runs):
        return "an active run cannot be deleted"
    return ""


def running_id(session: Session) -> str:
    """Return the ID of the active run of this session, or ""."""
    return session.store.run.run_id if session.store.activity.running else ""


async def confirm_delete(app: "App[object]", state: Path, runs: Sequence[ListedRun]) -> bool:
    """Return whether the user confirms that these runs are deleted. Call this in a worker."""
    title = f"delete {'this run' if len(runs) == 1 else counted(len(runs), 'run')} for good?"
    names = "; ".join(f"{one_line(run.run_id, limit=60)}: {run_labels.counts_in_words(run.outcomes)}" for run in runs)
    pinned = await asyncio.to_thread(baseline, state)
    if any(run.run_id == pinned for run in runs):
        names = f"{names}. This includes the baseline"
    items = [Item("keep", False, help=names), Item("delete", True, help=f"{names}. This cannot be undone.")]
    return bool(await app.push_screen_wait(PickScreen(title, searching(items))))


async def delete(state: Path, runs: Sequence[ListedRun]) -> tuple[str, bool]:
    """Delete runs. Return a message, and whether at least one run was deleted."""
    try:
        deleted = await asyncio.to_thread(delete_runs, state, [run.run_id for run in runs])
    except OSError as error:
        return one_line(f"nothing was deleted: {error.strerror or error}"), False
    message = f"{counted(len(deleted), 'run')} deleted"
    if len(deleted) < len(runs):
        message += f", {len(runs) - len(deleted)} could not be deleted"
    return message, bool(deleted)


class StoredRunTree(CaseTree):
    """The tree of a stored run. It is built from the stored run alone."""

    def __init__(self) -> None:
        super().__init__(Verdicts(Store()), lambda: 0.0)
        self._summary = Summary()
        self._executions: dict[tuple[int, int], tuple[CaseRef, ...]] = {}

    def show_run(self, summary: Summary) -> None:
        """Show a run, with the cursor on its first problem."""
        self._summary, verdicts = summary, self.model.verdicts
        cases: dict[CaseName, list[Execution]] = {}
        for one in summary.executions.values():
            cases.setdefault(one.ref.name, []).append(one)
        ended = [every for every in cases.values() if any(state_of(summary, one) != "not_run" for one in every)]
        verdicts.store.records = {one.ref: ended_in(summary, one) for every in ended for one in every}
        verdicts.add(verdicts.store.records)
        self.load(_workspace(summary))
        numbers = {entry.relative: number for number, entry in enumerate(self.model.entries)}
        for (name, eval_id), every in cases.items():
            place = verdicts.place(name, eval_id) or (numbers[name], WHOLE_EVALSET)
            self._executions[place] = tuple(one.ref for one in every)
        if self.next_problem(1) is None:
            self.when_moved()

    @property
    def refs(self) -> tuple[CaseRef, ...]:
        """The executions of the case, repeat or broken file under the cursor, or () on other rows."""
        row = self.model.cursor
        if row is None or row.evalset < 0:
            return ()
        executions = self._executions.get((row.evalset, row.case), ())
        return executions[row.repeat - 1 : row.repeat] if row.kind == "repeat" else executions

    @property
    def ref(self) -> CaseRef | None:
        """The execution under the cursor, or None. If a case has several, the one that decided its verdict."""
        row, refs = self.model.cursor, self.refs
        record = self.model.verdicts.record(row.evalset, row.case, row.repeat) if row is not None and refs else None
        return record.ref if record is not None else next(iter(refs), None)

    def step_out(self) -> bool:
        """Collapse the row under the cursor, or the case of a repeat. On a collapsed row, go to its parent.

        Return False on the first row and on collapsed cases.
        """
        row, outline = self.model.cursor, self.model.outline
        if row is not None and row.kind == "repeat" and row.parent is not None:
            self.go_to(row.parent)
        elif row is None or row.parent is None or (row.kind == "case" and not outline.is_open(row)):
            return False
        self.close_row()
        return True

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the left and right side of a row. The first one has counts only if a filter is active."""
        left, right = super().row_pieces(position, width)
        row = self.model.outline.row(position)
        match row.kind:
            case "all":
                return [("this run", "strong")], [] if self.model.query.empty else right
            case "case" if self.model.verdicts.state(row.evalset, row.case) == "not_run":
                return left, [("unfinished", "not-run")]
        return left, right


def _workspace(summary: Summary) -> Workspace:
    """Return a workspace with the agents, evalsets and cases of the run."""
    root = Path(summary.root)
    ids: dict[tuple[str, str, str], dict[str, None]] = {}
    for ref in summary.executions:
        ids.setdefault((ref.agent, ref.evalset_file, ref.eval_set_id), {})[ref.eval_id] = None
    agents = {name: AgentFolder(name, root / name, "python", root / name, "") for name, _, _ in ids if name}
    criteria = CriteriaChoice(CriteriaConfig(None, ()), "criteria of the run")
    entries = []
    for (agent, file, set_id), of_file in ids.items():
        document = EvalsetDocument(root / file, Opened((), frame={"eval_set_id": set_id or evalset_name(file)}))
        document.cases = tuple(map(CaseSummary, filter(None, of_file), range(len(of_file))))
        entries.append(EvalsetEntry(root / file, file, document, agents.get(agent), "", criteria))
    return Workspace(root, root, tuple(agents.values()), tuple(entries), ())


class RunScreen(SplitScreen):
    """The screen of one stored run.

    `keep` creates a case from an execution. `compare` compares this run with another.
    """

    where = "stored"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*CASE_KEYS), *bindings_of("stored")]

    def __init__(
        self,
        run: ListedRun,
        view: View,
        host: Host,
        files: Files,
        fork: Fork,
        keep: Callable[[CaseRecord], None],
        compare: Callable[[], None],
    ) -> None:
        self.tree_view = StoredRunTree()
        self.cases = Cases(self.tree_view)
        self.right = Right()
        super().__init__(view.keys, host, self.tree_view, self.cases, self.right, self.right)
        self._run, self._session, self._state = run, view.session, view.session.state_dir
        self.go, self._fork, self._keep, self._compare = files.go_to_stored, fork, keep, compare
        self._summary = Summary()
        self._trouble: list[str] = []
        self._records: dict[CaseRef, CaseRecord] = {}
        """The shown executions, with their details."""

    def on_mount(self) -> None:
        """Start to read the run."""
        super().on_mount()
        self.cases.border_title = Content("cases of this run")
        self.right.show_page("this run", [("loading", "")])
        self.tree_view.when_moved = self._show
        self._say_which()
        start_work(self, self._read, "read", exclusive=True)

    async def _read(self) -> None:
        try:
            read = partial(open_summary, self._run.name, self._state, self._state)
            self._summary, self._trouble = await asyncio.to_thread(read)
        except UsageFaultError as error:
            self.right.show_page("this run", [("cannot be read", one_line(str(error)))])
            return
        self.tree_view.show_run(self._summary)
        self._say_which()

    def _say_which(self) -> None:
        run = self._run
        when = run_labels.exact_time(run.started, datetime.now().astimezone())
        counts = run_labels.counts(self._summary.outcome_counts() if self._summary.executions else run.outcomes)
        outcome = "".join(text for text, _ in counts)
        self.show_bar(f"◂ stored run of {when}   {outcome}   {run_labels.agents_and_evalsets(run)}", "esc: back")

    def _show(self) -> None:
        refs = self.tree_view.refs
        unread = any(ref not in self._records for ref in refs)
        self.when_resting(partial(self._load, refs) if unread else None)
        if not refs:
            self.right.show_page("this run", self._about())
        elif not unread:
            self._show_case()

    async def _load(self, refs: tuple[CaseRef, ...]) -> None:
        try:
            found = await asyncio.to_thread(read_records, self._run.file, refs)
            self._records = end_all(found, damaged=bool(self._trouble) and self._summary.is_complete)
        except (OSError, ValueError) as error:
            self.right.show_page("this case", [("cannot be read", one_line(str(error)))])
            return
        if self.tree_view.refs == refs and all(ref in self._records for ref in refs):
            self._show_case()

    def _show_case(self) -> None:
        """Show the execution under the cursor. If the case has several, add a summary of all."""
        refs, ref = self.tree_view.refs, self.tree_view.ref
        assert ref is not None
        record = self._records[ref]
        repeats = summarize([self._records[one] for one in refs], record.until_sure) if len(refs) > 1 else None
        self.right.show_case(Subject(record, state=self._state, prices=self._session.prices, repeats=repeats))

    def _about(self) -> list[Line]:
        """Return facts about the whole run, as pairs of label and text."""
        run, summary = self._run, self._summary
        time = run_labels.local_time(run.started)
        lines: list[Line] = [("run", one_line(run.run_id))]
        lines += [("when", f"{time:%A, %-d %B %Y, %H:%M:%S}")] if time else []
        lines += [("result", run_labels.counts_in_words(summary.outcome_counts()))]
        lines += [("duration", run_labels.seconds(run.seconds))] if run.seconds else []
        used = f"{counted(run.calls, 'model call')}, {counted(run.tokens, 'token')}"
        lines += [("usage", used)] if run.calls or run.tokens else []
        commit = one_line(run.commit) + (" with uncommitted changes" if run.dirty else "")
        lines += [("commit", commit)] if run.commit else []
        lines += [("scored from", one_line(run.scored_from))] if run.scored_from else []
        lines += run_labels.fork_facts(summary.fork)
        lines += [(one_line(name, limit=11), one_line(str(version))) for name, version in summary.versions.items()]
        for agent, models in summary.models.items():
            named = ", ".join(map(str, models)) if isinstance(models, list) else str(models)
            lines.append(("models", one_line(f"{agent}: {named or 'not named in its files'}")))
        lines.append(("stored in", one_line(str(run.file))))
        lines += [("skipped", one_line(text)) for text in self._trouble[:5]]
        if not run.is_foreign:
            lines.append(("export", f"agent-workbench export {one_line(run.run_id)} --format html -o run.html"))
        return lines

    @property
    def case_here(self) -> CaseRef | None:
        """The execution under the cursor, or None."""
        return self.tree_view.ref

    def action_open(self) -> None:
        """Expand the row, or go to the panes."""
        row = self.tree_view.model.cursor
        if self.in_right or row is None or not self.tree_view.model.outline.has_children(row):
            super().action_open()
        else:
            self.tree_view.open_row()

    def action_close(self) -> None:
        """Collapse the row or go to its parent. In the panes, fold or go back.

        On the first row or a collapsed case, leave the screen.
        """
        if self.in_right or not self.tree_view.step_out():
            super().action_close()

    def action_enter(self) -> None:
        """Expand or collapse the row or the pane's item. On a case, go to its panes."""
        if self.in_right:
            if self.right.shows_case:
                self.right.detail.toggle_full()
        elif self.tree_view.refs or not self.tree_view.toggle_row():
            self.go_right()

    def action_back(self) -> None:
        """Undo a jump, leave the panes, clear the filter, or leave the screen."""
        if self.in_right and self.right.shows_case and self.right.detail.go_back():
            return
        if self.in_right or not self.cases.input.end():
            super().action_back()

    def action_problem(self, step: int) -> None:
        """Go to the next (1) or previous (-1) problem."""
        if self.tree_view.next_problem(step) is None:
            empty = self.tree_view.model.query.empty
            self.say("nothing failed in this run" if empty else "nothing failed here")

    def action_filter(self) -> None:
        """Open the filter."""
        self.cases.input.open()

    def action_keep_case(self) -> None:
        """Create a case from the execution under the cursor."""
        record = self._records.get(ref) if (ref := self.tree_view.ref) is not None else None
        if record is None:
            self.say("put the cursor on a case first")
        else:
            self._keep(record)

    def action_fork(self) -> None:
        """Fork the execution under the cursor at the selected turn or call."""
        record = self._records.get(ref) if (ref := self.tree_view.ref) is not None else None
        if record is None or not record.turns:
            self.say("put the cursor on a case with a conversation first")
        elif self._run.is_foreign:
            self.say("cannot fork a run of another program: it lacks what a replay needs")
        else:
            self._fork.fork_record(record, self.right.detail.place_names)

    def action_compare(self) -> None:
        """Compare this run with another."""
        self._compare()

    def action_delete(self) -> None:
        """Delete this run after a confirmation."""
        if fault := reason_undeletable([self._run], running_id(self._session)):
            self.say(fault, warning=True)
        else:
            start_work(self, self._delete, "delete", exclusive=True)

    async def _delete(self) -> None:
        if await confirm_delete(self.app, self._state, [self._run]):
            message, deleted = await delete(self._state, [self._run])
            if deleted:
                self.dismiss(None)  # The list then reads the runs again.
            self.notify(message)

    def action_copy_id(self) -> None:
        """Copy the ID of the case, or of the run if no case is under the cursor."""
        if self.case_here is None:
            self.copy("run ID", self._run.run_id)
        else:
            super().action_copy_id()

    def action_copy(self) -> None:
        """Copy what the panes show: the item under the cursor, else the visible turn or the pane."""
        found = self.right.copied()
        if found is not None:
            self.copy(*found)
