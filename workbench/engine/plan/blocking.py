"""Why cases cannot start: their file is broken, belongs to no agent, or has criteria that are wrong.

A file that is named on the command line refuses the whole run. One that was found costs only its own cases: they get
an error before anything runs, and the rest runs.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.ownership import Owner
from workbench.agents.walk import relative_to
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.counting import counted
from workbench.engine.plan.run_options import UsageFaultError, UsageKind
from workbench.events import CaseError, ErrorKind
from workbench.metrics.registry import check_criteria
from workbench.model.criteria import CriteriaConfig
from workbench.model.faults import Fault

_FAULTS_IN_MESSAGE = 20
_NAME_AGENT = "--agent PATH names one for a run; the screen asks which one, and keeps the answer"


class ConfigFaults:
    """The faults of criteria configs, each config checked once. `root` is what paths in sentences are relative to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._found: dict[int, tuple[CriteriaConfig, tuple[Fault, ...]]] = {}

    def of(self, config: CriteriaConfig) -> tuple[Fault, ...]:
        """All faults of a config: those of the file, then those of its criteria."""
        if id(config) not in self._found:
            self._found[id(config)] = config, (*config.faults, *check_criteria(config))
        return self._found[id(config)][1]

    def errors(self, config: CriteriaConfig) -> list[Fault]:
        """The faults with which no case may run."""
        return _errors(self.of(config))

    def blocked(self, choice: CriteriaChoice) -> CaseError | None:
        """The error of the cases that a config governs; None if it is sound."""
        errors = self.errors(choice.config)
        return _first_of("config", errors, self.root) if errors else None

    def refuse_given(self, choices: Iterable[CriteriaChoice]) -> None:
        """Refuse a config that was named on the command line and is wrong.

        Raises:
            UsageFaultError: it has an error.
        """
        for choice in choices:
            if choice.given and self.errors(choice.config):
                raise _refusal(self.errors(choice.config), self.root, "config")


def refuse_named(named: Sequence[EvalsetEntry], root: Path) -> None:
    """Refuse evalsets that were named on the command line and cannot run.

    Raises:
        UsageFaultError: one is broken, or belongs to no agent.
    """
    for entry in named:
        if entry.document.broken:
            raise _refusal(_errors(entry.document.faults), root, "broken_file")
    for entry in named:
        if entry.agent is None:
            raise UsageFaultError(f"{entry.relative}: {_no_agent(entry)}", _NAME_AGENT)


def why_broken(entry: EvalsetEntry, root: Path) -> CaseError | None:
    """The error that stands for all cases of a broken file; None if it is sound."""
    return _first_of("broken_file", _errors(entry.document.faults), root) if entry.document.broken else None


def lost_agent(owner: Owner) -> CaseError | None:
    """The error of an evalset whose agent is gone; None if it never had one, or has it."""
    return CaseError("no_agent", owner.reason, _NAME_AGENT) if owner.agent is None and owner.owned.lost else None


def lost_in(workspace: Workspace) -> Callable[[str], CaseError | None]:
    """Look up the error of an evalset of the workspace (its path relative to the root) by `lost_agent`."""
    lost = {entry.relative: lost_agent(entry.owner) for entry in workspace.evalsets}
    return lost.get


def why_blocked(entry: EvalsetEntry, configs: ConfigFaults) -> CaseError | None:
    """The error of the cases of a sound file that cannot start; None if they can."""
    if entry.agent is None:
        return CaseError("no_agent", _no_agent(entry), _NAME_AGENT)
    return configs.blocked(entry.criteria)


def _no_agent(entry: EvalsetEntry) -> str:
    return entry.agent_reason if entry.owned.lost else f"the evalset belongs to no agent: {entry.agent_reason}"


def _errors(faults: Iterable[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.severity == "error"]


def _first_of(kind: ErrorKind, errors: Sequence[Fault], root: Path) -> CaseError:
    first = errors[0].sentence(relative_to(errors[0].file, root))
    if len(errors) == 1:
        return CaseError(kind, first)
    more = counted(len(errors) - 1, "more fault")
    return CaseError(kind, f"{first} (and {more})", "`agent-workbench check` lists all of them")


def _refusal(faults: Sequence[Fault], root: Path, kind: UsageKind) -> UsageFaultError:
    lines = [fault.sentence(relative_to(fault.file, root)) for fault in faults[:_FAULTS_IN_MESSAGE]]
    if len(faults) > _FAULTS_IN_MESSAGE:
        lines.append(f"and {counted(len(faults) - _FAULTS_IN_MESSAGE, 'more fault')}")
    return UsageFaultError("\n".join(lines), "", kind)
