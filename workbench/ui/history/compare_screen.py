"""The screen that compares two runs: which verdicts differ, and why."""

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from workbench.events.events import CaseRef
from workbench.files.run_options import UsageFaultError
from workbench.results.comparison_documents import counted, one_case, overview
from workbench.results.document import Document
from workbench.results.faces import FACES
from workbench.results.gate import Gate, gate
from workbench.results.lines import View, remark
from workbench.results.run_comparison import CHANGE_KINDS, ChangedCase, Comparison, compare
from workbench.store.details import end_all, read_records
from workbench.store.execution import CaseRecord
from workbench.store.history.reading import open_summary
from workbench.store.history.run_names import is_there
from workbench.store.history.summary import ListedRun, Summary
from workbench.text.safe_text import one_line
from workbench.ui.detail.body import Body
from workbench.ui.editing.files import Files
from workbench.ui.screen.list_screen import SplitScreen
from workbench.ui.screen.view import View as MainView
from workbench.ui.session import run_labels
from workbench.ui.session.run_labels import state_of
from workbench.ui.terminal.host import Host
from workbench.ui.tree.labels import NEIGHBOURS, fitted, label, style_of
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf

_CAUSES_FROM = 34


@dataclass(frozen=True, slots=True)
class Line:
    """A row: a heading, a case, or the overview (neither of them)."""

    heading: str = ""
    case: ChangedCase | None = None


class ChangeRows(RowsOf[Line]):
    """The rows of a comparison."""

    def __init__(self) -> None:
        super().__init__([Line()])
        self._runs = Summary(), Summary()

    def show_comparison(self, found: Comparison) -> None:
        """Show a comparison."""
        self._runs = found.before, found.after
        lines = [Line()]
        for change in CHANGE_KINDS:
            cases = [case for case in found.cases if case.change == change]
            if cases:
                lines += [Line(counted(change, len(cases))), *(Line(case=case) for case in cases)]
        if not found.cases:
            # In a narrow terminal, only this side is visible.
            lines.append(Line("no case changed" if found.unchanged else "the runs have no comparable case in common"))
        self.rows = lines
        self.rows_changed()
        self.move_to(0)
        self.when_moved()

    def show_message(self, message: str) -> None:
        """Show a message (safe text) in place of a comparison."""
        self.rows = [Line(), Line(message)]
        self.rows_changed()
        self.move_to(0)

    def can_stop(self, position: int) -> bool:
        """Return whether the cursor can stop on a row. Headings are skipped."""
        return not self.rows[position].heading

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the verdicts and ID of a case on the left, and its causes on the right."""
        line = self.rows[position]
        if line.heading:
            return [("  ", ""), (line.heading, "strong")], []
        if line.case is None:
            return [("overview", "strong")], []
        before, after = state_of(self._runs[0], line.case.before), state_of(self._runs[1], line.case.after)
        ref = line.case.ref
        left: list[Piece] = [("    ", "")]
        if before != after:
            left += [(FACES[before].glyph, style_of(before)), ("→", "muted")]
        left.append((f"{FACES[after].glyph} ", style_of(after)))
        place = len(left)
        left.append((label(ref.eval_id) or "(no id)", ""))
        if ref.repeat != 1:
            left.append((f" #{ref.repeat}", "muted"))
        causes = list(dict.fromkeys(cause.kind.replace("_", " ") for cause in line.case.causes))
        shown = (", ".join(causes[:2]) + ("…" if len(causes) > 2 else ""), "muted")
        around = self.rows[max(position - NEIGHBOURS, 0) : position + NEIGHBOURS]
        others = (other.case.ref.eval_id for other in around if other.case is not None)
        return fitted(left, [shown] if width >= _CAUSES_FROM else [], width, place, others)


Pair = tuple[CaseRecord, CaseRecord]


class CompareScreen(SplitScreen):
    """The screen that compares two runs.

    `before` and `after` are the runs, until the user swaps them.
    """

    where = "compare"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("compare")]

    def __init__(self, before: ListedRun, after: ListedRun, view: MainView, host: Host, files: Files) -> None:
        self.changes, self._body = ChangeRows(), Body()
        details = Vertical(self._body, classes="details framed")
        super().__init__(view.keys, host, self.changes, Vertical(self.changes), details, self._body)
        self._before, self._after, self._state, self.go = before, after, view.session.state_dir, files.go_to_stored
        self._found: Comparison | None = None
        self._gate: Gate | None = None
        self._trouble = ""
        self._pairs: dict[CaseRef, Pair | str] = {}
        self._shown: ChangedCase | None = None

    def on_mount(self) -> None:
        """Start the comparison."""
        super().on_mount()
        self.frame.border_title = Content("what changed")
        self.changes.when_moved = self._show
        self._compare()

    def _compare(self) -> None:
        self._found, self._trouble = None, ""
        self._pairs.clear()
        self.changes.show_message("comparing")
        now, runs = datetime.now().astimezone(), (self._before, self._after)
        times = " → ".join(run_labels.exact_time(run.started, now) for run in runs)
        names = " → ".join(dict.fromkeys(map(run_labels.agents_and_evalsets, runs)))
        self.show_bar(f"◂ compared: {times}   {names}", "esc: back")
        self._draw()
        start_work(self, self._read, "read", exclusive=True)

    async def _read(self) -> None:
        try:
            found, self._gate, trouble = await asyncio.to_thread(self._compare_runs)
        except UsageFaultError as error:
            self._trouble = self._deleted_runs() or str(error)
            self.changes.show_message("a run cannot be read")
            self._draw()
            return
        if trouble:
            self.notify(one_line(trouble[0], limit=400), severity="warning", timeout=10)
        self._found = found
        self.frame.border_subtitle = Content(f"{found.unchanged:,} unchanged")
        self.changes.show_comparison(found)

    def _compare_runs(self) -> tuple[Comparison, Gate, list[str]]:
        before, trouble = open_summary(self._before.name, self._state, self._state)
        after, more = open_summary(self._after.name, self._state, self._state)
        found = compare(before, after, self._state)
        return found, gate(found, self._state), [*trouble, *more]

    def _deleted_runs(self) -> str:
        """Return a sentence about the runs that were deleted meanwhile, or "" if both still exist."""
        runs = zip((self._before, self._after), self._names(), strict=True)
        deleted = [name for run, name in runs if not is_there(run.file)]
        return f"Deleted meanwhile: the run of {' and the run of '.join(deleted)}." if deleted else ""

    def _names(self) -> tuple[str, str]:
        """Return the names of both runs: their times, with agents and evalsets if these differ."""
        now, runs = datetime.now().astimezone(), (self._before, self._after)
        before, after = (run_labels.exact_time(run.started, now) for run in runs)
        first, second = map(run_labels.agents_and_evalsets, runs)
        return (before, after) if first == second else (f"{first}, {before}", f"{second}, {after}")

    def _show(self) -> None:
        case = self.changes.row.case
        self._draw()
        unread = case is not None and case.ref not in self._pairs
        self.when_resting(partial(self._load, case) if case is not None and unread else None)

    async def _load(self, case: ChangedCase) -> None:
        try:
            self._pairs = {case.ref: await asyncio.to_thread(self._records, case)}
        except (OSError, ValueError, KeyError) as error:
            self._pairs = {case.ref: self._deleted_runs() or f"The transcripts cannot be read: {error}"}
        if self.changes.row.case is case:
            self._draw()

    def _records(self, case: ChangedCase) -> Pair:
        one, other = case.before.ref, case.after.ref
        before, after = read_records(self._before.file, {one}), read_records(self._after.file, {other})
        return end_all(before)[one], end_all(after)[other]

    def _draw(self) -> None:
        case = self.changes.row.case
        same = case is self._shown
        self._shown = case
        shares = self._body.planned()
        view = View(max(shares.width, 0), full=True, narrow=shares.narrow)
        self._body.show(self._document(case, view), self._body.top if same else 0)

    def _document(self, case: ChangedCase | None, view: View) -> Document:
        if view.width <= 0:
            return Document()
        if self._found is None or self._gate is None:
            document = Document()
            document.add(remark(one_line(self._trouble) if self._trouble else "comparing", view))
            return document
        if case is None:
            return overview(self._found, self._gate, self._names(), view)
        return one_case(case, self._gate, self._found.files, self._pairs.get(case.ref), view)

    def on_body_resized(self, event: Body.Resized) -> None:
        """Lay out the details for the new size."""
        event.stop()
        self._draw()

    def action_changed(self, step: int) -> None:
        """Go to the next (1) or previous (-1) changed case."""
        rows = self.changes.rows
        if self._found is not None and not self.changes.next_where(lambda place: rows[place].case is not None, step):
            self.say("no case changed")

    def action_swap_runs(self) -> None:
        """Swap the two runs and compare again."""
        self._before, self._after = self._after, self._before
        self._compare()

    @property
    def case_here(self) -> CaseRef | None:
        """The execution under the cursor, or None in the overview."""
        case = self.changes.row.case
        return None if case is None else case.ref

    def action_copy_id(self) -> None:
        """Copy the case's ID. In the overview, copy the command that compares the two runs."""
        if self.case_here is None:
            self.copy("command", shlex.join(["agent-workbench", "compare", self._before.name, self._after.name]))
        else:
            super().action_copy_id()
