"""The footer: up to seven keys from the action table, or a short message."""

from collections.abc import Mapping, Sequence

from textual.content import Content
from textual.events import Click
from textual.timer import Timer
from textual.widget import Widget

from workbench.actions import Action, key_label
from workbench.rendering.cells import cell_len, cut
from workbench.text import one_line

_MESSAGE_SECONDS = 3.0
"""Seconds that a message is shown."""


class KeyLine(Widget):
    """The footer line. It shows as many actions as fit, in their order. A click runs one.

    `keys` are those of the user's keymap.
    """

    def __init__(self, actions: Sequence[Action], keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._shown: list[tuple[str, str, str]] = []
        self.show_keys(actions, keys)
        self._places: list[tuple[int, str]] = []
        self._message: tuple[str, str] | None = None
        self._message_timer: Timer | None = None

    def show_keys(self, actions: Sequence[Action], keys: Mapping[str, tuple[str, ...]]) -> None:
        """Replace the actions and keys."""
        self._shown = [
            (action.call, key_label(keys[action.id][0]), action.label) for action in actions if keys[action.id]
        ]
        self.refresh()

    def say(self, text: str, *, warning: bool = False) -> None:
        """Show a short message in place of the keys for a while. Raw text."""
        if self._message_timer is not None:
            self._message_timer.stop()
        self._message = (one_line(text), "status-not-evaluated" if warning else "label-strong")
        self._message_timer = self.set_timer(_MESSAGE_SECONDS, self.clear_message)
        self.refresh()

    def clear_message(self) -> None:
        """Show the keys again."""
        self._message = None
        self.refresh()

    def render(self) -> Content:
        """Return the message, or the keys that fit."""
        self._places = []
        if self._message is not None:
            text, variable = self._message
            return Content.styled(" " + cut(text, self.size.width - 2), f"${variable}")
        parts: list[tuple[str, str]] = [(" ", "")]
        column, last = 1, len(self._shown) - 1
        # The last action ("help") leads to all others, so it is always shown.
        reserved = cell_len(f"{self._shown[last][1]} {self._shown[last][2]}") if self._shown else 0
        for number, (name, key, label) in enumerate(self._shown):
            width = cell_len(f"{key} {label}") + 2
            if number < last and column + width + reserved > self.size.width:
                continue
            parts += [(key, "$footer-key-foreground bold"), (f" {label}  ", "$status-muted")]
            column += width
            self._places.append((column, name))
        return Content.assemble(*parts)

    async def on_click(self, event: Click) -> None:
        """Run the clicked action."""
        for end, name in self._places:
            if event.x < end:
                await self.screen.run_action(name)
                return
