"""What the terminal shows already is not sent to it again.

Textual sends whatever was laid out anew: the first frame four times, all of the screen twice or three times when a
dialog closes. Over a slow line that is what one waits for.
"""

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.control import Control
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip


class Sent:
    """What was sent to a terminal and still stands there: line → column → where that piece ends, and what it is."""

    def __init__(self) -> None:
        self._size = Size()
        self._lines: dict[int, dict[int, tuple[int, str]]] = {}

    def forget(self) -> None:
        """Nobody knows what the terminal shows."""
        self._lines.clear()

    def only_new(
        self, update: RenderableType | CompositorUpdate | None, size: Size
    ) -> RenderableType | CompositorUpdate | None:
        """The update without what stands there already; `size` is that of the terminal."""
        if size != self._size:
            self._size = size
            self.forget()
        if isinstance(update, LayoutUpdate | ChopsUpdate):
            return _OnlyNew(update, self)
        if update is not None:
            self.forget()
        return update

    def is_new(self, y: int, x: int, end: int, text: str, *, after_new: bool) -> bool:
        """Whether a piece must be sent, which then stands there. `after_new`: what is left of it was sent just now. If
        the terminal gives a character of that another width, it reaches into this one."""
        line = self._lines.setdefault(y, {})
        if line.get(x) == (end, text):
            return after_new
        for start in [start for start, (stop, _) in line.items() if start < end and stop > x]:
            del line[start]
        line[x] = (end, text)
        return True


class _OnlyNew(CompositorUpdate):
    """Decides when it is written: an update may be dropped before that."""

    def __init__(self, update: LayoutUpdate | ChopsUpdate, sent: Sent) -> None:
        self._update, self._sent = update, sent

    def render_segments(self, console: Console) -> str:
        found: list[str] = []
        new_in = -1
        update = self._update
        for y, x, strip in _of_layout(update) if isinstance(update, LayoutUpdate) else _of_chops(update):
            text = strip.render(console)
            if self._sent.is_new(y, x, x + strip.cell_length, text, after_new=new_in == y):
                found += (Control.move_to(x, y).segment.text, text)
                new_in = y
        return "".join(found)


def _of_layout(update: LayoutUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Line, column, and what is to stand there, as `LayoutUpdate.render_segments` has them."""
    for y, line in enumerate(update.strips, update.region.y):
        x = update.region.x
        for strip in line:
            yield y, x, strip
            x += strip.cell_length


def _of_chops(update: ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    """The same, as `ChopsUpdate.render_segments` has it."""
    for y, first, last in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is None or x > last or end <= first:
                continue
            whole = last > x >= first and end <= last
            yield y, x, strip if whole else strip.crop(0, min(end, last) - x)
