"""The cases that preflight looks at, which of their criteria ask somebody, and who can be asked."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.counting import counted
from workbench.engine.plan.judge_calls import options_of
from workbench.engine.plan.scenario_case import Obstacle, obstacle, who_plays
from workbench.judge.addresses import shown
from workbench.judge.base import JudgeIdentity, JudgeOptions, NotAvailableError
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.kinds import who_judges
from workbench.judge.vertex import WHO as SERVICE
from workbench.judge.vertex import vertex_access
from workbench.metrics.registry import known
from workbench.model.criteria import CriteriaConfig, Criterion
from workbench.model.evalset import EvalCase
from workbench.simulation.config import read_simulator

_NAMES_SHOWN = 4


@dataclass(frozen=True)
class PreflightCase:
    """A case of the plan, repeats left aside. `config_file` names its config in sentences, "" for the defaults."""

    agent: str
    file: str
    case: EvalCase
    config: CriteriaConfig
    config_file: str

    @property
    def rubrics(self) -> list[dict[str, Any]]:
        """Those of the case and of its turns."""
        turns = (turn.get("rubrics") or () for turn in self.case.turns or ())
        return [*self.case.rubrics, *(rubric for own in turns for rubric in own)]


def judged_criteria(item: PreflightCase) -> Iterator[Criterion]:
    """The criteria that ask a judge or the service about this case."""
    for criterion in item.config.criteria:
        info = known().get(criterion.name)
        if info is None or criterion.name in item.config.custom_metrics or not info.supported:
            continue
        if (info.needs_judge or info.needs_service) and applies(criterion.name, item):
            yield criterion


def applies(name: str, item: PreflightCase) -> bool:
    """Whether the criterion is for cases with a reference, or for those with a simulated user, as this one is."""
    info = known()[name]
    return info.scenarios != ("no" if item.case.scenario is not None else "only")


def affected_cases(affected: Sequence[tuple[PreflightCase, str]]) -> str:
    """So many cases of these agents."""
    count = len({(item.agent, item.file, item.case.eval_id) for item, _ in affected})
    agents = listed(dict.fromkeys(item.agent for item, _ in affected))
    return f"{counted(count, 'case')} of {agents}"


def listed(names: Iterable[str]) -> str:
    """The names as they stand in a sentence: the first few, and how many more."""
    every = list(names)
    if len(every) > _NAMES_SHOWN:
        every = [*every[:_NAMES_SHOWN], f"{len(every) - _NAMES_SHOWN} more"]
    return " and ".join(filter(None, (", ".join(every[:-1]), every[-1]))) if every else ""


EnvironmentOf = Callable[[str], JudgeEnvironment]


class PreflightCases:
    """`environment_of` gives the environment of an agent. Not `played`: the transcripts of the cases are there. Each
    agent's judges are looked up once."""

    def __init__(self, cases: Sequence[PreflightCase], environment_of: EnvironmentOf, *, played: bool) -> None:
        self.cases = cases
        self.environment_of = environment_of
        self._played = played
        self._known: dict[tuple[str, str], JudgeIdentity | NotAvailableError] = {}
        self._options: dict[int, JudgeOptions] = {}
        self._obstacles = [self._obstacle(item) for item in cases]

    def simulated(self, item: PreflightCase) -> bool:
        """Whether somebody plays the user in it."""
        return item.case.scenario is not None and self._played

    def played(self) -> Iterator[PreflightCase]:
        """The cases that nothing keeps from being played."""
        return (item for item, found in zip(self.cases, self._obstacles, strict=True) if found is None)

    def not_played(self) -> Iterator[tuple[PreflightCase, Obstacle]]:
        """The others, with what keeps them from it."""
        return ((item, found) for item, found in zip(self.cases, self._obstacles, strict=True) if found is not None)

    def player(self, item: PreflightCase) -> JudgeIdentity | None:
        """Who plays the user; None where nobody does or has to."""
        if not self.simulated(item):
            return None
        simulator = read_simulator(item.config.user_simulator_config)
        try:
            return who_plays(simulator, self.environment_of(item.agent))
        except NotAvailableError:
            return None  # Not needed either, or the case would have an obstacle.

    def judge(self, agent: str, criterion: Criterion) -> JudgeIdentity | NotAvailableError:
        """Who is asked for the criterion in cases of the agent, or why nobody can be."""
        options = self.options(criterion)
        service = known()[criterion.name].needs_service
        key = agent, "" if service else options.model
        if key not in self._known:
            environment = self.environment_of(agent)
            try:
                self._known[key] = _service(environment.values) if service else who_judges(options, environment)
            except NotAvailableError as error:
                self._known[key] = error
        return self._known[key]

    def options(self, criterion: Criterion) -> JudgeOptions:
        """Read once: the same criterion stands over many cases."""
        if id(criterion) not in self._options:
            self._options[id(criterion)] = options_of(criterion)
        return self._options[id(criterion)]

    def _obstacle(self, item: PreflightCase) -> Obstacle | None:
        if item.case.scenario is None or not self._played:
            return None
        return obstacle(item.config, item.case.scenario, item.case.rubrics, self.environment_of(item.agent))


def _service(values: Mapping[str, str]) -> JudgeIdentity:
    return JudgeIdentity(SERVICE, "gemini", base_url=shown(vertex_access(values).base_url))
