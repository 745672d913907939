"""A frame whose title ends in a name, which is cut if there is little room."""

from collections.abc import Iterable

from textual.containers import Vertical
from textual.content import Content

from workbench.results.cells import cell_len, cut_name

_CORNERS = 6
"""Cells of a frame's first line beside its title."""


class Titled(Vertical):
    """A frame with a title such as `triage: late_parcel…paid_twice`. Its texts are safe.

    `others` are names from which a cut name is told apart.
    """

    def __init__(self, words: str, name: str, *, classes: str, others: Iterable[str] = ()) -> None:
        super().__init__(classes=classes)
        self._words, self._name_in_title, self._others = words, name, tuple(others)

    def use_name(self, name: str) -> None:
        """Replace the name."""
        self._name_in_title = name
        self._write()

    def on_resize(self) -> None:
        """Cut the name for the new width."""
        self._write()

    def _write(self) -> None:
        room = self.outer_size.width - _CORNERS - cell_len(self._words)
        self.border_title = Content(self._words + cut_name(self._name_in_title, max(room, 1), self._others))
