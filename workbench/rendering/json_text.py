"""JSON values as text: on one line, or on several with what differs marked."""

import json
from collections.abc import Iterator, Set
from typing import Any

from workbench.rendering.lines import Line, Segment, wrap_indented
from workbench.text import plain

INDENT = 2
MAX_DEPTH = 24
"""Below this depth a value is written on one line: a reader is lost there, and so is the stack further on."""
LONG = 100_000
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def compact(value: Any) -> str:
    """The value as JSON on one line, raw (not yet safe for a terminal)."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError):
        return "(nested too deeply to be shown)"


def beginning(value: Any, limit: int) -> str:
    """`compact`, of which no more than what comes after `limit` characters is made up."""
    found: list[str] = []
    size = 0
    try:
        for piece in _ENCODER.iterencode(value):
            found.append(piece)
            size += len(piece)
            if size > limit:
                break
    except (RecursionError, ValueError):
        return "(nested too deeply to be shown)"
    return "".join(found)


def pretty(value: Any, path: str = "", marked: Set[str] = frozenset(), mark: str = "") -> Iterator[Segment]:
    """The value as indented JSON: safe segments with line breaks in them, for `pretty_lines`. The parts whose JSON path
    stands in `marked` have the style `mark`. Paths are written as `metrics.json_difference` writes them."""
    yield from _value(value, path, marked, mark, "", 0)


def pretty_lines(value: Any, width: int) -> Iterator[Line]:
    """The value as indented JSON on lines of at most `width` cells."""
    return wrap_indented(pretty(value), width)


def step(key: str) -> str:
    """One key of a JSON path: `.key`, or `["odd key"]`."""
    plain_key = key.replace("-", "_").isidentifier() and not key.startswith("-")
    return f".{key}" if plain_key else f"[{json.dumps(key, ensure_ascii=False)}]"


def is_marked(path: str, marked: Set[str]) -> bool:
    """Whether a difference stands at `path` or inside of it."""
    return any(other == path or other.startswith((path + ".", path + "[")) for other in marked)


def _value(value: Any, path: str, marked: Set[str], mark: str, style: str, depth: int) -> Iterator[Segment]:
    style = mark if path in marked else style
    if depth >= MAX_DEPTH or not isinstance(value, dict | list) or not value:
        yield Segment(plain(compact(value), limit=LONG), style)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    blank = "\n" + " " * INDENT * (depth + 1)
    items: list[tuple[str, str, Any]]
    if isinstance(value, dict):
        items = [(f"{plain(compact(str(key)))}: ", path + step(str(key)), item) for key, item in value.items()]
    else:
        items = [("", f"{path}[{index}]", item) for index, item in enumerate(value)]
    yield Segment(opening, style)
    for index, (label, place, item) in enumerate(items):
        yield Segment(f"{',' if index else ''}{blank}{label}", style)
        yield from _value(item, place, marked, mark, style, depth + 1)
    yield Segment("\n" + " " * INDENT * depth + closing, style)
