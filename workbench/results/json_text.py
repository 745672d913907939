"""JSON values as text, on one line or indented with differences marked."""

import json
from collections.abc import Iterator, Set
from typing import Any

from rich.text import Text

from workbench.results.lines import Line, wrap_indented
from workbench.text.safe_text import plain

INDENT = 2
MAX_DEPTH = 24
"""Deeper values are written on one line, because they are unreadable and may exhaust the stack."""
LONG = 100_000
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def compact(value: Any) -> str:
    """Return the value as JSON on one line, raw (not yet safe for a terminal)."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError):
        return "(nested too deeply to be shown)"


def beginning(value: Any, limit: int) -> str:
    """Return the beginning of `compact(value)` without building much more than `limit` characters."""
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


def pretty(
    value: Any, path: str = "", marked: Set[str] = frozenset(), mark: str = "", *, most: int | None = None
) -> Text:
    """Return the value as indented JSON: safe text with line breaks, for `pretty_lines`.

    Parts whose JSON path is in `marked` have the style `mark`. Paths have the form of `metrics.json_difference`. With
    `most`, only so many lines are made, and perhaps one more.
    """
    tokens = _value(value, path, marked, mark, "", 0)
    return Text().append_tokens(tokens if most is None else _first_lines(tokens, most))


def pretty_lines(value: Any, width: int) -> list[Line]:
    """Return the value as indented JSON on lines of at most `width` cells."""
    return wrap_indented(pretty(value), width)


def _first_lines(tokens: Iterator[tuple[str, str]], most: int) -> Iterator[tuple[str, str]]:
    for text, style in tokens:
        most -= text.count("\n")
        if most < 0:
            return
        yield text, style


def step(key: str) -> str:
    """Return one key of a JSON path: `.key`, or `["odd key"]`."""
    plain_key = key.replace("-", "_").isidentifier() and not key.startswith("-")
    return f".{key}" if plain_key else f"[{json.dumps(key, ensure_ascii=False)}]"


def is_marked(path: str, marked: Set[str]) -> bool:
    """Return whether a difference is at `path` or inside it."""
    return any(other == path or other.startswith((path + ".", path + "[")) for other in marked)


def _value(value: Any, path: str, marked: Set[str], mark: str, style: str, depth: int) -> Iterator[tuple[str, str]]:
    style = mark if path in marked else style
    if depth >= MAX_DEPTH or not isinstance(value, dict | list) or not value:
        yield plain(compact(value), limit=LONG), style
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    blank = "\n" + " " * INDENT * (depth + 1)
    items: list[tuple[str, str, Any]]
    if isinstance(value, dict):
        items = [(f"{plain(compact(str(key)))}: ", path + step(str(key)), item) for key, item in value.items()]
    else:
        items = [("", f"{path}[{index}]", item) for index, item in enumerate(value)]
    yield opening, style
    for index, (label, place, item) in enumerate(items):
        yield f"{',' if index else ''}{blank}{label}", style
        yield from _value(item, place, marked, mark, style, depth + 1)
    yield "\n" + " " * INDENT * depth + closing, style
