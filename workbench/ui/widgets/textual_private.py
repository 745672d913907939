"""All uses of Textual's private names, each with a fallback for versions without the name.

`tests/ui/widgets/test_textual_private.py` lists the needed names and checks that no other module uses one.
"""

import re
import sys
import termios
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.control import Control
from rich.segment import Segment
from textual.app import App
from textual.content import Content
from textual.driver import Driver
from textual.events import Key
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.theme import Theme
from textual.widget import Widget

if TYPE_CHECKING:
    from textual._xterm_parser import XTermParser
    from textual.drivers.linux_driver import LinuxDriver
else:
    XTermParser = LinuxDriver = object


class SparseApp(App[int]):
    """An app that sends only changes to the terminal, and parses its stylesheet only once before the first frame.

    Textual sends every layout in full: the first frame four times, and the whole screen two or three times when a
    dialog closes. This takes long on a slow line. If a private name is missing, Textual's behaviour is left unchanged.
    """

    def __init__(self) -> None:
        super().__init__()
        self._frame = ShownFrame()

    def get_driver_class(self) -> type[Driver]:
        """Return Textual's driver, changed to parse keys with `KeyParser` and to continue correctly after a stop."""
        driver = super().get_driver_class()
        module: Any = sys.modules[driver.__module__]
        parser = getattr(module, "XTermParser", None)
        if parser is not None and not issubclass(parser, KeyParser):
            module.XTermParser = type("XTermParser", (KeyParser, parser), {})
        if not hasattr(driver, "_sigcont_application"):
            return driver
        return type(driver.__name__, (ContinuedDriver, driver), {})

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        self._frame.reduce(renderable, self.size)
        super()._display(screen, renderable)

    def _update_mouse_over(self, screen: Screen[Any]) -> None:
        """Clear the mark for another repaint on a screen behind a dialog.

        Textual calls this at the end of each repaint. Without this change, the mark would stay. Textual would then
        repaint the dialog and all screens behind it after each timer and message there.
        """
        super()._update_mouse_over(screen)
        if screen is not self.screen:
            screen._repaint_required = False
            # Textual marks only these changes for a repaint of the upper screen, and forgets what else is due there.
            self.screen.refresh()

    def draw_in_full(self) -> None:
        """Send the whole screen, because the content of the terminal is unknown."""
        self._frame.forget()
        self.refresh(layout=True)

    def begin_with(self, theme: Theme) -> None:
        """Set the initial theme. Setting `theme` would parse the stylesheet a second time."""
        self.register_theme(theme)
        refresh_filter = getattr(self, "_refresh_truecolor_filter", None)
        if refresh_filter is None:
            self.theme = theme.name
            return
        self.set_reactive(App.theme, theme.name)
        self.set_class(theme.dark, "-dark-mode", update=False)
        self.set_class(not theme.dark, "-light-mode", update=False)
        refresh_filter(self.ansi_theme)
        self.stylesheet.set_variables(self.get_css_variables())


class ContinuedDriver(LinuxDriver):
    """A mixin for Textual's driver that handles SIGCONT after a SIGSTOP.

    Textual's driver starts again at each SIGCONT, even if it was not stopped before. A second thread would then read
    keys, which mixes up their order, and the terminal would stay in raw mode at the end.
    """

    def start_application_mode(self) -> None:
        """Start to use the terminal, and record its settings."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._settings: Any = None
        with suppress(termios.error):
            self._settings = termios.tcgetattr(self.fileno)

    def _sigcont_application(self, *args: Any) -> None:
        reader = getattr(self, "_key_thread", None)
        if reader is None or not reader.is_alive():
            super()._sigcont_application(*args)
            return
        if self._settings is not None:
            termios.tcsetattr(self.fileno, termios.TCSANOW, self._settings)  # A shell may have used the terminal.
        if isinstance(self._app, SparseApp):
            self._loop.call_soon_threadsafe(self._app.draw_in_full)


_ESC = "\x1b"
_SEQUENCE = re.compile(r"\x1b(?:O[ -~]?|\[(?:\[[A-E]?|M.{0,3}|[0-?]*[ -/]*[@-~]?))?", re.DOTALL)
"""A complete or incomplete escape sequence for a key or mouse event."""
_PASTE = {f"{_ESC}[200~": True, f"{_ESC}[201~": False}
"""Escape sequence → whether pasted text begins (True) or ends (False) at it."""
_STALLED = 0.3
"""Seconds without a read of the terminal, after which two characters may be two keys. Textual reads every 0.1 s."""


class KeyParser(XTermParser):
    """A mixin for Textual's parser that recognises `esc` even if other keys follow quickly.

    Textual parses `esc` and everything within 0.1 s after it, or in the same read, as one sequence. If that is unknown,
    `esc` is lost. Here, a sequence ends at the first character that cannot belong to it. An unknown sequence is sent as
    single keys. `esc` and one character are the key alt+character only if they arrive together, and nothing else with
    them.
    """

    def __init__(self, debug: bool = False) -> None:
        self._sequence = ""
        """The characters since the last `esc`, while they may be a sequence."""
        self._is_alt = self._pasting = False
        self._looked = time.monotonic()
        super().__init__(debug)

    def feed(self, data: str) -> Iterable[Message]:
        """Yield the keys and other messages in the terminal's input. Pasted text yields no keys."""
        if not data or not hasattr(self, "_timeout_time"):
            yield from super().feed(data)
            return
        is_pair = len(data) == 2 and data[0] == _ESC and data[1] not in f"[O{_ESC}" and not self._sequence
        self._is_alt = is_pair and time.monotonic() - self._looked < _STALLED
        for character in data:
            if self._sequence and not self._is_alt and not _SEQUENCE.fullmatch(self._sequence + character):
                yield from self._end_sequence()
            if character == _ESC or self._sequence:
                self._sequence += character
            yield from self._without_pasted(super().feed(character))
            if self._sequence in _PASTE:
                self._pasting = _PASTE[self._sequence]
        if self._is_alt:
            yield from self._end_sequence()

    def tick(self) -> Iterable[Message]:
        """Yield the keys of a sequence that was not completed in time. Called after each read of the terminal."""
        self._looked = time.monotonic()
        yield from self._without_pasted(super().tick())
        if self._timeout_time is None:
            self._sequence = ""

    def _end_sequence(self) -> Iterable[Message]:
        self._sequence = ""
        if self._timeout_time is not None:
            self._timeout_time = 0.0
            yield from self._without_pasted(super().tick())

    def _without_pasted(self, messages: Iterable[Message]) -> Iterable[Message]:
        return (message for message in messages if not (self._pasting and isinstance(message, Key)))

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[Key]:
        for event in super()._sequence_to_key_events(sequence, alt=alt and self._is_alt):
            if alt and self._is_alt:
                yield Key(event.key if event.key.startswith("alt+") else f"alt+{event.key}", None)
                continue
            if alt:
                yield Key("escape", _ESC)
            yield event


class ShownFrame:
    """The strips that the terminal shows, by line and column.

    A changed strip is sent in full, with the rest of its line, because the terminal may draw a foreign character wider
    than expected. If a strip has only ASCII and signs of the workbench, only its changed segments are sent.
    """

    def __init__(self) -> None:
        self._size = Size()
        self._lines: dict[int, dict[int, Strip]] = {}

    def forget(self) -> None:
        """Forget what the terminal shows."""
        self._lines.clear()

    def reduce(self, update: Any, size: Size) -> None:
        """Make an update render only changes for a terminal of this size. Updates of unknown types are not changed."""
        if size != self._size:
            self._size = size
            self.forget()
        if hasattr(update, "render_segments") and (_is_layout(update) or _is_chops(update)):
            # An update may be dropped before it is rendered, so the pieces are compared then.
            update.render_segments = partial(self._render, update, update.render_segments)
        elif update is not None:
            self.forget()

    def _render(self, update: Any, render_in_full: Any, console: Console) -> str:
        try:
            return "".join(self._new_pieces(update, console))
        except (AttributeError, LookupError, TypeError, ValueError):
            # This version of Textual builds its updates in another way.
            self.forget()
            return str(render_in_full(console))

    def _new_pieces(self, update: Any, console: Console) -> Iterator[str]:
        overlapped_in = -1
        for y, x, strip in _of_layout(update) if _is_layout(update) else _of_chops(update):
            shown = self._replace(y, x, strip)
            if overlapped_in != y and shown is not None:
                if shown.render(console) == strip.render(console):
                    continue
                if _has_sure_width(shown) and _has_sure_width(strip):
                    for start, part in _changed_parts(shown, strip):
                        yield Control.move_to(x + start, y).segment.text + part.render(console)
                    continue
            if strip.cell_length:
                yield Control.move_to(x, y).segment.text + strip.render(console)
            overlapped_in = y

    def _replace(self, y: int, x: int, strip: Strip) -> Strip | None:
        """Record a strip as shown. Return the strip that it replaces if it had the same place and width, else None."""
        line, end = self._lines.setdefault(y, {}), x + strip.cell_length
        before = line.get(x)
        if before is None or before.cell_length != strip.cell_length:
            before = None
            for start in [start for start, one in line.items() if start < end and start + one.cell_length > x]:
                del line[start]
        line[x] = strip
        return before


def _has_sure_width(strip: Strip) -> bool:
    """Return whether every terminal draws each character of a strip in one cell."""
    return strip.text.isascii() or _sure_characters().issuperset(strip.text)


@cache
def _sure_characters() -> frozenset[str]:
    """Return characters that every terminal draws in one cell: ASCII, box drawing, blocks, the workbench's signs."""
    from workbench.text.ascii_signs import CELLS

    return frozenset([*map(chr, range(0x20, 0x7F)), *map(chr, range(0x2500, 0x25A0)), *CELLS])


def _changed_parts(before: Strip, after: Strip) -> Iterator[tuple[int, Strip]]:
    """Yield (offset in cells, strip) for the changed parts of a strip. Adjacent changed segments are one part."""
    known = dict(_placed(before))
    first, changed = 0, list[Segment]()
    for start, segment in _placed(after):
        if known.get(start) != segment:
            first = first if changed else start
            changed.append(segment)
        elif changed:
            yield first, Strip(changed)
            changed = []
    if changed:
        yield first, Strip(changed)


def _placed(strip: Strip) -> Iterator[tuple[int, Segment]]:
    start = 0
    for segment in strip:
        yield start, segment
        start += len(segment.text)  # Only for characters of one cell.


def set_border_title(widget: Widget, title: Content | None) -> None:
    """Set a widget's title and repaint only that line. Setting `border_title` would repaint the whole widget."""
    if not hasattr(widget, "_border_title"):
        widget.border_title = title
    elif title != widget._border_title:
        widget._border_title = title
        widget.refresh(Region(-1, -1, widget.outer_size.width, 1))


def _is_layout(update: Any) -> bool:
    return hasattr(update, "strips") and hasattr(update, "region")


def _is_chops(update: Any) -> bool:
    return hasattr(update, "chops") and hasattr(update, "spans") and hasattr(update, "chop_ends")


def _of_layout(update: Any) -> Iterator[tuple[int, int, Strip]]:
    """Yield line, column and strip, in the order of `LayoutUpdate.render_segments`."""
    for y, line in enumerate(update.strips, update.region.y):
        x = update.region.x
        for strip in line:
            yield y, x, strip
            x += strip.cell_length


def _of_chops(update: Any) -> Iterator[tuple[int, int, Strip]]:
    """Yield line, column and strip, in the order of `ChopsUpdate.render_segments`."""
    for y, first, last in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is None or x > last or end <= first:
                continue
            whole = last > x >= first and end <= last
            yield y, x, strip if whole else strip.crop(0, min(end, last) - x)
