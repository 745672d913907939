"""The plan of a run, its entries, and the settings of its agents."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.agents.interpreter import Interpreter, InterpreterError, choose_interpreter
from workbench.agents.workspace.criteria_choice import CriteriaChoice
from workbench.agents.workspace.discovery import AgentFolder
from workbench.agents.workspace.drivers import driver_files
from workbench.agents.workspace.environment import AgentEnvironment, agent_environment, working_directory
from workbench.events.events import CaseError, CaseRef, Noticed, PlannedCase
from workbench.events.shards import Shard
from workbench.files.criteria import CriteriaConfig
from workbench.files.faults import Fault
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.files.walk import relative_to
from workbench.run.plan.interrupted import InterruptedRun
from workbench.run.plan.source import AgentSource, Source
from workbench.store.owners import OwnersToKeep
from workbench.text.counting import counted

if TYPE_CHECKING:
    from workbench.run.places.place import AgentStart

_WARNINGS_SHOWN = 10


@dataclass(frozen=True)
class AgentSetting:
    """An agent with its interpreter and environment. `here` is where the workbench was started, None for now.

    In a variant of the project, `root` is a copy of the project. `original` is then the agent in the project itself,
    whose judges and functions are used, and `model` replaces the model of all its agents unless it is "".
    """

    agent: AgentFolder
    root: Path
    interpreter: Interpreter
    environment: AgentEnvironment
    here: Path | None = None
    original: "AgentSetting | None" = None
    model: str = ""

    def spec(self) -> dict[str, Any]:
        """Return the AgentSpec of the worker protocol."""
        variant = {} if self.original is None else {"copy_of": str(self.original.root), "model": self.model}
        return {
            **variant,
            "name": self.agent.name,
            "folder": str(self.agent.folder),
            "root": str(self.root),
            "kind": self.agent.kind,
            "drivers": driver_files(),
            "env": dict(self.environment.values),
            "cwd": str(self.working_directory),
        }

    @property
    def working_directory(self) -> Path:
        """The folder that the agent's relative paths refer to."""
        return working_directory(self.agent.folder, self.root, self.here or Path.cwd())

    def start(self) -> "AgentStart":
        """Return what a place needs to start the agent."""
        from workbench.run.places.place import AgentStart  # Usage errors do not need its asyncio.

        agent = self.agent
        # A zygote outlives the copy of a variant.
        root = self.root if self.original is None else self.original.root
        return AgentStart(agent.name, agent.folder, root, agent.kind, self.interpreter.path, self.spec())


@dataclass(frozen=True, slots=True)
class FaultJudging:
    """The configs for an execution in a matrix of tool faults.

    `question` has the question to a judge about the answer. `config` has all criteria of the case.
    """

    question: CriteriaConfig
    config: CriteriaConfig


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One execution of one case as it is announced, with what is needed to make it.

    `config` has the criteria that score it. `blocked` says why it cannot start, or is None. `judging` is None unless a
    fault of a matrix is injected.
    """

    planned: PlannedCase
    config: CriteriaConfig
    source: Source
    blocked: CaseError | None = None
    judging: FaultJudging | None = None

    @property
    def ref(self) -> CaseRef:
        """The execution."""
        return self.planned.case


@dataclass(frozen=True)
class Plan:
    """The work of one run.

    `agents` are the agents that run or whose cases are judged, by name. `notices` are warnings about files, configs and
    interpreters. `owners` are the owners of evalsets that the run stores. `scored_from` is the id of the run whose
    transcripts are scored again. `resumed` is the interrupted run that is being resumed.
    """

    run_id: str
    root: Path
    entries: tuple[PlanEntry, ...]
    agents: Mapping[str, AgentSetting]
    notices: tuple[Noticed, ...]
    owners: OwnersToKeep = field(default_factory=OwnersToKeep)
    options: RunOptions = field(default_factory=RunOptions)
    scored_from: str = ""
    resumed: InterruptedRun | None = None
    shard: Shard | None = None
    """The part of a larger plan that this is, or None if it is whole."""
    checked: "Plan | None" = None
    """The plan that preflight checks in place of this one, whose agents are variants of its agents."""
    project_agents: tuple[AgentFolder, ...] = ()
    """All agents of the project, including those that do not run."""

    @property
    def runs_agents(self) -> bool:
        """Whether an agent may have to run."""
        return any(isinstance(entry.source, AgentSource) and entry.blocked is None for entry in self.entries)


def planned_case(ref: CaseRef, criteria: CriteriaChoice, matched_by: str, root: Path) -> PlannedCase:
    """Return a case with its criteria. `matched_by` is the rule that matched its evalset to its agent."""
    path = criteria.config.path
    file = None if path is None else relative_to(path, root)
    return PlannedCase(ref, file, criteria.reason, criteria.changed, matched_by)


def new_run_id() -> str:
    """Return a run id such as `2026-11-21T10-30-00-3f2a`, in UTC.

    The last four hex digits are the fraction of the second in 1/65,536, so that ids sort by time.
    """
    now = datetime.now(UTC)
    return f"{now:%Y-%m-%dT%H-%M-%S}-{now.microsecond * 0x10000 // 1_000_000:04x}"


def agent_setting(agent: AgentFolder, root: Path, options: RunOptions) -> AgentSetting:
    """Return the interpreter and environment of an agent. Its judges and functions use them too.

    Raises:
        UsageFaultError: `--python` is not an interpreter.
    """
    try:
        interpreter = choose_interpreter(agent.folder, root, options.python)
    except InterpreterError as error:
        raise UsageFaultError(f"--python: {error}") from None
    return AgentSetting(agent, root, interpreter, agent_environment(agent.folder, os.environ))


def fault_notices(warnings: Sequence[Fault], root: Path) -> Iterator[Noticed]:
    """Yield warnings about files and configs, up to a limit for each file."""
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
    """Yield warnings about the interpreters and environments of agents."""
    for setting in settings:
        name, interpreter = setting.agent.name, setting.interpreter
        if interpreter.warning:
            yield Noticed("warning", f"{name}: {interpreter.warning}", f"It runs in {interpreter.path}")
        for warning in setting.environment.warnings:
            yield Noticed("warning", f"{name}: {warning}")
