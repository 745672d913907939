"""Tests that rows created on first use equal those created at once."""

from rich.text import Text

from workbench.results.document import Document, Item, LazyList, Rows, Target
from workbench.results.lines import Line

KEYS = [f"row/{number}" for number in range(1000)]


class Made:
    """Rows that record which of them were created."""

    def __init__(self) -> None:
        self.lines_made: list[int] = []
        self.items_made: list[int] = []
        self.named: list[int] = []

    def line(self, number: int) -> Line:
        self.lines_made.append(number)
        return Text(f"line {number}")

    def item(self, number: int, start: int) -> Item:
        self.items_made.append(number)
        return Item(KEYS[number], start, start + 1)

    def names(self, number: int) -> list[str]:
        self.named.append(number)
        return [f"half/{number // 2}"]


def document(made_rows: Made) -> Document:
    """Return a document in which row 10 is unfolded."""
    rows = Rows(KEYS, made_rows.line, made_rows.item, made_rows.names)
    made = Document()
    made.turns.append(0)
    made.add_place(["user/0"], [Text("heading")])
    made.add_rows(rows, range(11))
    made.add_item("row/10/part", [Text("part")] * 2, heads=True)
    made.add([Text("below")])
    made.add_rows(rows, range(11, 1000))
    return made


def test_values_are_created_once_on_first_use() -> None:
    rows = Made()
    made = document(rows)
    assert (len(made.lines), len(made.items)) == (1004, 1001)
    assert made.lines[500] == made.lines[500] == Text("line 496")
    assert made.items[500] is made.items[500]
    assert (made.items[500].key, made.items[500].start) == ("row/499", 503)
    assert made.item_named("row/999") == 1000
    assert made.item_named("row/1000") is None
    assert made.item_at(503) == 500
    assert (rows.lines_made, rows.items_made, rows.named) == ([496], [499], [])


def test_place_of_a_row_is_found_by_its_key_and_names() -> None:
    rows = Made()
    made = document(rows)
    assert made.places["row/10"] == range(11, 12)
    assert made.places["half/5"] == range(11, 12)
    assert made.places["half/8"] == range(20, 21)
    assert made.places["row/10/part"] == range(12, 14)
    assert made.places["user/0"] == range(1)
    assert rows.named == list(range(1000)), "and not again each time"


def test_heading_item_includes_the_lines_below_it() -> None:
    made = document(Made())
    assert [line.plain for line in made.whole(11)] == ["part", "part", "below"]
    assert [line.plain for line in made.whole(10)] == ["line 10"], "this one stands for itself"
    made.add_item("last", [Text("last")], heads=True)
    made.turns.append(len(made.lines))
    made.add([Text("another turn")])
    assert [line.plain for line in made.whole(1001)] == ["last"]


def test_lazy_list_behaves_like_a_list() -> None:
    made = LazyList([1, 2])
    made.extend([3])
    made.extend([4])
    assert (list(made), made[-1], made[1:], len(made), list(reversed(made))) == (
        [1, 2, 3, 4],
        4,
        [2, 3, 4],
        4,
        [4, 3, 2, 1],
    )
    assert not LazyList()
    made.promise(3, lambda place: place * 100)
    made.extend([5])
    made.promise(2, lambda place: place * 1000)
    assert (made[-1], made[-3], made[4], made[-4:-2]) == (1000, 5, 0, [200, 5])
    assert list(made) == [1, 2, 3, 4, 0, 100, 200, 5, 0, 1000]


def test_first_place_below_a_line_links_to_the_pane() -> None:
    made = document(Made())
    found = made.link_from(11, "Trace")
    assert found is not None
    assert found.targets == (Target("Trace", ("row/10", "half/5")),)
