"""The dialog that sets up a fork: the change, the number of tries, and their cost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from workbench.events.events import ForkChange
from workbench.run.forking import Change, Choice
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.actions import footer
from workbench.ui.dialogs.screens import RowsScreen
from workbench.ui.editing.field import EditField
from workbench.ui.widgets.basics import Titled
from workbench.ui.widgets.footer import KeyLine, bindings, bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf

MOST_TRIES = 50
_KEYS = "r runs · esc closes"
_NAMES: Mapping[ForkChange, str] = {
    "message": "user's message",
    "answer": "tool's answer",
    "instruction": "instruction",
    "model": "model",
    "nothing": "no change",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """A possible change. `text` is the text to edit.

    `note` is raw text about the source of `text`. With `whole`, the new text replaces the whole instruction of a
    request, not only the part from the agent's file.
    """

    choice: Choice
    text: str
    note: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The change to try. `offer` is the index of the chosen offer, `text` the edited text. `frozen`: frozen tools."""

    offer: int
    text: str
    change: Change
    tries: int = 3
    frozen: bool = False


class Offers(RowsOf[Offer]):
    """The possible changes, one per line."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        super().__init__(offers)
        self.texts = [offer.text for offer in offers]

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the name of a possible change and the beginning of its text, and whether the user changed it."""
        offer, on = self.rows[position], position == self.cursor
        choice = offer.choice
        name = _NAMES[choice.kind]
        if choice.kind in ("instruction", "model"):
            name = f"{name} of {one_line(choice.agent, limit=30)}"
        changed = self.texts[position] != offer.text
        pieces: list[Piece] = [("(•) " if on else "( ) ", "accent" if on else "muted"), (name, "strong" if on else "")]
        text = one_line(self.texts[position], limit=200)
        return [*pieces, (f"  {text}", "accent" if changed else "muted")], [("changed", "accent")] if changed else []


class ForkDialog(RowsScreen[Wanted | None]):
    """A dialog that asks which change to try. Its result is the change, or None if the user cancels.

    The heading is `title` (raw text) and `name` (the case's safe name). If `name` is cut, it stays different from
    `others`. `cost` returns safe text about the cost of a number of tries. `before` is the previous choice. Without it,
    `frozen` says whether tools are frozen at first.
    """

    where = "fork"

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("close"), *bindings_of("fork")]

    def __init__(
        self,
        title: str,
        name: str,
        others: Iterable[str],
        offers: Sequence[Offer],
        cost: Callable[[int], str],
        keys: Mapping[str, tuple[str, ...]],
        before: Wanted | None = None,
        *,
        frozen: bool = False,
    ) -> None:
        self._list = Offers(offers)
        super().__init__(self._list, keys)
        self._title, self._name_in_title, self._others = one_line(title, limit=200), name, others
        self._cost = cost
        self._tries, self._frozen = (3, frozen) if before is None else (before.tries, before.frozen)
        self._before = before
        if before is not None:
            self._list.texts[before.offer] = before.text
        self._field = EditField()
        self._field.read_only = True
        self._field.can_focus = False
        self._summary = Static("", classes="fork-tries", markup=False)
        self._line = KeyLine(footer("fork"), keys)
        self._typing = Static(" ctrl+o keeps the text · esc drops the change", classes="field-keys", markup=False)

    def compose(self) -> ComposeResult:
        """Lay out the choices, the text, the number of tries and the keys."""
        with Titled(f"{self._title} › ", self._name_in_title, classes="dialog -fork", others=self._others) as dialog:
            dialog.border_subtitle = _KEYS
            yield self._list
            yield self._field
            yield self._summary
            yield self.message
            yield self._line
            yield self._typing

    def on_mount(self) -> None:
        """Select the previous choice, or else the first one."""
        self._list.styles.height = len(self._list.rows)
        self._list.when_moved = self._show
        self._list.focus()
        if self._before is not None:
            self._list.move_to(self._before.offer)
        self._typing.display = False
        self._show()

    def action_edit(self) -> None:
        """Focus the text field. The choice “no change” has no text to edit."""
        if self._list.row.choice.kind == "nothing":
            self.say("no text to edit: r tries the same again")
            return
        self._field.can_focus, self._field.read_only = True, False
        self._field.move_cursor(self._field.document.end)
        self._field.focus()
        self._show_typing(True)

    action_enter = action_edit

    def on_edit_field_saved(self) -> None:
        """Keep the text, and go back to the choices. If it is not valid, show why and stay."""
        if fault := self._fault(self._field.text):
            self.say(fault, warning=True)
        else:
            self._list.texts[self._list.cursor] = self._field.text
            self.on_edit_field_left()

    def on_edit_field_left(self) -> None:
        """Go back to the choices. The text in the field is discarded."""
        self._field.can_focus, self._field.read_only = False, True
        self._show_typing(False)
        self._list.focus()
        self._show()

    def action_add_tries(self, step: int) -> None:
        """Add `step` to the number of tries, which stays between 1 and `MOST_TRIES`."""
        self._tries = max(1, min(self._tries + step, MOST_TRIES))
        self._show_tries()

    def action_toggle_frozen(self) -> None:
        """Switch between live and frozen tools."""
        self._frozen = not self._frozen
        self._show_tries()

    def action_run(self) -> None:
        """Close the dialog and return the change to try. If nothing is changed, or the text is not valid, show why."""
        offer, text = self._list.row, self._list.texts[self._list.cursor]
        if offer.choice.kind != "nothing" and text == offer.text:
            self.say("nothing is changed yet: e edits the text, or choose “no change” to try the same again")
            return
        fault = self._fault(text)
        if fault:
            self.say(fault, warning=True)
            return
        change = offer.choice.change(text, whole=offer.whole)
        self.dismiss(Wanted(self._list.cursor, text, change, self._tries, self._frozen))

    action_close = RowsScreen.action_back

    def _show_typing(self, typing: bool) -> None:
        self._line.display, self._typing.display = not typing, typing
        self.query_one(".dialog").border_subtitle = None if typing else _KEYS

    def _fault(self, text: str) -> str:
        """Return why a text is not valid, or "" if it is."""
        choice = self._list.row.choice
        if not text.strip() and choice.kind != "nothing":
            return "the text is empty"
        try:
            choice.change(text)
        except (ValueError, RecursionError) as error:
            return one_line(f"not valid JSON: {error}", limit=200)
        return ""

    def _show(self) -> None:
        offer = self._list.row
        self._field.load_text(self._list.texts[self._list.cursor])
        self._field.display = offer.choice.kind != "nothing"
        self.say(one_line(offer.note, limit=300))
        self._list.refresh()
        self._show_tries()

    def _show_tries(self) -> None:
        tools = "frozen tools" if self._frozen else "live tools"
        tries = counted(self._tries, "try", "tries")
        self._summary.update(Content(f"{tries} · {tools} · {self._cost(self._tries)}"))
