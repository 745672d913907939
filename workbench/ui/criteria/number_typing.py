"""A number that is typed at its row: it counts for that row, whatever key comes next."""

from collections.abc import Callable

from textual.events import Key

from workbench.authoring.criteria_form import FormRow
from workbench.ui.criteria.form_list import FormList

IN_NUMBERS = frozenset("0123456789.,")
"""The characters that are typed at the row of a number. A comma is refused in the end, with the reason."""
_LONGEST = 12


class NumberTyping:
    """`take` gets the row and what was typed: after each key, and once it has `ended`. It returns False if that is no
    number."""

    def __init__(self, rows: FormList, take: Callable[[FormRow, str, bool], bool]) -> None:
        self._list, self._take = rows, take
        self._row: FormRow | None = None
        """The row that a number is being typed for."""

    @property
    def text(self) -> str:
        """What was typed so far."""
        return self._list.typed

    @property
    def takes_numbers(self) -> bool:
        """Whether the row with the cursor has a number."""
        row = self._list.row_or_none
        return row is not None and row.kind in ("threshold", "number")

    def key(self, event: Key) -> bool:
        """Take a key that belongs to a number."""
        if event.key == "backspace" and self.text:
            self._show(self.text[:-1])
            return True
        character = event.character
        return bool(character and character in IN_NUMBERS and self.takes_numbers and self.add(character))

    def add(self, text: str) -> bool:
        """Add to what was typed; False if it becomes too long."""
        if len(self.text + text) > _LONGEST:
            return False
        self._show(self.text + text)
        return True

    def end(self) -> bool:
        """Take what was typed, if anything. Return False if it is no number: it is dropped then."""
        text, row = self.text, self._row
        self.drop()
        return not text or row is None or self._take(row, text, True)

    def drop(self) -> bool:
        """Forget what was typed; False if nothing was."""
        typed = bool(self.text)
        self._list.typed, self._row = "", None
        self._list.refresh()
        return typed

    def _show(self, text: str) -> None:
        self._row = self._list.row_or_none
        self._list.typed = text
        self._list.refresh()
        if text and self._row is not None:
            self._take(self._row, text, False)
