"""What is going to run: agent × case × repeat, in order, with the criteria of each."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.agents.current_folder import current_folder
from workbench.agents.discovery import AgentFolder
from workbench.agents.environment import AgentEnvironment, agent_environment
from workbench.agents.interpreter import Interpreter, InterpreterError, choose_interpreter
from workbench.agents.ownership import relative_to
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.engine.borrowed import borrowed_notices
from workbench.engine.options import RunOptions, UsageFaultError, UsageKind
from workbench.engine.selection import Chosen, choose
from workbench.engine.target_words import Selection
from workbench.engine.until_sure import too_few
from workbench.events import CaseError, CaseRef, Noticed, PlannedCase
from workbench.metrics.registry import check_criteria
from workbench.model.criteria import CriteriaConfig
from workbench.model.faults import Fault

_WARNINGS_SHOWN = 10
_FAULTS_IN_MESSAGE = 20


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
            "env": dict(self.environment.values),
            "cwd": str(current_folder(self.agent.folder, self.root, Path.cwd())),
        }


@dataclass(frozen=True)
class PlanEntry:
    """One execution of one case: where it stands (`entry`, `index`), or why it cannot start (`blocked`). An entry for
    a file that cannot be read has no case: `index` is None."""

    ref: CaseRef
    entry: EvalsetEntry
    index: int | None
    blocked: CaseError | None = None

    @property
    def config(self) -> CriteriaConfig:
        return self.entry.criteria.config

    @property
    def criteria_source(self) -> str:
        """In words, which criteria apply and why."""
        return self.entry.criteria.reason


@dataclass(frozen=True)
class Plan:
    """`agents` are those of the entries, by name; `notices` what is odd about files, configs and interpreters."""

    run_id: str
    root: Path
    entries: tuple[PlanEntry, ...]
    agents: Mapping[str, AgentSetting]
    notices: tuple[Noticed, ...]

    def config_file(self, entry: PlanEntry) -> str | None:
        """The file with the criteria, relative to the root; None for the defaults."""
        path = entry.config.path
        return None if path is None else relative_to(path, self.root)

    def planned(self, entry: PlanEntry) -> PlannedCase:
        """Return the entry as a run announces it."""
        return PlannedCase(entry.ref, self.config_file(entry), entry.criteria_source, entry.entry.criteria.changed)


def make_plan(workspace: Workspace, selection: Selection, options: RunOptions) -> Plan:
    """The plan for what is selected. Reads and checks the files, so it takes its time for large ones: not for an event
    loop's thread. Test files come before evalsets: they are meant to be fast.

    Raises:
        UsageFaultError: a config is wrong, a file that was named is broken or belongs to no agent, an id does not
            exist, or nothing is selected.
    """
    chosen = sorted(choose(workspace, selection), key=lambda item: item.entry.document.kind != "test")
    configs = {item.entry.criteria.config.path: item.entry.criteria.config for item in chosen}
    warnings = list(check_configs(configs.values(), workspace.root))
    for item in chosen:
        item.entry.document.check()
    _refuse_named(chosen)
    entries = tuple(entry for item in chosen for entry in _entries(item, options.runs))
    if not entries:
        raise UsageFaultError(
            f"there are no cases in {', '.join(item.entry.relative for item in chosen)}", "", "nothing"
        )
    agents = {
        item.entry.agent.name: agent_setting(item.entry.agent, workspace.root, options)
        for item in chosen
        if item.entry.agent is not None and not item.entry.document.broken
    }
    for item in chosen:
        faults = item.entry.document.faults
        warnings += [fault for fault in faults if fault.severity == "warning" and not item.entry.document.broken]
    notices = (
        *fault_notices(warnings, workspace.root),
        *agent_notices(agents.values()),
        *(borrowed_notices((item.entry for item in chosen), workspace.root) if selection.agent else ()),
        *_repeat_notices(options),
    )
    return Plan(new_run_id(), workspace.root, entries, agents, notices)


def new_run_id() -> str:
    """`2026-11-21T10-30-00-3f2a`, UTC: sorts by time also within a second, of which the last four digits are the part
    that had passed, in 65,536ths."""
    now = datetime.now(UTC)
    return f"{now:%Y-%m-%dT%H-%M-%S}-{now.microsecond * 0x10000 // 1_000_000:04x}"


def check_configs(configs: Iterable[CriteriaConfig], root: Path) -> Iterator[Fault]:
    """The warnings about these configs.

    Raises:
        UsageFaultError: one of them has an error.
    """
    faults = [fault for config in configs for fault in (*config.faults, *check_criteria(config))]
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        raise _refusal(errors, root, "config")
    yield from faults


def _refuse_named(chosen: Sequence[Chosen]) -> None:
    named = [item.entry for item in chosen if item.named]
    for entry in named:
        if entry.document.broken:
            errors = [fault for fault in entry.document.faults if fault.severity == "error"]
            raise _refusal(errors, None, "broken_file", entry.relative)
    for entry in named:
        if entry.agent is None:
            raise UsageFaultError(
                f"{entry.relative} belongs to no agent: {entry.agent_reason}", "--agent PATH names one"
            )


def _refusal(faults: Sequence[Fault], root: Path | None, kind: UsageKind, file: str | None = None) -> UsageFaultError:
    lines = [
        fault.sentence(file if root is None else relative_to(fault.file, root)) for fault in faults[:_FAULTS_IN_MESSAGE]
    ]
    if len(faults) > _FAULTS_IN_MESSAGE:
        lines.append(f"and {len(faults) - _FAULTS_IN_MESSAGE} more faults")
    return UsageFaultError("\n".join(lines), "", kind)


def _entries(item: Chosen, runs: int) -> Iterator[PlanEntry]:
    entry, document = item.entry, item.entry.document
    agent = entry.agent.name if entry.agent is not None else ""
    if document.broken:
        errors = [fault for fault in document.faults if fault.severity == "error"]
        more = f" (and {len(errors) - 1} more fault{'s' * (len(errors) > 2)})" if len(errors) > 1 else ""
        hint = "`agent-workbench run` with the file's own name lists all its faults" if more else ""
        error = CaseError("broken_file", errors[0].sentence(entry.relative) + more, hint)
        yield PlanEntry(CaseRef(agent, entry.relative, document.eval_set_id, ""), entry, None, error)
        return
    blocked = None
    if entry.agent is None:
        blocked = CaseError("no_agent", f"the evalset belongs to no agent: {entry.agent_reason}", "--agent names one")
    wanted = None if item.indexes is None else set(item.indexes)
    for case in document.cases:
        if wanted is None or case.index in wanted:
            for repeat in range(1, runs + 1):
                ref = CaseRef(agent, entry.relative, document.eval_set_id, case.eval_id, repeat)
                yield PlanEntry(ref, entry, case.index, blocked)


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
            yield Noticed("warning", f"{name}: {more} more warnings")


def agent_notices(settings: Iterable[AgentSetting]) -> Iterator[Noticed]:
    """What is odd about the interpreters and environments of agents."""
    for setting in settings:
        name, interpreter = setting.agent.name, setting.interpreter
        if interpreter.warning:
            yield Noticed("warning", f"{name}: {interpreter.warning}", f"It runs in {interpreter.path}")
        for warning in setting.environment.warnings:
            yield Noticed("warning", f"{name}: {warning}")
