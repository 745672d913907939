"""How often cases are to be repeated: a number of times, or until their pass rate is sure."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label, Static

from workbench.counting import counted
from workbench.rates import fewest_for_sure
from workbench.ui.repeat_options import RepeatOptions
from workbench.ui.widgets.plain_input import PlainInput

MOST = 1000
_PROPOSED = "5"
_PROPOSED_UNTIL_SURE = "50"
_HOW = "enter starts, tab goes on, esc leaves"


class Checkbox(Static, can_focus=True):
    """Something that is done or not; blank turns it over."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "turn")]

    def __init__(self, words: str) -> None:
        super().__init__(markup=False)
        self._words = words
        self.on = False

    def on_mount(self) -> None:
        self._show()

    def on_click(self) -> None:
        self.action_turn()

    def action_turn(self) -> None:
        self.on = not self.on
        self._show()

    def _show(self) -> None:
        self.update(Content(f"[{'x' if self.on else ' '}] {self._words}"))


class RepeatScreen(ModalScreen[RepeatOptions | None]):
    """Ends with how often, None if it was left. `question` is safe text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave"),
        Binding("enter", "start"),
        Binding("down", "app.focus_next"),
        Binding("up", "app.focus_previous"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question
        self._times = PlainInput(_PROPOSED)
        self._until = PlainInput(placeholder="90")
        self._votes = Checkbox("all votes of judges: tells agent from judge")

    def compose(self) -> ComposeResult:
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
            yield Static(_HOW, classes="help", markup=False)

    def on_mount(self) -> None:
        self._times.select_all()

    def on_input_changed(self) -> None:
        if self._until.value.strip() and self._times.value == _PROPOSED:
            self._times.value = _PROPOSED_UNTIL_SURE
        self._say(_HOW if isinstance(found := self._read(), str) else _meaning(found))

    def on_input_submitted(self) -> None:
        self.action_start()

    def action_start(self) -> None:
        found = self._read()
        if isinstance(found, str):
            self._say(found)
        else:
            self.dismiss(found)

    def action_leave(self) -> None:
        self.dismiss(None)

    def _read(self) -> RepeatOptions | str:
        """What is asked for, or what is wrong with it."""
        times, until = self._times.value.strip(), self._until.value.strip().removesuffix("%").strip()
        if not (times.isdecimal() and 1 <= int(times) <= MOST):
            return f"a number from 1 to {MOST:,}, please"
        if not until:
            return RepeatOptions(int(times), all_votes=self._votes.on)
        try:
            share = float(until) / 100
        except ValueError:
            share = 0.0
        if not 0 < share < 1:
            return "a share above 0 and under 100 %, please"
        return RepeatOptions(int(times), share, self._votes.on)

    def _say(self, words: str) -> None:
        self.query_one(".help", Static).update(Content(words))


def _meaning(times: RepeatOptions) -> str:
    if times.until_sure is None:
        return _HOW
    needed = fewest_for_sure(times.until_sure)
    if needed is not None and needed > times.runs:
        passes = counted(needed, "pass", "passes")
        return f"to be sure takes {passes} in a row: with at most {times.runs} it can only turn out too low"
    return f"until each case is sure, at most {counted(times.runs, 'time')}; {_HOW}"
