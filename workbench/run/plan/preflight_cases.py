"""The cases that preflight checks: whether they can be played and judged, by which judges, and with how many calls.

A case with a simulated user can only be played if a criterion can judge it and a model can play the user.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from workbench.agents.python_source import missing_function
from workbench.criteria.custom import function_path
from workbench.criteria.description import JUDGE, RUBRICS
from workbench.criteria.registry import described_criteria, descriptions
from workbench.events.events import CaseError, CaseStatus, ErrorKind, MetricResult, MetricStatus, Noticed
from workbench.files.criteria import CriteriaConfig, Criterion, instruction_faults
from workbench.files.evalset import EvalCase
from workbench.files.faults import Location
from workbench.files.metrics_config import own_entry
from workbench.files.run_options import RunOptions
from workbench.files.spelling import get
from workbench.judges.base import (
    DEFAULT_MODEL,
    DEFAULT_SAMPLES,
    JudgeEnvironment,
    JudgeIdentity,
    JudgeOptions,
    NotAvailableError,
    read_judge_options,
)
from workbench.judges.clients import SERVICE_NAME as SERVICE
from workbench.judges.clients import vertex_access
from workbench.judges.google_access import shown_address
from workbench.judges.kinds import FUNCTION, identify_judge, retires, successor_hint
from workbench.judges.scenario import SimulatorConfig, read_scenario, read_simulator
from workbench.judges.simulated_user import SimulatedMessage, step_without_judge
from workbench.text.counting import counted

NO_REFERENCE = "the user is simulated, so there is no reference to compare with"
Rubrics: TypeAlias = Sequence[Mapping[str, Any]]

_LONGEST = 20
"""Turns assumed for a simulated conversation without a limit."""
_TEXTS = 4
"""Texts assumed for a turn if its intermediate texts are judged too."""
_NAMES_SHOWN = 4
EnvironmentOf = Callable[[str], JudgeEnvironment]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a scenario is not played. No model is called and no agent runs then.

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
    """Return whether ADK's default criteria apply because the config names none."""
    return config.path is None or not config.has_criteria


def obstacle(
    config: CriteriaConfig, scenario: Mapping[str, Any], rubrics: Rubrics, environment: JudgeEnvironment
) -> Obstacle | None:
    """Return the obstacle that keeps a scenario with these rubrics from being played in an `environment`, or None."""
    if defaults_apply(config) or not any(_may_judge(criterion, config, rubrics) for criterion in config.criteria):
        cause = "no criterion of the config can judge a simulated user's conversation"
        hint = f"Add one of these criteria: {', '.join(scenario_criteria())}"
        return Obstacle("not_evaluated", "config", cause, hint)
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
    """Return the model that plays the simulated user, or None if at most the starting prompt is sent.

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


@dataclass(frozen=True, slots=True)
class CallRange:
    """A range of numbers of calls, from `low` to `high`."""

    low: int = 0
    high: int = 0

    def __add__(self, other: "CallRange") -> "CallRange":
        return CallRange(self.low + other.low, self.high + other.high)

    def times(self, count: "int | CallRange") -> "CallRange":
        """Return the product with a number or another range."""
        factor = CallRange(count, count) if isinstance(count, int) else count
        return CallRange(self.low * factor.low, self.high * factor.high)


def criterion_calls(
    criterion: Criterion, samples: int, turns: CallRange, rubrics: Sequence[dict[str, Any]], *, all_votes: bool
) -> CallRange:
    """Return the number of calls to judges, or to the service, for one criterion of a case with so many `turns`.

    A question with votes is asked up to `samples` times. `rubrics` are the rubrics of the case and its turns.
    """
    asks = descriptions()[criterion.name].asks
    if asks is None or lacks_rubrics(criterion, rubrics):
        return CallRange()
    if asks.once:
        turns = CallRange(min(turns.low, 1), min(turns.high, 1))
    if asks.who == "service":
        return turns
    if asks.votes:
        # The simulated user's first message is compared as text, but the end of the conversation is a question too.
        return CallRange(samples if all_votes else samples // 2 + 1, samples).times(turns)
    # The low bound is one text for each turn, because other texts may be empty.
    more = _TEXTS if criterion.options.get(asks.more_with) else 1
    return CallRange(asks.questions * turns.low, asks.questions * more * turns.high)


def models_by_user(config: CriteriaConfig, *, scenarios: bool) -> Iterator[tuple[Location, str, str]]:
    """Yield each judge of a config, and the simulated user if there are scenarios.

    Each is (location in the config, who it is, model). ADK's default models are included, even without a key for them.
    """
    found: list[tuple[Location, str, Any]] = []
    for criterion, info in described_criteria(config):
        if info.supported and info.needs_judge and not info.needs_service:
            model = get(criterion.options.get(JUDGE), "judge_model")
            found.append((("criteria", criterion.name), f"the judge of `{criterion.name}`", model))
    if scenarios:
        found.append((("user_simulator_config",), "the simulated user", get(config.user_simulator_config, "model")))
    for place, who, model in found:
        yield place, who if model else f"{who}, the default as in ADK,", str(model or DEFAULT_MODEL)


def options_of(criterion: Criterion) -> JudgeOptions:
    """Return the judge options of a criterion, or the defaults if the options are wrong."""
    try:
        return read_judge_options(criterion.options.get(JUDGE) or {})
    except ValueError:
        return JudgeOptions(samples=DEFAULT_SAMPLES)


@dataclass(frozen=True)
class PreflightCase:
    """A case of the plan, without its repeats. `config_file` names its config in messages, or is "" for defaults."""

    agent: str
    file: str
    case: EvalCase
    config: CriteriaConfig
    config_file: str

    @property
    def rubrics(self) -> list[dict[str, Any]]:
        """The rubrics of the case and of its turns."""
        turns = (turn.get("rubrics") or () for turn in self.case.turns or ())
        return [*self.case.rubrics, *(rubric for own in turns for rubric in own)]


def judged_criteria(item: PreflightCase) -> Iterator[Criterion]:
    """Yield the criteria that ask a judge or the service about this case."""
    for criterion in item.config.criteria:
        info = descriptions().get(criterion.name)
        if info is None or criterion.name in item.config.custom_metrics or not info.supported:
            continue
        if (info.needs_judge or info.needs_service) and applies(criterion.name, item):
            yield criterion


def applies(name: str, item: PreflightCase) -> bool:
    """Return whether the criterion suits the case, which has either a reference or a simulated user."""
    info = descriptions()[name]
    return info.scenarios != ("no" if item.case.scenario is not None else "only")


def affected_cases(affected: Sequence[tuple[PreflightCase, str]]) -> str:
    """Return a text such as "3 cases of desk"."""
    count = len({(item.agent, item.file, item.case.eval_id) for item, _ in affected})
    agents = listed(dict.fromkeys(item.agent for item, _ in affected))
    return f"{counted(count, 'case')} of {agents}"


def listed(names: Iterable[str]) -> str:
    """Return the first names for a sentence, and how many more there are: `a, b and c`. Without names, return ""."""
    every = list(names)
    if len(every) > _NAMES_SHOWN:
        every = [*every[:_NAMES_SHOWN], f"{len(every) - _NAMES_SHOWN} more"]
    return " and ".join(filter(None, (", ".join(every[:-1]), every[-1]))) if every else ""


class PreflightCases:
    """The cases of a plan with their judges. Each agent's judges are looked up once.

    `environment_of` returns the environment of an agent. `played` is False if the cases have transcripts already.
    """

    def __init__(self, cases: Sequence[PreflightCase], environment_of: EnvironmentOf, *, played: bool) -> None:
        self.cases = cases
        self.environment_of = environment_of
        self._played = played
        self._known: dict[tuple[str, str], JudgeIdentity | NotAvailableError] = {}
        self._options: dict[int, JudgeOptions] = {}
        self.without_obstacle: list[PreflightCase] = []
        """The cases that can be played, or have transcripts already."""
        self.with_obstacle: list[tuple[PreflightCase, Obstacle]] = []
        """The cases that cannot be played, with the reason."""
        for item in cases:
            case, found = item.case, None
            if case.scenario is not None and played:
                found = obstacle(item.config, case.scenario, case.rubrics, environment_of(item.agent))
            if found is None:
                self.without_obstacle.append(item)
            else:
                self.with_obstacle.append((item, found))

    def simulated(self, item: PreflightCase) -> bool:
        """Return whether the user of a case will be simulated in this run."""
        return item.case.scenario is not None and self._played

    def player(self, item: PreflightCase) -> JudgeIdentity | None:
        """Return the model that plays the user, or None if no model does."""
        if not self.simulated(item):
            return None
        simulator = read_simulator(item.config.user_simulator_config)
        try:
            return who_plays(simulator, self.environment_of(item.agent))
        except NotAvailableError:
            return None  # No model is needed. Otherwise the case would have an obstacle.

    def judge(self, agent: str, criterion: Criterion) -> JudgeIdentity | NotAvailableError:
        """Return the judge of a criterion in cases of an agent, or why no judge is available."""
        options = self.options(criterion)
        service = descriptions()[criterion.name].needs_service
        key = agent, "" if service else options.model
        if key not in self._known:
            environment = self.environment_of(agent)
            try:
                if service:
                    address = shown_address(vertex_access(environment.values).base_url)
                    self._known[key] = JudgeIdentity(SERVICE, "gemini", base_url=address)
                else:
                    self._known[key] = identify_judge(options, environment)
            except NotAvailableError as error:
                self._known[key] = error
        return self._known[key]

    def options(self, criterion: Criterion) -> JudgeOptions:
        """Return the judge options of a criterion. They are cached, because many cases share a criterion."""
        if id(criterion) not in self._options:
            self._options[id(criterion)] = options_of(criterion)
        return self._options[id(criterion)]


def not_evaluated(checked: PreflightCases) -> Iterator[Noticed]:
    """Yield notices about criteria without an available judge."""
    causes: dict[tuple[str, str], list[tuple[PreflightCase, str]]] = defaultdict(list)
    for item in checked.without_obstacle:
        for criterion in judged_criteria(item):
            who = checked.judge(item.agent, criterion)
            if isinstance(who, NotAvailableError):
                causes[str(who), who.hint].append((item, criterion.name))
    for (cause, hint), affected in causes.items():
        names = listed(dict.fromkeys(name for _, name in affected))
        yield Noticed("warning", f"{names} will not be evaluated in {affected_cases(affected)}: {cause}", hint)


def not_played(checked: PreflightCases) -> Iterator[Noticed]:
    """Yield notices about simulated conversations that cannot be played."""
    causes: dict[tuple[str, str], list[tuple[PreflightCase, str]]] = defaultdict(list)
    for item, found in checked.with_obstacle:
        causes[found.cause, found.hint].append((item, ""))
    for (cause, hint), affected in causes.items():
        yield Noticed("warning", f"{affected_cases(affected)} with a simulated user will not run: {cause}", hint)


def retiring_models(checked: PreflightCases) -> Iterator[Noticed]:
    """Yield notices about judges and simulated users whose model has an announced end, available or not."""
    kinds = {(id(item.config), checked.simulated(item)): item for item in checked.cases}
    used = {
        (who, model): None
        for (_, scenarios), item in kinds.items()
        for _, who, model in models_by_user(item.config, scenarios=scenarios)
    }
    for who, model in used:
        if message := retires(who, model):
            yield Noticed("warning", message, successor_hint(model), in_report=True)


def judges(checked: PreflightCases) -> Iterator[Noticed]:
    """Yield notices about judges and simulated users at an unusual address."""
    used: dict[JudgeIdentity, dict[str, None]] = defaultdict(dict)
    for item in checked.without_obstacle:
        for criterion in judged_criteria(item):
            who = checked.judge(item.agent, criterion)
            if isinstance(who, JudgeIdentity):
                used[who][criterion.name] = None
        player = checked.player(item)
        if player is not None:
            used[player]["simulated users"] = None
    for identity, names in used.items():
        if identity.base_url:
            yield Noticed("info", f"{identity.model} runs at {identity.base_url} for {listed(names)}")


def missing_functions(checked: PreflightCases) -> Iterator[Noticed]:
    """Yield a notice for each reason why functions of the user are missing, with the criteria that call them."""
    why_of: dict[tuple[str, str], str] = {}
    causes: dict[str, list[tuple[PreflightCase, str]]] = defaultdict(list)
    for item in checked.cases:
        for name, path in _functions(checked, item):
            if (item.agent, path) not in why_of:
                place = checked.environment_of(item.agent)
                why_of[item.agent, path] = missing_function(path, Path(place.root), Path(place.folder))
            if why_of[item.agent, path]:
                causes[why_of[item.agent, path]].append((item, name))
    for why, affected in causes.items():
        names = listed(dict.fromkeys(name for _, name in affected))
        yield Noticed("warning", f"{names} will end with an error in {affected_cases(affected)}: {why}")


def _functions(checked: PreflightCases, item: PreflightCase) -> Iterator[tuple[str, str]]:
    """Yield the criteria that call the user's functions, and the paths of these functions."""
    for criterion in item.config.criteria:
        own = item.config.custom_metrics.get(criterion.name)
        if own is not None and not own_entry(own):
            yield criterion.name, function_path(own)
    for criterion in judged_criteria(item):
        model = "" if descriptions()[criterion.name].needs_service else checked.options(criterion).model
        if model.startswith(FUNCTION):
            yield criterion.name, model.removeprefix(FUNCTION)


def calls_to_come(checked: PreflightCases, scale: float, options: RunOptions) -> Iterator[Noticed]:
    """Yield a notice about the expected judge calls of a run with `scale` times as many cases."""
    each = (_calls(checked, item, all_votes=options.all_votes) for item in checked.without_obstacle)
    every = sum(each, CallRange()).times(options.runs)
    low, high = round(every.low * scale), round(every.high * scale)
    if high == 0:
        return
    calls = counted(low, "judge call") if low == high else f"{low:,} to {high:,} judge calls"
    message = f"about {calls} expected{', fewer with cached answers' if options.use_cache else ''}"
    most = options.max_judge_calls
    if most is not None and low > most:
        message = f"{message}; --max-judge-calls {most} is not enough"
        yield Noticed("warning", message, "Allow more calls, or run fewer cases", forecast=True)
    else:
        yield Noticed("info", message, forecast=True)


def _calls(checked: PreflightCases, item: PreflightCase, *, all_votes: bool) -> CallRange:
    if item.case.scenario is None:
        number = len(item.case.turns or ())
        turns = CallRange(number, number)
    else:
        limit = read_simulator(item.config.user_simulator_config).turn_limit
        most = _LONGEST if limit is None else limit
        turns = CallRange(min(1, most), most)
    spans = [
        criterion_calls(criterion, checked.options(criterion).samples, turns, item.rubrics, all_votes=all_votes)
        for criterion in judged_criteria(item)
        if isinstance(checked.judge(item.agent, criterion), JudgeIdentity)
    ]
    if checked.simulated(item) and turns.high > 1:
        # The simulated user's model is asked for each message but the first, and once more if it ends the conversation.
        spans.append(CallRange(1, turns.high - 1))
    return sum(spans, CallRange())
