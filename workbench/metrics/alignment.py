"""Alignment of two sequences that keeps their order."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

MAX_CELLS = 16_000_000
"""Product of lengths above which the greedy method is used. Below it, the bit vectors stay under about 2 MB."""
MAX_WEIGHED_CELLS = 10_000


def lcs_pairs(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return index pairs of equal items, increasing on both sides.

    The pairs form a longest common subsequence. Above `MAX_CELLS` they form a common subsequence that is found quickly;
    it contains all of `left` if `left` is a subsequence of `right`.
    """
    start = 0
    shorter = min(len(left), len(right))
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    head = [(index, index) for index in range(start)]
    tail = [(len(left) - index, len(right) - index) for index in range(end, 0, -1)]
    middle_left, middle_right = left[start : len(left) - end], right[start : len(right) - end]
    small = len(middle_left) * len(middle_right) <= MAX_CELLS
    middle = (_bit_parallel if small else _greedy)(middle_left, middle_right)
    return head + [(row + start, column + start) for row, column in middle] + tail


def _bit_parallel(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Compute the table of lengths as Hyyrö's bit vectors.

    After row i, bit j of the vector is 0 if the length grows between columns j and j+1. A row costs one addition of
    long integers instead of a loop over columns, and the stored rows are enough to trace back the pairs.
    """
    where: dict[Hashable, int] = defaultdict(int)
    for column, item in enumerate(right):
        where[item] |= 1 << column
    full = (1 << len(right)) - 1
    vector = full
    rows: list[int] = []
    for item in left:
        hits = vector & where.get(item, 0)
        vector = ((vector + hits) | (vector - hits)) & full
        rows.append(vector)
    pairs: list[tuple[int, int]] = []
    row, column = len(left) - 1, len(right) - 1
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


def _greedy(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Match each item of `left` with the first equal item after the previous match."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for column in range(len(right) - 1, -1, -1):
        places[right[column]].append(column)
    pairs: list[tuple[int, int]] = []
    reached = -1
    for row, item in enumerate(left):
        columns = places.get(item, [])
        while columns and columns[-1] <= reached:
            columns.pop()
        if columns:
            reached = columns.pop()
            pairs.append((row, reached))
    return pairs


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
