"""Textual's private names: which are needed, that nothing else uses any, and what happens without them."""

import importlib
import inspect
import itertools
import pkgutil
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from textual import _compositor, _parser
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.content import Content
from textual.drivers import linux_driver
from textual.events import Key
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

import workbench.ui
from tests.ui.conftest import OpenScreen
from workbench.ui.criteria.form import CriteriaScreen
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.widgets import textual_private
from workbench.ui.widgets.textual_private import KeyParser, ShownFrame, set_border_title

SIZE = Size(12, 3)
CUTS = [[0, 5, 8, 12], [0, 12], [0, 2, 4, 12], [0, 6, 12]]
SEGMENT = re.compile(r"[^ ]+ *| +")
Frame = tuple[list[list[int]], list[str], list[tuple[int, int, int]] | None]
"""Where each line is cut, its text, and the parts of it that are updated (None: all of the screen)."""


class Terminal:
    """A terminal that understands two kinds of output: moves of the cursor, and text."""

    def __init__(self) -> None:
        self.cells = [["?"] * SIZE.width for _ in range(SIZE.height)]

    def take(self, data: str) -> None:
        x = y = 0
        for line, column, text in re.findall(r"\x1b\[(\d+);(\d+)H|([^\x1b\n]+)", data):
            if line:
                x, y = int(column) - 1, int(line) - 1
            else:
                self.cells[y][x : x + len(text)] = text
                x += len(text)


def update(frame: Frame) -> _compositor.CompositorUpdate:
    cuts, lines, spans = frame
    chops = [
        {start: Strip(list(map(Segment, SEGMENT.findall(line[start:end])))) for start, end in itertools.pairwise(cut)}
        for cut, line in zip(cuts, lines, strict=True)
    ]
    if spans is None:
        return _compositor.LayoutUpdate([list(chop.values()) for chop in chops], SIZE.region)
    return _compositor.ChopsUpdate(chops, spans, [cut[1:] for cut in cuts])


def sent(shown: ShownFrame, frame: Frame, size: Size = SIZE) -> str:
    new = update(frame)
    shown.reduce(new, size)
    return new.render_segments(Console())


LINES = st.lists(st.text("ab✓é ", min_size=12, max_size=12), min_size=3, max_size=3)
SPANS = st.none() | st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 11), st.integers(1, 12)).filter(lambda span: span[1] < span[2]),
    min_size=1,
    max_size=3,
)
FRAMES = st.lists(st.tuples(st.lists(st.sampled_from(CUTS), min_size=3, max_size=3), LINES, SPANS), min_size=1)


@given(FRAMES)
def test_terminal_shows_the_same_as_after_a_full_update(frames: Sequence[Frame]) -> None:
    all_of_it, some_of_it, shown = Terminal(), Terminal(), ShownFrame()
    for frame in frames:
        all_of_it.take(update(frame).render_segments(Console()))
        some_of_it.take(sent(shown, frame))
        assert some_of_it.cells == all_of_it.cells


def frame(*lines: str) -> Frame:
    return [[0, 5, 12]] * 3, list(lines), None


def test_strip_already_on_the_terminal_is_not_sent_again() -> None:
    shown = ShownFrame()
    first = frame("aaaaabbbbbbb", "cccccddddddd", "eeeeefffffff")
    assert len(sent(shown, first)) > 36
    assert sent(shown, first) == ""
    assert sent(shown, frame("aaaaabbbbbbb", "cccccDDDDDDD", "eeeeefffffff")) == "\x1b[2;6HDDDDDDD"


def test_only_changed_segments_of_a_strip_are_sent() -> None:
    shown = ShownFrame()
    sent(shown, frame("✓ …  aa bb c", "cccccddddddd", "eeeeefffffff"))
    assert sent(shown, frame("✗ …  aa bb c", "cccccddddddd", "eeeeefffffff")) == "\x1b[1;1H✗ "
    assert sent(shown, frame("✗ …  ab bb d", "cccccddddddd", "eeeeefffffff")) == "\x1b[1;6Hab \x1b[1;12Hd"
    assert sent(shown, frame("✗ …  ab bbb ", "cccccddddddd", "eeeeefffffff")) == "\x1b[1;9Hbbb "


@pytest.mark.parametrize(("before", "after"), [("é a  ", "é b  "), ("é a  ", "e a  "), ("e a  ", "é a  ")])
def test_rest_of_a_line_is_sent_if_a_foreign_character_may_be_wider(before: str, after: str) -> None:
    shown = ShownFrame()
    sent(shown, frame(f"{before}bbbbbbb", "cccccddddddd", "eeeeefffffff"))
    changed = frame(f"{after}bbbbbbb", "cccccddddddd", "eeeeefffffff")
    assert sent(shown, changed) == f"\x1b[1;1H{after}\x1b[1;6Hbbbbbbb"


def test_everything_is_sent_again_after_a_resize_or_another_program() -> None:
    shown, same = ShownFrame(), frame("aaaaabbbbbbb", "cccccddddddd", "eeeeefffffff")
    everything = sent(shown, same)
    assert sent(shown, same) == ""
    assert sent(shown, same, Size(13, 3)) == everything
    shown.forget()
    assert sent(shown, same, Size(13, 3)) == everything
    shown.reduce("printed past the frames", Size(13, 3))
    assert sent(shown, same, Size(13, 3)) == everything


def test_dropped_update_counts_as_not_sent() -> None:
    shown, same = ShownFrame(), frame("aaaaabbbbbbb", "cccccddddddd", "eeeeefffffff")
    shown.reduce(update(same), SIZE)
    assert len(sent(shown, same)) > 36


# What is needed of Textual


async def test_screen_behind_a_dialog_is_painted_once_per_change(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = open_screen()
    async with screen.open() as pilot:
        screen.main.go_to(0)
        await pilot.press("c")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, CriteriaScreen))
        # The form is laid out again when its preview is computed.
        await screen.until(pilot, lambda: all(one.is_finished for one in screen.app.workers if one.group == "look"))
        await pilot.press("plus")
        await screen.until(pilot, lambda: isinstance(screen.app.screen, PickScreen))
        main, form, pick = screen.app.screen_stack
        frames: list[Any] = []
        monkeypatch.setattr(screen.app, "_display", lambda shown, renderable: frames.append(shown))
        for shown in (main, form):  # What is due from opening the dialog.
            shown.refresh(layout=True)
            await pilot.pause(0.05)
        for behind in (main, form):
            frames.clear()
            behind.refresh()
            await pilot.pause()
            assert frames == [pick]
            for _ in range(3):
                # Whatever a screen is told ends with a look at what it must paint.
                behind.call_later(lambda: None)
                await pilot.pause()
            assert frames == [pick]


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (App, "_display", ["self", "screen", "renderable"]),
        (App, "_update_mouse_over", ["self", "screen"]),
        (App, "_refresh_truecolor_filter", ["self", "theme"]),
        (XTermParser, "_sequence_to_key_events", ["self", "sequence", "alt"]),
        (_compositor.LayoutUpdate, "__init__", ["self", "strips", "region"]),
        (_compositor.LayoutUpdate, "render_segments", ["self", "console"]),
        (_compositor.ChopsUpdate, "__init__", ["self", "chops", "spans", "chop_ends"]),
        (_compositor.ChopsUpdate, "render_segments", ["self", "console"]),
    ],
)
def test_private_method_of_textual_has_the_expected_parameters(owner: type, name: str, parameters: list[str]) -> None:
    found = getattr(owner, name, None)
    where = f"Textual's {owner.__name__}.{name}, used by workbench/ui/widgets/textual_private.py,"
    assert found is not None, f"{where} is gone"
    assert list(inspect.signature(found).parameters) == parameters, f"{where} takes other parameters"


def test_private_attributes_of_textual_have_the_expected_values() -> None:
    assert Widget()._border_title is None, "Textual's Widget._border_title, which set_border_title sets, is gone"
    assert Widget()._repaint_required is False, "Textual's Widget._repaint_required, which SparseApp resets, is gone"
    assert XTermParser()._timeout_time is None, "Parser._timeout_time is gone: keys right after esc are lost"
    assert hasattr(linux_driver, "XTermParser"), "the driver has another parser: keys right after esc are lost"
    layout, chops = update(([[0, 12]], ["a" * 12], None)), update(([[0, 12]], ["a" * 12], [(0, 0, 12)]))
    assert {"strips", "region"} <= vars(layout).keys(), "LayoutUpdate has other attributes: frames are sent in full"
    assert {"chops", "spans", "chop_ends"} <= vars(chops).keys(), "ChopsUpdate has other attributes"


def test_no_other_module_uses_a_private_name_of_textual() -> None:
    used = {
        f"{ours.__module__}.{ours.__name__}: {name}"
        for ours, theirs in widget_classes()
        if ours.__module__ != textual_private.__name__
        for name in private_names(ours) & set().union(*map(private_names, theirs))
        # The same word of another object.
        if (ours.__name__, name) != ("RunActions", "_start")
    }
    assert not used
    for module in pkgutil.walk_packages(workbench.ui.__path__, "workbench.ui."):
        if module.name == textual_private.__name__:
            continue  # It imports one for the type checker.
        found = re.search(r"(from|import) textual(\.\w+)*\._", source(module.name))
        assert not found, f"{module.name} imports a private module"


def widget_classes() -> Iterator[tuple[type, list[type]]]:
    """Yield each class of ours among the bases of a Textual widget or app, with the Textual classes among them."""
    for module in pkgutil.walk_packages(workbench.ui.__path__, "workbench.ui."):
        for found in vars(importlib.import_module(module.name)).values():
            if not isinstance(found, type) or found.__module__ != module.name:
                continue
            theirs = [base for base in found.__mro__ if base.__module__.startswith("textual.")]
            for ours in found.__mro__ if theirs else ():
                if ours.__module__.startswith("workbench."):
                    yield ours, theirs


@cache
def private_names(owner: type) -> frozenset[str]:
    """Return the private methods of a class and the private attributes that its code uses."""
    following = re.split(rf"^class {owner.__name__}\b.*\n", source(owner.__module__), maxsplit=1, flags=re.MULTILINE)[1]
    body = takewhile(lambda line: not line.startswith(("class ", "def ", "@")), following.splitlines())
    return frozenset(re.findall(r"(?:\.|\bdef )(_[^_\W]\w*)", "\n".join(body)))


@cache
def source(module: str) -> str:
    return inspect.getsource(importlib.import_module(module))


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (["/:fail\r\x1b/dinner\r"], "slash colon f a i l enter escape slash d i n n e r enter"),
        (["\x1b", "/x"], "escape slash x"),
        (["\x1bbj"], "escape b j"),
        (["\x1b\x1b\x1bj"], "escape escape escape j"),
        (["\x1b" + 40 * "x"], "escape" + 40 * " x"),
        (["\x1b["], "escape left_square_bracket"),
        (["\x1b[jk"], "escape left_square_bracket j k"),
        (["\x1b"], "escape"),
        (["stalled", "\x1bj"], "escape j"),
        (["\x1bj"], "alt+j"),
        (["\x1b/"], "alt+slash"),
        (["\x1bb"], "ctrl+left"),
        (["\x1b\x7f"], "ctrl+w"),
        (["\x1b[1;", "5Cj"], "ctrl+right j"),
        (["\x1b[A\x1bOPj\x1b[27u\x1b[[Aj"], "up f1 j escape f1 j"),
        (["\x1b[<0;10;20Mj"], "MouseDown j"),
        (["\x1b[48;40;120;0;0t\x1b[Ij"], "Resize AppFocus j"),
        (["\x1b[200~a\x1bq\x1b[201~j"], "Paste j"),
    ],
)
def test_escape_and_the_keys_after_it_are_kept(sent: list[str], keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("workbench.ui.widgets.textual_private.time.monotonic", lambda: now)
    monkeypatch.setattr(_parser, "get_time", lambda: now)
    parser = type("Parser", (KeyParser, XTermParser), {})()
    found: list[Any] = []
    for data in sent:
        if data == "stalled":
            now += 1
        else:
            found += [*parser.feed(data), *parser.tick()]
    now += 0.2
    found += parser.tick()
    assert " ".join(one.key if isinstance(one, Key) else type(one).__name__ for one in found) == keys


# Without it


def test_keys_are_read_without_the_private_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = type("Parser", (KeyParser, XTermParser), {})()
    del parser._timeout_time
    monkeypatch.setattr(XTermParser, "feed", lambda parser, data: [data])
    assert list(parser.feed("\x1bj")) == ["\x1bj"]


def test_update_of_an_unknown_shape_is_sent_in_full() -> None:
    class Renamed:
        def render_segments(self, console: Console) -> str:
            return "everything"

    class Reshaped(Renamed):
        strips, region = None, None

    for unknown in (Renamed(), Reshaped()):
        shown, same = ShownFrame(), frame("aaaaabbbbbbb", "cccccddddddd", "eeeeefffffff")
        everything = sent(shown, same)
        shown.reduce(unknown, SIZE)
        assert unknown.render_segments(Console()) == "everything"
        assert sent(shown, same) == everything


async def test_workbench_opens_without_private_methods(
    open_screen: OpenScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    # If Textual renames `_display`, it does not call ours.
    monkeypatch.delattr(textual_private.SparseApp, "_display")
    monkeypatch.delattr(App, "_refresh_truecolor_filter")
    watched: list[str] = []
    monkeypatch.setattr(App, "_watch_theme", lambda app, theme: watched.append(theme))
    screen = open_screen()
    async with screen.open():
        assert screen.app.theme == "night"
        assert watched == ["night"], "Textual itself must apply the theme"
        assert "cases" in screen.text


def test_title_is_set_without_the_private_attribute() -> None:
    class Renamed(Widget):
        def __getattribute__(self, name: str) -> Any:
            if name == "_border_title":
                raise AttributeError(name)
            return super().__getattribute__(name)

    widget = Renamed()
    set_border_title(widget, Content("late_parcel"))
    assert vars(widget)["_border_title"] == Content("late_parcel")
