"""What is going to be scored again: stored transcripts, each with the criteria that apply to it now."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.discovery import AgentFolder
from workbench.agents.ownership import relative_to
from workbench.engine.plan.blocking import ConfigFaults
from workbench.engine.plan.hidden import holds_secrets
from workbench.engine.plan.judge_environment import judge_environment
from workbench.engine.plan.options import RunOptions, UsageFaultError
from workbench.engine.plan.plan import (
    AgentSetting,
    agent_notices,
    agent_setting,
    fault_notices,
    new_run_id,
)
from workbench.engine.plan.preflight.looked import Looked
from workbench.engine.plan.preflight.notices import notices
from workbench.engine.plan.preflight.whole_plan import LOOKED_AT
from workbench.engine.plan.transcripts import StoredCase, StoredRun
from workbench.events import CaseError, CaseRef, Noticed, PlannedCase
from workbench.judge.environment import JudgeEnvironment
from workbench.metrics.base import Scored
from workbench.model.criteria import stored_config
from workbench.model.evalset import EvalCase

_LISTED = 5

CriteriaOf = Callable[[str], CriteriaChoice | None]
"""The criteria that apply now to an evalset (its path relative to the root); None where its file is gone."""
CaseOf = Callable[[str, str], EvalCase | None]
"""A case as it stands now in an evalset (its path, the case's id); None where it cannot be read any more."""
LostOf = Callable[[str], CaseError | None]
"""The error of an evalset (its path relative to the root) whose agent is gone; None where that is not so."""


@dataclass(frozen=True)
class RescoreEntry:
    """One stored execution of a case, and the criteria it is scored by. `kept` are verdicts that hold: nobody is asked
    for them. `blocked` says why it cannot be scored."""

    stored: StoredCase
    criteria: CriteriaChoice
    kept: tuple[Scored, ...] = ()
    blocked: CaseError | None = None

    @property
    def ref(self) -> CaseRef:
        return self.stored.ref


@dataclass(frozen=True)
class RescorePlan:
    """`settings` are those of the agents whose cases can be scored, by name; `notices` what the user should know."""

    run_id: str
    scored_from: str
    root: Path
    entries: tuple[RescoreEntry, ...]
    settings: Mapping[str, AgentSetting]
    notices: tuple[Noticed, ...]
    options: RunOptions = field(default_factory=RunOptions)

    def planned(self, entry: RescoreEntry) -> PlannedCase:
        """The entry as a run announces it."""
        path = entry.criteria.config.path
        file = None if path is None else relative_to(path, self.root)
        criteria, rule = entry.criteria, entry.stored.planned.matched_by
        return PlannedCase(entry.ref, file, criteria.reason, criteria.changed, rule)


def make_rescore_plan(
    run: StoredRun,
    root: Path,
    criteria_of: CriteriaOf,
    case_of: CaseOf,
    agents: Iterable[AgentFolder],
    options: RunOptions,
    *,
    case_ids: Sequence[str] = (),
    lost_of: LostOf = lambda file: None,
) -> RescorePlan:
    """The plan for the cases of a stored run, with `case_ids` only for those; `agents` are those that are there now.
    Cases whose config is wrong, or whose agent is lost, get an error. An agent that was named for the stored run is not
    looked for.

    Raises:
        UsageFaultError: a config that was named has an error, there is no such case, or no case at all.
    """
    stored = _chosen(run, case_ids)
    now = {file: criteria_of(file) for file in {case.ref.evalset_file for case in stored}}
    configs = ConfigFaults(root)
    configs.refuse_given(choice for choice in now.values() if choice is not None)
    used = {choice.config.path: choice.config for choice in now.values() if choice is not None}
    faults = [fault for config in used.values() for fault in configs.of(config)]
    lost = {file: lost_of(file) for file in now}
    entries = tuple(
        RescoreEntry(case, choice, blocked=_lost(case, lost) or configs.blocked(choice))
        for case in stored
        for choice in [now[case.ref.evalset_file] or _as_stored(case, run)]
    )
    scored = [entry.stored for entry in entries if entry.blocked is None]
    settings, missing = _settings(scored, {agent.name: agent for agent in agents}, root, options)
    notices = (
        *(Noticed("warning", trouble) for trouble in run.trouble),
        *_about_files(now),
        *_about_changes(stored, case_of),
        *_about_agents(missing, root),
        *fault_notices([fault for fault in faults if fault.severity == "warning"], root),
        *agent_notices(setting for name, setting in settings.items() if name not in missing),
    )
    return RescorePlan(new_run_id(), run.run_id, root, entries, settings, notices, options)


def look_ahead(plan: RescorePlan, options: RunOptions) -> list[Noticed]:
    """What `workbench.engine.plan.preflight` says of the cases that are going to be scored. Not for an event loop's
    thread."""
    environments = {name: JudgeEnvironment(**judge_environment(setting)) for name, setting in plan.settings.items()}
    entries = [entry for entry in plan.entries if entry.blocked is None and entry.stored.why_incomplete() is None]
    cases = [_looked(plan, entry) for entry in entries[:LOOKED_AT]]
    scale = len(entries) / max(1, len(cases))
    return list(notices(cases, environments.__getitem__, options, scale, played=False))


def _lost(case: StoredCase, lost: Mapping[str, CaseError | None]) -> CaseError | None:
    return None if case.planned.matched_by == "given" else lost[case.ref.evalset_file]


def _looked(plan: RescorePlan, entry: RescoreEntry) -> Looked:
    started = entry.stored.started
    assert started is not None  # Its transcript is complete.
    case = EvalCase(entry.ref.eval_id, started.expected, started.scenario, None, started.rubrics, None, None)
    file = plan.planned(entry).config_file or ""
    return Looked(entry.ref.agent, entry.ref.evalset_file, case, entry.criteria.config, file)


def _chosen(run: StoredRun, case_ids: Sequence[str]) -> list[StoredCase]:
    cases = list(run.cases.values())
    if not cases:
        raise UsageFaultError(f"run {run.run_id} has no cases", "", "nothing")
    known = {case.ref.eval_id for case in cases}
    for case_id in case_ids:
        if case_id not in known:
            raise UsageFaultError(f"run {run.run_id} has no case {case_id}", _nearest(case_id, known))
    return [case for case in cases if not case_ids or case.ref.eval_id in case_ids]


def _nearest(case_id: str, known: set[str]) -> str:
    near = difflib.get_close_matches(case_id, known, n=1, cutoff=0.5)
    if near:
        return f"There is the case {near[0]}"
    return f"There are the cases {_few(sorted(known))}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _as_stored(case: StoredCase, run: StoredRun) -> CriteriaChoice:
    """The criteria that the stored run used, for an evalset that is not there any more."""
    started = case.started
    if started is None:
        return CriteriaChoice(stored_config({}, {}, None), f"not known: run {run.run_id} did not come to this case")
    config = stored_config(started.criteria, started.custom_metrics, started.simulator)
    return CriteriaChoice(config, f"those of run {run.run_id}: the evalset is not there any more")


def _settings(
    stored: Iterable[StoredCase], agents: Mapping[str, AgentFolder], root: Path, options: RunOptions
) -> tuple[dict[str, AgentSetting], list[str]]:
    """What the judges of each agent's cases are asked with, and the agents that are not there any more: their cases
    are judged with the environment that an agent in the root would have."""
    names = dict.fromkeys(case.ref.agent for case in stored if case.why_incomplete() is None)
    settings = {
        name: agent_setting(
            agents.get(name) or AgentFolder(name, root, "python", root / "agent.py", "root_agent"), root, options
        )
        for name in names
    }
    return settings, [name for name in names if name not in agents]


def _about_files(now: Mapping[str, CriteriaChoice | None]) -> Iterator[Noticed]:
    for file, choice in sorted(now.items()):
        if choice is None and file:
            yield Noticed(
                "warning",
                f"{file} is not there any more: its cases are scored by the criteria of the stored run",
                "--config names others",
            )


def _about_changes(stored: Iterable[StoredCase], case_of: CaseOf) -> Iterator[Noticed]:
    """A transcript is laid beside the reference that it was made for, not beside one that came later."""
    changed = [case.ref.eval_id for case in stored if case.why_incomplete() is None and _has_changed(case, case_of)]
    if changed:
        names = _few(list(dict.fromkeys(changed)))
        yield Noticed(
            "warning",
            f"changed in the evalset since that run, and scored by what stood there then: {names}",
            "A new run takes in what stands there now",
        )


def _has_changed(case: StoredCase, case_of: CaseOf) -> bool:
    assert case.started is not None  # Its transcript is complete.
    then = [case.started.expected, case.started.rubrics]
    if holds_secrets(then):
        return False  # Nobody can tell: what was a secret is not what stands in the file.
    now = case_of(case.ref.evalset_file, case.ref.eval_id)
    return now is not None and then != [now.turns, now.rubrics]


def _about_agents(missing: Iterable[str], root: Path) -> Iterator[Noticed]:
    for name in missing:
        yield Noticed(
            "warning",
            f"the agent {name or '(none)'} is not there any more: judges of its cases use the environment of {root}",
        )
