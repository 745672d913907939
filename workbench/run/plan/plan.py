"""The plan of a run: its entries, the settings of its agents, and the errors that keep an entry from starting.

A broken file, no agent or wrong criteria block a case. Expectations that no criterion compares are only reported.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.agents.discovery import AgentFolder
from workbench.agents.environment import (
    AgentEnvironment,
    Interpreter,
    InterpreterError,
    agent_environment,
    choose_interpreter,
    working_directory,
)
from workbench.agents.ownership import Owner
from workbench.agents.python_source import driver_files
from workbench.agents.workspace import CriteriaChoice, EvalsetEntry, Workspace
from workbench.criteria.registry import check_criteria, descriptions
from workbench.events.events import CaseError, CaseRef, ErrorKind, Noticed, PlannedCase
from workbench.events.shards import Shard
from workbench.files.criteria import CriteriaConfig
from workbench.files.evalset import EvalCase, case_or_none
from workbench.files.faults import Breach, Fault
from workbench.files.run_options import RunOptions, UsageFaultError, UsageKind
from workbench.files.walk import relative_to
from workbench.run.plan.source import AgentSource, InterruptedRun, Source
from workbench.store.owners import OwnersToKeep
from workbench.text.counting import counted

_WARNINGS_SHOWN = 10
_FAULTS_IN_MESSAGE = 20
_NAME_AGENT = "Name one for a run with --agent PATH. The screen asks for it once and stores the answer"
_END_STATE, _TEXTS = "final_session_state", "intermediate_responses"
_HINTS = {
    _END_STATE: "Add the criterion `session_state_match`",
    _TEXTS: "Add the criterion `final_response_match_v2` with `include_intermediate_responses_in_final`",
}


@dataclass(frozen=True)
class AgentSetting:
    """An agent with its interpreter and environment.

    `here` is the folder in which the workbench was started, or None for the current folder.

    In a variant of the project, `root` is a copy of the project. `original` is then the agent in the project itself,
    whose judges and functions are used. Unless `model` is "", it replaces the models of all agents in the variant.
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
        return {
            **({} if self.original is None else {"copy_of": str(self.original.root)}),
            **({"model": self.model} if self.model else {}),
            "name": self.agent.name,
            "folder": str(self.agent.folder),
            "root": str(self.root),
            "kind": self.agent.kind,
            "drivers": driver_files(),
            "env": dict(self.environment.values),
            "cwd": str(self.working_directory),
        }

    def judge_environment(self) -> dict[str, Any]:
        """Return the fields of the `workbench.judges.base.JudgeEnvironment` in which the agent is judged.

        Agents in different folders have different environments, because their functions are imported from there. All
        variants of an agent have the environment of the agent itself.
        """
        if self.original is not None:
            return self.original.judge_environment()
        spec = self.spec()
        fields = {
            "values": spec["env"],
            "interpreter": str(self.interpreter.path),
            "root": spec["root"],
            "folder": spec["folder"],
            "cwd": spec["cwd"],
        }
        written = json.dumps(fields, sort_keys=True).encode("ascii")
        return {"key": hashlib.sha256(written).hexdigest()[:32], **fields}

    @property
    def base(self) -> Path:
        """The folder whose files travel to other machines: the root, or the folder with the copies of all variants."""
        return self.root if self.original is None else self.root.parent

    @property
    def working_directory(self) -> Path:
        """The folder that the agent's relative paths refer to."""
        return working_directory(self.agent.folder, self.root, self.here or Path.cwd())

    @property
    def process_folder(self) -> Path:
        """The folder in which the agent's processes start.

        For a variant, it is the root of the original, because the variant's copy is deleted before its zygote ends.
        """
        return self.root if self.original is None else self.original.root


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """One execution of a case: its announcement, and everything needed to run it.

    `config` has the criteria that score it. `blocked` says why it cannot start, or is None. `judging` has all
    criteria of the case if a fault of a matrix is injected, and is None otherwise.
    """

    planned: PlannedCase
    config: CriteriaConfig
    source: Source
    blocked: CaseError | None = None
    judging: CriteriaConfig | None = None

    @property
    def ref(self) -> CaseRef:
        """The case and repeat."""
        return self.planned.case


@dataclass(frozen=True)
class Plan:
    """The work of one run.

    `agents` are the agents that run or whose cases are judged, by name. `notices` are about files, configs, agents
    and options. `owners` are the owners of evalsets that the run stores. `scored_from` is the id of the run whose
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
    """The shard of a larger plan that this plan is, or None if it is the whole plan."""
    checked: "Plan | None" = None
    """The plan that preflight checks instead of this one, or None.

    It has the agents whose variants run in this plan.
    """
    project_agents: tuple[AgentFolder, ...] = ()
    """All agents of the project, including those that do not run."""

    @property
    def runs_agents(self) -> bool:
        """Whether an agent may have to run."""
        return any(isinstance(entry.source, AgentSource) and entry.blocked is None for entry in self.entries)


def planned_case(ref: CaseRef, criteria: CriteriaChoice, matched_by: str, root: Path) -> PlannedCase:
    """Return a case's announcement in the plan. `matched_by` is the rule that matched its evalset to its agent."""
    path = criteria.config.path
    file = None if path is None else relative_to(path, root)
    return PlannedCase(ref, file, criteria.reason, criteria.changed, matched_by)


def new_run_id() -> str:
    """Return a run id such as `2026-11-21T10-30-00-3f2a`, in UTC. IDs sort by time."""
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


class ConfigFaults:
    """The faults of criteria configs. Each config is checked once. Paths in messages are relative to `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._found: dict[int, tuple[CriteriaConfig, tuple[Fault, ...]]] = {}

    def faults_of(self, config: CriteriaConfig) -> tuple[Fault, ...]:
        """Return all faults of a config: those of the file, then those of its criteria."""
        if id(config) not in self._found:
            self._found[id(config)] = config, (*config.faults, *check_criteria(config))
        return self._found[id(config)][1]

    def errors(self, config: CriteriaConfig) -> list[Fault]:
        """Return the faults that keep cases from running."""
        return _errors(self.faults_of(config))

    def blocked(self, choice: CriteriaChoice) -> CaseError | None:
        """Return the error of the cases that a config governs, or None if the config is valid."""
        errors = self.errors(choice.config)
        return first_fault("config", errors, self.root) if errors else None

    def refuse_given(self, choices: Iterable[CriteriaChoice]) -> None:
        """Raise UsageFaultError if a config named on the command line has an error."""
        for choice in choices:
            if choice.given and self.errors(choice.config):
                raise _refusal(self.errors(choice.config), self.root, "config")


def refuse_named(named: Sequence[EvalsetEntry], root: Path) -> None:
    """Raise UsageFaultError if an evalset named on the command line is broken or belongs to no agent."""
    for entry in named:
        if entry.document.broken:
            raise _refusal(_errors(entry.document.faults), root, "broken_file")
    for entry in named:
        if entry.agent is None:
            raise UsageFaultError(f"{entry.relative}: {_no_agent(entry)}", _NAME_AGENT)


def why_broken(entry: EvalsetEntry, root: Path) -> CaseError | None:
    """Return the one error for all cases of a broken file, or None if the file is valid."""
    return first_fault("broken_file", _errors(entry.document.faults), root) if entry.document.broken else None


def lost_agent(owner: Owner) -> CaseError | None:
    """Return the error of an evalset whose last agent is no longer an agent, or None for other evalsets."""
    return CaseError("no_agent", owner.reason, _NAME_AGENT) if owner.agent is None and owner.owned.lost else None


def lost_in(workspace: Workspace) -> Callable[[str], CaseError | None]:
    """Return a lookup: evalset path relative to the root → its `lost_agent` error, or None."""
    lost = {entry.relative: lost_agent(entry.owner) for entry in workspace.evalsets}
    return lost.get


def why_blocked(entry: EvalsetEntry, configs: ConfigFaults) -> CaseError | None:
    """Return the error of the cases of a valid file, or None if they can start."""
    if entry.agent is None:
        return CaseError("no_agent", _no_agent(entry), _NAME_AGENT)
    return configs.blocked(entry.criteria)


def _no_agent(entry: EvalsetEntry) -> str:
    return entry.agent_reason if entry.owned.lost else f"the evalset belongs to no agent: {entry.agent_reason}"


def _errors(faults: Iterable[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.severity == "error"]


def first_fault(kind: ErrorKind, errors: Sequence[Fault], root: Path) -> CaseError:
    """Return the error of a case whose file has these faults. The message has the first one, with its place."""
    first = errors[0].sentence(relative_to(errors[0].file, root))
    if len(errors) == 1:
        return CaseError(kind, first)
    more = counted(len(errors) - 1, "more fault")
    return CaseError(kind, f"{first} (and {more})", "See all of them with `agent-workbench check`")


def _refusal(faults: Sequence[Fault], root: Path, kind: UsageKind) -> UsageFaultError:
    lines = [fault.sentence(relative_to(fault.file, root)) for fault in faults[:_FAULTS_IN_MESSAGE]]
    if len(faults) > _FAULTS_IN_MESSAGE:
        lines.append(f"and {counted(len(faults) - _FAULTS_IN_MESSAGE, 'more fault')}")
    return UsageFaultError("\n".join(lines), "", kind)


def unused_expectations(case: EvalCase, config: CriteriaConfig) -> Iterator[Breach]:
    """Yield warnings about expectations that no criterion compares: the end state, and texts before a turn's answer.

    Locations are inside the case. Nothing is reported for a broken config, and no texts if a function of the user may
    compare them.
    """
    if config.broken:
        return
    known = [(descriptions()[each.name], each.options) for each in config.criteria if each.name in descriptions()]
    if case.final_session_state is not None and not any(info.compares_end_state for info, _ in known):
        yield _unused((_END_STATE,))
    if config.custom_metrics or any(info.compares_texts(options) for info, options in known):
        return
    for number, turn in enumerate(case.turns or ()):
        if (turn.get("intermediate_data") or {}).get(_TEXTS):
            yield _unused(("conversation", number, "intermediate_data", _TEXTS))


def unused_notices(chosen: Iterable[tuple[EvalsetEntry, Iterable[int]]], root: Path) -> Iterator[Noticed]:
    """Yield a notice for each evalset and kind of unused expectation, for the cases with the given positions."""
    for entry, indexes in chosen:
        if not entry.document.mentions(_END_STATE, "finalSessionState", _TEXTS, "intermediateResponses"):
            continue
        cases = filter(None, (case_or_none(entry.document, index) for index in indexes))
        found = Counter(
            key
            for case in cases
            for key in {breach.location[-1] for breach in unused_expectations(case, entry.criteria.config)}
        )
        for key, count in sorted(found.items()):
            message = f"{relative_to(entry.file, root)}: {counted(count, 'case')} with `{key}`"
            yield Noticed("warning", f"{message}, which no criterion compares", _HINTS[str(key)])


def _unused(location: tuple[str | int, ...]) -> Breach:
    key = str(location[-1])
    return Breach(location, f"no criterion compares `{key}`", _HINTS[key], "warning", on_key=True)
