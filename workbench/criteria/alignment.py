"""Pairs of items of two sequences: in their order, or in any order."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import eq
from typing import Any, TypeAlias

Equal: TypeAlias = Callable[[Any, Any], bool]
"""A function that tells whether a left item fits a right one. Unlike `==`, it need not be transitive."""

MAX_CELLS = 16_000_000
"""Product of lengths above which the greedy method is used. Below it, the bit vectors stay under about 2 MB."""
MAX_WEIGHED_CELLS = 10_000


def lcs_pairs(left: Sequence[Hashable], right: Sequence[Hashable], equal: Equal | None = None) -> list[tuple[int, int]]:
    """Return index pairs of equal items, increasing on both sides.

    The pairs form a longest common subsequence. Above `MAX_CELLS` they form a common subsequence that is found quickly;
    it contains all of `left` if `left` is a subsequence of `right`. `equal` is asked once for each two distinct items.
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


def _columns(
    left: Sequence[Hashable], right: Sequence[Hashable], equal: Equal | None
) -> tuple[int, dict[Hashable, list[int]]]:
    """Return the length of `right`, and the increasing columns that fit each item."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for column, item in enumerate(right):
        places[item].append(column)
    if equal is not None:
        fitting = {item: [each for other, each in places.items() if equal(item, other)] for item in set(left)}
        places = {item: sorted(column for columns in found for column in columns) for item, found in fitting.items()}
    return len(right), places


def _bit_parallel(left: Sequence[Hashable], right: tuple[int, dict[Hashable, list[int]]]) -> list[tuple[int, int]]:
    """Compute the table of lengths as Hyyrö's bit vectors.

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
    rows: int, columns: int, fits: Callable[[int, int], bool], first: Iterable[tuple[int, int]] = ()
) -> dict[int, int]:
    """Return as many pairs as possible in any order: the column of each row that has one.

    A maximum matching by augmenting paths. `first` are pairs that fit; their rows and columns stay paired, though
    perhaps with others.
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
    return partner


def heaviest_pairs(
    left: Sequence[int], right: Sequence[int], weight: Callable[[int, int], float]
) -> list[tuple[int, int]]:
    """Return pairs in the order of both sides whose weights have the largest sum. A weight of 0 forbids a pair.

    Above `MAX_WEIGHED_CELLS`, each item of `left` takes the next item it is allowed to.
    """
    if len(left) * len(right) > MAX_WEIGHED_CELLS:
        return _next_allowed(left, right, weight)
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


def _next_allowed(
    left: Sequence[int], right: Sequence[int], weight: Callable[[int, int], float]
) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    start = 0
    # The window keeps the time linear. Items further away stay unpaired.
    window = max(MAX_WEIGHED_CELLS // max(len(left), 1), 8)
    for item in left:
        places = range(start, min(start + window, len(right)))
        found = next((place for place in places if weight(item, right[place])), None)
        if found is not None:
            pairs.append((item, right[found]))
            start = found + 1
    return pairs
