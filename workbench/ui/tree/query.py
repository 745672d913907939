"""Filters typed after `/`, such as `refund :fail :stale trajectory<1`, and sort orders.

A case must match all parts of a filter, but only one of several statuses, causes (`cause:NAME`), or agents and
evalsets (`in:NAME`).
"""

import difflib
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from workbench.results.faces import FACES, Status
from workbench.store.execution import Execution
from workbench.store.reasons import ONE_OF_A_KIND
from workbench.ui.tree.outline import Pair
from workbench.ui.tree.verdicts import Verdicts

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry


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

    `words` are lowercase. Empty `statuses` match all. `flags` are words such as `stale`. `faults` are messages about
    invalid parts.
    """

    text: str = ""
    words: tuple[str, ...] = ()
    statuses: frozenset[Status] = frozenset()
    metrics: tuple[MetricTest, ...] = ()
    flags: frozenset[str] = frozenset()
    causes: tuple[str, ...] = ()
    """Slugs of causes, or parts of slugs."""
    inside: tuple[str, ...] = ()
    """Full names of agents and evalsets, as from `plain_name`, of which one must match."""
    faults: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the query matches everything."""
        return not any((self.words, self.statuses, self.metrics, self.flags, self.causes, self.inside))


def parse_query(text: str) -> Query:
    """Parse a query. Invalid parts do not raise an error but are listed in `faults`.

    An unfinished flag such as `:stal` is neither a filter nor a fault.
    """
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
    """Return the name of an agent or the path of an evalset as one lowercase word, for `in:NAME`."""
    return "-".join(name.lower().split())


def _unknown(name: str) -> str:
    known = [*STATUS_NAMES, *_FLAGS]
    near = difflib.get_close_matches(name, known, n=1)
    return f"unknown filter :{name}; " + (
        f"did you mean :{near[0]}?" if near else "known: " + " ".join(f":{n}" for n in known)
    )


Sort: TypeAlias = Literal["file", "status", "score", "change", "time"]
SORTS: tuple[Sort, ...] = get_args(Sort)
_LAST = float("inf")


def arrange(
    entries: "Sequence[EvalsetEntry]",
    verdicts: Verdicts,
    query: Query,
    sort: Sort = "file",
    marked: Collection[tuple[int, int]] = (),
    keep: tuple[int, int] | None = None,
) -> dict[int, Sequence[int]] | None:
    """Return the matching cases of each evalset in sort order, or None for all cases in file order.

    The status sorts worst first, the score lowest first, the time slowest first. Cases that never ran come last. The
    change sorts regressions first, then improvements, then other cases. `keep` is a case that is always included, such
    as the one under the cursor when the filter is applied again.
    """
    if query.empty and sort == "file":
        return None
    orders = {
        evalset: _matching(evalset, entry, verdicts, query, marked) if _is_inside(entry, query) else ()
        for evalset, entry in enumerate(entries)
    }
    if query.causes:
        orders = _with_causes(orders, verdicts, query.causes)
    if keep is not None and keep[0] in orders and keep[1] not in orders[keep[0]] and keep[1] >= 0:
        orders[keep[0]] = sorted([*orders[keep[0]], keep[1]])
    if sort != "file":
        orders = {evalset: sorted(cases, key=_sort_key(verdicts, evalset, sort)) for evalset, cases in orders.items()}
    return orders


def _with_causes(
    orders: Mapping[int, Sequence[int]], verdicts: Verdicts, wanted: Sequence[str]
) -> dict[int, Sequence[int]]:
    """Return the cases in `orders` that fail for one of the wanted causes.

    `one-of-a-kind` matches each cause that only one of these cases has.
    """
    from workbench.results.causes import matching_slugs, single_slugs

    found = {(evalset, case): verdicts.cause(evalset, case) for evalset, cases in orders.items() for case in cases}
    causes = [cause for cause in found.values() if cause is not None]
    named = [text for text in wanted if text != ONE_OF_A_KIND.slug]
    slugs = matching_slugs(named, (cause.slug for cause in causes))
    if len(named) < len(wanted):
        slugs |= single_slugs(causes)
    return {
        evalset: [case for case in cases if (cause := found[evalset, case]) is not None and cause.slug in slugs]
        for evalset, cases in orders.items()
    }


def _matching(
    evalset: int, entry: "EvalsetEntry", verdicts: Verdicts, query: Query, marked: Collection[tuple[int, int]]
) -> Sequence[int]:
    cases: Sequence[int] = range(len(entry.document.cases))
    if query.statuses:
        cases = [case for case in cases if verdicts.states(evalset, case) & query.statuses]
    tests: Mapping[str, Callable[[Pair], bool]] = {
        MARKED: marked.__contains__,
        STALE: verdicts.stale.__contains__,
        CHANGED: verdicts.flips.__contains__,
        FLAKY: lambda pair: verdicts.flaky(*pair),
        FROZEN: lambda pair: verdicts.is_frozen(*pair),
        TRIAGED: lambda pair: _is_triaged(verdicts, *pair),
        UNTRIAGED: lambda pair: not _is_triaged(verdicts, *pair),
    }
    for flag in query.flags:
        cases = [case for case in cases if tests[flag]((evalset, case))]
    for test in query.metrics:
        cases = [case for case in cases if any(map(test.holds, verdicts.records(evalset, case)))]
    head = " ".join((entry.agent.name if entry.agent else "", entry.relative, entry.document.eval_set_id)).lower()
    if words := [word for word in query.words if word not in head]:
        summaries = entry.document.cases
        cases = [case for case in cases if all(word in summaries[case].eval_id.lower() for word in words)]
    return cases


def _is_inside(entry: "EvalsetEntry", query: Query) -> bool:
    names = {plain_name(entry.relative), plain_name(entry.agent.name if entry.agent else "")}
    return not query.inside or not names.isdisjoint(query.inside)


def _is_triaged(verdicts: Verdicts, evalset: int, case: int) -> bool:
    triage = verdicts.triage_state(evalset, case)
    return triage is not None and not triage.outdated


def _sort_key(verdicts: Verdicts, evalset: int, sort: Sort) -> Callable[[int], Any]:
    def key(case: int) -> float:
        verdict = verdicts.by_case.get((evalset, case))
        if sort == "time":
            return -max((record.duration_seconds for record in verdicts.records(evalset, case)), default=-1.0)
        if sort == "change":
            got_worse = verdicts.flips.get((evalset, case))
            return 2.0 if got_worse is None else float(not got_worse)
        if sort == "score":
            found = None if verdict is None else verdicts.store.records[verdict.deciding].decisive
            return _LAST if found is None or found.score is None else found.score
        # Cases that always fail come before flaky ones.
        return FACES[verdict.state if verdict else "not_run"].rank + (0.5 if verdicts.flaky(evalset, case) else 0.0)

    return key
