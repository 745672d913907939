"""Queries typed after `/`: words, `:status`, `response_match_score<0.8` and `cause:NAME`.

All kinds must match, but only one of several statuses or causes. Example: refund :fail trajectory<1
"""

import difflib
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from workbench.results.faces import Status
from workbench.store.execution import Execution

STATUS_NAMES: dict[str, frozenset[Status]] = {
    "pass": frozenset({"passed"}),
    "fail": frozenset({"failed"}),
    "error": frozenset({"error"}),
    "noteval": frozenset({"not_evaluated"}),
    "cancelled": frozenset({"cancelled"}),
    "running": frozenset({"running", "queued"}),
    "notrun": frozenset({"not_run"}),
}
PASSED = ":pass"
MARKED = "marked"
STALE = "stale"
CHANGED = "changed"
FLAKY = "flaky"
FROZEN = "frozen"
TRIAGED, UNTRIAGED = "triaged", "untriaged"
CAUSE = "cause:"
INSIDE = "in:"
_FLAGS = (MARKED, STALE, CHANGED, FLAKY, FROZEN, TRIAGED, UNTRIAGED)
_EITHER = frozenset({TRIAGED, UNTRIAGED})
_METRIC = re.compile(r"([A-Za-z_]\w*)(<=|>=|<|>|=)(-?\d*\.?\d+)")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class MetricTest:
    """A condition on the score of metrics whose name contains `name`."""

    name: str
    operator: str
    value: float

    def holds(self, record: Execution) -> bool:
        """Return whether a metric of the record matches."""
        compare = _OPERATORS[self.operator]
        return any(
            result.score is not None and compare(result.score, self.value)
            for name, result in record.scores.items()
            if self.name in name.lower()
        )


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query.

    `words` are lowercase. Empty `statuses` match any. `flags` are words such as `stale`. `faults` names what was not
    understood.
    """

    text: str = ""
    words: tuple[str, ...] = ()
    statuses: frozenset[Status] = frozenset()
    metrics: tuple[MetricTest, ...] = ()
    flags: frozenset[str] = frozenset()
    causes: tuple[str, ...] = ()
    """Causes, each by its slug or a part of one."""
    inside: tuple[str, ...] = ()
    """Agents and evalsets, each by its whole name (`plain_name`). One of them must match."""
    faults: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the query matches everything."""
        return not any((self.words, self.statuses, self.metrics, self.flags, self.causes, self.inside))

    def metrics_hold(self, records: Iterable[Execution]) -> bool:
        """Return whether each metric condition matches one of the records."""
        found = list(records)
        return all(any(test.holds(record) for record in found) for test in self.metrics)


def parse_query(text: str) -> Query:
    """Parse a query. Never raises. Unknown tokens are named in `faults`."""
    words: list[str] = []
    statuses: set[Status] = set()
    metrics: list[MetricTest] = []
    faults: list[str] = []
    causes: list[str] = []
    inside: list[str] = []
    flags: set[str] = set()
    for token in text.lower().split():
        if found := _METRIC.fullmatch(token):
            metrics.append(MetricTest(found[1], found[2], float(found[3])))
        elif token.startswith(CAUSE):
            causes += [token.removeprefix(CAUSE)] if token != CAUSE else []
        elif token.startswith(INSIDE):
            inside += [token.removeprefix(INSIDE)] if token != INSIDE else []
        elif not token.startswith(":"):
            words.append(token)
        elif token[1:] in _FLAGS:
            flags.add(token[1:])
        elif names := [name for name in STATUS_NAMES if token[1:] and name.startswith(token[1:])]:
            statuses |= STATUS_NAMES[names[0]]
        elif len(token) > 1 and not any(flag.startswith(token[1:]) for flag in _FLAGS):
            faults.append(_unknown(token[1:]))
    if flags >= _EITHER:
        flags -= _EITHER
    conditions = tuple(words), frozenset(statuses), tuple(metrics), frozenset(flags), tuple(causes), tuple(inside)
    return Query(text, *conditions, tuple(faults))


def plain_name(name: str) -> str:
    """Return the name of an agent, or the path of an evalset, as one lowercase word."""
    return "-".join(name.lower().split())


def _unknown(name: str) -> str:
    known = [*STATUS_NAMES, *_FLAGS]
    near = difflib.get_close_matches(name, known, n=1)
    return f"unknown filter :{name}; " + (
        f"did you mean :{near[0]}?" if near else "known: " + " ".join(f":{n}" for n in known)
    )
