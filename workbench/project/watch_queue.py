"""The queue of stale cases with the work that each needs, and the plans of that work. It runs nothing itself."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from workbench.agents.workspace import Workspace
from workbench.criteria.base import Scored, status_of
from workbench.criteria.registry import needs_bench
from workbench.events.events import CaseName, CaseRef, MetricResult
from workbench.files.criteria import CriteriaConfig, stored_config
from workbench.files.evalset import EvalCase, case_or_none
from workbench.files.run_options import RunOptions
from workbench.freshness.staleness import compare, criterion_of
from workbench.freshness.watcher import Saved
from workbench.project.cost_estimate import Estimate, Limit
from workbench.run.plan.plan import Plan, PlanEntry, lost_in
from workbench.run.plan.run_plan import make_rescore_plan, plan_cases
from workbench.run.plan.source import StoredSource
from workbench.store.inputs import EFFECTS, Change, Effect, Record, criteria_bundle, strongest
from workbench.store.transcripts import StoredCase, StoredRun
from workbench.text.json_values import mapping


@dataclass(frozen=True)
class Job:
    """Cases to process together, in this order and with the same effect (`depth`)."""

    depth: Effect
    keys: tuple[CaseName, ...]


@dataclass
class JobQueue:
    """Stale cases and the work they need.

    `armed` are the cases that a save may run, or None for all. Above the cost `limit`, a job waits for confirmation.
    """

    armed: frozenset[CaseName] | None = None
    limit: Limit = field(default_factory=Limit)
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
    """The estimated cost of the job that waits for confirmation, or None."""
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

    def decided(self, key: CaseName) -> None:
        """Record that a case has its new verdict. Do nothing if a save has made its execution obsolete."""
        known = self.under_way.pop(key, None)
        if known is None:
            return
        needed = self.depths.get(key)
        if needed is None or EFFECTS.index(known) >= EFFECTS.index(needed):
            self.drop(key)
            self.edited.discard(key)
        self.held.discard(key)

    def put_back(self, keys: Iterable[CaseName]) -> None:
        """Make running cases stale that did not run because a save ended their run, even if no save concerns them."""
        for key in keys:
            if key in self.under_way:
                self.depths[key] = _deeper(self.under_way[key], self.depths.get(key))

    def ended(self) -> None:
        """Record that nothing is running. Unfinished cases stay stale."""
        self.under_way = {}

    def hold(self, keys: Iterable[CaseName] | None = None) -> None:
        """Do not start these cases again before another save. None means the running cases."""
        self.held.update(self.under_way if keys is None else keys)

    def drop(self, key: CaseName) -> None:
        """Remove a case from the stale cases."""
        self.depths.pop(key, None)
        self.changes.pop(key, None)


def _deeper(depth: Effect, other: Effect | None) -> Effect:
    return depth if other is None else max(depth, other, key=EFFECTS.index)


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

    `run_id` names the runs of the transcripts. Existing `verdicts` of judges and functions stay valid unless a changed
    input requires a new score. Scores of judges are compared with the current thresholds. `changes` are the changed
    inputs known to the watch.

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
    """Return the verdict under `config`, or None if the criterion must score again.

    Criteria that need no judge, service or function always score again.
    """
    name = scored.result.name
    criterion = next((item for item in config.criteria if item.name == name), None)
    concerned = [change for change in changes if change.input == "function" or criterion_of(change) == name]
    if criterion is None or strongest(concerned) not in (None, "decide"):
        return None
    is_custom = name in config.custom_metrics
    if not (is_custom or needs_bench(name)):
        return None
    tally = mapping(scored.result.details.get("tally"))
    if tally:
        details = {**scored.result.details, "tally": {**tally, "kept": True}}
        scored = replace(scored, result=replace(scored.result, details=details))
    if is_custom:
        return scored
    result, *turns = (_decided(result, criterion.threshold) for result in (scored.result, *scored.turns))
    return Scored(result, tuple(turns))


def _decided(result: MetricResult, threshold: float) -> MetricResult:
    if result.status not in ("passed", "failed"):
        return replace(result, threshold=threshold)
    return replace(result, threshold=threshold, status=status_of(result.score, threshold))
