"""Plans for jobs of the watch: to run cases, or to score transcripts again."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.dependencies.case_inputs import criteria_bundle
from workbench.dependencies.change import Change, strongest
from workbench.dependencies.record import Record, compare, criterion_of
from workbench.engine.plan.blocking import lost_in
from workbench.engine.plan.plan import Plan, PlanEntry
from workbench.engine.plan.rescore_plan import make_rescore_plan
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.plan.run_plan import plan_cases
from workbench.engine.plan.source import StoredSource
from workbench.engine.plan.transcripts import StoredCase, StoredRun
from workbench.events import CaseName, CaseRef, MetricResult
from workbench.metrics.base import Scored, status_of
from workbench.metrics.registry import needs_bench
from workbench.model.criteria import CriteriaConfig, stored_config
from workbench.model.evalset import EvalCase, case_or_none


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
