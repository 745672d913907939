"""The queue of stale cases and the next job of the watch. It runs nothing itself."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.criteria.base import Scored, status_of
from workbench.criteria.registry import needs_bench
from workbench.events.events import CaseName, CaseRef, MetricResult
from workbench.files.criteria import CriteriaConfig, stored_config
from workbench.files.evalset import EvalCase, case_or_none
from workbench.files.run_options import RunOptions
from workbench.freshness.staleness import compare, criterion_of
from workbench.freshness.watcher import Saved
from workbench.run.plan.blocking import lost_in
from workbench.run.plan.plan import Plan, PlanEntry
from workbench.run.plan.rescore_plan import make_rescore_plan
from workbench.run.plan.run_plan import plan_cases
from workbench.run.plan.source import StoredSource
from workbench.store.case_inputs import criteria_bundle
from workbench.store.inputs import EFFECTS, Change, Effect, Record, strongest
from workbench.store.transcripts import StoredCase, StoredRun
from workbench.text.counting import counted

# Plans for jobs of the watch: to run cases, or to score transcripts again


def run_plan(workspace: Workspace, keys: Sequence[CaseName], options: RunOptions) -> Plan:
    """Return a plan that runs these cases in this order.

    Raises:
        UsageFaultError: see `plan_cases`.
    """
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
    now = {file: _Cases(entry) for file, entry in entries.items()}
    before = {case.ref: case for case in stored}
    cases = {ref: _with_reference_of_now(case, now.get(ref.evalset_file)) for ref, case in before.items()}
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


class _Cases:
    """The cases of an evalset by id."""

    def __init__(self, entry: EvalsetEntry) -> None:
        self._document = entry.document
        self._indexes = {case.eval_id: case.index for case in entry.document.cases}

    def case(self, eval_id: str) -> EvalCase | None:
        """Return the case with an id, or None."""
        return case_or_none(self._document, self._indexes.get(eval_id))


def _with_reference_of_now(case: StoredCase, cases: _Cases | None) -> StoredCase:
    now = None if cases is None else cases.case(case.ref.eval_id)
    if now is None or case.started is None:
        return case
    started = case.started
    kept = started.expected, started.rubrics, started.final_session_state
    if kept == (now.turns, now.rubrics, now.final_session_state):
        return case
    started = replace(started, expected=now.turns, rubrics=now.rubrics, final_session_state=now.final_session_state)
    # Drop the text's digest: the agent did not run with the current text.
    return replace(case, started=started, planned=replace(case.planned, text=""))


def _with_verdicts(entry: PlanEntry, verdicts: Sequence[Scored], changes: Collection[Change]) -> PlanEntry:
    """Return the entry with its valid verdicts. `changes` are the changed inputs known to the watch."""
    if not isinstance(entry.source, StoredSource) or entry.source.case.started is None:
        return entry
    started, now = entry.source.case.started, entry.config
    before = stored_config(started.criteria, started.custom_metrics, started.simulator)
    then, current = (Record("", (criteria_bundle(config, None),)) for config in (before, now))
    functions = [change for change in changes if change.input == "function"]
    valid = (_still_valid(one, [*compare(then, current), *functions], now) for one in verdicts)
    return replace(entry, source=replace(entry.source, verdicts=tuple(one for one in valid if one is not None)))


def _still_valid(scored: Scored, changes: Iterable[Change], config: CriteriaConfig) -> Scored | None:
    """Return the verdict under `config`, or None if it must be scored again or is computed without a judge."""
    name = scored.result.name
    criterion = next((item for item in config.criteria if item.name == name), None)
    concerned = [change for change in changes if change.input == "function" or criterion_of(change) == name]
    if criterion is None or strongest(concerned) not in (None, "decide"):
        return None
    if name in config.custom_metrics:
        return scored
    return _decided(scored, criterion.threshold) if needs_bench(name) else None


def _decided(scored: Scored, threshold: float) -> Scored:
    def anew(result: MetricResult) -> MetricResult:
        if result.status not in ("passed", "failed"):
            return replace(result, threshold=threshold)
        return replace(result, threshold=threshold, status=status_of(result.score, threshold))

    return Scored(anew(scored.result), tuple(map(anew, scored.turns)))


@dataclass(frozen=True)
class Job:
    """Cases to process together, in order and with the same depth."""

    depth: Effect
    keys: tuple[CaseName, ...]


@dataclass(frozen=True)
class Limit:
    """Limits for a save without confirmation: calls, and money in the currency of the price table. None: no limit."""

    calls: int | None = None
    money: float | None = None


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of `cases` stale cases.

    `calls` to models and judges is None if it is not known yet. `money` is the cost as a text, and `amount` as a
    number, or None if it is not known.
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

        If the amount is unknown, the limit of calls decides. Without such a limit, the cost may be too high.
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
    _allowed: bool = False

    def watches(self, key: CaseName) -> bool:
        """Return whether a save may run this case."""
        return self.armed is None or key in self.armed

    def take(self, saved: Saved) -> set[CaseName]:
        """Add a save, and return the cases whose current execution is obsolete because of it."""
        obsolete = set()
        for key in saved.impact.gone:
            self.depths.pop(key, None)
            self.changes.pop(key, None)
            if self.under_way.pop(key, None) is not None:
                obsolete.add(key)
        for key, depth in saved.impact.depths.items():
            if self.under_way.get(key) is not None:
                obsolete.add(key)
                depth = _deeper(depth, self.under_way.pop(key))
            self.depths[key] = _deeper(depth, self.depths.get(key))
            self.changes[key] = tuple(dict.fromkeys((*self.changes.get(key, ()), *saved.impact.changes[key])))
        self.blocked = saved.blocked
        self.held -= saved.impact.depths.keys()
        if saved.impact.depths:
            self.edited = set(saved.impact.edited)
            self._allowed = False
        return obsolete

    def allow(self) -> None:
        """Confirm the cost."""
        self._allowed = True

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
            keys = [key for key, found in self.depths.items() if found == depth and self.watches(key)]
            keys = [key for key in keys if key not in self.blocked and key not in self.held]
            if not keys:
                continue
            if depth != "decide" and self.limit != Limit() and not self._allowed:
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
        """Record the new verdict of a case, and return whether it is valid, because no save made it obsolete."""
        known = self.under_way.pop(key, None)
        if known is None:
            return False
        needed = self.depths.get(key)
        if needed is None or EFFECTS.index(known) >= EFFECTS.index(needed):
            self.depths.pop(key, None)
            self.changes.pop(key, None)
            self.edited.discard(key)
        self.held.discard(key)
        return True

    def ended(self) -> None:
        """Record that nothing is running. Unfinished cases stay stale."""
        self.under_way = {}

    def hold(self, keys: Iterable[CaseName] | None = None) -> None:
        """Let these cases (None: the running ones) wait for another save, because they would fail again."""
        self.held.update(self.under_way if keys is None else keys)

    def drop(self, keys: Iterable[CaseName]) -> None:
        """Remove cases that have no transcript to score again."""
        for key in keys:
            self.depths.pop(key, None)
            self.changes.pop(key, None)

    def fresh(self, covered: Mapping[CaseName, Effect]) -> None:
        """Mark cases as running because a run of the user includes them."""
        self.under_way |= covered


def _deeper(depth: Effect, other: Effect | None) -> Effect:
    return depth if other is None else max(depth, other, key=EFFECTS.index)
