"""The footer, which shows keys or a short message, and the keys of actions as Textual bindings."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from textual.binding import Binding
from textual.content import Content
from textual.events import Click
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from workbench.results.cells import cell_len, cut
from workbench.text.safe_text import one_line
from workbench.ui.actions import BY_ID, Action, Keymap, Where, actions_in, key_label, key_name


def bindings(*ids: str) -> list[Binding]:
    """Return the bindings of the actions with these IDs.

    A binding calls `action_<method>` of its widget. If that raises `SkipAction`, the parent widget gets the key. The
    user's keymap refers to a binding by the ID of its action.
    """
    return [binding for name in ids for binding in _binding(BY_ID[name])]


def bindings_of(where: Where) -> list[Binding]:
    """Return the bindings of all actions of a place, including those without default keys."""
    return [binding for action in actions_in(where) for binding in _binding(action)]


def textual_keymap(keymap: Keymap) -> dict[str, str]:
    """Return the argument of `App.set_keymap`, for the actions whose keys differ from the defaults."""
    digits = BY_ID["pane"].keys
    changed = {f"pane_{digit}": f"unbound_{digit}" for digit in digits if digit not in keymap.keys["pane"]}
    for name, keys in keymap.keys.items():
        if name == "pane":
            continue
        if keys != tuple(map(key_name, BY_ID[name].keys)):
            changed[name] = ",".join(keys) or f"unbound_{name}"
    return changed


def _binding(action: Action) -> list[Binding]:
    if action.by_digit:
        return [
            Binding(digit, f"{action.call}({digit})", action.label, id=f"{action.id}_{digit}") for digit in action.keys
        ]
    keys = ",".join(map(key_name, action.keys)) or f"unbound_{action.id}"
    return [Binding(keys, action.call, action.label, id=action.id)]


_MESSAGE_SECONDS = 3.0
"""Seconds that a message is shown."""
_GAPS = (3, 2)
"""Numbers of columns between two actions. The first one with which all actions fit is used."""


class KeyLine(Widget):
    """The footer line, with as many actions as fit. A click on an action runs it.

    The palette and the help are always shown. `keys` are those of the user's keymap. Behind a dialog, no keys are
    shown, because they do not work there.
    """

    def __init__(self, actions: Sequence[Action], keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._shown: list[_Shown] = []
        self.show_keys(actions, keys)
        self._places: list[tuple[int, str]] = []
        self._message: tuple[str, str] | None = None
        self._message_timer: Timer | None = None
        self._covered = False

    def on_mount(self) -> None:
        """Hide the keys whenever another screen is on top."""
        self.app.screen_change_signal.subscribe(self, self._follow, immediate=True)

    def _follow(self, top: Screen[Any]) -> None:
        covered = top is not self.screen
        if covered != self._covered:
            self._covered = covered
            self.refresh()

    def show_keys(self, actions: Sequence[Action], keys: Mapping[str, tuple[str, ...]], needed: int = 99) -> None:
        """Replace the actions and keys. Those after the first `needed` are left out if not all actions fit."""
        shown = [
            _Shown(
                action.call,
                key_label(keys[action.id][0]),
                action.label,
                action.leads_on or action is actions[-1],
                number >= needed,
            )
            for number, action in enumerate(actions)
            if keys[action.id]
        ]
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def say(self, text: str, *, warning: bool = False, seconds: float = _MESSAGE_SECONDS) -> None:
        """Show a short message in place of the keys for some seconds. The text need not be safe."""
        if self._message_timer is not None:
            self._message_timer.stop()
        self._message = (one_line(text), "status-not-evaluated" if warning else "label-strong")
        self._message_timer = self.set_timer(seconds, self.clear_message)
        self.refresh()

    def has_room_for(self, text: str) -> bool:
        """Return whether the line is visible and a message fits into it."""
        return self.display and "\n" not in text and cell_len(text) <= self.size.width - 2

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
        shown, gap = fitting(() if self._covered else self._shown, self.size.width)
        column = 1
        for action in shown:
            parts += [(action.key, "$footer-key-foreground bold"), (f" {action.label}{' ' * gap}", "$status-muted")]
            column += action.width + gap
            self._places.append((column, action.call))
        return Content.assemble(*parts)

    async def on_click(self, event: Click) -> None:
        """Run the clicked action."""
        for end, name in self._places:
            if event.x < end:
                await self.screen.run_action(name)
                return


class _Shown(NamedTuple):
    """An action in the footer.

    `always`: it is never left out. `spare`: it is left out if not all actions fit.
    """

    call: str
    key: str
    label: str
    always: bool
    spare: bool = False

    @property
    def width(self) -> int:
        return cell_len(f"{self.key} {self.label}")


def fitting(actions: Sequence[_Shown], width: int) -> tuple[Sequence[_Shown], int]:
    """Return the actions that fit into a line of `width` cells, and the number of columns between them.

    Spare actions are left out first, the last one first. Then others are left out, except those that are always shown.
    """
    shown = list(actions)
    while any(action.spare and not action.always for action in shown) and _width(shown, _GAPS[0]) > width:
        del shown[max(number for number, action in enumerate(shown) if action.spare and not action.always)]
    while True:
        for gap in _GAPS:
            if _width(shown, gap) <= width:
                return shown, gap
        optional = [number for number, action in enumerate(shown) if not action.always]
        if not optional:
            return shown, _GAPS[-1]
        del shown[optional[-1]]


def _width(actions: Sequence[_Shown], gap: int) -> int:
    return 1 + sum(action.width for action in actions) + gap * (len(actions) - 1)
