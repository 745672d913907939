"""The dialog for freezing cases: the cases, what is written for each, and two options."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from workbench.editing.freezing import Freezing, FrozenCase
from workbench.events.events import CaseName
from workbench.results.cells import cell_len, cut_name
from workbench.results.document import Document
from workbench.results.freezing import call_words, case_lines, total_words
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.actions import footer
from workbench.ui.detail.body import Body
from workbench.ui.dialogs.screens import RowsScreen
from workbench.ui.editing.proposals import checkbox
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import KeyLine, bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf

_STYLES = {"new": "passed", "changed": "accent", "unchanged": "muted", "not frozen": "error"}
_WORDS_FROM = 50


@dataclass(frozen=True, slots=True)
class FreezeChoice:
    """The names of the chosen cases, and two options.

    `models`: record answers of models, too. `prune`: drop calls that a frozen run did not use.
    """

    cases: frozenset[CaseName]
    models: bool
    prune: bool


class FreezeList(RowsOf[FrozenCase]):
    """The cases with checkboxes. At first, all cases whose recording would change are chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: set[CaseName] = set()
        self._known: set[CaseName] = set()

    def show_cases(self, cases: Sequence[FrozenCase]) -> None:
        """Replace the cases. Cases that the user deselected stay deselected."""
        new = {case.ref.name for case in cases if _would_change(case)}
        self.chosen = (self.chosen & new) | (new - self._known)
        self._known |= new
        self.rows = cases
        self.rows_changed()
        self.move_to(self.cursor)

    def toggle(self, cases: Sequence[FrozenCase]) -> bool:
        """Choose these cases, or deselect them if all are chosen. Return False if no recording would change."""
        names = {case.ref.name for case in cases if _would_change(case)}
        self.chosen = self.chosen - names if names <= self.chosen else self.chosen | names
        self.refresh()
        return bool(names)

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return checkbox, name and change of a case."""
        case = self.rows[position]
        mark = checkbox(case.ref.name in self.chosen, 1) if _would_change(case) else ("    ", "")
        words = case.change if width < _WORDS_FROM or case.recording is None else f"{case.change}, {call_words(case)}"
        room = max(width - 4 - cell_len(words) - 1, 8)
        name = cut_name(one_line(case.ref.eval_id, limit=200), room, (one.ref.eval_id for one in self.rows))
        return [mark, (name, "")], [(words, _STYLES[case.change])]


class FreezeScreen(RowsScreen[FreezeChoice | None]):
    """The dialog for freezing cases. Its result is what to freeze, or None if the user cancels.

    `prepare(models, prune)` returns what would be written with these options. It reads files and is called in a thread.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("freeze")]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - Textual's declaration

    where = "freeze"

    def __init__(
        self,
        prepared: Freezing,
        prepare: Callable[[bool, bool], Freezing],
        root: Path,
        keys: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.list = FreezeList()
        super().__init__(self.list, keys)
        self._freezing, self._prepare, self._root = prepared, prepare, root
        self._models = any(case.recording is not None and case.recording.models for case in prepared.cases)
        self._prunes = False
        self._about = Body()
        self._choice = Vertical(self.list, classes="choice")
        self._facts = Static("", classes="facts", markup=False)

    def compose(self) -> ComposeResult:
        """Lay out the cases, what is written for the current one, and the keys."""
        with Vertical(classes="dialog accept") as dialog:
            dialog.border_title = Content(f"freeze › {counted(len(self._freezing.cases), 'case')}")
            dialog.border_subtitle = Content("enter writes the files · esc closes")
            with Horizontal(classes="sides"):
                yield self._choice
                with Vertical(classes="about"):
                    yield self._about
            yield self._facts
            yield self.message
            yield KeyLine(footer("freeze"), self.keys_of)

    def on_mount(self) -> None:
        """Show the cases."""
        self._about.can_focus = False
        self.list.when_moved = self._show_case
        self._show()
        self.list.focus()

    def action_move(self, direction: str) -> None:
        """Move the cursor, or scroll the details of the case by pages."""
        if direction in ("page_down", "page_up"):
            self._about.move(direction)
        else:
            self.list.move(direction)

    def action_choose(self) -> None:
        """Choose or deselect the current or clicked case."""
        case = self.list.row
        if not self.list.toggle([case]):
            self.say(f"nothing to write: {case.change}" if case.recording else one_line(case.why), warning=True)
        self._show_facts()

    on_row_view_picked = action_choose

    def action_choose_all(self) -> None:
        """Choose or deselect all cases."""
        self.list.toggle(self._freezing.cases)
        self._show_facts()

    def action_toggle_models(self) -> None:
        """Switch between recording only tool answers and recording model answers, too."""
        self._models = not self._models
        self._prepare_again()

    def action_toggle_pruning(self) -> None:
        """Drop or keep recorded calls that a frozen run did not use."""
        self._prunes = not self._prunes
        self._prepare_again()

    def action_enter(self) -> None:
        """Close the dialog and return the choice, or show a warning if no case is chosen."""
        if self.list.chosen:
            self.dismiss(FreezeChoice(frozenset(self.list.chosen), self._models, self._prunes))
        else:
            self.say("nothing to write: no case is chosen", warning=True)

    def on_body_resized(self, event: Body.Resized) -> None:
        """Lay out the case for the new width."""
        event.stop()
        self._show_case()

    def _prepare_again(self) -> None:
        start_work(self, partial(self._prepared, self._models, self._prunes), "preview", exclusive=True)

    async def _prepared(self, models: bool, prune: bool) -> None:
        try:
            self._freezing = await asyncio.to_thread(self._prepare, models, prune)
        except OSError as error:
            self.say(one_line(str(error)), warning=True)
            return
        self._show()

    def _show(self) -> None:
        self.list.show_cases(self._freezing.cases)
        # On a narrow screen, the details are below the list and get the lines that it does not need.
        self._choice.styles.max_height = max(len(self._freezing.cases), 1)
        self._show_facts()
        self._show_case()

    def _show_facts(self) -> None:
        chosen = [case for case in self._freezing.cases if case.ref.name in self.list.chosen or case.recording is None]
        options = f"[{'x' if self._models else ' '}] models  [{'x' if self._prunes else ' '}] drop unused calls"
        self._facts.update(Content(f"{options}\n{', '.join(total_words(self._freezing, chosen))}"))

    def _show_case(self) -> None:
        width = self._about.planned().width
        if width > 0 and self.list.rows:
            self.say("")
            self._about.show(Document(case_lines(self.list.row, self._root, width)), 0)


def _would_change(case: FrozenCase) -> bool:
    return case.change in ("new", "changed")
