"""Checks of cases before their agents run.

A broken file, no agent or wrong criteria block a case. A case with a simulated user must be playable and judged by a
criterion. Expectations that no criterion compares never decide a verdict.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from workbench.agents.ownership import Owner
from workbench.agents.workspace import CriteriaChoice, EvalsetEntry, Workspace
from workbench.criteria.description import RUBRICS
from workbench.criteria.registry import check_criteria, descriptions
from workbench.events.events import CaseError, CaseStatus, ErrorKind, MetricResult, MetricStatus, Noticed
from workbench.files.criteria import CriteriaConfig, Criterion, instruction_faults
from workbench.files.evalset import EvalCase, case_or_none
from workbench.files.faults import Breach, Fault
from workbench.files.run_options import UsageFaultError, UsageKind
from workbench.files.walk import relative_to
from workbench.judges.base import JudgeEnvironment, JudgeIdentity, NotAvailableError
from workbench.judges.kinds import identify_judge
from workbench.judges.scenario import SimulatorConfig, read_scenario, read_simulator
from workbench.judges.simulated_user import SimulatedMessage, step_without_judge
from workbench.text.counting import counted

_FAULTS_IN_MESSAGE = 20
_NAME_AGENT = "Name one for a run with --agent PATH. The screen asks for it once and stores the answer"
NO_REFERENCE = "the user is simulated, so there is no reference to compare with"
Rubrics: TypeAlias = Sequence[Mapping[str, Any]]
_END_STATE, _TEXTS = "final_session_state", "intermediate_responses"
_HINTS = {
    _END_STATE: "Add the criterion `session_state_match`",
    _TEXTS: "Add the criterion `final_response_match_v2` with `include_intermediate_responses_in_final`",
}


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


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a scenario is not played, so that no model is asked and no agent runs.

    `status` and `kind` become the case's status and error kind. `hint` says how to remove the `cause`.
    """

    status: CaseStatus
    kind: ErrorKind
    cause: str
    hint: str = ""

    @property
    def error(self) -> CaseError:
        """The error of the case."""
        return CaseError(self.kind, f"the conversation was not simulated: {self.cause}", self.hint)


def defaults_apply(config: CriteriaConfig) -> bool:
    """Return whether the config names no criteria, so that ADK's defaults apply."""
    return config.path is None or not config.has_criteria


def obstacle(
    config: CriteriaConfig, scenario: Mapping[str, Any], rubrics: Rubrics, environment: JudgeEnvironment
) -> Obstacle | None:
    """Return the obstacle that keeps a scenario from being played in the agent's `environment`, or None.

    `rubrics` are the case's rubrics.
    """
    if defaults_apply(config) or not any(_may_judge(criterion, config, rubrics) for criterion in config.criteria):
        cause = "no criterion of the config can judge a simulated user's conversation"
        return Obstacle(
            "not_evaluated", "config", cause, f"Add one of these criteria: {', '.join(scenario_criteria())}"
        )
    simulator = read_simulator(config.user_simulator_config)
    if simulator.audio:
        cause = "a simulated user that speaks (llm_audio) is not supported yet"
        return Obstacle("not_evaluated", "simulator", cause, "Use `llm_backed`, which writes its messages")
    details = read_scenario(scenario)
    if not isinstance(step_without_judge(details, simulator, 0), SimulatedMessage):
        return None
    if simulator.custom_instructions is not None:
        faults = instruction_faults(simulator.custom_instructions, with_persona=details.persona is not None)
        if faults:
            return Obstacle("error", "simulator", f"custom_instructions of the simulated user: {'; '.join(faults)}")
    try:
        who_plays(simulator, environment)
    except NotAvailableError as error:
        return Obstacle("not_evaluated", "simulator", f"the simulated user's model: {error}", error.hint)
    return None


def _may_judge(criterion: Criterion, config: CriteriaConfig, rubrics: Rubrics) -> bool:
    """Return whether a criterion of a config can judge a case with a simulated user and these rubrics."""
    if criterion.name in config.custom_metrics:
        return True
    info = descriptions().get(criterion.name)
    return info is not None and info.suits_scenarios and not lacks_rubrics(criterion, rubrics)


def lacks_rubrics(criterion: Criterion, rubrics: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a criterion judges by rubrics and has none: neither its own nor any of the case's `rubrics`."""
    info = descriptions().get(criterion.name)
    wanted = info.rubric_type if info is not None else ""
    own = criterion.options.get(RUBRICS)
    return bool(wanted) and not own and not any(rubric.get("type") == wanted for rubric in rubrics)


def scenario_criteria() -> list[str]:
    """Return the criteria that can judge a conversation with a simulated user."""
    return [name for name, info in descriptions().items() if info.suits_scenarios]


def who_plays(simulator: SimulatorConfig, environment: JudgeEnvironment) -> JudgeIdentity | None:
    """Return the model that plays the simulated user, or None if only the starting prompt is sent.

    Raises:
        NotAvailableError: no model is available.
    """
    if simulator.turn_limit is not None and simulator.turn_limit <= 1:
        return None
    return identify_judge(simulator.judge_options, environment)


def unplayed_results(config: CriteriaConfig, why: CaseError) -> list[MetricResult]:
    """Return the results for a scenario that was not played.

    Criteria that could have judged it are `not_evaluated`. Criteria that need a reference are `not_applicable`.
    """
    found: list[MetricResult] = []
    for criterion in config.criteria:
        name, info = criterion.name, descriptions().get(criterion.name)
        status: MetricStatus = "not_evaluated"
        reason = f"{why.message}: {why.hint}" if why.hint else why.message
        if info is not None and name not in config.custom_metrics and info.scenarios == "no":
            status, reason = "not_applicable", NO_REFERENCE
        found.append(MetricResult(name, status, None, criterion.threshold, reason))
    return found


def unused_expectations(case: EvalCase, config: CriteriaConfig) -> Iterator[Breach]:
    """Yield the expected end state and the expected texts before answers of a case if nothing compares them.

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
    """Yield one line for each kind of expectation and evalset. The numbers are positions of the cases that will run."""
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
