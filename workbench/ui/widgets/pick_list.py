"""A list to pick from, with the typed letters marked."""

from collections.abc import Sequence

from workbench.ui import fuzzy
from workbench.ui.items import Item
from workbench.ui.widgets.rows import Piece, RowView


class PickList(RowView):
    """Shows items; `query` marks the letters that made them match."""

    def __init__(self) -> None:
        super().__init__()
        self.items: Sequence[Item] = ()
        self.query_text = ""

    def show_items(self, items: Sequence[Item], query: str = "", *, cursor: int = 0) -> None:
        """Replaces the items."""
        self.items, self.query_text = items, query
        self._cursor = cursor
        self.rows_changed()
        self.scroll_to(y=0, animate=False)
        self.move_to(cursor)
        self.show_cursor()
        self.when_moved()

    @property
    def item(self) -> Item | None:
        """What the cursor is on; None in an empty list."""
        return self.items[self.cursor] if self.items and not self.items[self.cursor].heading else None

    def row_count(self) -> int:
        return len(self.items)

    def can_stop(self, position: int) -> bool:
        return not self.items[position].heading

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        item = self.items[position]
        if item.heading:
            return [(item.label, "label")], []
        kind = [(item.kind + "  ", "label")] if item.kind else []
        right = [(item.hint, "label")] if item.hint else []
        return [*kind, *self._label(item.label)], right

    def _label(self, label: str) -> list[Piece]:
        marked = set(fuzzy.positions(self.query_text, label) or ()) if self.query_text.strip() else set()
        pieces: list[Piece] = []
        for number, letter in enumerate(label):
            name = "match" if number in marked else ""
            if pieces and pieces[-1][1] == name:
                pieces[-1] = (pieces[-1][0] + letter, name)
            else:
                pieces.append((letter, name))
        return pieces
