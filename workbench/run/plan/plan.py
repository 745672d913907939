"""The plan of a run, its entries, the settings of its agents, and the interrupted run that it resumes."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from workbench.agents.python_source import driver_files
from workbench.agents.workspace import CriteriaChoice
from workbench.criteria.base import Scored
from workbench.criteria.secrets import holds_secrets
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    FilesRead,
    MetricScored,
    Noticed,
    PlannedCase,
    RepeatsDropped,
    RunFinished,
    RunResumed,
    RunStarted,
    Sources,
    Usage,
    UserSimulated,
)
from workbench.events.shards import Shard
from workbench.files.criteria import CriteriaConfig
from workbench.files.faults import Fault
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.files.walk import relative_to
from workbench.judges.base import question_usage
from workbench.run.plan.source import AgentSource, Answer, DecidedSource, Source, StoredSource
from workbench.run.scoring.verdict import judge_usage, with_judges
from workbench.store.inputs import RunInputs
from workbench.store.owners import OwnersToKeep
from workbench.store.transcripts import StoredCase
from workbench.text.counting import counted

_WARNINGS_SHOWN = 10
RETRIED = frozenset({"cancelled", "crashed", "internal", "simulator", "judge", "quota"})
"""Errors whose cause may have passed. All others are results, because the agent would fail again."""


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
        variant = {} if self.original is None else {"copy_of": str(self.original.root)}
        return {
            **variant,
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
        """The folder in which the agent's processes start. A zygote outlives the copy of a variant."""
        return self.root if self.original is None else self.original.root


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


@dataclass
class InterruptedCase:
    """One execution of a case, as far as the run got.

    `events` are the events of its last attempt. `damaged` tells whether an unreadable line may be about the case.
    """

    stored: StoredCase
    events: list[Event] = field(default_factory=list)
    damaged: bool = False
    answers: list[Answer] = field(default_factory=list)
    """Stored answers of models to its agent."""
    is_frozen: bool = False
    """Whether the run replayed its recording."""

    @property
    def has_result(self) -> bool:
        """Whether it has a verdict, or an error that would occur again."""
        ended = self.stored.finished
        if ended is None or self.damaged or (self.stored.started is None and len(self.events) > 1):
            return False
        if ended.error is None:
            return self.stored.started is not None
        return ended.error.kind not in RETRIED

    @property
    def has_transcript(self) -> bool:
        """Whether the transcript is complete and only scores are missing.

        A transcript with a replaced secret is not scored, because criteria would not see the agent's original words.
        A replayed case runs again, because only its end says how it was replayed.
        """
        if (
            self.is_frozen
            or self.has_result
            or self.damaged
            or self.stored.started is None
            or self.stored.why_incomplete() is not None
        ):
            return False
        return bool(self.stored.turns) and not holds_secrets([self.stored.started, *self.stored.turns])

    @property
    def scored(self) -> tuple[Scored, ...]:
        """The valid verdicts of a case with a transcript."""
        found = [event for event in self.events if isinstance(event, MetricScored)]
        by_name = {event.result.name: Scored(event.result, event.turns) for event in found}
        return tuple(one for one in by_name.values() if one.result.status != "error")

    @property
    def usage(self) -> Usage:
        """The usage of the conversation of a case with a transcript.

        It is the usage of the last turn, plus the simulated user's question after it.
        """
        ends = [step for step in self.stored.steps if isinstance(step, UserSimulated) and step.ended]
        return with_judges(self.stored.turns[-1].usage, question_usage(ends[-1].question) if ends else Usage())

    def source(self, fresh: AgentSource) -> Source:
        """Return the source for the rest of the case. `fresh` would run it from the start."""
        if self.has_result and self.stored.finished is not None:
            return DecidedSource(tuple(self.events), self.stored.finished)
        if self.has_transcript:
            spent = with_judges(self.usage, judge_usage(self.scored))
            return StoredSource(self.stored, self.scored, spent)
        return replace(fresh, answers=tuple(self.answers))

    def take(self, event: Event) -> None:
        """Add the next event of this case."""
        if isinstance(event, CaseStarted):
            self.events, self.damaged = [], False
        elif self.stored.finished is not None:
            # The start of this attempt was lost.
            self.damaged = True
        self.events.append(event)
        self.stored.take(event)


@dataclass
class InterruptedRun:
    """An interrupted run.

    `announced` is its first event. `sources` are the files that its agents read. `seconds` is its duration so far.
    `ended` tells whether it ended without being killed, and `complete` whether it also finished all cases. `cut_short`
    tells whether it started no more cases after one that did not pass (`-x`).
    """

    announced: RunStarted
    cases: dict[CaseRef, InterruptedCase]
    sources: Sources = field(default_factory=dict)
    seconds: float = 0.0
    inputs: RunInputs = field(default_factory=RunInputs)
    written: dict[str, list[str]] = field(default_factory=dict)
    """Agent → files that it wrote."""
    ended: bool = False
    complete: bool = False
    cut_short: bool = False
    _before: float = 0.0
    """Seconds before it was resumed the last time."""

    @property
    def began(self) -> float | None:
        """The start of the run in seconds of the epoch, or None if it is not known."""
        try:
            return datetime.fromisoformat(self.announced.started).timestamp()
        except ValueError:
            return None

    @property
    def results(self) -> int:
        """Number of cases with a result."""
        return sum(case.has_result for case in self.cases.values())

    @property
    def transcripts(self) -> int:
        """Number of cases that only need scores."""
        return sum(case.has_transcript for case in self.cases.values())

    @property
    def answers(self) -> int:
        """Number of stored model answers for cases that start again."""
        return sum(len(case.answers) for case in self.cases.values() if not case.has_result and not case.has_transcript)

    @property
    def judge_calls(self) -> int:
        """Number of judge calls that count against the limit of the run."""
        ended = [case.stored.finished for case in self.cases.values() if case.has_result]
        return sum(event.usage.judge_calls for event in ended if event is not None)

    def take(self, event: Event | None) -> None:
        """Add the next event of the run, or None for an unreadable line."""
        match event:
            case None:
                # The line may have been the beginning of a case: one that begins later is whole.
                for case in self.cases.values():
                    case.damaged = case.damaged or case.stored.finished is None
            case RunResumed():
                self.ended = self.complete = False
                self._before = self.seconds
            case RunFinished():
                self.ended, self.complete = True, not (event.interrupted or event.cancelled)
                self.seconds = event.duration_seconds
                self._read(event.sources)
            case FilesRead():
                self._read(event.sources)
                self.inputs.extend(event.bundles)
                self.written |= event.written
            case RepeatsDropped():
                self.cut_short = self.cut_short or event.after is not None
                for dropped in event.cases:
                    self.cases.pop(dropped, None)
            case _:
                ref = getattr(event, "case", None)
                if ref in self.cases:
                    self._take_of_case(self.cases[ref], event)

    def _take_of_case(self, case: InterruptedCase, event: Event) -> None:
        case.take(event)
        if isinstance(event, CaseFinished):
            case.stored.inputs = self.inputs.bundles_of(event.inputs)
        began = 0.0 if case.stored.started is None else case.stored.started.at
        if isinstance(event, CaseFinished):
            began += event.duration_seconds
        if isinstance(event, CaseStarted | CaseFinished):
            self.seconds = max(self.seconds, self._before + began)

    def _read(self, sources: Sources) -> None:
        for agent, files in sources.items():
            self.sources[agent] = {**self.sources.get(agent, {}), **files}


def interrupted_run(events: Iterable[Event | None]) -> InterruptedRun | None:
    """Collect the events of an interrupted run, or return None if they do not start with `RunStarted`.

    An event that is None represents an unreadable line.
    """
    found: InterruptedRun | None = None
    for event in events:
        if isinstance(event, RunStarted):
            inputs = RunInputs(event.inputs)
            frozen = bool(inputs.options.get("frozen"))
            cases = {planned.case: InterruptedCase(StoredCase(planned), is_frozen=frozen) for planned in event.cases}
            found = InterruptedRun(event, cases, dict(event.sources), inputs=inputs)
        elif found is None:
            return None
        else:
            found.take(event)
    return found


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
