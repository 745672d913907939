"""What is going to run: agent × case × repeat, in order, with the criteria of each."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.current_folder import current_folder
from workbench.agents.discovery import AgentFolder
from workbench.agents.drivers import driver_files
from workbench.agents.environment import AgentEnvironment, agent_environment
from workbench.agents.interpreter import Interpreter, InterpreterError, choose_interpreter
from workbench.agents.walk import relative_to
from workbench.counting import counted
from workbench.engine.plan.interrupted import InterruptedRun
from workbench.engine.plan.owner_notes import OwnersToKeep
from workbench.engine.plan.run_options import RunOptions, UsageFaultError
from workbench.engine.plan.source import Source
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


def new_run_id() -> str:
    """`2026-11-21T10-30-00-3f2a`, UTC: sorts by time also within a second, of which the last four digits are the part
    that had passed, in 65,536ths."""
    now = datetime.now(UTC)
    return f"{now:%Y-%m-%dT%H-%M-%S}-{now.microsecond * 0x10000 // 1_000_000:04x}"


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
