"""Alignment of expected and actual tool calls, one row per call.

Every call is in exactly one row. Calls that are equal under the rules are matched first, in order (`same`) and then
anywhere (`moved`). The rest is paired by name: `differs`, or `moved` with differences if the order differs too. A call
without a partner is `missing` or `extra`. ANY_ORDER is therefore satisfied exactly if every expected call is in a
`same` row or in a `moved` row without differences.
"""

import itertools
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import eq
from typing import Any, Literal, NamedTuple, TypeAlias

from workbench.criteria.json_difference import (
    ABSENT,
    Equal,
    brief,
    equal_pairs,
    hashable,
    heaviest_pairs,
    lcs_pairs,
    most_pairs,
)
from workbench.criteria.value_rules import Rules, agrees, compare, described
from workbench.events.events import MetricResult
from workbench.files.invocation import ToolCall
from workbench.text.json_values import mapping, objects, string

MAX_DIFFERENCES = 50
"""Differences kept per row. The row's `more_differences` counts the others."""
MAX_ARGUMENTS = 200
"""Arguments kept per call. A last argument `…` counts the others. Long values are replaced by short texts (`brief`)."""


@dataclass(frozen=True)
class CallRules:
    """Rules for comparing calls: by name only, or by name and arguments.

    `args_match` maps a tool, or "*" for every tool, to rules by dotted path of an argument. A tool's own rule wins.
    """

    ignore_args: bool = False
    args_match: Mapping[str, Rules] = field(default_factory=dict)

    def for_tool(self, tool: str) -> Rules:
        """Return the rules for the arguments of a tool, by dotted path, including those for every tool."""
        return {**self.args_match.get("*", {}), **self.args_match.get(tool, {})} if self.args_match else {}


class Calls:
    """The expected and actual calls of a turn, and which of them are equal under the rules.

    `expected` and `actual` are hashable keys. `equal` compares two keys under rules for arguments. Without such rules
    it is None, and keys are compared with `==`, as in ADK: a call without args differs from one with {}.
    """

    def __init__(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall], rules: CallRules) -> None:
        self.rules = rules
        self._call_of: dict[Hashable, ToolCall] = {}
        self._answers: dict[tuple[Hashable, Hashable], bool] = {}
        self.expected, self.actual = self._keys(expected), self._keys(actual)
        self.equal: Equal | None = self._equal if rules.args_match and not rules.ignore_args else None

    def _keys(self, calls: Sequence[ToolCall]) -> list[Hashable]:
        keys: list[Hashable] = [
            call.name if self.rules.ignore_args else (call.name, hashable(call.args)) for call in calls
        ]
        self._call_of.update(zip(keys, calls, strict=True))
        return keys

    def _equal(self, expected: Hashable, actual: Hashable) -> bool:
        pair = (expected, actual)
        if pair not in self._answers:
            one, other = self._call_of[expected], self._call_of[actual]
            is_equal = one.name == other.name and agrees(_args(one), _args(other), self.rules.for_tool(one.name))
            self._answers[pair] = is_equal
        return self._answers[pair]

    def match(self, match_type: str) -> bool:
        """Return whether the actual calls satisfy the expected calls under EXACT, IN_ORDER or ANY_ORDER."""
        equal = self.equal or eq
        if match_type == "EXACT":
            return len(self.expected) == len(self.actual) and all(map(equal, self.expected, self.actual))
        if match_type == "IN_ORDER":
            rest = iter(self.actual)
            return all(any(equal(key, other) for other in rest) for key in self.expected)
        if self.equal is None:
            return Counter(self.expected) <= Counter(self.actual)
        return len(self.in_any_order(())) == len(self.expected)

    def in_any_order(self, first: Iterable[tuple[int, int]]) -> dict[int, int]:
        """Map expected to actual indexes of as many equal calls as possible, beginning with the pairs of `first`."""
        if self.equal is None:
            in_order = list(first)
            return dict(in_order) | equal_pairs(self.expected, self.actual, in_order)

        def fits(row: int, column: int) -> bool:
            return self._equal(self.expected[row], self.actual[column])

        return most_pairs(len(self.expected), len(self.actual), fits, first)


def call_rows(expected: Sequence[ToolCall], actual: Sequence[ToolCall], rules: CallRules) -> list[dict[str, Any]]:
    """Return the rows as JSON data, in the order of the expected calls, with unexpected calls between them.

    - `mark`: same, differs, missing, extra or moved
    - `expected`, `actual`: {"name", "args"} or null
    - `expected_index`, `actual_index`: positions of the calls from 0, or null
    - `differences`: those that no rule accepts, at most `MAX_DIFFERENCES`, each from `value_rules.described`
    - `more_differences`: the number of further ones; left out if there are none
    - `accepted`: the differences that a rule accepts; left out if there are none
    - `inside`: the tool whose agent made the actual call; left out for the agent's own calls
    """
    calls = Calls(expected, actual, rules)
    in_order = lcs_pairs(calls.expected, calls.actual, calls.equal)
    equal = calls.in_any_order(in_order)
    in_order = [(row, column) for row, column in in_order if equal[row] == column]
    moved = {row: column for row, column in equal.items() if (row, column) not in set(in_order)}
    similarity = _Similarity(expected, actual)
    in_order = sorted(in_order + _differing(in_order, moved, similarity))
    names = [call.name for call in expected], [call.name for call in actual]
    moved |= equal_pairs(*names, [*in_order, *moved.items()])
    rows: list[dict[str, Any]] = []
    for row, column in _walk(in_order, moved, len(expected), len(actual)):
        one = None if row is None else expected[row]
        other = None if column is None else actual[column]
        found = _differences(one, other, rules) if one and other and not rules.ignore_args else {"differences": []}
        if one and other:
            mark = "moved" if row in moved else "differs" if found["differences"] else "same"
        else:
            mark = "missing" if one else "extra"
        calls_shown = {"expected": _shown_call(one), "actual": _shown_call(other)}
        places = {"expected_index": row, "actual_index": column}
        inside = {"inside": other.inside} if other and other.inside else {}
        rows.append({"mark": mark, **calls_shown, **places, **found, **inside})
    return rows


RowFault: TypeAlias = Literal["differs", "missing", "extra", "moved"]


class FaultyRow(NamedTuple):
    """A row that keeps a turn from matching. `instead` names the tool called instead of a missing call, or is ""."""

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


def _args(call: ToolCall) -> Any:
    return ABSENT if call.args is None else call.args


def _differences(expected: ToolCall, actual: ToolCall, rules: CallRules) -> dict[str, Any]:
    found = list(compare(_args(expected), _args(actual), rules.for_tool(expected.name), "args"))
    rejected = [difference for difference in found if not difference.accepted]
    accepted = [difference for difference in found if difference.accepted]
    row: dict[str, Any] = {"differences": [described(each) for each in rejected[:MAX_DIFFERENCES]]}
    if len(rejected) > MAX_DIFFERENCES:
        row["more_differences"] = len(rejected) - MAX_DIFFERENCES
    if accepted:
        row["accepted"] = [described(each) for each in accepted[:MAX_DIFFERENCES]]
    return row


class _Similarity:
    """Similarity of two calls: 0 for different names, else from 1 to below 2, higher with more equal arguments."""

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


def _differing(
    in_order: list[tuple[int, int]], moved: dict[int, int], similarity: _Similarity
) -> list[tuple[int, int]]:
    """Pair the calls between neighbouring matched pairs: same name, different arguments, the most similar together."""
    taken = set(moved.values())
    pairs: list[tuple[int, int]] = []
    above, left = -1, -1
    for below, right in [*in_order, (len(similarity.expected), len(similarity.actual))]:
        rows = [row for row in range(above + 1, below) if row not in moved]
        columns = [column for column in range(left + 1, right) if column not in taken]
        pairs += heaviest_pairs(rows, columns, similarity)
        above, left = below, right
    return pairs


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


_INDEX = re.compile(r"\[\d+\]")
_NOT_GIVEN = "(not given)"


def call_cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return `refund: amount is text, expected number`, `track_parcel not called` and the like, or ""."""
    for turn in turns:
        rows = objects(turn.details.get("rows")) if turn.status == "failed" else []
        if rows:
            fault = next(faulty_rows(rows, string(turn.details.get("match_type"))), None)
            if fault is not None:
                return _text(fault, rows)
    return ""


def _text(fault: FaultyRow, rows: Sequence[Mapping[str, Any]]) -> str:
    expected, actual = mapping(fault.row.get("expected")), mapping(fault.row.get("actual"))
    match fault.fault:
        case "differs":
            return f"{expected['name']}: {difference_cause(fault.row['differences'][0])}"
        case "missing":
            name = expected["name"]
            return f"{name} called too few times" if _has_call(rows, "actual", name) else f"{name} not called"
        case "extra":
            name = actual["name"]
            return f"{name} called too often" if _has_call(rows, "expected", name) else f"extra call {name}"
    return _order(fault.row, rows)


def _has_call(rows: Sequence[Mapping[str, Any]], side: str, name: str) -> bool:
    return any(mapping(row.get(side)).get("name") == name for row in rows)


def difference_cause(difference: Mapping[str, Any], root: str = "args") -> str:
    """Return a cause for one different value: its path below `root` and the types, but no values."""
    whole, word = difference["path"] == root, "argument" if root == "args" else "value"
    name = f"{word}s" if whole else _INDEX.sub("[]", str(difference["path"]).removeprefix(root).removeprefix("."))
    if difference["actual_shown"] == _NOT_GIVEN:
        return f"{name} missing" if whole else f"{word} {name} missing"
    if difference["expected_shown"] == _NOT_GIVEN and "rule" not in difference:
        return f"{name} not expected" if whole else f"{word} {name} not expected"
    got, wanted = (difference[key].replace("nothing", "null") for key in ("actual_type", "expected_type"))
    differ = got != wanted and "rule" not in difference
    return f"{name} is {got}, expected {wanted}" if differ else f"{name} differs"


def _order(moved: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the cause for a call out of order, if possible with a call that it should have preceded or followed."""
    name, place, came = moved["expected"]["name"], moved["expected_index"], moved["actual_index"]
    for row in rows:
        other, other_place, other_came = row.get("expected"), row.get("expected_index"), row.get("actual_index")
        if other and other_came is not None and other["name"] != name:
            if other_place > place and other_came < came:
                return f"{other['name']} called before {name}"
            if other_place < place and other_came > came:
                return f"{name} called before {other['name']}"
    return f"{name} called out of order"
