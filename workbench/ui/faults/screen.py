"""The dialog that offers tool faults, and the screen with their table and single executions."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.events.events import CaseRef
from workbench.files.prices import Prices
from workbench.results.cells import cut
from workbench.results.document import Subject
from workbench.results.faults import about_cell, counts_text, progress_text
from workbench.store.details import known_details, read_details
from workbench.store.execution import Execution
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.actions import footer
from workbench.ui.dialogs.pick import show_keys
from workbench.ui.dialogs.screens import Batches
from workbench.ui.faults.grid import FaultGrid, Matrix, Titles
from workbench.ui.running.run_thread import SideRun, cancel_words
from workbench.ui.screen.list_screen import CASE_KEYS, SplitScreen
from workbench.ui.screen.sides import Right
from workbench.ui.terminal.host import Host
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import KeyLine, bindings, bindings_of


@dataclass(frozen=True, slots=True)
class Offer:
    """Safe texts for the dialog about what would run."""

    heading: str
    live: Sequence[str]
    """Lines for live tools."""
    frozen: Sequence[str]
    """Lines for tools that are answered from recordings. Empty if no case has a recording."""
    more: Sequence[str] = ()
    """Further lines, for both modes."""


class FaultDialog(ModalScreen[bool | None]):
    """A dialog that offers to try faults. `title` is safe text.

    Its result is whether tools are frozen, or None if the user cancels.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("back", "close", "keys"), *bindings_of("try_faults")]

    def __init__(self, title: str, offer: Offer, frozen: bool, keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._title, self._offer, self._keys = title, offer, keys
        self._frozen = frozen and bool(offer.frozen)
        self._text = Static("", classes="text", markup=False)
        self._line = KeyLine(footer("try_faults"), keys)

    def compose(self) -> ComposeResult:
        """Lay out the text and the keys."""
        with Vertical(classes="dialog -faults") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content("esc closes")
            yield self._text
            yield self._line

    def on_mount(self) -> None:
        """Show what would run."""
        self._show()

    def _show(self) -> None:
        offer = self._offer
        lines = [*(offer.frozen if self._frozen else offer.live), *offer.more]
        self._text.update(Content.assemble((offer.heading, "bold"), *(f"\n{line}" for line in lines)))

    def action_enter(self) -> None:
        """Close the dialog. The executions then start."""
        self.dismiss(self._frozen)

    def action_toggle_frozen(self) -> None:
        """Switch between live and frozen tools."""
        if self._offer.frozen:
            self._frozen = not self._frozen
            self._show()
        else:
            self._line.say("no case here has a recording: K freezes cases", warning=True)

    def action_keys(self) -> None:
        """Show the keys of this dialog."""
        show_keys(self, "try_faults", self._keys)

    def action_back(self) -> None:
        """Close the dialog."""
        self.dismiss(None)

    action_close = action_back


_APART = "executions with faults do not count as verdicts"


class FaultScreen(SplitScreen):
    """The table of tool faults, which fills the screen until the panes of an execution replace it.

    `title` is safe text. `start` starts the run, and is None for a stored matrix. `go` opens the case of an execution
    in the main screen, and returns False if the case no longer exists.
    """

    where, list_name = "faults", "table"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow")]  # noqa: RUF012 - Textual's declaration
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(*CASE_KEYS), *bindings_of("faults")]

    def __init__(
        self,
        matrix: Matrix,
        title: str,
        state: Path,
        keys: Mapping[str, tuple[str, ...]],
        host: Host,
        *,
        prices: Prices | None,
        go: Callable[[CaseRef], bool],
        start: Callable[[Callable[[], None]], SideRun] | None = None,
    ) -> None:
        self.grid = FaultGrid()
        self._about = Static("", classes="about", markup=False)
        self.right = Right()
        frame = Vertical(Titles(self.grid), self.grid, self._about)
        super().__init__(keys, host, self.grid, frame, self.right, self.right)
        self._matrix, self._title, self._state, self._prices = matrix, title, state, prices
        self.go, self._begin = go, start
        self._batches = Batches(self, self._take_news)
        self._back_to_tools = False
        """Whether esc goes back from the rows by case to the rows by tool."""
        self._leaves_with = 0
        """The number of the key press that may leave although the run is then cancelled."""

    def on_mount(self) -> None:
        """Show the table, and start the run unless the matrix is stored."""
        super().on_mount()
        self.right.detail.display = False  # Created here, so that the first execution shown has the focus at once.
        self.frame.border_subtitle = Content(_APART)
        self.grid.when_moved, self.grid.when_laid_out = self._show_about, self.query_one(Titles).refresh
        self._show_records()
        if self._begin is not None:
            self._matrix.link = self._begin(self._batches.wake)

    @property
    def case_shown(self) -> bool:
        """Whether an execution is shown in place of the table."""
        return self.in_right and self.right.shows_case

    def _take_news(self) -> int:
        self._matrix.take()
        self._show_records()
        if self.in_right:
            self._show_execution()
        return len(self.grid.rows)

    def _show_records(self) -> None:
        matrix = self._matrix
        records = matrix.records
        self.grid.show_records(records)
        self.frame.border_title = Content("tool faults by case" if self.grid.by_case else "tool faults")
        progress = progress_text(records) if records else ("starting" if matrix.going or self._begin else "no faults")
        self.show_bar(f"◂ {self._title}   {progress}", "esc: back")
        self._show_about()

    def _show_about(self) -> None:
        matrix, line = self._matrix, self.grid.row_or_none
        parts: list[str | tuple[str, str]] = []
        if matrix.refused is not None:
            why = f"{matrix.refused.message}. {matrix.refused.hint}".rstrip(". ")
            parts += [(one_line(why, limit=500), "$status-error"), "\n"]
        elif matrix.warning is not None:
            why = f"{matrix.warning.message}. {matrix.warning.hint}".rstrip(". ")
            parts += [(one_line(why, limit=300), "$status-not-evaluated"), "\n"]
        if line is not None and line.has_cells:
            words, reason = about_cell(line.row, self.grid.way)
            # The counts below stay visible on any screen.
            parts += [(words, "bold"), "\n", *([cut(reason, 2 * max(self.size.width - 6, 20)), "\n"] if reason else [])]
        parts.append((counts_text(matrix.records, signs=True), "$status-muted"))
        self._about.update(Content.assemble(*parts))

    def _record(self) -> Execution | None:
        return self.grid.cell[0] if self.grid.cell else None

    def _show_execution(self) -> bool:
        """Show the execution under the cursor. Return False if it has not started."""
        record = self._record()
        if record is None or record.state == "queued":
            return False
        details = known_details(record)
        if details is None:
            start_work(self, partial(self._read, record), "details", exclusive=True)
        else:
            self.right.show_case(Subject(details, state=self._state, prices=self._prices))
        return True

    async def _read(self, record: Execution) -> None:
        await asyncio.to_thread(read_details, record)
        if self._record() is record:
            self._show_execution()

    @property
    def case_here(self) -> CaseRef | None:
        """The execution under the cursor, or None."""
        record = self._record()
        return None if record is None else record.ref

    @property
    def running(self) -> str:
        """What is still running on this screen, or ""."""
        return "the run is" if self._matrix.going else ""

    def action_open(self) -> None:
        """Go to the next column. In the panes, unfold."""
        if self.in_right:
            super().action_open()
        else:
            self.grid.step(1)

    def action_close(self) -> None:
        """Go to the previous column. In the panes, fold or go back."""
        if self.in_right:
            super().action_close()
        else:
            self.grid.step(-1)

    def action_enter(self) -> None:
        """Show the execution of the cell, or a row for each case if it has several. In the panes, unfold or fold."""
        if self.in_right:
            if self.right.shows_case:
                self.right.detail.toggle_full()
        elif len(self.grid.cell) > 1:
            record = self.grid.cell[0]
            self._back_to_tools = True
            self.grid.by_case = True
            self._show_records()
            self.grid.go_to(record)
        elif self._show_execution():
            self.go_right()
        else:
            self.say("this execution has not started yet" if self._record() is not None else "no execution here")

    def action_switch_rows(self) -> None:
        """Switch between rows by tool and rows by case."""
        self._back_to_tools = False
        record = self._record()
        self.grid.by_case = not self.grid.by_case
        self._show_records()
        if record is not None:
            self.grid.go_to(record)

    def action_problem(self, step: int) -> None:
        """Go to the next (1) or previous (-1) fault that the agent did not handle. In the panes, show its execution."""
        if not self.grid.next_problem(step):
            self.say("no problem here" + (" so far" if self._matrix.going else ""))
        elif self.in_right:
            self._show_execution()

    def action_cancel(self) -> None:
        """Cancel the run, or kill it the second time. Executions that have ended are kept."""
        if not self._matrix.going or self._matrix.link is None:
            self.say("nothing is running here")
        else:
            self.say(cancel_words("the run", kill=self._matrix.link.cancel()))

    def action_copy(self) -> None:
        """In the panes, copy the item under the cursor."""
        found = self.right.copied() if self.in_right else None
        if found is not None:
            self.copy(*found)

    def action_back(self) -> None:
        """Go back one step: to the table, to the rows by tool, or to the previous screen.

        A run in progress is cancelled, after a warning.
        """
        if self.in_right:
            if not (self.case_shown and self.right.detail.go_back()):
                self.go_left()
        elif self._back_to_tools:
            self.action_switch_rows()
        elif self._matrix.going and self._leaves_with != (pressed := getattr(self.app, "keys_delivered", 0)):
            self._leaves_with = pressed + 1
            left = sum(not record.finished for record in self._matrix.records)
            self.say(f"{counted(left, 'execution')} to come: esc again cancels the run", warning=True)
        else:
            if self._matrix.going and self._matrix.link is not None:
                self._matrix.link.cancel()
            self.dismiss(None)
