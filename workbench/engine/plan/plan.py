"""What is going to run: agent × case × repeat, in order, with the criteria of each."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.current_folder import current_folder
from workbench.agents.discovery import AgentFolder
from workbench.agents.drivers import driver_files
from workbench.agents.environment import AgentEnvironment, agent_environment
from workbench.agents.interpreter import Interpreter, InterpreterError, choose_interpreter
from workbench.agents.targets import project_around
from workbench.agents.walk import STATE_FOLDER, relative_to
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.counting import counted
from workbench.engine.plan.blocking import ConfigFaults, refuse_named, why_blocked, why_broken
from workbench.engine.plan.interrupted import InterruptedRun
from workbench.engine.plan.owner_notes import (
    OwnersToKeep,
    foreign_agent_notices,
    look_alike_notices,
    owner_notices,
    owners_to_keep,
)
from workbench.engine.plan.run_options import RunOptions, UsageFaultError
from workbench.engine.plan.selection import Chosen, choose
from workbench.engine.plan.source import AgentSource, Source
from workbench.engine.plan.target_parser import Selection
from workbench.engine.plan.until_sure import too_few
from workbench.events import CaseError, CaseRef, Noticed, PlannedCase
from workbench.model.criteria import CriteriaConfig
from workbench.model.faults import Fault

_WARNINGS_SHOWN = 10


@dataclass(frozen=True)
class AgentSetting:
    """What an agent runs with."""

    agent: AgentFolder
    root: Path
    interpreter: Interpreter
    environment: AgentEnvironment

    def spec(self) -> dict[str, Any]:
        """The wire's AgentSpec."""
        return {
            "name": self.agent.name,
            "folder": str(self.agent.folder),
            "root": str(self.root),
            "kind": self.agent.kind,
            "drivers": driver_files(),
            "env": dict(self.environment.values),
            "cwd": str(current_folder(self.agent.folder, self.root, Path.cwd())),
        }


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One execution of one case: where its transcript comes from, and the criteria that judge it. `blocked` says why it
    cannot start. `matched_by` is the rule by which its evalset found its agent."""

    ref: CaseRef
    criteria: CriteriaChoice
    source: Source
    blocked: CaseError | None = None
    matched_by: str = ""

    @property
    def config(self) -> CriteriaConfig:
        return self.criteria.config


@dataclass(frozen=True)
class Plan:
    """What one run does. `agents` are those of the entries that run or are judged, by name; `notices` what is odd about
    files, configs and interpreters; `owners` what the run keeps about the owners of evalsets. `scored_from` names the
    run whose transcripts are scored again; `resumed` is the interrupted run that is being resumed."""

    run_id: str
    root: Path
    entries: tuple[PlanEntry, ...]
    agents: Mapping[str, AgentSetting]
    notices: tuple[Noticed, ...]
    owners: OwnersToKeep = field(default_factory=OwnersToKeep)
    options: RunOptions = field(default_factory=RunOptions)
    scored_from: str = ""
    resumed: InterruptedRun | None = None
    project_agents: tuple[AgentFolder, ...] = ()
    """All agents of the project, also those that do not run."""

    def config_file(self, entry: PlanEntry) -> str | None:
        """The file with the criteria, relative to the root; None for the defaults."""
        path = entry.config.path
        return None if path is None else relative_to(path, self.root)

    def planned(self, entry: PlanEntry) -> PlannedCase:
        """Return the entry as a run announces it."""
        criteria = entry.criteria
        return PlannedCase(entry.ref, self.config_file(entry), criteria.reason, criteria.changed, entry.matched_by)


def make_plan(workspace: Workspace, selection: Selection, options: RunOptions) -> Plan:
    """The plan for what is selected. Reads and checks the files, so it takes its time for large ones: not for an event
    loop's thread. Test files come before evalsets: they are meant to be fast.

    Raises:
        UsageFaultError: a config or an evalset that was named is wrong, a named evalset belongs to no agent, an id does
            not exist, or nothing is selected.
    """
    chosen = sorted(choose(workspace, selection), key=lambda item: item.entry.document.kind != "test")
    configs = ConfigFaults(workspace.root)
    configs.refuse_given(item.entry.criteria for item in chosen)
    for item in chosen:
        item.entry.document.check()
    named = [item.entry for item in chosen if item.named]
    refuse_named(named, workspace.root)
    made = [(item.entry, tuple(_entries(item, options.runs, configs))) for item in chosen]
    entries = tuple(entry for _, own in made for entry in own)
    if not entries:
        raise UsageFaultError(
            f"there are no cases in {', '.join(item.entry.relative for item in chosen)}", "", "nothing"
        )
    startable = (evalset for evalset, own in made if any(entry.blocked is None for entry in own))
    running = list({evalset.file: evalset for evalset in startable}.values())
    agents = {
        entry.agent.name: agent_setting(entry.agent, workspace.root, options)
        for entry in running
        if entry.agent is not None
    }
    notices = (
        *_root_notices(workspace.root),
        *look_alike_notices(workspace),
        *fault_notices(_warnings(running, configs), workspace.root),
        *agent_notices(agents.values()),
        *owner_notices(running),
        *(foreign_agent_notices((item.entry for item in chosen), workspace.root) if selection.agent else ()),
        *_repeat_notices(options),
    )
    owners = owners_to_keep(running, named if selection.agent else (), workspace.root)
    plan = Plan(new_run_id(), workspace.root, entries, agents, notices, owners, options)
    return replace(plan, project_agents=workspace.agents)


def _warnings(running: Iterable[EvalsetEntry], configs: ConfigFaults) -> list[Fault]:
    """What is odd in the files that are going to run: configs first, each once."""
    entries = list(running)
    used = {entry.criteria.config.path: entry.criteria.config for entry in entries}
    faults = [fault for config in used.values() for fault in configs.of(config)]
    faults += [fault for entry in entries for fault in entry.document.faults]
    return [fault for fault in faults if fault.severity == "warning"]


def new_run_id() -> str:
    """`2026-11-21T10-30-00-3f2a`, UTC: sorts by time also within a second, of which the last four digits are the part
    that had passed, in 65,536ths."""
    now = datetime.now(UTC)
    return f"{now:%Y-%m-%dT%H-%M-%S}-{now.microsecond * 0x10000 // 1_000_000:04x}"


def _entries(item: Chosen[EvalsetEntry], runs: int, configs: ConfigFaults) -> Iterator[PlanEntry]:
    entry, document = item.entry, item.entry.document
    agent = entry.agent_name
    matched_by = "" if entry.agent is None else entry.owned.rule
    broken = why_broken(entry, configs.root)
    if broken is not None:
        ref = CaseRef(agent, entry.relative, document.eval_set_id, "")
        yield PlanEntry(ref, entry.criteria, AgentSource(entry, None), broken, matched_by)
        return
    blocked = why_blocked(entry, configs)
    wanted = None if item.indexes is None else set(item.indexes)
    for case in document.cases:
        if wanted is None or case.index in wanted:
            source = AgentSource(entry, case.index)
            for repeat in range(1, runs + 1):
                ref = CaseRef(agent, entry.relative, document.eval_set_id, case.eval_id, repeat)
                yield PlanEntry(ref, entry.criteria, source, blocked, matched_by)


def _root_notices(root: Path) -> Iterator[Noticed]:
    """That an older `.workbench` inside the project is used."""
    around = project_around(root) if (root / STATE_FOLDER).is_dir() else None
    if around is not None:
        folder = relative_to(root / STATE_FOLDER, around)
        hint = f"Delete or move it to keep runs in {around / STATE_FOLDER}"
        yield Noticed("info", f"{folder} was there before, and is used for {relative_to(root, around)}", hint)


def _repeat_notices(options: RunOptions) -> Iterator[Noticed]:
    notice = None if options.until_sure is None else too_few(options.until_sure, options.runs)
    if notice is not None:
        yield notice


def agent_setting(agent: AgentFolder, root: Path, options: RunOptions) -> AgentSetting:
    """What an agent, its judges and its functions run with.

    Raises:
        UsageFaultError: `--python` is no interpreter.
    """
    try:
        interpreter = choose_interpreter(agent.folder, root, options.python)
    except InterpreterError as error:
        raise UsageFaultError(f"--python: {error}") from None
    return AgentSetting(agent, root, interpreter, agent_environment(agent.folder, os.environ))


def fault_notices(warnings: Sequence[Fault], root: Path) -> Iterator[Noticed]:
    """What is odd in files and configs, a few notices a file."""
    by_file: dict[Path, list[Fault]] = {}
    for fault in warnings:
        by_file.setdefault(fault.file, []).append(fault)
    for file, faults in by_file.items():
        name = relative_to(file, root)
        for fault in faults[:_WARNINGS_SHOWN]:
            yield Noticed("warning", f"{fault.where(name)}: {fault.message}", fault.hint)
        if len(faults) > _WARNINGS_SHOWN:
            more = len(faults) - _WARNINGS_SHOWN
            yield Noticed("warning", f"{name}: {counted(more, 'more warning')}")


def agent_notices(settings: Iterable[AgentSetting]) -> Iterator[Noticed]:
    """What is odd about the interpreters and environments of agents."""
    for setting in settings:
        name, interpreter = setting.agent.name, setting.interpreter
        if interpreter.warning:
            yield Noticed("warning", f"{name}: {interpreter.warning}", f"It runs in {interpreter.path}")
        for warning in setting.environment.warnings:
            yield Noticed("warning", f"{name}: {warning}")
