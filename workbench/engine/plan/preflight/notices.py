"""Notices about the cases at hand: who will be asked, how many calls are to come, what will not take place, and what
configs and cases ask for that cannot come."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from workbench.agents.function_source import missing_function
from workbench.engine.plan.judge_calls import (
    CallRange,
    criterion_calls,
    lacks_rubrics,
    simulator_calls,
    total,
    turns_of_scenario,
)
from workbench.engine.plan.preflight.preflight_cases import (
    EnvironmentOf,
    PreflightCase,
    PreflightCases,
    affected_cases,
    applies,
    judged_criteria,
    listed,
)
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.plan.scenario_case import defaults_apply
from workbench.events import Noticed
from workbench.judge.base import JudgeIdentity, NotAvailableError
from workbench.judge.own_kinds import FUNCTION
from workbench.metrics.custom import function_path
from workbench.metrics.registry import known, of_config, rubric_types
from workbench.model.criteria import Criterion
from workbench.simulation.config import read_simulator


def notices(
    cases: Sequence[PreflightCase],
    environment_of: EnvironmentOf,
    options: RunOptions,
    scale: float = 1.0,
    *,
    played: bool = True,
) -> Iterator[Noticed]:
    """The notices for these cases; the run has `scale` times as many. Not `played`: their transcripts are there."""
    checked = PreflightCases(cases, environment_of, played=played)
    yield from not_evaluated(checked)
    yield from missing_functions(checked)
    yield from not_played(checked)
    yield from judges(checked)
    yield from idle_criteria(cases)
    yield from stop_signals(cases)
    yield from untyped_rubrics(cases)
    yield from spoken_messages(cases if played else ())
    yield from calls_to_come(checked, scale, options)


def not_evaluated(checked: PreflightCases) -> Iterator[Noticed]:
    """Criteria for which nobody can be asked."""
    causes: dict[tuple[str, str], list[tuple[PreflightCase, str]]] = defaultdict(list)
    for item in checked.played():
        for criterion in judged_criteria(item):
            who = checked.judge(item.agent, criterion)
            if isinstance(who, NotAvailableError):
                causes[str(who), who.hint].append((item, criterion.name))
    for (cause, hint), affected in causes.items():
        names = listed(dict.fromkeys(name for _, name in affected))
        yield Noticed("warning", f"{names} will not be evaluated in {affected_cases(affected)}: {cause}", hint)


def not_played(checked: PreflightCases) -> Iterator[Noticed]:
    """Simulated conversations that will not take place."""
    causes: dict[tuple[str, str], list[tuple[PreflightCase, str]]] = defaultdict(list)
    for item, found in checked.not_played():
        causes[found.cause, found.hint].append((item, ""))
    for (cause, hint), affected in causes.items():
        yield Noticed("warning", f"{affected_cases(affected)} with a simulated user will not be played: {cause}", hint)


def judges(checked: PreflightCases) -> Iterator[Noticed]:
    """Judges of whom something must be said: rules instead of a model, an address that is not the service's own."""
    used: dict[JudgeIdentity, dict[str, None]] = defaultdict(dict)
    for item in checked.played():
        for criterion in judged_criteria(item):
            who = checked.judge(item.agent, criterion)
            if isinstance(who, JudgeIdentity):
                used[who][criterion.name] = None
        player = checked.player(item)
        if player is not None:
            used[player]["simulated users"] = None
    for identity, names in used.items():
        if identity.by == "rules":
            yield Noticed("info", f"{listed(names)}: the judge is {identity.note}")
        if identity.base_url:
            yield Noticed("info", f"{identity.model} is asked at {identity.base_url} ({listed(names)})")


def missing_functions(checked: PreflightCases) -> Iterator[Noticed]:
    """One for each cause."""
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
        yield Noticed("warning", f"{names} will be an error in {affected_cases(affected)}: {why}")


def _functions(checked: PreflightCases, item: PreflightCase) -> Iterator[tuple[str, str]]:
    """Criteria that call functions of the user's, and the paths of those."""
    for criterion in item.config.criteria:
        own = item.config.custom_metrics.get(criterion.name)
        if own is not None:
            yield criterion.name, function_path(own)
    for criterion in judged_criteria(item):
        model = "" if known()[criterion.name].needs_service else checked.options(criterion).model
        if model.startswith(FUNCTION):
            yield criterion.name, model.removeprefix(FUNCTION)


def calls_to_come(checked: PreflightCases, scale: float, options: RunOptions) -> Iterator[Noticed]:
    """Of a run with `scale` times as many cases as are in checked."""
    every = total(_calls(checked, item, all_votes=options.all_votes) for item in checked.played()).times(options.runs)
    low, high = round(every.low * scale), round(every.high * scale)
    if high == 0:
        return
    count = f"{low}" if low == high else f"{low} to {high}"
    calls = "judge call is" if low == high == 1 else "judge calls are"
    kept = ", fewer where answers are kept" if options.use_cache else ""
    message = f"about {count} {calls} to come{kept}"
    most = options.max_judge_calls
    if most is not None and low > most:
        message = f"{message}; --max-judge-calls {most} will cut them short"
        yield Noticed("warning", message, "Allow more, or run less", forecast=True)
    else:
        yield Noticed("info", message, forecast=True)


def _calls(checked: PreflightCases, item: PreflightCase, *, all_votes: bool) -> CallRange:
    """What will be asked in one execution of the case."""
    simulator = read_simulator(item.config.user_simulator_config)
    scenario = item.case.scenario is not None
    turns = turns_of_scenario(simulator) if scenario else CallRange(*[len(item.case.turns or ())] * 2)
    spans = [
        criterion_calls(criterion, checked.options(criterion).samples, turns, item.rubrics, all_votes=all_votes)
        for criterion in judged_criteria(item)
        # Rules are no call.
        if isinstance(who := checked.judge(item.agent, criterion), JudgeIdentity) and who.by != "rules"
    ]
    return total([*spans, simulator_calls(simulator) if checked.simulated(item) else CallRange()])


def idle_criteria(cases: Sequence[PreflightCase]) -> Iterator[Noticed]:
    """Criteria of a config that have nothing to judge in any of its cases."""
    by_config: dict[str, list[PreflightCase]] = defaultdict(list)
    for item in cases:
        if not defaults_apply(item.config):
            by_config[item.config_file].append(item)
    for file, items in by_config.items():
        for criterion in items[0].config.criteria:
            why = _idle(criterion, items)
            if why:
                yield Noticed("warning", f"{file}: {criterion.name} has nothing to judge: {why}")


def _idle(criterion: Criterion, items: Sequence[PreflightCase]) -> str:
    info = known().get(criterion.name)
    if info is None or criterion.name in items[0].config.custom_metrics:
        return ""
    if not any(applies(criterion.name, item) for item in items):
        if info.scenarios == "only":
            return "no case here has a simulated user"
        return "all cases here have a simulated user, and so no reference"
    if lacks_rubrics(criterion, [rubric for item in items for rubric in item.rubrics]):
        return f"it has no rubrics, and no case or turn has one of the type {info.rubric_type}"
    return ""


def stop_signals(cases: Iterable[PreflightCase]) -> Iterator[Noticed]:
    """Configs that wait for a signal with which no simulated user ends."""
    found = {
        (item.config_file, criterion.name, *useless): None
        for item in cases
        for criterion, info in of_config(item.config)
        for useless in info.useless(criterion.options)
    }
    for file, name, option, value, only in found:
        message = f"{file}: simulated users end with {only}, and {name} waits for {value}"
        yield Noticed("warning", message, f"Leave out `{option}`: {only} is the only one there is")


def untyped_rubrics(cases: Iterable[PreflightCase]) -> Iterator[Noticed]:
    """Rubrics of cases and turns that no criterion reads."""
    by_file: dict[str, dict[str, None]] = defaultdict(dict)
    for item in cases:
        for rubric in item.rubrics:
            if not rubric.get("type"):
                by_file[item.file][str(rubric.get("rubric_id"))] = None
    for file, names in by_file.items():
        are = "has no type" if len(names) == 1 else "have no type"
        message = f"{file}: rubrics of cases and turns need a type, and {listed(names)} {are}: nothing reads them"
        yield Noticed("warning", message, f'Write "type": one of {", ".join(rubric_types().values())}')


def spoken_messages(cases: Iterable[PreflightCase]) -> Iterator[Noticed]:
    """Configs whose messages were to be spoken."""
    files = {
        item.config_file: None
        for item in cases
        if item.case.scenario is None and read_simulator(item.config.user_simulator_config).audio
    }
    for file in files:
        yield Noticed("warning", f"{file}: llm_audio is not supported yet: messages are sent as they are written")
