"""The contents of a request: a line each, made when it comes in sight, because a late request has all before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.json_values import mapping, objects, string
from workbench.rendering.document import Aside, Document, Item
from workbench.rendering.json_text import beginning
from workbench.rendering.lines import Line, Segment, cut_line
from workbench.rendering.rows import View
from workbench.rendering.trace.data import data_lines
from workbench.rendering.trace.reading import Lost, TraceRead
from workbench.text import one_line

INNER = 6
_READ = 1_600
"""Characters of which a line is made."""


def add_contents(document: Document, read: TraceRead, key: str, digests: Sequence[str], view: View) -> None:
    """The contents with these digests, in order, those that are unfolded with all they say."""
    keys = [f"{key}/{number}" for number in range(len(digests))]
    rows = _Contents(keys, digests, read, view, document.items[-1].aside)
    first = 0
    for number in [number for number, one in enumerate(rows.keys) if view.is_open(one)]:
        document.add_rows(rows, range(first, number + 1))
        document.add(data_lines(_simple(read.piece(digests[number])), INNER + 2, view))
        first = number + 1
    document.add_rows(rows, range(first, len(digests)))


@dataclass(frozen=True, slots=True)
class _Contents:
    keys: list[str]
    digests: Sequence[str]
    read: TraceRead
    view: View
    aside: Aside | None

    def line(self, number: int) -> Line:
        content = self.read.piece(self.digests[number])
        role = "?" if isinstance(content, Lost) else one_line(string(mapping(content).get("role")), limit=20) or "?"
        opened = self.view.is_open(self.keys[number])
        told = content_words(content)
        return part_line(f"{number + 1} {role}", told, self.view.width, indent=INNER, opened=opened)

    def item(self, number: int, start: int) -> Item:
        return Item(self.keys[number], start, start + 1, opens=True, aside=self.aside, heads=True)

    def names(self, number: int) -> tuple[str, ...]:
        return ()


def part_line(name: str, told: str, width: int, *, indent: int, opened: bool) -> Line:
    """The line of something that unfolds, below a row."""
    lead = f"{' ' * indent}{'▾' if opened else '▸'} "
    line = (Segment(lead, "fold"), Segment(name, "label"), Segment(f"  {told}" if told else "", "muted"))
    return cut_line(line, width)


def content_words(content: Any) -> str:
    """What a content says, on one line."""
    if isinstance(content, Lost):
        return content.why
    return "; ".join(_part_words(part) for part in objects(mapping(content).get("parts"))) or brief(content)


def _part_words(part: dict[str, Any]) -> str:
    call, response = mapping(part.get("function_call")), mapping(part.get("function_response"))
    if call:
        return one_line(f"calls {string(call.get('name'))} {beginning(call.get('args'), _READ)}")
    if response:
        return one_line(f"{string(response.get('name'))} gave {beginning(response.get('response'), _READ)}")
    text = part.get("text")
    return one_line(text if isinstance(text, str) else beginning(part, _READ))


def _simple(content: Any) -> Any:
    """A content that is only text, as text."""
    parts = objects(mapping(content).get("parts"))
    if len(parts) == 1 and parts[0].keys() == {"text"} and isinstance(parts[0]["text"], str):
        return parts[0]["text"]
    return content


def brief(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Lost):
        return one_line(value.why)
    return one_line(value if isinstance(value, str) else beginning(value, _READ), limit=200)
