"""The cause of a failed comparison of tool calls: the first call that differs, without its values."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.criteria.call_rows import FaultyRow, faulty_rows
from workbench.events.events import MetricResult
from workbench.text.json_values import mapping, objects, string

_INDEX = re.compile(r"\[\d+\]")
_NOT_GIVEN = "(not given)"
_TYPES = {"nothing": "null"}


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
    """Return what is wrong with one value: its path below `root` and the types, but no values."""
    whole, word = difference["path"] == root, "argument" if root == "args" else "value"
    name = f"{word}s" if whole else _INDEX.sub("[]", str(difference["path"]).removeprefix(root).removeprefix("."))
    if difference["actual_shown"] == _NOT_GIVEN:
        return f"{name} missing" if whole else f"{word} {name} missing"
    if difference["expected_shown"] == _NOT_GIVEN and "rule" not in difference:
        return f"{name} not expected" if whole else f"{word} {name} not expected"
    kinds = [_TYPES.get(difference[key], difference[key]) for key in ("actual_type", "expected_type")]
    differ = kinds[0] != kinds[1] and "rule" not in difference
    return f"{name} is {kinds[0]}, expected {kinds[1]}" if differ else f"{name} differs"


def _order(moved: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return which of two calls came too early. `moved` is the one out of order."""
    name, place, came = moved["expected"]["name"], moved["expected_index"], moved["actual_index"]
    for row in rows:
        other, other_place, other_came = row.get("expected"), row.get("expected_index"), row.get("actual_index")
        if other and other_came is not None and other["name"] != name:
            if other_place > place and other_came < came:
                return f"{other['name']} called before {name}"
            if other_place < place and other_came > came:
                return f"{name} called before {other['name']}"
    return f"{name} called out of order"
