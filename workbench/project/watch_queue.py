"""The queue of stale cases with their estimated costs, and the plan of each job. It runs nothing itself."""

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from workbench.agents.workspace import Workspace
from workbench.criteria.base import Scored, status_of
from workbench.criteria.registry import needs_bench
from workbench.events.events import CaseName, CaseRef, MetricResult
from workbench.files.criteria import CriteriaConfig, stored_config
from workbench.files.evalset import EvalCase, case_or_none
from workbench.files.prices import Prices, criterion_cost, judge_name, money, simulation_cost, total
from workbench.files.run_options import RunOptions
from workbench.freshness.staleness import compare, criterion_of
from workbench.freshness.watcher import Saved
from workbench.results.costs import ConversationCost, conversation_cost
from workbench.run.plan.plan import Plan, PlanEntry, lost_in
from workbench.run.plan.preflight_cases import CallRange, criterion_calls, options_of
from workbench.run.plan.run_plan import make_rescore_plan, plan_cases
from workbench.run.plan.source import StoredSource
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, Execution
from workbench.store.inputs import EFFECTS, Change, Effect, Record, criteria_bundle, strongest
from workbench.store.transcripts import StoredCase, StoredRun
from workbench.text.counting import counted
from workbench.text.safe_text import one_line


def run_plan(workspace: Workspace, keys: Sequence[CaseName], options: RunOptions) -> Plan:
    """Return a plan that runs these cases in this order. Errors are those of `plan_cases`."""
    plan = plan_cases(workspace, keys, options)
    places = {key: place for place, key in enumerate(keys)}
    order = sorted(plan.entries, key=lambda entry: places.get(entry.ref.name, len(places)))
    return replace(plan, entries=tuple(order))


def scoring_plan(
    workspace: Workspace,
    stored: Sequence[StoredCase],
    verdicts: Mapping[CaseRef, Sequence[Scored]],
    run_id: str,
    options: RunOptions,
    changes: Mapping[CaseName, Collection[Change]] = MappingProxyType({}),
) -> Plan:
    """Return a plan that scores stored transcripts by the current criteria, references and rubrics.

    Existing `verdicts` stay valid unless a changed input requires a new score. Their thresholds are compared again.
    `changes` are the changed inputs known to the watch.

    Raises:
        UsageFaultError: see `make_rescore_plan`.
    """
    entries = {entry.relative: entry for entry in workspace.evalsets}
    indexes = {file: {case.eval_id: case.index for case in entry.document.cases} for file, entry in entries.items()}
    before = {case.ref: case for case in stored}
    cases = {}
    for ref, case in before.items():
        entry = entries.get(ref.evalset_file)
        now = None if entry is None else case_or_none(entry.document, indexes[entry.relative].get(ref.eval_id))
        cases[ref] = case if now is None else _with_reference(case, now)
    run = StoredRun(run_id, cases=cases)
    plan = make_rescore_plan(
        run,
        workspace.root,
        lambda file: entries[file].criteria if file in entries else None,
        workspace.agents,
        options,
        lost_of=lost_in(workspace),
    )
    changed = {ref for ref, case in cases.items() if case is not before[ref]}
    planned = tuple(
        entry
        if entry.ref in changed
        else _with_verdicts(entry, verdicts.get(entry.ref, ()), changes.get(entry.ref.name, ()))
        for entry in plan.entries
    )
    return replace(plan, entries=planned)


def _with_reference(case: StoredCase, now: EvalCase) -> StoredCase:
    """Return a stored case with the reference that the case has now."""
    if case.started is None:
        return case
    state = now.final_session_state
    started = replace(case.started, expected=now.turns, rubrics=now.rubrics, final_session_state=state)
    if started == case.started:
        return case
    # Drop the text's digest: the agent did not run with the current text.
    return replace(case, started=started, planned=replace(case.planned, text=""))


def _with_verdicts(entry: PlanEntry, verdicts: Sequence[Scored], changes: Collection[Change]) -> PlanEntry:
    """Return the entry with those of the verdicts that are still valid."""
    if not isinstance(entry.source, StoredSource) or entry.source.case.started is None:
        return entry
    started, now = entry.source.case.started, entry.config
    before = stored_config(started.criteria, started.custom_metrics, started.simulator)
    then, current = (Record("", (criteria_bundle(config, None),)) for config in (before, now))
    functions = [change for change in changes if change.input == "function"]
    valid = (_still_valid(one, [*compare(then, current), *functions], now) for one in verdicts)
    return replace(entry, source=replace(entry.source, verdicts=tuple(one for one in valid if one is not None)))


def _still_valid(scored: Scored, changes: Iterable[Change], config: CriteriaConfig) -> Scored | None:
    """Return the verdict under `config`, or None if it must be scored again or needs no judge."""
    name = scored.result.name
    criterion = next((item for item in config.criteria if item.name == name), None)
    concerned = [change for change in changes if change.input == "function" or criterion_of(change) == name]
    if criterion is None or strongest(concerned) not in (None, "decide"):
        return None
    if name in config.custom_metrics:
        return scored
    if not needs_bench(name):
        return None
    result, *turns = (_decided(result, criterion.threshold) for result in (scored.result, *scored.turns))
    return Scored(result, tuple(turns))


def _decided(result: MetricResult, threshold: float) -> MetricResult:
    if result.status not in ("passed", "failed"):
        return replace(result, threshold=threshold)
    return replace(result, threshold=threshold, status=status_of(result.score, threshold))


@dataclass(frozen=True)
class Job:
    """Cases to process together, in this order and with the same effect (`depth`)."""

    depth: Effect
    keys: tuple[CaseName, ...]


@dataclass(frozen=True)
class Limit:
    """The limits above which a save needs confirmation: calls, and money in the prices' currency. None: no limit."""

    calls: int | None = None
    money: float | None = None


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of `cases` stale cases.

    `calls` is the number of calls to models and judges, or None if it is not known yet. `money` is the cost as a text.
    `amount` is the cost as a number, or None if it is not known.
    """

    cases: int
    calls: int | None
    money: str = ""
    amount: float | None = None

    def text(self, total: int) -> str:
        """Return a text such as `7 of 40 stale, about 35 calls, about $0.06`."""
        return ", ".join(filter(None, (f"{self.cases:,} of {total:,} stale", self.cost_words)))

    @property
    def cost_words(self) -> str:
        """The cost as text, such as `about 35 calls, about $0.06`, or "" if nothing is called."""
        if self.calls is None:
            return "cost unknown until they have run"
        calls = f"about {counted(self.calls, 'call')}" if self.calls else ""
        return ", ".join(filter(None, (calls, self.money)))

    def above(self, limit: Limit) -> bool:
        """Return whether the cost is or may be above the limit.

        If the amount is unknown, the limit of calls decides. Without a limit of calls, an unknown amount counts as
        above the limit.
        """
        if self.calls == 0:
            return False
        calls = limit.calls is not None and (self.calls is None or self.calls > limit.calls)
        if limit.money is None or calls:
            return calls
        return limit.calls is None if self.amount is None else self.amount > limit.money


@dataclass
class JobQueue:
    """Stale cases and the work they need.

    `armed` are the cases that a save may run, or None for all. Above the cost `limit`, a job waits for confirmation.
    """

    armed: frozenset[CaseName] | None = None
    limit: Limit = Limit()
    depths: dict[CaseName, Effect] = field(default_factory=dict)
    """Stale case → the effect that it needs."""
    changes: dict[CaseName, tuple[Change, ...]] = field(default_factory=dict)
    """Stale case → the changed inputs."""
    blocked: frozenset[CaseName] = frozenset()
    held: set[CaseName] = field(default_factory=set)
    """Stale cases that wait for another save, because the user cancelled them or they could not start."""
    edited: set[CaseName] = field(default_factory=set)
    under_way: dict[CaseName, Effect] = field(default_factory=dict)
    waiting: Estimate | None = None
    """The cost that must be confirmed first, or None."""
    allowed: bool = False
    """Whether the user has confirmed the cost since the last save."""

    def take(self, saved: Saved) -> set[CaseName]:
        """Add a save, and return the cases whose current execution is obsolete because of it."""
        obsolete = set()
        for key in saved.impact.gone:
            self.drop(key)
            if self.under_way.pop(key, None) is not None:
                obsolete.add(key)
        for key, depth in saved.impact.depths.items():
            if key in self.under_way:
                obsolete.add(key)
                depth = _deeper(depth, self.under_way.pop(key))
            self.depths[key] = _deeper(depth, self.depths.get(key))
            self.changes[key] = tuple(dict.fromkeys((*self.changes.get(key, ()), *saved.impact.changes[key])))
        self.blocked = saved.blocked
        self.held -= saved.impact.depths.keys()
        if saved.impact.depths:
            self.edited = set(saved.impact.edited)
            self.allowed = False
        return obsolete

    def next_job(
        self, failing: Callable[[CaseName], bool], cost: Callable[[Collection[CaseName], Effect], Estimate]
    ) -> Job | None:
        """Return the next job, or None if there is none, one is running, or its cost must be confirmed (`waiting`).

        The cheapest effect comes first. Within a job, failing and edited cases come first.
        """
        self.waiting = None
        if self.under_way:
            return None
        for depth in EFFECTS:
            keys = [key for key, found in self.depths.items() if found == depth]
            keys = [key for key in keys if self.armed is None or key in self.armed]
            keys = [key for key in keys if key not in self.blocked and key not in self.held]
            if not keys:
                continue
            if depth != "decide" and self.limit != Limit() and not self.allowed:
                estimate = cost(keys, depth)
                if estimate.above(self.limit):
                    self.waiting = estimate
                    continue
            keys.sort(key=lambda key: key not in self.edited and not failing(key))
            return Job(depth, tuple(keys))
        return None

    def started(self, keys: Iterable[CaseName], depth: Effect) -> None:
        """Mark cases as running. They stay stale until they have their verdicts."""
        self.under_way = dict.fromkeys(keys, depth)

    def decided(self, key: CaseName) -> bool:
        """Record the new verdict of a case. Return False, and ignore it, if a save has made it obsolete."""
        known = self.under_way.pop(key, None)
        if known is None:
            return False
        needed = self.depths.get(key)
        if needed is None or EFFECTS.index(known) >= EFFECTS.index(needed):
            self.drop(key)
            self.edited.discard(key)
        self.held.discard(key)
        return True

    def ended(self) -> None:
        """Record that nothing is running. Unfinished cases stay stale."""
        self.under_way = {}

    def hold(self, keys: Iterable[CaseName] | None = None) -> None:
        """Do not start these cases again before another save. None means the running cases."""
        self.held.update(self.under_way if keys is None else keys)

    def drop(self, key: CaseName) -> None:
        """Do not count a case as stale any longer."""
        self.depths.pop(key, None)
        self.changes.pop(key, None)


def _deeper(depth: Effect, other: Effect | None) -> Effect:
    return depth if other is None else max(depth, other, key=EFFECTS.index)


_SAMPLE = 400
"""Number of past runs used for the cost estimate. With more runs, the others are assumed to cost the same."""


@dataclass(frozen=True, slots=True)
class _Cost:
    calls: int
    money: float | None
    unpriced: frozenset[str]


def estimate(
    cases: int,
    records: Collection[Execution],
    depth: Effect,
    prices: Prices,
    times: float = 1,
    criteria_of: Callable[[CaseRef], CriteriaConfig | None] = lambda ref: None,
) -> Estimate:
    """Return the estimated cost of `cases` cases with this depth, each repeated `times` on average.

    `records` are finished executions of the same or similar cases. `criteria_of` returns the current criteria of a
    case.
    """
    if depth == "decide":
        return Estimate(cases, 0)
    costs = [
        _with_new(_cost(record, depth, prices), record, criteria_of(record.ref))
        for record in map(read_details, itertools.islice(records, _SAMPLE))
    ]
    if not costs:
        return Estimate(cases, None)
    share = cases * times / len(costs)
    calls = round(sum(cost.calls for cost in costs) * share)
    if not calls or not prices:
        return Estimate(cases, calls)
    amount = total(cost.money for cost in costs)
    if amount is not None:
        return Estimate(cases, calls, f"about {money(amount * share, prices.currency)}", amount * share)
    return Estimate(cases, calls, _unknown(frozenset().union(*(cost.unpriced for cost in costs))))


def limit_words(limit: Limit, prices: Prices) -> str:
    """Return a text such as `50 calls, $0.50`, or "" without limits."""
    calls = "" if limit.calls is None else counted(limit.calls, "call")
    return ", ".join(filter(None, (calls, "" if limit.money is None else money(limit.money, prices.currency))))


def _unknown(models: Collection[str]) -> str:
    if not models:
        return "cost unknown"
    names = [one_line(name, limit=40) or "a model without a name" for name in sorted(models)]
    return f"cost unknown: no price for {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _cost(record: CaseRecord, depth: Effect, prices: Prices) -> _Cost:
    judged = _judging(record, prices)
    if depth == "score":
        return judged
    own = _own(record, prices)
    # A simulated user's calls are among those of the judges.
    parts = [own.cost, judged.money, simulation_cost(record.simulated, prices)]
    return _Cost(own.calls + judged.calls, total(parts), own.unpriced | judged.unpriced)


def _with_new(cost: _Cost, record: CaseRecord, config: CriteriaConfig | None) -> _Cost:
    """Add the maximum number of judge calls for criteria that never judged the case before.

    If there are such calls, the cost in money is unknown.
    """
    calls = 0
    for criterion in () if config is None else config.criteria:
        judged = record.metrics.get(criterion.name)
        options = options_of(criterion)
        is_new = judged is None or "tally" not in judged.details
        if is_new and needs_bench(criterion.name):
            turns = CallRange(len(record.turns), len(record.turns))
            calls += criterion_calls(criterion, options.samples, turns, record.rubrics, all_votes=False).high
    return replace(cost, calls=cost.calls + calls, money=None) if calls else cost


def _judging(record: CaseRecord, prices: Prices) -> _Cost:
    usage, results = record.usage, record.metrics.values()
    # Cached answers count as calls, because a changed question is asked again.
    calls = usage.judge_calls + usage.judge_calls_cached
    spent = total(criterion_cost(result, prices) for result in results)
    if spent is not None and usage.judge_calls_cached:
        spent = spent * calls / usage.judge_calls if usage.judge_calls else None
    unpriced = (judge_name(result) for result in results if criterion_cost(result, prices) is None)
    return _Cost(calls, spent, frozenset(unpriced))


def _own(record: CaseRecord, prices: Prices) -> ConversationCost:
    """Return the cost of the agent's own models, from the trace, which also exists after scoring again."""
    calls = record.usage.model_calls
    if calls and not prices:
        return ConversationCost(calls, None)
    found = conversation_cost((turn.spans for turn in record.turns), prices)
    if calls not in (0, found.calls):
        return ConversationCost(calls, None, found.unpriced)
    return found if found.calls else ConversationCost(0, 0.0)
