"""The cases that preflight checks, their criteria that ask a judge, and the judges."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.criteria.registry import descriptions
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.evalset import EvalCase
from workbench.judges.addresses import shown_address
from workbench.judges.base import JudgeIdentity, JudgeOptions, NotAvailableError
from workbench.judges.environment import JudgeEnvironment
from workbench.judges.kinds import identify_judge
from workbench.judges.scenario import read_simulator
from workbench.judges.vertex import SERVICE_NAME as SERVICE
from workbench.judges.vertex import vertex_access
from workbench.run.plan.judge_calls import options_of
from workbench.run.plan.scenario_case import Obstacle, obstacle, who_plays
from workbench.text.counting import counted

_NAMES_SHOWN = 4


@dataclass(frozen=True)
class PreflightCase:
    """A case of the plan, whatever its repeats. `config_file` names its config in messages, or is "" for defaults."""

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
    """Return the first names for a sentence, and how many more there are."""
    every = list(names)
    if len(every) > _NAMES_SHOWN:
        every = [*every[:_NAMES_SHOWN], f"{len(every) - _NAMES_SHOWN} more"]
    return " and ".join(filter(None, (", ".join(every[:-1]), every[-1]))) if every else ""


EnvironmentOf = Callable[[str], JudgeEnvironment]


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
        self._obstacles = [self._obstacle(item) for item in cases]

    def simulated(self, item: PreflightCase) -> bool:
        """Return whether a model will play the user of a case."""
        return item.case.scenario is not None and self._played

    def played(self) -> Iterator[PreflightCase]:
        """Yield the cases that can be played."""
        return (item for item, found in zip(self.cases, self._obstacles, strict=True) if found is None)

    def not_played(self) -> Iterator[tuple[PreflightCase, Obstacle]]:
        """Yield the cases that cannot be played, with the reason."""
        return ((item, found) for item, found in zip(self.cases, self._obstacles, strict=True) if found is not None)

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
                self._known[key] = _service(environment.values) if service else identify_judge(options, environment)
            except NotAvailableError as error:
                self._known[key] = error
        return self._known[key]

    def options(self, criterion: Criterion) -> JudgeOptions:
        """Return the judge options of a criterion. They are cached, because many cases share a criterion."""
        if id(criterion) not in self._options:
            self._options[id(criterion)] = options_of(criterion)
        return self._options[id(criterion)]

    def _obstacle(self, item: PreflightCase) -> Obstacle | None:
        if item.case.scenario is None or not self._played:
            return None
        return obstacle(item.config, item.case.scenario, item.case.rubrics, self.environment_of(item.agent))


def _service(values: Mapping[str, str]) -> JudgeIdentity:
    return JudgeIdentity(SERVICE, "gemini", base_url=shown_address(vertex_access(values).base_url))
