"""One look at a plan before its first case: what will not be evaluated and the line that would change that, who judges
and where, which criteria have nothing to judge, and how many calls are to come.

Nothing is asked and nothing is imported for it; one cause is one notice, however many cases it has.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.declared_tools import declared_tools
from workbench.agents.discovery import AgentFolder
from workbench.agents.function_source import missing_function
from workbench.engine.judge_calls import (
    RUBRIC_TYPES,
    Span,
    criterion_calls,
    options_of,
    simulator_calls,
    total,
    turns_of_scenario,
)
from workbench.engine.judge_environment import judge_environment
from workbench.engine.options import RunOptions
from workbench.engine.plan import AgentSetting, Plan, PlanEntry
from workbench.engine.scenario_case import Obstacle, defaults_apply, obstacle, who_plays, without_rules
from workbench.events import Noticed
from workbench.judge.availability import FUNCTION, shown_or_none, who_judges
from workbench.judge.base import DEFAULT_MODEL, JudgeIdentity, JudgeOptions, NotAvailableError
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.google_access import gemini_access
from workbench.judge.vertex import WHO as SERVICE
from workbench.judge.vertex import vertex_access
from workbench.metrics.custom import function_path
from workbench.metrics.registry import asks, known
from workbench.model.criteria import CriteriaConfig, Criterion
from workbench.model.evalset import BrokenCaseError, EvalCase
from workbench.simulation.config import read_simulator
from workbench.simulation.scenario import STOP_SIGNAL

LOOKED_AT = 1000
"""Cases that are looked at one by one: the look must not hold up a large run. The rest are taken to be like these."""
_QUALITY = "per_turn_user_simulator_quality_v1"
_NAMES_SHOWN = 4
_SOURCES = ("*.py", "*/*.py")
_CONVERSATION = EvalCase("", (), None, None, (), None, None)
"""Stands for the cases of a file that need not be looked at: they have a reference, and nothing else that matters."""


@dataclass(frozen=True)
class Looked:
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


EnvironmentOf = Callable[[str], JudgeEnvironment]


def preflight(plan: Plan, options: RunOptions) -> list[Noticed]:
    """The notices for a plan. Reads cases of the files that the plan has open, so not for an event loop's thread."""
    environments = {name: JudgeEnvironment(**judge_environment(setting)) for name, setting in plan.agents.items()}
    entries = [entry for entry in plan.entries if entry.blocked is None and entry.ref.repeat == 1]
    one_of_each = {entry.ref.evalset_file: entry for entry in entries}
    plain = {file: entry for file, entry in one_of_each.items() if _is_plain(entry)}
    cases = [_looked(plan, entry, _CONVERSATION) for entry in plain.values()]
    entries = [entry for entry in entries if entry.ref.evalset_file not in plain]
    for entry in entries[:LOOKED_AT]:
        try:
            case = entry.entry.document.case(entry.index if entry.index is not None else -1)
        except (BrokenCaseError, IndexError):
            continue  # The case itself will say so.
        cases.append(_looked(plan, entry, case))
    scale = len(entries) / max(1, min(len(entries), LOOKED_AT))
    found = [*_agents_without_key(plan, environments), *notices(cases, environments.__getitem__, options, scale)]
    if found and scale > 1:
        message = f"{LOOKED_AT} of {len(entries)} cases were looked at before; the rest will be alike"
        found.append(Noticed("info", message))
    return found


def _agents_without_key(plan: Plan, environments: Mapping[str, JudgeEnvironment]) -> Iterator[Noticed]:
    """Agents whose own Gemini models cannot be asked. Their sources are read only where that is so."""
    for name, setting in plan.agents.items():
        yield from _without_key(setting, environments[name].values)


def without_key(setting: AgentSetting) -> Iterator[Noticed]:
    """Which of an agent's own Gemini models cannot be asked, and the line that would change that."""
    yield from _without_key(setting, JudgeEnvironment(**judge_environment(setting)).values)


def _without_key(setting: AgentSetting, values: Mapping[str, str]) -> Iterator[Noticed]:
    for model in _models_without_key(setting.agent, values):
        try:
            gemini_access(model, values)
        except NotAvailableError as error:
            yield Noticed("warning", f"{setting.agent.name}: its own model {error}", without_rules(error.hint))


def _models_without_key(agent: AgentFolder, values: Mapping[str, str]) -> list[str]:
    try:
        gemini_access(DEFAULT_MODEL, values)
    except NotAvailableError:
        if _names_gemini(agent.folder):
            return sorted(model for model in declared_tools(agent).models if model.startswith("gemini-"))
    return []


def _names_gemini(folder: Path) -> bool:
    """Whether a look at the sources is worth it: parsing them takes ten times as long as reading."""
    try:
        return any(b"gemini-" in file.read_bytes() for pattern in _SOURCES for file in folder.glob(pattern))
    except OSError:
        return False  # The agent's own import will say it better.


def _looked(plan: Plan, entry: PlanEntry, case: EvalCase) -> Looked:
    return Looked(entry.ref.agent, entry.ref.evalset_file, case, entry.config, plan.config_file(entry) or "")


def _is_plain(entry: PlanEntry) -> bool:
    """Whether nobody is asked about the cases of this file, and none has a simulated user or rubrics: then they need
    not be looked at one by one, which would take as long as running some of them."""
    config = entry.config
    if any(asks(item.name, custom=item.name in config.custom_metrics) for item in config.criteria):
        return False
    return not (config.user_simulator_config or entry.entry.document.mentions("cenario", "ubrics"))


def notices(
    cases: Sequence[Looked],
    environment_of: EnvironmentOf,
    options: RunOptions,
    scale: float = 1.0,
    *,
    played: bool = True,
) -> Iterator[Noticed]:
    """The same for cases at hand; the run has `scale` times as many. Not `played`: their transcripts are there."""
    sight = _Sight(cases, environment_of, options, played=played)
    yield from sight.missing()
    yield from sight.missing_functions()
    yield from sight.not_played()
    yield from sight.judges()
    yield from _idle_criteria(cases)
    yield from _stop_signals(cases)
    yield from _untyped_rubrics(cases)
    yield from _spoken_messages(cases if played else ())
    yield from _calls_to_come(sight.calls().times(options.runs), scale, options)


class _Sight:
    """Who can be asked for what. Each agent's judges are looked up once."""

    def __init__(
        self, cases: Sequence[Looked], environment_of: EnvironmentOf, options: RunOptions, *, played: bool
    ) -> None:
        self._cases = cases
        self._played = played
        self._environment_of = environment_of
        self._options = options
        self._known: dict[tuple[str, str], JudgeIdentity | NotAvailableError] = {}
        self._judges: dict[int, JudgeOptions] = {}
        self._obstacles = [self._obstacle(item) for item in cases]

    def missing(self) -> Iterator[Noticed]:
        """Criteria for which nobody can be asked."""
        causes: dict[tuple[str, str], list[tuple[Looked, str]]] = defaultdict(list)
        for item, found in zip(self._cases, self._obstacles, strict=True):
            for criterion in _asking(item) if found is None else ():
                who = self._who(item.agent, criterion)
                if isinstance(who, NotAvailableError):
                    causes[str(who), who.hint].append((item, criterion.name))
        for (cause, hint), affected in causes.items():
            names = _listed(dict.fromkeys(name for _, name in affected))
            yield Noticed("warning", f"{names} will not be evaluated in {_where(affected)}: {cause}", hint)

    def missing_functions(self) -> Iterator[Noticed]:
        """Custom metrics and Python judges that are certainly not where the config says."""
        why_of: dict[tuple[str, str], str] = {}
        causes: dict[str, list[tuple[Looked, str]]] = defaultdict(list)
        for item in self._cases:
            for name, path in self._functions(item):
                if (item.agent, path) not in why_of:
                    place = self._environment_of(item.agent)
                    why_of[item.agent, path] = missing_function(path, Path(place.root), Path(place.folder))
                if why_of[item.agent, path]:
                    causes[why_of[item.agent, path]].append((item, name))
        for why, affected in causes.items():
            names = _listed(dict.fromkeys(name for _, name in affected))
            yield Noticed("warning", f"{names} will be an error in {_where(affected)}: {why}")

    def not_played(self) -> Iterator[Noticed]:
        """Simulated conversations that will not take place."""
        causes: dict[tuple[str, str], list[tuple[Looked, str]]] = defaultdict(list)
        for item, found in zip(self._cases, self._obstacles, strict=True):
            if found is not None:
                causes[found.cause, found.hint].append((item, ""))
        for (cause, hint), affected in causes.items():
            yield Noticed("warning", f"{_where(affected)} with a simulated user will not be played: {cause}", hint)

    def judges(self) -> Iterator[Noticed]:
        """Judges of whom something must be said: rules instead of a model, an address that is not the service's own."""
        used: dict[JudgeIdentity, dict[str, None]] = defaultdict(dict)
        for item, found in zip(self._cases, self._obstacles, strict=True):
            for criterion in _asking(item) if found is None else ():
                who = self._who(item.agent, criterion)
                if isinstance(who, JudgeIdentity):
                    used[who][criterion.name] = None
            player = self._player(item) if found is None else None
            if player is not None:
                used[player]["simulated users"] = None
        for identity, names in used.items():
            if identity.kind == "heuristic":
                yield Noticed("info", f"{_listed(names)}: the judge is {identity.note}")
            if identity.base_url:
                yield Noticed("info", f"{identity.model} is asked at {identity.base_url} ({_listed(names)})")

    def calls(self) -> Span:
        """What will be asked, in one execution of each case."""
        return total(
            self._calls(item) for item, found in zip(self._cases, self._obstacles, strict=True) if found is None
        )

    def _calls(self, item: Looked) -> Span:
        simulator = read_simulator(item.config.user_simulator_config)
        scenario = item.case.scenario is not None
        turns = turns_of_scenario(simulator) if scenario else Span(*[len(item.case.turns or ())] * 2)
        spans = [
            criterion_calls(
                criterion, self._judge(criterion).samples, turns, item.rubrics, all_votes=self._options.all_votes
            )
            for criterion in _asking(item)
            # Rules are no call.
            if isinstance(who := self._who(item.agent, criterion), JudgeIdentity) and who.kind != "heuristic"
        ]
        return total([*spans, simulator_calls(simulator) if scenario and self._played else Span()])

    def _obstacle(self, item: Looked) -> Obstacle | None:
        if item.case.scenario is None or not self._played:
            return None
        return obstacle(item.config, item.case.scenario, self._environment_of(item.agent))

    def _player(self, item: Looked) -> JudgeIdentity | None:
        if item.case.scenario is None or not self._played:
            return None
        simulator = read_simulator(item.config.user_simulator_config)
        try:
            return who_plays(simulator, self._environment_of(item.agent))
        except NotAvailableError:
            return None  # Not needed either, or the case would have an obstacle.

    def _who(self, agent: str, criterion: Criterion) -> JudgeIdentity | NotAvailableError:
        options = self._judge(criterion)
        service = known()[criterion.name].needs_service
        key = agent, "" if service else options.model
        if key not in self._known:
            environment = self._environment_of(agent)
            try:
                self._known[key] = _service(environment.values) if service else who_judges(options, environment)
            except NotAvailableError as error:
                self._known[key] = error
        return self._known[key]

    def _functions(self, item: Looked) -> Iterator[tuple[str, str]]:
        """Criteria that call functions of the user's, and the paths of those."""
        for criterion in item.config.criteria:
            own = item.config.custom_metrics.get(criterion.name)
            if own is not None:
                yield criterion.name, function_path(own)
        for criterion in _asking(item):
            model = "" if known()[criterion.name].needs_service else self._judge(criterion).model
            if model.startswith(FUNCTION):
                yield criterion.name, model.removeprefix(FUNCTION)

    def _judge(self, criterion: Criterion) -> JudgeOptions:
        """Read once: the same criterion stands over many cases."""
        if id(criterion) not in self._judges:
            self._judges[id(criterion)] = options_of(criterion)
        return self._judges[id(criterion)]


def _service(values: Mapping[str, str]) -> JudgeIdentity:
    return JudgeIdentity(SERVICE, "gemini", base_url=shown_or_none(vertex_access(values).base_url))


def _asking(item: Looked) -> Iterator[Criterion]:
    """The criteria that ask a judge or the service about this case."""
    for criterion in item.config.criteria:
        info = known().get(criterion.name)
        if info is None or criterion.name in item.config.custom_metrics or not info.supported:
            continue
        if (info.needs_judge or info.needs_service) and _applies(criterion.name, item):
            yield criterion


def _applies(name: str, item: Looked) -> bool:
    info = known()[name]
    return info.scenarios != ("no" if item.case.scenario is not None else "only")


def _idle_criteria(cases: Sequence[Looked]) -> Iterator[Noticed]:
    """Criteria of a config that have nothing to judge in any of its cases."""
    by_config: dict[str, list[Looked]] = defaultdict(list)
    for item in cases:
        if not defaults_apply(item.config):
            by_config[item.config_file].append(item)
    for file, items in by_config.items():
        for criterion in items[0].config.criteria:
            why = _idle(criterion, items)
            if why:
                yield Noticed("warning", f"{file}: {criterion.name} has nothing to judge: {why}")


def _idle(criterion: Criterion, items: Sequence[Looked]) -> str:
    info = known().get(criterion.name)
    if info is None or criterion.name in items[0].config.custom_metrics:
        return ""
    if not any(_applies(criterion.name, item) for item in items):
        if info.scenarios == "only":
            return "no case here has a simulated user"
        return "all cases here have a simulated user, and so no reference"
    wanted = RUBRIC_TYPES.get(criterion.name)
    if wanted and not criterion.options.get("rubrics"):
        given = (rubric for item in items for rubric in item.rubrics)
        if not any(rubric.get("type") == wanted for rubric in given):
            return f"it has no rubrics, and no case or turn has one of the type {wanted}"
    return ""


def _stop_signals(cases: Iterable[Looked]) -> Iterator[Noticed]:
    found = {
        (item.config_file, signal): None
        for item in cases
        for criterion in item.config.criteria
        if criterion.name == _QUALITY
        and isinstance(signal := criterion.options.get("stop_signal", STOP_SIGNAL), str)
        and signal != STOP_SIGNAL
    }
    for file, signal in found:
        message = f"{file}: simulated users end with {STOP_SIGNAL}, and {_QUALITY} waits for {signal}"
        yield Noticed("warning", message, f"Leave out `stop_signal`: {STOP_SIGNAL} is the only one there is")


def _untyped_rubrics(cases: Iterable[Looked]) -> Iterator[Noticed]:
    by_file: dict[str, dict[str, None]] = defaultdict(dict)
    for item in cases:
        for rubric in item.rubrics:
            if not rubric.get("type"):
                by_file[item.file][str(rubric.get("rubric_id"))] = None
    for file, names in by_file.items():
        are = "has no type" if len(names) == 1 else "have no type"
        message = f"{file}: rubrics of cases and turns need a type, and {_listed(names)} {are}: nothing reads them"
        yield Noticed("warning", message, f'Write "type": one of {", ".join(RUBRIC_TYPES.values())}')


def _spoken_messages(cases: Iterable[Looked]) -> Iterator[Noticed]:
    files = {
        item.config_file: None
        for item in cases
        if item.case.scenario is None and read_simulator(item.config.user_simulator_config).audio
    }
    for file in files:
        yield Noticed("warning", f"{file}: llm_audio is not supported yet: messages are sent as they are written")


def _calls_to_come(once: Span, scale: float, options: RunOptions) -> Iterator[Noticed]:
    low, high = round(once.low * scale), round(once.high * scale)
    if high == 0:
        return
    count = f"{low}" if low == high else f"{low} to {high}"
    kept = ", fewer where answers are kept" if options.use_cache else ""
    message = f"about {count} judge calls are to come{kept}"
    most = options.max_judge_calls
    if most is not None and low > most:
        yield Noticed("warning", f"{message}; --max-judge-calls {most} will cut them short", "Allow more, or run less")
    else:
        yield Noticed("info", message)


def _where(affected: Sequence[tuple[Looked, str]]) -> str:
    count = len({(item.agent, item.file, item.case.eval_id) for item, _ in affected})
    agents = _listed(dict.fromkeys(item.agent for item, _ in affected))
    return f"{count} case{'s' * (count != 1)} of {agents}"


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    if len(every) > _NAMES_SHOWN:
        every = [*every[:_NAMES_SHOWN], f"{len(every) - _NAMES_SHOWN} more"]
    return " and ".join(filter(None, (", ".join(every[:-1]), every[-1]))) if every else ""
