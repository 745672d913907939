"""Parser of judge replies: JSON anywhere in the text, else lines of the form `key: value`.

Models that are not bound to a schema put fences and prose around their JSON, reply with one object instead of a list,
or use lines. Nothing found here is trusted yet: the reader of each question decides what is valid.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from workbench.judges.base import without_thoughts
from workbench.text.counting import counted

MAX_LENGTH = 1_000_000
"""Maximum characters of a reply that are read."""
_MAX_STARTS = 2_000
_DECODER = json.JSONDecoder()
_START = re.compile(r"[{\[]")
_DECORATION = " \t\r\n*_`'\"“”‘’#>-–—•.,;:!()[]{}<>|"
_LINE = re.compile(r"^[ \t>*#•\"'`{,(-]*([A-Za-z][A-Za-z _-]{0,40}?)[ \t*\"'`]*:[ \t*]*(.*)$")
_FIRST_WORD = re.compile(r"\w+")
_CHOICE = re.compile(r"""\W*\w+["'\s]*(?:/|\||,?\s*\bor\b|["']\s*,\s*["'])["'\s]*\w""")
"""A choice copied from the question instead of an answer: `valid or invalid`, `yes/no`."""


class UnreadableError(ValueError):
    """A reply that contains no answer. The message says why."""


def json_values(text: str) -> list[Any]:
    """Return the outermost JSON objects and lists in a text, in order, or [] if there is none.

    Raises:
        UnreadableError: The text is too long.
    """
    if len(text) > MAX_LENGTH:
        raise UnreadableError(
            f"the reply has {counted(len(text), 'character')}, more than the {MAX_LENGTH:,} that are read"
        )
    return [value for _, _, value in _decoded(without_thoughts(text))]


def values_outside_json(text: str, keys: Collection[str]) -> list[Any]:
    """Return what follows `key:` outside of the values that `json_values` finds, up to the end of the line.

    If quotes are not escaped, a quotation may be the only valid JSON in a reply. The judge's own answer is then here.
    """
    text = without_thoughts(text)
    pieces, reached = [], 0
    for start, end, _ in _decoded(text):
        pieces.append(text[reached:start])
        reached = end
    rest = " ".join([*pieces, text[reached:]])
    return re.findall(rf"\b(?:{'|'.join(keys)})[\"'`* \t]*:(.*)", rest, re.IGNORECASE)


def _decoded(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield (start, end, value) of each JSON value."""
    position = 0
    for _ in range(_MAX_STARTS):
        start = _START.search(text, position)
        if start is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.end()
        else:
            yield start.start(), position, value


def json_objects(text: str, inside: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the objects in a text as one list: also members of lists, and of lists under one of the keys `inside`."""
    return [item for value in json_values(text) for item in _objects(value, inside)]


def _objects(value: Any, inside: Collection[str]) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))
    elif isinstance(value, dict):
        under = next((value[key] for key in inside if isinstance(value.get(key), list | dict)), None)
        if under is None:
            yield value
        else:
            yield from _objects(under, ())


def line_objects(text: str, keys: Collection[str]) -> list[dict[str, Any]]:
    """Return objects written as lines `key: value`. A key that occurs again starts the next object.

    Keys are compared in lower case with `_` for blanks. Decoration is dropped.
    """
    found: list[dict[str, Any]] = []
    for line in without_thoughts(text[:MAX_LENGTH]).splitlines():
        match = _LINE.match(line[:10_000])
        key = re.sub(r"[ -]+", "_", match[1].strip().lower()) if match else ""
        if match is None or key not in keys:
            continue
        if not found or key in found[-1]:
            found.append({})
        found[-1][key] = match[2].strip().rstrip(",")
    return found


def first_present(item: dict[str, Any], keys: Collection[str]) -> Any:
    """Return the value of the first key that is present, or None if none is."""
    return next((item[key] for key in keys if item.get(key) is not None), None)


def as_text(value: Any) -> str:
    """Return a text without blanks around it, or "" for any other value."""
    return value.strip() if isinstance(value, str) else ""


def normalised(text: str) -> str:
    """Return text in lower case with blanks collapsed, without quotes, bullets and emphasis around it."""
    return " ".join(text.strip(_DECORATION).lower().split())


def first_word(value: Any) -> str:
    """Return the deciding word: `Valid.` → valid, `**no**, because …` → no, true → true, ["yes"] → yes.

    Other values give "", such as a choice between two words.
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return "true" if value else "false"
    chosen = isinstance(value, str) and not _CHOICE.match(value.lower())
    match = _FIRST_WORD.search(value.lower()) if chosen else None
    return match[0].strip("_") if match else ""
