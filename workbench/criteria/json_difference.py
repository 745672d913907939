"""Differences between two JSON values, in texts that tell a user what to change.

Values are compared with Python's `==`, as in ADK: 1 = 1.0 = true, the order of keys does not matter, the order of a
list does, and NaN equals nothing.
"""

import itertools
import json
import re
import unicodedata
from collections.abc import Hashable
from typing import Any, Final

from workbench.text.safe_text import visible


class Absent:
    """Type of `ABSENT`, the marker for a side that has no value at all (null is a value)."""


ABSENT: Final = Absent()
SHOWN_LIMIT = 60
BRIEF_LIMIT = 2_000
_CONTEXT = 16
_UNSEEN = ("Cf", "Mn", "Me", "Zs", "Co", "Cn")
_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def hashable(value: Any) -> Hashable:
    """Return a hashable form of a JSON value. Two forms are equal exactly if the values are."""
    if isinstance(value, dict):
        return "{}", frozenset((key, hashable(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return "[]", tuple(hashable(item) for item in value)
    if isinstance(value, float) and value != value:
        # json.loads always returns the same NaN object, and containers treat identical objects as equal.
        return object()
    return value  # type: ignore[no-any-return]


def describe(path: str, expected: Any, actual: Any) -> dict[str, Any]:
    """Return one difference as JSON data.

    - `path`
    - `expected`, `actual`: the values (null if absent), shortened by `brief`
    - `expected_type`, `actual_type`: `number`, `text`, `true/false`, `list`, `object` or `nothing`
    - `expected_shown`, `actual_shown`: short texts that are safe to show. Invisible characters are named, long texts
      are
      cut around their first difference.
    """
    # A rule can reject the expected text itself. Then nothing differs.
    if isinstance(expected, str) and isinstance(actual, str) and expected != actual:
        expected_shown, actual_shown = _shown_texts(expected, actual)
    else:
        expected_shown, actual_shown = shown(expected), shown(actual)
    return {
        "path": path,
        "expected": None if expected is ABSENT else brief(expected),
        "actual": None if actual is ABSENT else brief(actual),
        "expected_type": type_name(expected),
        "actual_type": type_name(actual),
        "expected_shown": expected_shown,
        "actual_shown": actual_shown,
    }


def sentence(difference: dict[str, Any]) -> str:
    """Return `args.amount: number 12.5, got text "12.50"` from the result of `describe`.

    A `rule` beside it says what was expected in its place.
    """
    wanted, got = (phrase(difference[f"{side}_type"], difference[f"{side}_shown"]) for side in ("expected", "actual"))
    return f"{difference['path']}: {difference.get('rule') or wanted}, got {got}"


def phrase(kind: str, text: str) -> str:
    """Return the type and the shown text of a value as one phrase: `number 12.5`."""
    return text if kind == "true/false" else f"{kind} {text}"


def type_name(value: Any) -> str:
    """Return the type of a JSON value in plain words."""
    if value is None or value is ABSENT:
        return "nothing"
    if isinstance(value, bool):
        return "true/false"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "object" if isinstance(value, dict) else "list"


def shown(value: Any, *, limit: int = SHOWN_LIMIT) -> str:
    """Return a JSON value as one short line that is safe for a terminal."""
    if value is ABSENT:
        return "(not given)"
    if value is None:
        return "(null)"
    if isinstance(value, str):
        return _quoted(value, 0, limit)
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _line(text if len(text) <= limit else text[: limit - 1] + "…")


def brief(value: Any) -> Any:
    """Return the value, or a short text if its JSON has more than `BRIEF_LIMIT` characters.

    The explanation of a verdict must not become larger than the transcript, which holds the whole value.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    size = len(value) if isinstance(value, str) else len(json.dumps(value, default=str))
    return value if size <= BRIEF_LIMIT else shown(value, limit=4 * SHOWN_LIMIT)


def path_step(key: str) -> str:
    """Return one step of a JSON path: `.name`, or `["other name"]`."""
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"


def _shown_texts(expected: str, actual: str) -> tuple[str, str]:
    both = zip(expected, actual, strict=False)
    end = min(len(expected), len(actual))
    place = next((index for index, (one, other) in enumerate(both) if one != other), end)
    fits = max(len(expected), len(actual)) <= SHOWN_LIMIT
    start = 0 if fits else max(place - _CONTEXT, 0)
    texts = _quoted(expected, start, SHOWN_LIMIT), _quoted(actual, start, SHOWN_LIMIT)
    if not _look_alike(expected, actual, place):
        return texts
    return texts[0] + _code_points(expected, place), texts[1] + _code_points(actual, place)


def _quoted(text: str, start: int, limit: int) -> str:
    part = ("…" if start else "") + text[start : start + limit] + ("…" if len(text) > start + limit else "")
    return f'"{_line(part)}"'


def _line(text: str) -> str:
    # `visible` leaves rare line breaks: vertical tab, form feed, NEL, line and paragraph separators.
    return visible(text).replace("\n", "⟨BREAK⟩")


def _look_alike(expected: str, actual: str, place: int) -> bool:
    """Return whether two texts look the same to a reader at `place`.

    Covers composed and decomposed letters, compatibility forms, Cyrillic or Greek letters in a Latin word, and
    different dashes and quotes.
    """
    window = slice(max(place - 1, 0), place + SHOWN_LIMIT)
    if unicodedata.normalize("NFKC", expected[window]) == unicodedata.normalize("NFKC", actual[window]):
        return True
    pair = expected[place : place + 1] + actual[place : place + 1]
    if pair.isascii():
        return False
    if not any(character.isalnum() for character in pair):
        return True
    if any(unicodedata.category(character) in _UNSEEN and visible(character) == character for character in pair):
        return True
    names = {unicodedata.name(character, "?").split()[0] for character in pair if character.isalpha()}
    return len(names) == 2 and names <= {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "FULLWIDTH"}


def _code_points(text: str, place: int) -> str:
    if place >= len(text):
        return f" (ends after character {place})"
    marks = itertools.takewhile(lambda mark: unicodedata.combining(mark), text[place + 1 : place + 4])
    return f" ({' '.join(f'U+{ord(character):04X}' for character in (text[place], *marks))} at character {place + 1})"
