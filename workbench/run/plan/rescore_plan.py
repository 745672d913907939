"""Plans that score stored transcripts again, each with the criteria that apply now."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from workbench.agents.discovery import AgentFolder
from workbench.agents.workspace import CriteriaChoice
from workbench.events.events import CaseError, Noticed
from workbench.files.criteria import stored_config
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.run.plan.blocking import ConfigFaults
from workbench.run.plan.plan import (
    AgentSetting,
    Plan,
    PlanEntry,
    agent_notices,
    agent_setting,
    fault_notices,
    new_run_id,
    planned_case,
)
from workbench.run.plan.selection import refuse_unknown_cases
from workbench.run.plan.source import StoredSource
from workbench.store.transcripts import StoredCase, StoredRun

CriteriaOf = Callable[[str], CriteriaChoice | None]
"""A function from an evalset's path, relative to the root, to its current criteria; None if the file is gone."""
LostOf = Callable[[str], CaseError | None]
"""A function from an evalset's path, relative to the root, to the error that its agent is gone, or None."""


def make_rescore_plan(
    run: StoredRun,
    root: Path,
    criteria_of: CriteriaOf,
    agents: Iterable[AgentFolder],
    options: RunOptions,
    *,
    case_ids: Sequence[str] = (),
    lost_of: LostOf = lambda file: None,
) -> Plan:
    """Return a plan that scores the cases of a stored run again, or only `case_ids`.

    `agents` are the project's current agents. Cases with a wrong config or a missing agent get an error, unless the
    agent was named for the stored run.

    Raises:
        UsageFaultError: a named config has an error, a case does not exist, or the run has no cases.
    """
    stored = _chosen(run, case_ids)
    now = {file: criteria_of(file) for file in {case.ref.evalset_file for case in stored}}
    configs = ConfigFaults(root)
    configs.refuse_given(choice for choice in now.values() if choice is not None)
    used = {choice.config.path: choice.config for choice in now.values() if choice is not None}
    faults = [fault for config in used.values() for fault in configs.faults_of(config)]
    lost = {file: lost_of(file) for file in now}
    entries = tuple(
        PlanEntry(
            planned_case(case.ref, choice, case.planned.matched_by, root),
            choice.config,
            StoredSource(case),
            _lost(case, lost) or configs.blocked(choice),
        )
        for case in stored
        for choice in [now[case.ref.evalset_file] or _as_stored(case, run)]
    )
    scored = [case for case, entry in zip(stored, entries, strict=True) if entry.blocked is None]
    settings, missing = _settings(scored, {agent.name: agent for agent in agents}, root, options)
    notices = (
        *(Noticed("warning", trouble) for trouble in run.trouble),
        *_about_files(now),
        *_about_agents(missing, root),
        *fault_notices([fault for fault in faults if fault.severity == "warning"], root),
        *agent_notices(setting for name, setting in settings.items() if name not in missing),
    )
    return Plan(new_run_id(), root, entries, settings, notices, options=options, scored_from=run.run_id)


def _lost(case: StoredCase, lost: Mapping[str, CaseError | None]) -> CaseError | None:
    return None if case.planned.matched_by == "given" else lost[case.ref.evalset_file]


def _chosen(run: StoredRun, case_ids: Sequence[str]) -> list[StoredCase]:
    cases = list(run.cases.values())
    if not cases:
        raise UsageFaultError(f"run {run.run_id} has no cases", "", "nothing")
    refuse_unknown_cases(case_ids, {case.ref.eval_id for case in cases}, f"run {run.run_id}")
    return [case for case in cases if not case_ids or case.ref.eval_id in case_ids]


def _as_stored(case: StoredCase, run: StoredRun) -> CriteriaChoice:
    """Return the criteria of the stored run, for an evalset that no longer exists."""
    started = case.started
    if started is None:
        return CriteriaChoice(stored_config({}, {}, None), f"not known: run {run.run_id} did not start this case")
    config = stored_config(started.criteria, started.custom_metrics, started.simulator)
    return CriteriaChoice(config, f"those of run {run.run_id}, because the evalset no longer exists")


def _settings(
    stored: Iterable[StoredCase], agents: Mapping[str, AgentFolder], root: Path, options: RunOptions
) -> tuple[dict[str, AgentSetting], list[str]]:
    """Return the settings of each agent, for its judges, and the names of agents that no longer exist.

    The cases of missing agents are judged with the environment of an agent in the root folder.
    """
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
                f"{file} no longer exists, so its cases are scored by the criteria of the stored run",
                "Use --config to name other criteria",
            )


def _about_agents(missing: Iterable[str], root: Path) -> Iterator[Noticed]:
    for name in missing:
        yield Noticed(
            "warning",
            f"the agent {name or '(none)'} no longer exists, so judges of its cases use the environment of {root}",
        )
