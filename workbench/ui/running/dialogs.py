"""Dialogs about runs: how often to repeat cases, and the machines of a run."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label, Static

from workbench.results.lines import Line
from workbench.results.machines import machine_lines
from workbench.store.rates import fewest_for_sure
from workbench.text.counting import counted
from workbench.ui.dialogs.screens import PageScreen
from workbench.ui.running.engine_run import RepeatOptions
from workbench.ui.widgets.basics import PlainInput

if TYPE_CHECKING:
    from workbench.run.dask.files import MachineState

MOST = 1000
_PROPOSED = "5"
_PROPOSED_UNTIL_SURE = "50"
_LOOK_EVERY = 1.0
_HOW = "enter runs · tab next field · esc closes"


_Options = TypeVar("_Options")


class Checkbox(Static, can_focus=True):
    """A checkbox, toggled with space or a click."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "turn")]

    def __init__(self, words: str) -> None:
        super().__init__(markup=False)
        self._words = words
        self.on = False

    def on_mount(self) -> None:
        """Show the box and its label."""
        self._show()

    def action_turn(self) -> None:
        """Toggle the box."""
        self.on = not self.on
        self._show()

    on_click = action_turn

    def _show(self) -> None:
        self.update(Content(f"[{'x' if self.on else ' '}] {self._words}"))


class FieldsDialog(ModalScreen[_Options | None]):
    """A dialog with fields and a help line. Its result is the parsed fields, or None if the user cancels."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss"),
        Binding("enter", "start"),
        Binding("down", "app.focus_next"),
        Binding("up", "app.focus_previous"),
    ]

    def read(self) -> _Options | str:
        """Return the parsed fields, or a message if the input is not valid."""
        raise NotImplementedError

    def say(self, words: str) -> None:
        """Show safe text in the help line."""
        self.query_one(".help", Static).update(Content(words))

    def action_start(self) -> None:
        """Close the dialog with a result. If the input is not valid, show why."""
        found = self.read()
        if isinstance(found, str):
            self.say(found)
        else:
            self.dismiss(found)

    on_input_submitted = action_start


class RepeatScreen(FieldsDialog[RepeatOptions]):
    """A dialog that asks how often to run each case. `question` is safe text."""

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question
        self._times = PlainInput(_PROPOSED)
        self._until = PlainInput(placeholder="e.g. 90")
        self._votes = Checkbox("ask for every judge vote, to tell a flaky agent from a flaky judge")

    def compose(self) -> ComposeResult:
        """Lay out the two fields, the checkbox and the help line."""
        with Vertical(classes="dialog -small -repeat") as dialog:
            dialog.border_title = Content(self._question)
            with Horizontal():
                yield Label("times")
                yield self._times
            with Horizontal():
                yield Label("until sure that")
                yield self._until
                yield Label("% pass", classes="unit")
            yield self._votes
            yield Static(_meaning(RepeatOptions(int(_PROPOSED))), classes="help", markup=False)

    def on_mount(self) -> None:
        """Select the proposed number, which typing then replaces."""
        self._times.select_all()

    def on_input_changed(self) -> None:
        """Explain the input. If a pass rate is entered, propose a higher limit."""
        if self._until.value.strip() and self._times.value == _PROPOSED:
            self._times.value = _PROPOSED_UNTIL_SURE
        self.say(_HOW if isinstance(found := self.read(), str) else _meaning(found))

    def read(self) -> RepeatOptions | str:
        """Return the options, or a message if the input is not valid."""
        times, until = self._times.value.strip(), self._until.value.strip().removesuffix("%").strip()
        if not (times.isdecimal() and 1 <= int(times) <= MOST):
            return f"times must be a number from 1 to {MOST:,}"
        if not until:
            return RepeatOptions(int(times), all_votes=self._votes.on)
        try:
            share = float(until) / 100
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            return "the pass rate must be above 0 and below 100%"
        return RepeatOptions(int(times), share, self._votes.on)


def _meaning(times: RepeatOptions) -> str:
    if times.until_sure is None:
        return f"{counted(times.runs, 'run')} of each case · {_HOW}"
    needed = fewest_for_sure(times.until_sure)
    if needed is not None and needed > times.runs:
        passes = counted(needed, "pass", "passes")
        return f"certainty needs {passes} in a row; {counted(times.runs, 'run')} can only show a lower rate"
    return f"at most {counted(times.runs, 'run')} of each case · {_HOW}"


class MachinesScreen(PageScreen):
    """A page with a table of a run's machines, updated while it is open. `look` returns their current states."""

    def __init__(self, look: "Callable[[], Sequence[MachineState]]") -> None:
        self._look = look
        self._shown = look()
        super().__init__("machines", self._lines)

    def on_mount(self) -> None:
        """Show the page, and start to update it."""
        super().on_mount()
        self.set_interval(_LOOK_EVERY, self.look_again)

    def look_again(self) -> None:
        """Update the table if a state has changed."""
        states = self._look()
        if states != self._shown:
            self._shown = states
            self.show(self._lines)

    def _lines(self, width: int) -> list[Line]:
        return list(machine_lines(self._shown, width))
