"""What stands around a pane of a case: the frame with name and verdict, and the strip of panes with the position."""

from textual.app import ComposeResult
from textual.content import Content
from textual.events import DescendantBlur, DescendantFocus
from textual.style import Style
from textual.widget import Widget

from workbench.rendering.cells import cell_len
from workbench.rendering.lines import width_of
from workbench.rendering.title import ending, summary, title
from workbench.ui.detail.body import Body
from workbench.ui.detail.head import Head
from workbench.ui.detail.reading import Reading
from workbench.ui.textual_private import set_border_title


class CaseFrame(Widget):
    """Tells of what is read in its body which case, which pane and which turn that is."""

    DEFAULT_CSS = """
    CaseFrame {
        layout: vertical;
        border: round $border-blurred;
        border-title-color: $label-strong;
        border-title-style: bold;
        &:focus-within { border: round $border; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._reading = Reading()
        self._turn: int | None = None
        """The turn that was jumped to, as long as nothing else was scrolled to."""
        self._head = Head()
        self._body = Body()

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._body

    @property
    def pane_titles(self) -> tuple[str, ...]:
        """The panes of the case, in the order of their digits."""
        return self._reading.titles

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        self.call_after_refresh(self._write_title)

    def on_descendant_blur(self, event: DescendantBlur) -> None:
        self.call_after_refresh(self._write_title)

    def on_body_moved(self, event: Body.Moved) -> None:
        event.stop()
        self._write_head()

    def _turn_in_sight(self) -> int | None:
        """The turn that was jumped to, else that of the cursor, else the one at the top of the pane; at the very end
        the last one."""
        document, body = self._body.document, self._body
        if self._turn is not None and self._turn < len(document.turns):
            return self._turn
        if body.item is not None:
            return document.turn_at(body.item.start)
        if document.turns and body.at_end and body.top > 0:
            return len(document.turns) - 1
        return document.turn_at(body.top)

    def _write_head(self) -> None:
        turn, count = self._turn_in_sight(), len(self._body.document.turns)
        named = turn is not None and count > 1 and self._reading.pane.by_turns
        position = f"turn {(turn or 0) + 1} of {count}" if named else ""
        chosen = self._reading.panes.index(self._reading.pane)
        told = summary(self._reading.subject, max(self._head.size.width - 2, 0))
        self._head.show(self.pane_titles, chosen, position, told)

    def _write_title(self) -> None:
        """Write `agent › evalset › case ──── stale: prompt.txt  ✗ FAIL` into the frame."""
        room = self.size.width - 4
        tail = ending(self._reading.subject, room - 4)
        name = title(self._reading.subject, room - width_of(tail) - 4)
        if not name or room < 12:
            set_border_title(self, None)
            return
        line = Style(foreground=self.styles.border_top[1], bold=False)
        parts: list[tuple[str, str | Style]] = [(name, "")]
        if tail:
            fill = "─" * max(room - cell_len(name) - width_of(tail) - 2, 0)
            parts += [(f" {fill} ", line), *((text, f"${style} bold" if style else "") for text, style in tail)]
        set_border_title(self, Content.assemble(*parts))
