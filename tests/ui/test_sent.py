"""Of what is laid out anew only that is sent which the terminal does not show: it shows the same in the end."""

import itertools
import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

from workbench.ui.sent import Sent

SIZE = Size(12, 3)
CUTS = [[0, 5, 8, 12], [0, 12], [0, 2, 4, 12], [0, 6, 12]]
Frame = tuple[list[list[int]], list[str], list[tuple[int, int, int]] | None]
"""Where each line is cut, its text, and the parts of it that are updated (None: all of the screen)."""


class Terminal:
    """Understands what is sent: moves of the cursor, and text."""

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


def update(frame: Frame) -> LayoutUpdate | ChopsUpdate:
    cuts, lines, spans = frame
    chops = [
        {start: Strip([Segment(line[start:end])]) for start, end in itertools.pairwise(cut)}
        for cut, line in zip(cuts, lines, strict=True)
    ]
    if spans is None:
        return LayoutUpdate([list(chop.values()) for chop in chops], SIZE.region)
    return ChopsUpdate(chops, spans, [cut[1:] for cut in cuts])


def sent(memory: Sent, frame: Frame, size: Size = SIZE) -> str:
    new = memory.only_new(update(frame), size)
    assert isinstance(new, CompositorUpdate)
    return new.render_segments(Console())


LINES = st.lists(st.text("ab ", min_size=12, max_size=12), min_size=3, max_size=3)
SPANS = st.none() | st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 11), st.integers(1, 12)).filter(lambda span: span[1] < span[2]),
    min_size=1,
    max_size=3,
)
FRAMES = st.lists(st.tuples(st.lists(st.sampled_from(CUTS), min_size=3, max_size=3), LINES, SPANS), min_size=1)


@given(FRAMES)
def test_the_terminal_shows_the_same_as_if_all_had_been_sent(frames: Sequence[Frame]) -> None:
    all_of_it, some_of_it, memory = Terminal(), Terminal(), Sent()
    for frame in frames:
        all_of_it.take(update(frame).render_segments(Console()))
        some_of_it.take(sent(memory, frame))
        assert some_of_it.cells == all_of_it.cells


def frame(*lines: str) -> Frame:
    return [[0, 5, 12]] * 3, list(lines), None


def test_what_stands_there_already_is_not_sent_again() -> None:
    memory = Sent()
    first = frame("aaaaabbbbbbb", "cccccddddddd", "eeeeefffffff")
    assert len(sent(memory, first)) > 36
    assert sent(memory, first) == ""
    assert sent(memory, frame("aaaaabbbbbbb", "cccccDDDDDDD", "eeeeefffffff")) == "\x1b[2;6HDDDDDDD"
    # The rest of the line goes with what is new: a character may be wider there than here.
    assert sent(memory, frame("AAAAAbbbbbbb", "cccccDDDDDDD", "eeeeefffffff")) == "\x1b[1;1HAAAAA\x1b[1;6Hbbbbbbb"


def test_all_is_sent_again_to_a_terminal_of_another_size_or_that_somebody_else_had() -> None:
    memory, same = Sent(), frame("aaaaabbbbbbb", "cccccddddddd", "eeeeefffffff")
    everything = sent(memory, same)
    assert sent(memory, same) == ""
    assert sent(memory, same, Size(13, 3)) == everything
    memory.forget()
    assert sent(memory, same, Size(13, 3)) == everything
    assert memory.only_new("what is printed past the frames", Size(13, 3)) == "what is printed past the frames"
    assert sent(memory, same, Size(13, 3)) == everything


def test_an_update_that_is_never_written_counts_as_not_sent() -> None:
    memory, same = Sent(), frame("aaaaabbbbbbb", "cccccddddddd", "eeeeefffffff")
    memory.only_new(update(same), SIZE)
    assert len(sent(memory, same)) > 36
