"""The options of a triage question, in as many columns as fit."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.events import Click, Resize
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from workbench.results.cells import cell_len, fit
from workbench.results.lines import Line
from workbench.ui.detail.styles import COMPONENTS, Painter, component_css
from workbench.ui.triage.question import Option

_MARK = 2
_MOST_COLUMNS = 3


def columns_for(options: Sequence[str], width: int) -> int:
    """Return the number of columns for labels of options in `width` cells: one at least, three at most."""
    widest = max(map(cell_len, options), default=0) + _MARK
    fitting = max(min(width // max(widest, 1), _MOST_COLUMNS, len(options)), 1)
    # Use no more columns than needed for the same number of lines.
    lines = -(-len(options) // fitting)
    return -(-len(options) // max(lines, 1)) or 1


class OptionGrid(Widget, can_focus=True):
    """The options, each with its key and a cursor on one of them. The earlier answer is marked.

    `key_of` returns the key of an option that has a letter. `when_moved` is called if the cursor is on another option.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {*COMPONENTS, "optiongrid--cursor"}
    DEFAULT_CSS = (
        "OptionGrid { height: 1; & > .optiongrid--cursor { background: $block-cursor-background; } }"
        + component_css("OptionGrid")
    )

    class Picked(Message):
        """A click on an option."""

    def __init__(self, key_of: Callable[[Option], str]) -> None:
        super().__init__()
        self.options: Sequence[Option] = ()
        self.chosen = ""
        self.cursor = 0
        self.when_moved: Callable[[], None] = lambda: None
        self._key_of = key_of
        self._painter = Painter(self)

    @property
    def option(self) -> Option:
        """The option under the cursor."""
        return self.options[self.cursor]

    def show(self, options: Sequence[Option], chosen: str) -> None:
        """Replace the options, with the cursor on the earlier answer `chosen`."""
        self.options, self.chosen = options, chosen
        values = [option.value for option in options]
        self.cursor = values.index(chosen) if chosen in values else 0
        self._fit()
        self.refresh()
        self.when_moved()

    def move(self, direction: str) -> None:
        """Move the cursor to the next (`down`) or previous (`up`) option."""
        cursor = min(max(self.cursor + (1 if direction == "down" else -1), 0), len(self.options) - 1)
        if cursor != self.cursor:
            self.cursor = cursor
            self.refresh()
            self.when_moved()

    def on_resize(self, event: Resize) -> None:
        """Use as many columns as fit now."""
        self._fit()

    def on_click(self, event: Click) -> None:
        """Choose the clicked option."""
        columns = self._columns
        number = event.y * columns + event.x // max(self.size.width // columns, 1)
        if number < len(self.options):
            self.cursor = number
            self.post_message(self.Picked())

    def render_line(self, y: int) -> Strip:
        """Draw a row of options."""
        columns, width = self._columns, self.size.width
        line = Text()
        for number in range(y * columns, min((y + 1) * columns, len(self.options))):
            line.append_text(self._cell(number, width // columns))
        strip = self._painter.strip(line, width)
        if y * columns <= self.cursor < (y + 1) * columns and self.has_focus:
            cell = width // columns
            start = (self.cursor % columns) * cell
            parts = list(strip.divide([start, start + cell, width]))
            style = self.get_component_rich_style("optiongrid--cursor", partial=True)
            return Strip.join([parts[0], parts[1].apply_style(style), *parts[2:]])
        return strip

    def notify_style_update(self) -> None:
        """Forget the cached styles."""
        super().notify_style_update()
        self._painter.forget()

    @property
    def _columns(self) -> int:
        return columns_for([self._text(number) for number in range(len(self.options))], self.size.width)

    def _fit(self) -> None:
        if self.size.width:
            self.styles.height = -(-len(self.options) // self._columns) or 1

    def _text(self, number: int) -> str:
        option = self.options[number]
        key = self._key_of(option) if option.key else str(number + 1)
        return f"{key}  {option.word}{' ⚑' if option.value == self.chosen else ''}"

    def _cell(self, number: int, width: int) -> Line:
        key, _, words = self._text(number).partition("  ")
        edge = "▌" if number == self.cursor else " "
        return Text.assemble((edge, "hint"), (key, "hint"), (fit(f"  {words}", width - 1 - len(key)), "strong"))
