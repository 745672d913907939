"""The plans of a watch, which run stale cases again or score their stored transcripts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from workbench.agents.workspace import Workspace
from workbench.criteria.base import Scored, status_of
from workbench.criteria.registry import needs_bench
from workbench.events.events import CaseName, CaseRef, MetricResult
from workbench.files.criteria import CriteriaConfig, stored_config
from workbench.files.evalset import EvalCase, case_or_none
from workbench.files.run_options import RunOptions
from workbench.freshness.staleness import compare, criterion_of
from workbench.run.plan.plan import Plan, PlanEntry, lost_in
from workbench.run.plan.run_plan import make_rescore_plan, plan_cases
from workbench.run.plan.source import StoredSource
from workbench.store.inputs import Change, Record, criteria_bundle, strongest
from workbench.store.transcripts import StoredCase, StoredRun
from workbench.text.json_values import mapping


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
