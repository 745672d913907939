"""How the criteria of two executions differ, setting by setting."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from workbench.counting import counted
from workbench.history.summary import Row, Summary

Sided = tuple[Summary, Row]
"""An execution and its run."""
_LONGEST = 60


class Change(NamedTuple):
    """One setting of a criterion that differs; `key` is "" where one side lacks the whole criterion."""

    criterion: str
    key: str
    before: Any
    after: Any

    def words(self) -> str:
        """`response_match_score threshold 0.95 -> 1.0`, `safety_v1 is new`."""
        if not self.key:
            return f"{self.criterion} is {'new' if self.before is None else 'gone'}"
        return f"{self.criterion} {self.key} {_short(self.before)} -> {_short(self.after)}"


def criteria_changes(before: Sided, after: Sided) -> list[Change]:
    """Return what differs in the criteria, but for the options of judges. Of a run that kept no settings, thresholds
    are compared."""
    return _changes(before, after, "criteria")


def judge_changes(before: Sided, after: Sided) -> list[Change]:
    """Return what differs in the options of judges."""
    return _changes(before, after, "judges")


def every_difference(before: Summary, after: Summary, pairs: Iterable[tuple[Row, Row]]) -> Iterator[str]:
    """Say in words how what the same cases were given differs between two runs, whether or not it changed a verdict."""
    told: Counter[str] = Counter()
    known: dict[tuple[str, ...], list[str]] = {}
    cases = 0
    for old, new in pairs:
        cases += 1
        # Mostly all cases of an evalset share their criteria.
        key = tuple(str(row.get(name) or "") for row in (old, new) for name in ("criteria", "judges", "settings"))
        if key not in known or not all((key[0], key[3])):
            known[key] = list(_differences((before, old), (after, new)))
        told.update(known[key])
        if _known_and_not_the_same(old, new, "expected"):
            told["what is expected"] += 1
    for words, number in told.items():
        yield words if number == cases and words != "what is expected" else f"{words} ({counted(number, 'case')})"


def _differences(before: Sided, after: Sided) -> Iterator[str]:
    for change in (*criteria_changes(before, after), *judge_changes(before, after)):
        yield f"criteria: {change.words()}"
    if _known_and_not_the_same(before[1], after[1], "settings"):
        yield "criteria: settings of custom metrics or of the simulated user"


def _known_and_not_the_same(old: Row, new: Row, name: str) -> bool:
    one, other = str(old.get(name) or ""), str(new.get(name) or "")
    return bool(one and other) and (":" in one) == (":" in other) and one != other


def _changes(before: Sided, after: Sided, name: str) -> list[Change]:
    old, new = (_settings(run, row, name) for run, row in (before, after))
    if old is None or new is None:
        return list(_thresholds(before[1], after[1])) if name == "criteria" else []
    found: list[Change] = []
    for criterion in {**old, **new}:
        if name == "criteria" and (criterion not in old or criterion not in new):
            found.append(Change(criterion, "", old.get(criterion), new.get(criterion)))
            continue
        one, other = old.get(criterion, {}), new.get(criterion, {})
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        found += [Change(criterion, key, one.get(key), other.get(key)) for key in keys]
    return found


def _settings(run: Summary, row: Row, name: str) -> dict[str, dict[str, Any]] | None:
    """Return criterion → its settings; None where they are not kept."""
    given = run.given.get(str(row.get(name) or ""))
    if not isinstance(given, Mapping):
        return None
    return {
        str(criterion): dict(value) if isinstance(value, Mapping) else {"threshold": value}
        for criterion, value in given.items()
    }


def _thresholds(old: Row, new: Row) -> Iterator[Change]:
    for name, metric in new["metrics"].items():
        before = old["metrics"].get(name)
        if before is not None and before[1] != metric[1]:
            yield Change(name, "threshold", before[1], metric[1])


def _short(value: Any) -> str:
    if value is None:
        return "default"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
