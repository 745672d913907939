"""Alignment of expected and actual tool calls, one row per call.

Every call is in exactly one row. Identical calls are matched first, in order (`same`) and then anywhere (`moved`). The
rest is paired by name: `differs`, or `moved` with differences if the order differs too. ANY_ORDER is therefore
satisfied exactly if every expected call is in a `same` row or in a `moved` row without differences.
"""

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from workbench.metrics.alignment import heaviest_pairs, lcs_pairs
from workbench.metrics.json_difference import ABSENT, brief, describe, differences, hashable
from workbench.model.invocation import ToolCall

MAX_DIFFERENCES = 50
"""Differences kept per row. The row's `more_differences` counts the others."""
MAX_ARGUMENTS = 200
"""Arguments kept per call. A last argument `…` counts the others. Long values are replaced by short texts (`brief`)."""


def call_keys(calls: Sequence[ToolCall], *, ignore_args: bool) -> list[Hashable]:
    """Return one hashable key per call. ADK's equality holds between keys: a call without args differs from {}."""
    return [call.name if ignore_args else (call.name, hashable(call.args)) for call in calls]


def call_rows(expected: Sequence[ToolCall], actual: Sequence[ToolCall], *, ignore_args: bool) -> list[dict[str, Any]]:
    """Return the rows as JSON data, in the order of the expected calls, with unexpected calls between them.

    - `mark`: same, differs, missing, extra or moved
    - `expected`, `actual`: {"name", "args"} or null
    - `expected_index`, `actual_index`: positions of the calls from 0, or null
    - `differences`: as returned by `json_difference.describe`
    """
    wanted, got = call_keys(expected, ignore_args=ignore_args), call_keys(actual, ignore_args=ignore_args)
    in_order = lcs_pairs(wanted, got)
    moved = _identical(wanted, got, in_order)
    similarity = _Similarity(expected, actual)
    in_order = sorted(in_order + _differing(in_order, moved, similarity))
    moved |= _same_name(in_order, moved, similarity)
    rows: list[dict[str, Any]] = []
    for row, column in _walk(in_order, moved, len(wanted), len(got)):
        one = None if row is None else expected[row]
        other = None if column is None else actual[column]
        found, more = _differences(one, other) if one and other and not ignore_args else ([], 0)
        if one and other:
            mark = "moved" if row in moved else "differs" if found else "same"
        else:
            mark = "missing" if one else "extra"
        rows.append(
            {
                "mark": mark,
                "expected": _shown_call(one),
                "actual": _shown_call(other),
                "expected_index": row,
                "actual_index": column,
                "differences": found,
                **({"more_differences": more} if more else {}),
            }
        )
    return rows


RowFault: TypeAlias = Literal["differs", "missing", "extra", "moved"]


class FaultyRow(NamedTuple):
    """A row that keeps a turn from matching.

    `instead` is the name of the unexpected call that was made in place of a missing one, or "".
    """

    fault: RowFault
    row: dict[str, Any]
    instead: str = ""


def faulty_rows(rows: Sequence[dict[str, Any]], match_type: str) -> Iterator[FaultyRow]:
    """Yield, in order, each row that keeps the turn from matching under this match type."""
    for index, row in enumerate(rows):
        mark = row["mark"]
        if row["differences"]:
            yield FaultyRow("differs", row)
        elif mark == "missing":
            # The call made instead is in the next row.
            below = next((other for other in rows[index + 1 :] if other["mark"] != "missing"), None)
            replaced = below is not None and below["mark"] == "extra" and match_type == "EXACT"
            yield FaultyRow("missing", row, below["actual"]["name"] if below and replaced else "")
        elif mark == "extra" and match_type == "EXACT":
            yield FaultyRow("extra", row)
        elif mark == "moved" and match_type != "ANY_ORDER":
            yield FaultyRow("moved", row)


def _shown_call(call: ToolCall | None) -> dict[str, Any] | None:
    if call is None:
        return None
    args = call.args
    if args is not None:
        args = {name: brief(value) for name, value in itertools.islice(args.items(), MAX_ARGUMENTS)}
        if len(args) < len(call.args or {}):
            args["…"] = f"{len(call.args or {}) - len(args)} more"
    return {"name": call.name, "args": args}


def _differences(expected: ToolCall, actual: ToolCall) -> tuple[list[dict[str, Any]], int]:
    wanted, got = (ABSENT if call.args is None else call.args for call in (expected, actual))
    every = differences(wanted, got, "args")
    found = [describe(*difference) for difference in itertools.islice(every, MAX_DIFFERENCES)]
    return found, sum(1 for _ in every)


class _Similarity:
    """Similarity of two calls: 0 for different names, else 1 plus the share of equal arguments."""

    def __init__(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> None:
        self.expected, self.actual = expected, actual
        self._arguments: dict[tuple[bool, int], dict[str, Hashable]] = {}

    def __call__(self, row: int, column: int) -> float:
        if self.expected[row].name != self.actual[column].name:
            return 0.0
        wanted, got = self._frozen(True, row), self._frozen(False, column)
        keys = wanted.keys() | got.keys()
        equal = sum(wanted.get(key, ABSENT) == got.get(key, ABSENT) for key in keys)
        return 1.0 + equal / (len(keys) + 1)

    def _frozen(self, is_expected: bool, index: int) -> dict[str, Hashable]:
        place = (is_expected, index)
        if place not in self._arguments:
            args = (self.expected if is_expected else self.actual)[index].args or {}
            self._arguments[place] = {key: hashable(value) for key, value in args.items()}
        return self._arguments[place]


def _left_over(count: int, used: Iterable[int]) -> list[int]:
    taken = set(used)
    return [index for index in range(count) if index not in taken]


def _identical(wanted: list[Hashable], got: list[Hashable], in_order: list[tuple[int, int]]) -> dict[int, int]:
    """Map expected to actual indexes of equal calls that are not in the common order."""
    free: dict[Hashable, list[int]] = defaultdict(list)
    for column in reversed(_left_over(len(got), (pair[1] for pair in in_order))):
        free[got[column]].append(column)
    rows = _left_over(len(wanted), (pair[0] for pair in in_order))
    return {row: free[wanted[row]].pop() for row in rows if free.get(wanted[row])}


def _differing(
    in_order: list[tuple[int, int]], moved: dict[int, int], similarity: _Similarity
) -> list[tuple[int, int]]:
    """Pair calls of the same name but different arguments, between the identical calls on either side of them."""
    taken = set(moved.values())
    pairs: list[tuple[int, int]] = []
    above, left = -1, -1
    for below, right in [*in_order, (len(similarity.expected), len(similarity.actual))]:
        rows = [row for row in range(above + 1, below) if row not in moved]
        columns = [column for column in range(left + 1, right) if column not in taken]
        pairs += heaviest_pairs(rows, columns, similarity)
        above, left = below, right
    return pairs


def _same_name(in_order: list[tuple[int, int]], moved: dict[int, int], similarity: _Similarity) -> dict[int, int]:
    """Pair the remaining calls by name, wherever they are, in the order of the calls."""
    free: dict[str, list[int]] = defaultdict(list)
    used = itertools.chain((pair[1] for pair in in_order), moved.values())
    for column in reversed(_left_over(len(similarity.actual), used)):
        free[similarity.actual[column].name].append(column)
    rows = _left_over(len(similarity.expected), itertools.chain((pair[0] for pair in in_order), moved))
    names = {row: similarity.expected[row].name for row in rows}
    return {row: free[names[row]].pop() for row in rows if free.get(names[row])}


def _walk(
    in_order: list[tuple[int, int]], moved: dict[int, int], rows: int, columns: int
) -> Iterable[tuple[int | None, int | None]]:
    taken = set(moved.values())
    above, left = -1, -1
    for below, right in [*in_order, (rows, columns)]:
        for row in range(above + 1, below):
            yield row, moved.get(row)
        for column in range(left + 1, right):
            if column not in taken:
                yield None, column
        if below < rows:
            yield below, right
        above, left = below, right
