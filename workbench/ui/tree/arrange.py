"""Filtering and sorting of cases."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from workbench.results.faces import FACES
from workbench.store.cause import ONE_OF_A_KIND
from workbench.store.execution import Execution
from workbench.ui.tree.outline import Pair
from workbench.ui.tree.query import CHANGED, FLAKY, FROZEN, MARKED, STALE, TRIAGED, UNTRIAGED, Query, plain_name
from workbench.ui.tree.verdicts import Verdicts

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry

Sort: TypeAlias = Literal["file", "status", "score", "time"]
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
    """Return the visible cases of each evalset in order, for `Outline.orders`. None: all, in file order.

    `keep` is a case that stays visible whatever the filter says. It is under the cursor while the filter is applied
    again by itself. Sort order: status worst first, score lowest first, time slowest first. Cases that never ran come
    last.
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
    """Return the cases that fail for one of the wanted causes.

    `one-of-a-kind` stands for the causes that only one of the cases has that match the rest of the query.
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
    if query.metrics:
        cases = [case for case in cases if query.metrics_hold(verdicts.records(evalset, case))]
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
    def slowest(records: list[Execution]) -> float:
        return -max((record.duration_seconds for record in records), default=-1.0)

    def key(case: int) -> float:
        verdict = verdicts.by_case.get((evalset, case))
        if sort == "time":
            return slowest(list(verdicts.records(evalset, case)))
        if sort == "score":
            found = None if verdict is None else verdicts.store.records[verdict.worst].decisive
            return _LAST if found is None or found.score is None else found.score
        # Cases that always fail come before flaky ones.
        return FACES[verdict.state if verdict else "not_run"].rank + (0.5 if verdicts.flaky(evalset, case) else 0.0)

    return key
