"""Reasons why cases cannot start: a broken file, no agent, or wrong criteria.

If the file is named on the command line, nothing runs. If it was found, its cases get an error before anything runs,
and the other cases run.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from workbench.agents.workspace.criteria_choice import CriteriaChoice
from workbench.agents.workspace.ownership import Owner
from workbench.agents.workspace.workspace import EvalsetEntry, Workspace
from workbench.criteria.registry import check_criteria
from workbench.events.events import CaseError, ErrorKind
from workbench.files.criteria import CriteriaConfig
from workbench.files.faults import Fault
from workbench.files.run_options import UsageFaultError, UsageKind
from workbench.files.walk import relative_to
from workbench.text.counting import counted

_FAULTS_IN_MESSAGE = 20
_NAME_AGENT = "Name one for a run with --agent PATH. The screen asks for it once and stores the answer"


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
        """Reject a wrong config that was named on the command line.

        Raises:
            UsageFaultError: the config has an error.
        """
        for choice in choices:
            if choice.given and self.errors(choice.config):
                raise _refusal(self.errors(choice.config), self.root, "config")


def refuse_named(named: Sequence[EvalsetEntry], root: Path) -> None:
    """Reject evalsets that were named on the command line and cannot run.

    Raises:
        UsageFaultError: an evalset is broken or belongs to no agent.
    """
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
    """Return the error of an evalset whose agent is gone, or None."""
    return CaseError("no_agent", owner.reason, _NAME_AGENT) if owner.agent is None and owner.owned.lost else None


def lost_in(workspace: Workspace) -> Callable[[str], CaseError | None]:
    """Return a function from the path of an evalset, relative to the root, to its `lost_agent` error."""
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
