"""A dialog that shows a page of lines."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from workbench.results.document import Document
from workbench.results.lines import Line
from workbench.ui.detail.body import Body
from workbench.ui.widgets.keys import bindings


class PageScreen(ModalScreen[None]):
    """A page over the screen. Any key that goes back closes it.

    `build` returns the lines for a width in cells. `title` is safe text.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "back", "close", "quit")
    ]

    def __init__(self, title: str, build: Callable[[int], list[Line]], keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._title, self._build, self._keys = title, build, keys
        self._body = Body()

    def compose(self) -> ComposeResult:
        """Lay out the frame with the page in it."""
        with Vertical(classes="dialog -page") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content("esc closes")
            yield self._body

    def on_mount(self) -> None:
        """Focus the page."""
        self._body.focus()

    def on_body_resized(self, event: Body.Resized) -> None:
        """Build the page again for its new width."""
        event.stop()
        self.show(self._build)

    def show(self, build: Callable[[int], list[Line]]) -> None:
        """Replace the page. The scroll position stays."""
        self._build = build
        width = self._body.planned("never").width
        if width > 0:
            self._body.show(Document(build(width)), self._body.top)

    def action_move(self, direction: str) -> None:
        """Scroll the page."""
        self._body.move(direction)

    def action_back(self) -> None:
        """Close the page."""
        self.dismiss(None)

    action_close = action_quit = action_back
