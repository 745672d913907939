"""What was asked and answered, as lines: JSON with its keys told from its values, and long ones folded."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.counting import counted
from workbench.rendering.json_text import pretty
from workbench.rendering.lines import Line, Segment, fold, hang, wrap, wrap_indented
from workbench.rendering.rows import View
from workbench.rendering.trace.reading import Lost
from workbench.text import plain

BRIEF = 120
"""Lines of one value that are shown; copying gives all of it."""
_COUNTED = 1_000
"""Lines of a value that are laid out at all: of a long one it is enough to know that there are more."""
_KEY = re.compile(r'^(\s*)("(?:[^"\\]|\\.)*")(: )(.*)$', re.DOTALL)


def data_lines(value: Any, indent: int, view: View) -> Iterator[Line]:
    """A value `indent` cells from the left."""
    width = max(view.width - indent, 10)
    if isinstance(value, Lost):
        lines = list(wrap([Segment(plain(value.why), "muted")], width))
    elif isinstance(value, str):
        lines = list(wrap([Segment(plain(value))], width))
    elif (begins := _cut_off(value)) is not None:
        told = f"cut at {value['cut_at']:,} of {value['characters']:,} characters of JSON"
        lines = [(Segment(told, "status-not-evaluated"),), *wrap([Segment(plain(begins, limit=200_000))], width)]
    else:
        text = pretty(value) if view.full else _first_lines(pretty(value), _COUNTED)
        lines = [_with_key(line) for line in wrap_indented(text, width)]
    if len(lines) > BRIEF and not view.full:
        most = _COUNTED - BRIEF
        more = counted(min(len(lines) - BRIEF, most), "more line")
        over = "over " * (len(lines) > _COUNTED)
        lines = [*lines[:BRIEF], fold(f"… {over}{more}: Y copies all of them", width)]
    yield from hang([], lines, indent)


def _first_lines(text: Iterable[Segment], count: int) -> Iterator[Segment]:
    """So much of a text as gives one line more than that."""
    for segment in text:
        count -= segment.text.count("\n")
        if count < 0:
            return
        yield segment


def _cut_off(value: Any) -> str | None:
    """The beginning of a piece that was too long to be kept (`agents.worker.spans`); None for any other value."""
    if isinstance(value, dict) and value.keys() == {"cut_at", "characters", "begins"}:
        numbers = type(value["cut_at"]) is int and type(value["characters"]) is int
        return value["begins"] if numbers and isinstance(value["begins"], str) else None
    return None


def _with_key(line: Line) -> Line:
    """A line of JSON with the key in another style. A line is one segment or few: what differs is marked nowhere."""
    text = "".join(segment.text for segment in line)
    found = _KEY.match(text)
    if found is None:
        return (Segment(text),)
    blank, key, colon, rest = found.groups()
    return (Segment(blank), Segment(key, "label"), Segment(colon, "muted"), Segment(rest))
