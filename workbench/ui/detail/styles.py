"""Styles of the render functions, resolved in the theme. Turns their lines into strips."""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from workbench.results.faces import FACES, FLAKY
from workbench.results.lines import Line, pieces
from workbench.ui.widgets.strips import joined

PREFIX = "detail--"
_RULES = {
    "muted": "color: $status-muted;",
    "label": "color: $label;",
    "strong": "text-style: bold;",
    "name": "text-style: bold;",
    "user": "text-style: italic;",
    "heading": "color: $label-strong; text-style: bold;",
    "rule": "color: $border-blurred;",
    "hint": "color: $accent; text-style: bold;",
    "fold": "color: $label;",
    "underlined": "color: $label; text-style: underline;",
    "status-error-strong": "color: $status-error; text-style: bold;",
    "diff-same": "color: $diff-same;",
    "diff-differs": "color: $diff-differs; text-style: bold;",
    "diff-missing": "color: $diff-missing;",
    "diff-extra": "color: $diff-extra;",
    "diff-moved": "color: $diff-moved;",
    "mark-missing": "color: $diff-missing; background: $diff-missing-background; text-style: bold underline;",
    "mark-extra": "color: $diff-extra; background: $diff-extra-background; text-style: bold underline;",
    "evidence-for": "color: $status-passed;",
    "evidence-against": "color: $status-failed;",
    "tab": "color: $status-muted;",
    "tab-chosen": "color: $label-strong; text-style: bold underline;",
    **{face.variable: f"color: ${face.variable}; text-style: bold;" for face in (*FACES.values(), FLAKY)},
}
COMPONENTS = frozenset(f"{PREFIX}{name}" for name in _RULES)


def component_css(widget: str) -> str:
    """Return the CSS rules for the component classes of a widget type."""
    return "\n".join(f"{widget} > .{PREFIX}{name} {{ {rule} }}" for name, rule in _RULES.items())


class Painter:
    """Turns lines into strips with the colours of one widget, which has `COMPONENTS`."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._styles: dict[str, Style] = {}

    def forget(self) -> None:
        """Forget the cached styles, because the theme or the widget's style changed."""
        self._styles.clear()

    def strip(self, line: Line, width: int) -> Strip:
        """Return the line in exactly `width` cells."""
        strip = Strip([Segment(text, self.style(name)) for text, name in pieces(line)])
        return Strip(joined(strip.adjust_cell_length(width, self.style(""))), width)

    def style(self, name: str) -> Style:
        """Return the style of a name, "" for the widget's own. Cached, because Textual asks all parents."""
        style = self._styles.get(name)
        if style is None:
            component = f"{PREFIX}{name}"
            style = self._widget.get_component_rich_style(component) if name else self._widget.rich_style
            self._styles[name] = style
        return style
