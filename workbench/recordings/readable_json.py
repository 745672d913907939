"""JSON text that is reviewed in a diff: short values on one line, and nothing that a terminal or an eye misreads."""

import json
import math
import re
from typing import Any

from workbench.agents.worker.forms import FORM

_WIDTH = 100
_STEP = "  "
_MISLEADING = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, invisible characters, marks of writing direction and lone surrogates. JSON has them only inside texts."""


def readable(value: Any, indent: str = "", before: int = 0) -> str:
    """Return JSON data as text. Values that fit into 100 columns are on one line.

    `indent` is the white space before the lines of the value. `before` is the number of characters that come before it
    on its first line, besides the indent.

    Raises:
        RecursionError: it is nested deeper than Python's stack.
    """
    line = one_line(value)
    if not value or not isinstance(value, dict | list) or len(indent) + before + len(line) <= _WIDTH:
        return line
    inner = indent + _STEP
    if isinstance(value, dict):
        return block("{", "}", [member(key, item, inner) for key, item in value.items()], indent)
    return block("[", "]", [readable(item, inner) for item in value], indent)


def member(key: str, value: Any, indent: str) -> str:
    """Return a member of an object, `"key": value`."""
    name = one_line(key)
    return f"{name}: {readable(value, indent, len(name) + 2)}"


def block(opening: str, closing: str, items: list[str], indent: str, gap: str = "") -> str:
    """Return an object or a list over several lines. `gap` is written between the items, after the line break."""
    inner = indent + _STEP
    return f"{opening}\n{inner}{f',{chr(10)}{gap}{inner}'.join(items)}\n{indent}{closing}"


def one_line(value: Any) -> str:
    """Return JSON data as one line of text."""
    return _MISLEADING.sub(_escaped, json.dumps(value, ensure_ascii=False))


def finite_json(value: Any) -> Any:
    """Return JSON data in which each number that is not finite is an object, as the agent's process writes it."""
    try:
        _FINITE.encode(value)
        return value
    except ValueError:
        return _finite_json(value)


_FINITE = json.JSONEncoder(allow_nan=False, check_circular=False)


def _finite_json(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else {FORM: "float", "value": repr(value)}
    if isinstance(value, dict):
        return {key: _finite_json(item) for key, item in value.items()}
    return [_finite_json(item) for item in value] if isinstance(value, list) else value


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
