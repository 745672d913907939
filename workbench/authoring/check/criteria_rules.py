"""What is odd about a criteria config, for the cases and the agent that it holds for."""

from collections.abc import Iterable, Iterator, Mapping

from workbench.authoring.check.problem import Rule
from workbench.judge.availability import who_judges
from workbench.judge.base import NotAvailableError
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.google_access import gemini_access
from workbench.judge.options import read_judge_options
from workbench.metrics.criteria_known import CriterionInfo
from workbench.metrics.registry import known
from workbench.model.breaches import Breach
from workbench.model.criteria import CriteriaConfig, Criterion
from workbench.model.places import Location

Found = Iterator[tuple[Rule, Breach]]
_SIMULATOR = "per_turn_user_simulator_quality_v1"
_STOP_SIGNAL = "</finished>"
"""The one that ADK's simulated user gives; it cannot be set there."""


def criteria_problems(config: CriteriaConfig) -> Found:
    """What the config says that no case can make good. Locations are those in its file."""
    for criterion in config.criteria:
        info = known().get(criterion.name)
        if info is None or criterion.name in config.custom_metrics:
            continue
        place: Location = ("criteria", criterion.name)
        if (most := _highest(info)) is not None and criterion.threshold > most:
            message = f"the threshold {criterion.threshold:g} is above {most:g}, the highest score there is"
            yield "never-passes", Breach(place, message, f"Scores go from {info.range}", "warning")
        if (
            criterion.name == _SIMULATOR
            and (signal := criterion.options.get("stop_signal", _STOP_SIGNAL)) != _STOP_SIGNAL
        ):
            message = f"the simulated user ends with `{_STOP_SIGNAL}`, and this criterion waits for `{signal}`"
            yield "stop-signal", Breach((*place, "stop_signal"), message, "Leave `stop_signal` out", "warning")


def use_problems(config: CriteriaConfig, scenarios: int, conversations: int) -> Found:
    """Criteria that have nothing to judge in any of so many cases."""
    for criterion in config.criteria:
        info = known().get(criterion.name)
        if info is None or criterion.name in config.custom_metrics:
            continue
        if scenarios and not conversations and (info.needs_reference or info.scenarios == "no"):
            why = "all cases here have a simulated user, so there is no reference to compare with"
        elif conversations and not scenarios and info.scenarios == "only":
            why = "no case here has a simulated user"
        else:
            continue
        message = f"`{criterion.name}` has nothing to judge: {why}"
        yield "cannot-apply", Breach(("criteria", criterion.name), message, "", "warning")


def judge_problems(config: CriteriaConfig, environment: JudgeEnvironment) -> Found:
    """Criteria that would not be evaluated, because nobody can be asked."""
    for criterion in config.criteria:
        info = known().get(criterion.name)
        if info is None or not info.needs_judge or criterion.name in config.custom_metrics:
            continue
        reason = _nobody(criterion, environment)
        if reason is not None:
            message = f"`{criterion.name}` would not be evaluated: {reason}"
            yield "judge", Breach(("criteria", criterion.name), message, reason.hint, "warning")


def model_problems(models: Iterable[str], values: Mapping[str, str]) -> Iterator[NotAvailableError]:
    """Why an agent's own Gemini models cannot be asked in its environment."""
    for model in sorted(models):
        if model.startswith("gemini-"):
            try:
                gemini_access(model, values)
            except NotAvailableError as error:
                yield error


def _nobody(criterion: Criterion, environment: JudgeEnvironment) -> NotAvailableError | None:
    try:
        who_judges(read_judge_options(criterion.options.get("judge_model_options") or {}), environment)
    except NotAvailableError as error:
        return error
    except ValueError:
        return None  # The options are wrong, which is a fault of the config.
    return None


def _highest(info: CriterionInfo) -> float | None:
    last = info.range.rpartition(" ")[2]
    return float(last) if last.isdecimal() else None
