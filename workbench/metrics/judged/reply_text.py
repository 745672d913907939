"""What a judge wrote, taken apart: JSON wherever it stands in the text, else lines of the form `key: value`.

Models that are not held to a schema put fences and prose around their JSON, reply with one object instead of a list,
or fall back to lines. What is found here is not yet trusted: the reader of each question says what it may be.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from workbench.counting import counted
from workbench.judge.thoughts import spoken

MAX_LENGTH = 1_000_000
"""Characters of a reply that is read at all."""
_MAX_STARTS = 2_000
_DECODER = json.JSONDecoder()
_START = re.compile(r"[{\[]")
_DECORATION = " \t\r\n*_`'\"“”‘’#>-–—•.,;:!()[]{}<>|"
_LINE = re.compile(r"^[ \t>*#•\"'`{,(-]*([A-Za-z][A-Za-z _-]{0,40}?)[ \t*\"'`]*:[ \t*]*(.*)$")
_FIRST_WORD = re.compile(r"\w+")
_CHOICE = re.compile(r"""\W*\w+["'\s]*(?:/|\||,?\s*\bor\b|["']\s*,\s*["'])["'\s]*\w""")
"""`valid or invalid`, `yes/no`: what the question offers, copied instead of answered."""


class UnreadableError(ValueError):
    """No answer can be taken from a reply; the message says why."""


def json_values(text: str) -> list[Any]:
    """The JSON objects and lists in a text, in order; not those inside another one. [] where there is none.

    Raises:
        UnreadableError: the text is too long.
    """
    if len(text) > MAX_LENGTH:
        raise UnreadableError(
            f"the reply has {counted(len(text), 'character')}, more than the {MAX_LENGTH:,} that are read"
        )
    return [value for _, _, value in _decoded(spoken(text))]


def beside_json(text: str, keys: Collection[str]) -> list[Any]:
    """What stands behind `key:` outside of the values that `json_values` finds, up to the end of the line. Where quotes
    are not escaped, what a reply quotes may be all of it that reads as JSON: then its own answer is here."""
    text = spoken(text)
    pieces, reached = [], 0
    for start, end, _ in _decoded(text):
        pieces.append(text[reached:start])
        reached = end
    rest = " ".join([*pieces, text[reached:]])
    return re.findall(rf"\b(?:{'|'.join(keys)})[\"'`* \t]*:(.*)", rest, re.IGNORECASE)


def _decoded(text: str) -> Iterator[tuple[int, int, Any]]:
    """(start, end, value) of each."""
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
    """The objects in a text, flat: members of lists, and of lists that stand under one of the keys `inside`."""
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
    """Objects written as lines `key: value`, the value ending with its line: a key that comes again begins the next
    object. Keys are compared in lower case with `_` for blanks, decoration is dropped."""
    found: list[dict[str, Any]] = []
    for line in spoken(text[:MAX_LENGTH]).splitlines():
        match = _LINE.match(line[:10_000])
        key = re.sub(r"[ -]+", "_", match[1].strip().lower()) if match else ""
        if match is None or key not in keys:
            continue
        if not found or key in found[-1]:
            found.append({})
        found[-1][key] = match[2].strip().rstrip(",")
    return found


def first_of(item: dict[str, Any], keys: Collection[str]) -> Any:
    """The value under the first of the keys that is there; None if none is."""
    return next((item[key] for key in keys if item.get(key) is not None), None)


def as_text(value: Any) -> str:
    """A value that should be text: text without blanks around it, "" for what is no text."""
    return value.strip() if isinstance(value, str) else ""


def bare(text: str) -> str:
    """Text in lower case, with blanks collapsed, without quotes, bullets and emphasis around it."""
    return " ".join(text.strip(_DECORATION).lower().split())


def first_word(value: Any) -> str:
    """The word that decides: `Valid.` → valid, `**no**, because …` → no, true → true, ["yes"] → yes; "" for others,
    such as a choice between two."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return "true" if value else "false"
    chosen = isinstance(value, str) and not _CHOICE.match(value.lower())
    match = _FIRST_WORD.search(value.lower()) if chosen else None
    return match[0].strip("_") if match else ""
