"""The widget of the overview: a frame with a title, and lines with a cursor."""

from collections.abc import Hashable
from typing import Self

from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from workbench.results.overview import criterion_of, overview_document
from workbench.results.tally import Overview
from workbench.ui.detail.body import Body
from workbench.ui.detail.drawing import layout
from workbench.ui.widgets.textual_private import set_border_title

_FRAME = 2
"""Cells of the frame on both sides."""


class OverviewPane(Widget):
    """An overview, which is updated in place.

    The cursor is on the first item until the user moves it. After that, it stays on its item during updates.
    """

    DEFAULT_CSS = """
    OverviewPane {
        border: round $border-blurred;
        border-title-color: $label-strong;
        border-title-style: bold;
        &:focus-within { border: round $border; }
    }
    """

    class Chosen(Message):
        """A click on the item under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self._body = Body()
        self.overview = Overview()
        """The content that is shown."""
        self._scope: Hashable = None
        self._title = ""
        self._touched = False
        """Whether the user has moved the cursor in this scope."""
        self.moves = 0
        """Number of moves and clicks by the user since the program started."""

    def compose(self) -> ComposeResult:
        """Lay out the lines."""
        yield self._body

    @property
    def item_key(self) -> str:
        """The key of the item under the cursor, or "" without items."""
        item = self._body.item
        return item.key if item is not None else ""

    @property
    def criterion(self) -> str:
        """The criterion under the cursor, or "" if there is none."""
        found = criterion_of(self.item_key)
        return found[0] if found is not None else ""

    def show(self, scope: Hashable, title: str, overview: Overview) -> int:
        """Show an overview, from the top for another `scope`. Return the number of lines that changed."""
        if title != self._title:
            self._title = title
            set_border_title(self, Content(title))
        same, self._scope = scope == self._scope, scope
        if same and overview == self.overview:
            return 0
        self._touched = self._touched and same
        self.overview = overview
        return self._lay_out()

    def stand_on(self, key: str) -> bool:
        """Put the cursor on an item. Return False if there is no such item."""
        number = self._body.document.item_named(key)
        if number is not None:
            self._touched = True
            self._body.stand_on(number)
        return number is not None

    def stand_on_first(self) -> None:
        """Put the cursor on the first item, which is the first cause if anything failed."""
        self._touched = False
        self._body.move("top")

    def move(self, direction: str) -> bool:
        """Move the cursor or scroll after a key. Return whether anything moved."""
        moved = self._body.move(direction)
        if moved:
            self._touched = True
            self.moves += 1
        return moved

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the lines."""
        self._body.focus(scroll_visible)
        return self

    def copy_text(self) -> tuple[str, str]:
        """Return a name and the text of the overview."""
        return self._title, "\n".join(line.plain.rstrip() for line in self._body.document.lines)

    def on_click(self) -> None:
        """Count a click like a move of the cursor by a key."""
        self.moves += 1

    def on_body_resized(self, event: Body.Resized) -> None:
        """Lay out the lines for another size."""
        event.stop()
        self._lay_out()

    def on_body_picked(self, event: Body.Picked) -> None:
        """Report a click on the item under the cursor."""
        event.stop()
        self.post_message(self.Chosen())

    def on_body_moved(self, event: Body.Moved) -> None:
        """Keep the cursor on the clicked item during updates."""
        self._touched = self._touched or self._body.cursor > 0

    @property
    def _size_of_body(self) -> Size:
        # Before the first layout, the parent's size tells it, so that the first frame is not painted twice.
        if self._body.size or not isinstance(self.parent, Widget):
            return self._body.size
        width, height = self.parent.size
        return Size(max(width - _FRAME, 0), max(height - _FRAME, 0))

    def _lay_out(self) -> int:
        body, before = self._body, self._body.document
        planned = layout(self._size_of_body, False)
        document = overview_document(self.overview, planned.width)
        item = body.item if self._touched else None
        number = document.item_named(item.key) if item is not None else None
        top = 0
        if self._touched and body.top:
            # At the top, what is inserted above the cursor may move it down.
            moved = document.items[number].start - item.start if number is not None and item is not None else 0
            top = body.top + moved
        body.show(document, top, cursor=number or 0)
        same = sum(one == other for one, other in zip(before.lines, document.lines, strict=False))
        return max(len(before.lines), len(document.lines)) - same
