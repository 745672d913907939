"""The screen with the table of cases."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.style import Style
from textual.timer import Timer
from textual.widgets import Static

from workbench.results.cells import cell_len, cut
from workbench.store.details import known_details, read_details
from workbench.store.execution import Execution
from workbench.text.counting import counted
from workbench.ui.actions import footer
from workbench.ui.screen.list_screen import ListScreen
from workbench.ui.screen.sides import FilterInput
from workbench.ui.session import relative_times
from workbench.ui.session.bar import Bar, bar_facts
from workbench.ui.session.session import Session
from workbench.ui.table.model import Table
from workbench.ui.table.widgets import Foot, TableRows, Titles
from workbench.ui.terminal.host import Host
from workbench.ui.tree.outline import Pair
from workbench.ui.tree.query import parse_query
from workbench.ui.tree.scope import scope_of, targets_of
from workbench.ui.widgets.basics import PlainInput, start_work
from workbench.ui.widgets.footer import bindings, bindings_of
from workbench.ui.widgets.textual_private import set_border_title

if TYPE_CHECKING:
    from workbench.ui.tree.model import Tree

_SLOW = 0.3
"""Seconds after which the footer shows why sorting takes long."""
_PLACEHOLDER = "text  :fail  :error  metric<0.8"


class TableScreen(ListScreen, inherit_bindings=False):
    """The table over the main screen, which is still updated behind it.

    `open_case` opens the case under the cursor in the main screen. `turn` switches to the other kind of columns. `run`
    and `cancel` start and cancel cases.
    """

    where = "table"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "back"),
        *bindings_of("table"),
    ]

    def __init__(
        self,
        table: Table,
        session: Session,
        tree: "Tree",
        keys: Mapping[str, tuple[str, ...]],
        host: Host,
        *,
        line: int = 0,
        open_case: Callable[[], None],
        turn: Callable[[], None],
        run: Callable[[Sequence[Pair]], None],
        cancel: Callable[[Sequence[Pair]], None],
    ) -> None:
        self.rows = TableRows(table, tree.marks.__contains__)
        self._titles, self._foot, self._bar = Titles(self.rows), Foot(), Bar()
        self._input = FilterInput(placeholder=_PLACEHOLDER)
        self._nothing = Static("", classes="nothing", markup=False)
        frame = Vertical(self._titles, self.rows, self._nothing, self._foot, self._input)
        super().__init__(keys, host, self.rows, frame)
        self._session, self._tree = session, tree
        self._open_case, self._turn, self._run, self._cancel = open_case, turn, run, cancel
        self._line = line
        self._before: Pair | None = None
        """The case under the cursor before the filter was opened."""
        self._ticker: Timer | None = None

    @property
    def table(self) -> Table:
        """The rows and columns."""
        return self.rows.table

    def compose(self) -> ComposeResult:
        """Lay out the bar, the table and the footer."""
        yield self._bar
        yield from super().compose()

    def on_mount(self) -> None:
        """Show the rows, with the cursor on its earlier screen line."""
        super().on_mount()
        self.rows.when_moved, self.rows.when_column_moved = self._show_cursor, self._show_column
        self._input.use(self.table.query.text)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.rows.show(self._line)
        self.show_rows()
        self._show_marks()

    @property
    def line(self) -> int:
        """The screen line of the cursor, counted from the first visible row."""
        return max(self.rows.cursor - self.rows.scroll_offset.y, 0)

    def replace(self, table: Table) -> None:
        """Show another table, for example after the folder was read again."""
        self.rows.table = table
        self.show_rows()

    def show_rows(self) -> None:
        """Repaint all rows and titles after a change of rows or columns."""
        self.rows.show()
        self._titles.refresh()
        why = self._why_empty()
        self._nothing.update(Content(why))
        self._nothing.display = bool(why)
        self.show_facts()

    def refresh_cells(self) -> None:
        """Repaint the visible cells and the explanation after more costs became known."""
        self.rows.forget_drawn()
        self.rows.refresh()
        self._explain()

    def show_changed(self, changed: set[Pair]) -> None:
        """Repaint the cases whose verdicts changed. Order and cursor stay."""
        self.rows.forget_drawn()
        places = (self.table.position(pair) for pair in changed)
        self.rows.refresh_rows(place for place in places if place is not None)
        if self.table.pair in changed:
            self._explain()
        self.show_facts()

    def show_facts(self) -> None:
        """Update the bar, during a run once a second."""
        running = self._session.store.activity.running
        self._bar.show(bar_facts(self._session, len(self._tree.groups), relative_times.now()))
        if running and self._ticker is None:
            self._ticker = self.set_interval(1.0, self.show_facts)
        elif not running and self._ticker is not None:
            self._ticker.stop()
            self._ticker = None

    def _why_empty(self) -> str:
        """Return the first fault of the filter, else why the table is empty, else ""."""
        if self.table.query.faults:
            return self.table.query.faults[0]
        if self.table.rows:
            return ""
        return "no case matches; esc clears the filter" if not self.table.query.empty else "no cases here"

    def _show_column(self) -> None:
        self._titles.refresh()
        self._show_cursor()

    def _show_cursor(self) -> None:
        self._explain()
        self._write_title()

    def _explain(self) -> None:
        pair, source = self.table.pair, self.table.source
        known = ("", "") if pair is None else (source.explain(pair, self.table.current), source.cases.name(pair))
        self._foot.show(*known)
        record = None if pair is None else self._session.verdicts.record(*pair)
        if record is not None and known_details(record) is None:
            start_work(self, partial(self._read, record), "details", exclusive=True)

    async def _read(self, record: Execution) -> None:
        await asyncio.to_thread(read_details, record)
        if self.table.pair is not None and self._session.verdicts.record(*self.table.pair) is record:
            self._explain()

    def _write_title(self) -> None:
        """Write `Table: everything, cases × criteria ──── row 3 of 312, worst traj first` into the frame."""
        table = self.table
        count = len(table.rows)
        place = f"row {min(table.row + 1, count):,} of {count:,}" if count else "no row"
        marked = f", {len(self._tree.marks):,} marked" if len(self._tree.marks) else ""
        query = "" if table.query.empty else f", {table.query.text.strip()} ({count:,} of {len(table.pairs):,})"
        room = self.frame.size.width - 4
        for tail in (f"{place}{marked}, {table.order}", f"{place}, {table.order}", place):
            head = f"Table: {table.where}{query}, {table.source.title}"
            left = room - cell_len(tail) - 4
            if left >= min(cell_len(head), 24):
                break
        head = cut(head, max(left, 8))
        line = Style(foreground=self.frame.styles.border_top[1], bold=False)
        fill = "─" * max(room - cell_len(head) - cell_len(tail) - 2, 0)
        set_border_title(self.frame, Content.assemble(head, (f" {fill} ", line), (tail, line)))

    def _show_marks(self) -> None:
        """Show the number of marked cases, and that a run starts with them."""
        self._write_title()
        marked = len(self._tree.marks)
        actions = footer("table", ("run",) if marked else ())
        shown = [replace(one, label=f"{one.label} {marked:,}") if one.id == "run" else one for one in actions]
        self.key_line.show_keys(shown, self._keys)

    def on_resize(self) -> None:
        """Fit the columns and the title to the new width."""
        self.rows.refresh()
        self._show_column()

    def on_input_changed(self, event: PlainInput.Changed) -> None:
        """Apply the filter while it is typed, and put the cursor on the first match."""
        event.stop()
        table, typing = self.table, self._input.typing
        table.query = parse_query(event.value)
        table.load(self._tree.entries, self._tree.marks)
        if typing and not table.query.empty:
            table.row = 0
        elif typing and self._before is not None:
            table.stand_on(self._before)
        self.show_rows()

    def on_filter_input_done(self, event: FilterInput.Done) -> None:
        """Focus the rows."""
        event.stop()
        self.rows.focus()

    def action_filter(self) -> None:
        """Open the filter."""
        self._before = self.table.pair
        self._input.open()

    def action_next_column(self) -> None:
        """Go to the next column."""
        self.rows.step(1)

    def action_previous_column(self) -> None:
        """Go to the previous column."""
        self.rows.step(-1)

    def action_sort(self) -> None:
        """Sort by the column under the cursor, or reverse the order."""
        unread = self.table.unread()
        if unread:
            start_work(self, partial(self._read_and_sort, unread), "sort")
        else:
            self._sort_rows()

    async def _read_and_sort(self, unread: Sequence[Pair]) -> None:
        slow = self.set_timer(_SLOW, lambda: self.say(f"sorting: reading {counted(len(unread), 'case')}"))
        await asyncio.to_thread(self.table.source.cases.read, unread)
        slow.stop()
        self._sort_rows()

    def _sort_rows(self) -> None:
        self.table.sort_by_cursor()
        self.table.row = 0
        self.show_rows()

    def action_enter(self) -> None:
        """Open the case under the cursor."""
        if self.table.pair is not None:
            self._open_case()

    def action_switch_columns(self) -> None:
        """Switch between criteria and past runs."""
        self._turn()

    def action_problem(self, step: int) -> None:
        """Go to the next (1) or previous (-1) case that failed or ended in an error."""
        place = self.table.problem(step)
        if place is None:
            self.say(self._session.why_nothing_found("nothing failed here"))
        elif place == self.table.row:
            self.say("no other problem")
        else:
            wrapped = (place < self.table.row) == (step > 0)
            self.rows.move_to(place)
            if wrapped:
                self.say("wrapped around")

    def action_mark(self) -> None:
        """Mark or unmark the case, and go one row down."""
        if self.table.pair is not None:
            self._tree.marks.toggle([self.table.pair])
            self.rows.refresh_lines(self.table.row)
            self.rows.move("down")
            self._show_marks()

    def action_mark_all(self) -> None:
        """Mark all cases of the table, or unmark them if all are marked."""
        self._tree.marks.toggle(self.table.rows)
        self.rows.refresh()
        self._show_marks()

    def action_run(self) -> None:
        """Run the marked cases, or the current one."""
        if self._session.store.activity.busy:
            self.say("a run is active: x cancels it", warning=True)
        elif self.table.pair is not None:
            self._run(targets_of("run", self._tree, scope_of([self.table.pair])).pairs())

    def action_cancel(self) -> None:
        """Cancel the marked cases, or the current one. The second call kills them."""
        if self.table.pair is not None:
            self._cancel(targets_of("cancel", self._tree, scope_of([self.table.pair])).pairs())

    def action_copy_id(self) -> None:
        """Copy the ID of the case."""
        if self.table.pair is not None:
            evalset, case = self.table.pair
            self.copy("case ID", self._tree.entries[evalset].document.cases[case].eval_id)

    def action_copy(self) -> None:
        """Copy the explanation of the cell."""
        if self.table.pair is not None:
            self.copy("cell", self.table.source.explain(self.table.pair, self.table.current))

    def action_back(self) -> None:
        """Clear the filter if it was typed in the table, else leave the table."""
        if self.table.query.text == self.table.scope.query or not self._input.end():
            self.dismiss(None)
