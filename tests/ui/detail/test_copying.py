"""Copying from the trace: the item under the cursor with its folded parts, without laying out the rest."""

import json

import pytest

from tests.results.test_trace import SPANS, record
from workbench.events.events import SpansRecorded
from workbench.results.document import Item, Subject
from workbench.results.panes import panes_of
from workbench.ui.detail.drawing import Layout
from workbench.ui.detail.reading import Reading

LONG = [{"number": number} for number in range(500)]


@pytest.fixture
def reading() -> Reading[Subject]:
    case = record()
    pieces = {"said": json.dumps({"rows": LONG}), "args": '{"id": "A-7"}'}
    case.turns[0].spans = SpansRecorded(case.ref, 0, json.dumps(SPANS), pieces)
    found = Reading(Subject(), panes_of)
    found.take(Subject(case))
    found.choose("Trace")
    return found


def copied(reading: Reading[Subject], *keys: str) -> list[str]:
    """Unfold these items one after the other, and return the lines that are copied from the last one."""
    item = Item("", 0, 0)
    for key in keys:
        document = reading.document(lambda _: Layout(76, 30))
        number = document.item_named(key)
        assert number is not None
        item = document.items[number]
        reading.unfold(item)
    return reading.copied(item, 0)[1].splitlines()


def test_part_of_an_item_is_copied_without_the_aside_of_its_row(reading: Reading[Subject]) -> None:
    lines = copied(reading, "span/0/3", "span/0/3/response")
    assert lines[0].strip().startswith("▾ Response")
    assert lines[-1].strip() == "}"
    assert sum('"number"' in line for line in lines[1:]) == len(LONG), "on the screen there are 120 lines of it"
    assert not any("model call" in line for line in lines)


def test_row_is_copied_with_its_parts_and_its_aside(reading: Reading[Subject]) -> None:
    lines = copied(reading, "span/0/4")
    assert "ƒ" in lines[0] or "▾ find_order" in lines[0]
    text = "\n".join(lines)
    assert all(
        part in text for part in ("Event", "Request", "Response", "Graph", '"id": "A-7"', "tool call find_order")
    )
    assert "▾ inner" not in text
    assert sum("◇ m" in line for line in lines) <= 2, "of the other rows only what the path says"
