"""To any part of the screen with two keys: `'`, and the one that stands there."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static


def places(panes: Sequence[str]) -> dict[str, tuple[str, str]]:
    """For each key: where it leads (`cases`, `filter` or the number of a pane) and what that is called."""
    found = {"c": ("cases", "cases"), "/": ("filter", "filter")}
    return found | {str(number): (str(number), name) for number, name in enumerate(panes[:9], 1)}


class JumpScreen(ModalScreen[str | None]):
    """Ends with a place of `places`, None for any other key."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave")]

    def __init__(self, panes: Sequence[str]) -> None:
        super().__init__()
        self._places = places(panes)

    def compose(self) -> ComposeResult:
        with Vertical(classes="corner") as corner:
            corner.border_title = Content("jump to")
            lines = [
                Content.assemble((f" {key} ", "bold $accent"), f" {name} ") for key, (_, name) in self._places.items()
            ]
            yield Static(Content("\n").join(lines))

    def on_key(self, event: Key) -> None:
        event.stop()
        place = self._places.get(event.character or "")
        self.dismiss(place[0] if place else None)

    def action_leave(self) -> None:
        self.dismiss(None)
