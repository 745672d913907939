"""Positions: the cursor reaches each item and each line, in any document and any window."""

from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from workbench.results.document import Document
from workbench.ui.detail.body import Position

SHAPES = st.lists(st.tuples(st.integers(0, 7), st.integers(1, 30)), min_size=1, max_size=12)
"""For each item, its number of heading lines and its own number of lines."""


def document(shape: list[tuple[int, int]], tail: int) -> Document:
    made = Document()
    for number, (lead, size) in enumerate(shape):
        made.add([Text("heading")] * lead)
        made.add_item(str(number), [Text(" line")] * size)
    made.add([Text("end")] * tail)
    return made


@given(SHAPES, st.integers(0, 5), st.integers(6, 20))
def test_steps_visit_all_items_and_lines_in_both_directions(
    shape: list[tuple[int, int]], tail: int, height: int
) -> None:
    place, made = Position(), document(shape, tail)
    place.begin(made, height, 0, 0)
    seen, lines = {0}, set(range(place.top, place.top + height))
    for direction, last in ((1, len(shape) - 1), (-1, 0)):
        for _ in range(2 * len(made.lines) + 10):
            before = (place.top, place.cursor)
            place.step(direction)
            if (place.top, place.cursor) == before:
                break
            item = place.item
            assert item is not None
            seen.add(place.cursor)
            lines |= set(range(place.top, place.top + height))
            in_sight = place.top < item.end and item.start < place.top + height
            assert in_sight or abs(place.top - before[0]) == 1
        assert place.cursor == last
        assert place.top == (place.last_top if direction > 0 else 0)
    assert seen == set(range(len(shape)))
    assert lines >= set(range(len(made.lines)))


@given(SHAPES, st.integers(3, 20), st.lists(st.sampled_from(["down", "up", "page_down", "page_up", "top", "bottom"])))
def test_position_stays_in_the_document_after_any_key(
    shape: list[tuple[int, int]], height: int, keys: list[str]
) -> None:
    place = Position()
    place.begin(document(shape, 2), height, 5, 1)
    for key in keys:
        if key in ("top", "bottom"):
            place.to_end(last=key == "bottom")
        else:
            (place.page if "page" in key else place.step)(1 if "down" in key else -1)
        assert 0 <= place.top <= place.last_top
        assert 0 <= place.cursor < len(shape)


def test_requested_end_is_shown_even_if_the_cursor_is_elsewhere() -> None:
    place, made = Position(), document([(0, 3), (0, 3)], 30)
    place.begin(made, 10, len(made.lines), 0)
    assert place.top == place.last_top


def test_without_items_lines_are_scrolled() -> None:
    place, made = Position(), Document(lines=[Text("x")] * 50)
    place.begin(made, 10, 0, 0)
    place.step(1)
    assert (place.item, place.top) == (None, 1)
    place.page(1)
    assert place.top == 6
    place.to_end(last=True)
    assert place.top == 40
