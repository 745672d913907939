"""Differences between two JSON values, in texts that tell a user what to change, and pairs of items of two lists.

Values are compared with Python's `==`, as in ADK: 1 = 1.0 = true, the order of keys does not matter, the order of a
list does, and nothing equals NaN.
"""

import itertools
import json
import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from operator import eq
from typing import Any, Final, TypeAlias

from workbench.text.safe_text import visible


class Absent:
    """Type of `ABSENT`, the marker for a side that has no value at all (null is a value)."""


ABSENT: Final = Absent()
SHOWN_LIMIT = 60
BRIEF_LIMIT = 2_000
_UNSEEN = ("Cf", "Mn", "Me", "Zs", "Co", "Cn")
_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def hashable(value: Any) -> Hashable:
    """Return a hashable form of a JSON value. Two forms are equal exactly if the values are equal."""
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
    - `expected_shown`, `actual_shown`: short texts that are safe to show. Invisible characters are named. Long texts
      are cut around their first difference.
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
    """Return `args.amount: number 12.5, got text "12.50"` from `describe`. A `rule` replaces the expected value."""
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
    """Return the value, or a short text if its JSON has more than `BRIEF_LIMIT` characters."""
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
    start = 0 if fits else max(place - 16, 0)
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


Equal: TypeAlias = Callable[[Any, Any], bool]
"""A function that returns whether a left item matches a right one. Unlike `==`, it need not be transitive."""

MAX_CELLS = 16_000_000
"""Product of lengths above which the greedy method is used. Below it, the bit vectors stay under about 2 MB."""
MAX_WEIGHED_CELLS = 10_000


def lcs_pairs(left: Sequence[Hashable], right: Sequence[Hashable], equal: Equal | None = None) -> list[tuple[int, int]]:
    """Return index pairs of equal items, increasing on both sides. `equal` replaces `==`.

    The pairs form a longest common subsequence. Above `MAX_CELLS`, they form a shorter one that is found quickly; it
    contains all of `left` if `left` is a subsequence of `right`.
    """
    fits = equal or eq
    start = 0
    shorter = min(len(left), len(right))
    while start < shorter and fits(left[start], right[start]):
        start += 1
    end = 0
    while end < shorter - start and fits(left[-1 - end], right[-1 - end]):
        end += 1
    head = [(index, index) for index in range(start)]
    tail = [(len(left) - index, len(right) - index) for index in range(end, 0, -1)]
    middle_left, middle_right = left[start : len(left) - end], right[start : len(right) - end]
    small = len(middle_left) * len(middle_right) <= MAX_CELLS
    middle = (_bit_parallel if small else _greedy)(middle_left, _columns(middle_left, middle_right, equal))
    return head + [(row + start, column + start) for row, column in middle] + tail


def equal_pairs(
    left: Sequence[Hashable], right: Sequence[Hashable], taken: Collection[tuple[int, int]]
) -> dict[int, int]:
    """Map left to right indexes of equal items, in any order. Items in the pairs of `taken` are left out."""
    rows, columns = {row for row, _ in taken}, {column for _, column in taken}
    free: dict[Hashable, list[int]] = defaultdict(list)
    for column in range(len(right) - 1, -1, -1):
        if column not in columns:
            free[right[column]].append(column)
    return {row: free[item].pop() for row, item in enumerate(left) if row not in rows and free.get(item)}


def _columns(
    left: Sequence[Hashable], right: Sequence[Hashable], equal: Equal | None
) -> tuple[int, dict[Hashable, list[int]]]:
    """Return the length of `right`, and for each item the increasing indexes of `right` that fit it."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for column, item in enumerate(right):
        places[item].append(column)
    if equal is not None:
        fitting = {item: [each for other, each in places.items() if equal(item, other)] for item in set(left)}
        places = {item: sorted(column for columns in found for column in columns) for item, found in fitting.items()}
    return len(right), places


def _bit_parallel(left: Sequence[Hashable], right: tuple[int, dict[Hashable, list[int]]]) -> list[tuple[int, int]]:
    """Return index pairs of a longest common subsequence. Hyyrö's bit vectors are the table of lengths.

    After row i, bit j of the vector is 0 if the length grows between columns j and j+1. A row costs one addition of
    long integers instead of a loop over columns, and the stored rows are enough to trace back the pairs.
    """
    length, places = right
    where = {item: sum(1 << column for column in columns) for item, columns in places.items()}
    full = (1 << length) - 1
    vector = full
    rows: list[int] = []
    for item in left:
        hits = vector & where.get(item, 0)
        vector = ((vector + hits) | (vector - hits)) & full
        rows.append(vector)
    pairs: list[tuple[int, int]] = []
    row, column = len(left) - 1, length - 1
    while row >= 0 and column >= 0:
        if rows[row] >> column & 1:
            column -= 1
        elif row and not rows[row - 1] >> column & 1:
            row -= 1
        else:
            pairs.append((row, column))
            row, column = row - 1, column - 1
    pairs.reverse()
    return pairs


def _greedy(left: Sequence[Hashable], right: tuple[int, dict[Hashable, list[int]]]) -> list[tuple[int, int]]:
    """Match each item of `left` with the first fitting item after the previous match."""
    pairs: list[tuple[int, int]] = []
    reached = -1
    for row, item in enumerate(left):
        columns = right[1].get(item, [])
        place = bisect_right(columns, reached)
        if place < len(columns):
            reached = columns[place]
            pairs.append((row, reached))
    return pairs


def most_pairs(
    rows: int,
    columns: int,
    fits: Callable[[int, int], bool],
    first: Iterable[tuple[int, int]] = (),
    *,
    all_or_none: bool = False,
) -> dict[int, int]:
    """Return as many pairs as possible in any order: the column of each row that has one.

    A maximum matching by augmenting paths. `first` are valid pairs to begin with. Their rows and columns are also
    paired in the result, perhaps with others. With `all_or_none`, the search ends at the first row that stays alone.
    """
    partner = dict(first)
    owner = {column: row for row, column in partner.items()}
    for start in range(rows):
        if start in partner:
            continue
        came_from: dict[int, int] = {}
        waiting, free = [start], None
        while waiting and free is None:
            row = waiting.pop()
            for column in range(columns):
                if column not in came_from and fits(row, column):
                    came_from[column] = row
                    if column not in owner:
                        free = column
                        break
                    waiting.append(owner[column])
        while free is not None:
            row = came_from[free]
            previous = partner.get(row)
            partner[row], owner[free] = free, row
            free = previous
        if all_or_none and start not in partner:
            break
    return partner


def heaviest_pairs(
    left: Sequence[int], right: Sequence[int], weight: Callable[[int, int], float]
) -> list[tuple[int, int]]:
    """Return pairs in order with the largest sum of weights. 0 forbids a pair. Long lists are paired by position."""
    if len(left) * len(right) > MAX_WEIGHED_CELLS:
        return [pair for pair in zip(left, right, strict=False) if weight(*pair)]
    weights = [[weight(item, other) for other in right] for item in left]
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for row in range(len(left) - 1, -1, -1):
        for column in range(len(right) - 1, -1, -1):
            skip = max(best[row + 1][column], best[row][column + 1])
            value = weights[row][column]
            best[row][column] = max(skip, best[row + 1][column + 1] + value) if value else skip
    pairs: list[tuple[int, int]] = []
    row = column = 0
    while row < len(left) and column < len(right):
        value = weights[row][column]
        if value and best[row][column] == best[row + 1][column + 1] + value:
            pairs.append((left[row], right[column]))
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1
    return pairs
