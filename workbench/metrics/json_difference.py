"""Where two JSON values differ, in words a person can act on.

Values are equal as Python's `==` has it, which is what ADK compares with: 1 = 1.0 = true, the order of keys is
irrelevant, the order of a list is not, and NaN equals nothing.
"""

import itertools
import json
import re
import unicodedata
from collections.abc import Hashable, Iterator
from typing import Any, Final

from workbench.text import visible


class Absent:
    """The type of `ABSENT`, which stands where one side has no value at all (null is a value)."""


ABSENT: Final = Absent()
SHOWN_LIMIT = 60
BRIEF_LIMIT = 2_000
_CONTEXT = 16
_UNSEEN = ("Cf", "Mn", "Me", "Zs", "Co", "Cn")
_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def frozen(value: Any) -> Hashable:
    """A hashable form of a JSON value: two are equal exactly if the values are."""
    if isinstance(value, dict):
        return "{}", frozenset((key, frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return "[]", tuple(frozen(item) for item in value)
    if isinstance(value, float) and value != value:
        # json.loads hands out one and the same NaN object, which containers would take for equal by identity.
        return object()
    return value  # type: ignore[no-any-return]


def differences(expected: Any, actual: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """(JSON path, expected, actual) of each smallest part that differs: the keys in the order of the expected object,
    then those only the actual one has; list elements by position. `ABSENT` marks the side without a value."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            yield from differences(expected.get(key, ABSENT), actual.get(key, ABSENT), path + _step(key))
    elif isinstance(expected, list) and isinstance(actual, list):
        for index in range(max(len(expected), len(actual))):
            wanted = expected[index] if index < len(expected) else ABSENT
            got = actual[index] if index < len(actual) else ABSENT
            yield from differences(wanted, got, f"{path}[{index}]")
    elif frozen(expected) != frozen(actual):
        yield path, expected, actual


def describe(path: str, expected: Any, actual: Any) -> dict[str, Any]:
    """One difference as JSON data: `path`; the two values (null where there is none, `brief`); their types in human
    terms (`number`, `text`, `true/false`, `list`, `object`, `nothing`); and both as short text that is safe to show,
    with invisible characters named and long texts cut around their first difference."""
    if isinstance(expected, str) and isinstance(actual, str):
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
    """`args.amount: number 12.5, got text "12.50"`, from what `describe` gave."""
    wanted, got = (_phrase(difference[f"{side}_type"], difference[f"{side}_shown"]) for side in ("expected", "actual"))
    return f"{difference['path']}: {wanted}, got {got}"


def _phrase(kind: str, text: str) -> str:
    return text if kind == "true/false" else f"{kind} {text}"


def type_name(value: Any) -> str:
    """The type of a JSON value in human terms."""
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
    """A JSON value as one short line that is safe for a terminal."""
    if value is ABSENT:
        return "(not given)"
    if value is None:
        return "(null)"
    if isinstance(value, str):
        return _quoted(value, 0, limit)
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _line(text if len(text) <= limit else text[: limit - 1] + "…")


def brief(value: Any) -> Any:
    """The value itself, or a short text in place of one whose JSON has more than `BRIEF_LIMIT` characters: the
    explanation of a verdict must not be larger than the transcript, where the value stands whole."""
    if value is None or isinstance(value, bool | int | float):
        return value
    size = len(value) if isinstance(value, str) else len(json.dumps(value, default=str))
    return value if size <= BRIEF_LIMIT else shown(value, limit=4 * SHOWN_LIMIT)


def _step(key: str) -> str:
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
    # What is left are the rare breaks: vertical tab, form feed, NEL, line and paragraph separators.
    return visible(text).replace("\n", "⟨BREAK⟩")


def _look_alike(expected: str, actual: str, place: int) -> bool:
    """Whether the eye would take the two texts for the same at `place`: composed and decomposed letters, compatibility
    forms, Cyrillic or Greek letters in a Latin word, other dashes and quotes."""
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
