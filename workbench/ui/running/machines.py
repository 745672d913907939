"""The page that lists the machines of a run, up to date while it is open."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.rendering.lines import Line
from workbench.rendering.machines import machine_lines
from workbench.ui.dialogs.page import PageScreen

if TYPE_CHECKING:
    from workbench.places.place import MachineState

_EVERY = 1.0
_FIRST = 0.1
"""Seconds until the states of now have come from the run's thread."""


class MachinesScreen(PageScreen):
    """A table of the machines that `look` returns."""

    def __init__(self, look: "Callable[[], Sequence[MachineState]]", keys: Mapping[str, tuple[str, ...]]) -> None:
        self._look = look
        self._shown = look()
        super().__init__("machines", self._lines, keys)

    def on_mount(self) -> None:
        """Focus the page, and keep it up to date."""
        super().on_mount()
        self.set_timer(_FIRST, self.look_again)
        self.set_interval(_EVERY, self.look_again)

    def look_again(self) -> None:
        """Show the states of now if they have changed."""
        states = self._look()
        if states != self._shown:
            self._shown = states
            self.show(self._lines)

    def _lines(self, width: int) -> list[Line]:
        return list(machine_lines(self._shown, width))
