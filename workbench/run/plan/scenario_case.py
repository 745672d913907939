"""Checks of a case with a simulated user before its agent runs: whether it can be played and judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from workbench.criteria.registry import descriptions
from workbench.events.events import CaseError, CaseStatus, ErrorKind, MetricResult, MetricStatus
from workbench.files.criteria import CriteriaConfig, Criterion, instruction_faults
from workbench.judges.base import JudgeIdentity, NotAvailableError
from workbench.judges.environment import JudgeEnvironment
from workbench.judges.kinds import identify_judge
from workbench.judges.scenario import SimulatorConfig, read_scenario, read_simulator
from workbench.judges.simulated_user import SimulatedMessage, step_without_judge
from workbench.run.plan.judge_calls import lacks_rubrics

NO_REFERENCE = "the user is simulated, so there is no reference to compare with"
Rubrics: TypeAlias = Sequence[Mapping[str, Any]]


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
    return [_unplayed(criterion.name, criterion.threshold, config, why) for criterion in config.criteria]


def _unplayed(name: str, threshold: float, config: CriteriaConfig, why: CaseError) -> MetricResult:
    info = descriptions().get(name)
    status: MetricStatus = "not_evaluated"
    reason = f"{why.message}: {why.hint}" if why.hint else why.message
    if info is not None and name not in config.custom_metrics and info.scenarios == "no":
        status, reason = "not_applicable", NO_REFERENCE
    return MetricResult(name, status, None, threshold, reason)
