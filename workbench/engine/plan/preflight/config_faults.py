"""What configs and cases ask for that cannot come: nothing to judge, a signal that nobody sends, rubrics that nothing
reads, messages that are not spoken."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from workbench.engine.plan.judge_calls import lacks_rubrics
from workbench.engine.plan.preflight.sight import Looked, applies, listed
from workbench.engine.plan.scenario_case import defaults_apply
from workbench.events import Noticed
from workbench.metrics.registry import known, of_config, rubric_types
from workbench.model.criteria import Criterion
from workbench.simulation.config import read_simulator


def idle_criteria(cases: Sequence[Looked]) -> Iterator[Noticed]:
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
    if not any(applies(criterion.name, item) for item in items):
        if info.scenarios == "only":
            return "no case here has a simulated user"
        return "all cases here have a simulated user, and so no reference"
    if lacks_rubrics(criterion, [rubric for item in items for rubric in item.rubrics]):
        return f"it has no rubrics, and no case or turn has one of the type {info.rubric_type}"
    return ""


def stop_signals(cases: Iterable[Looked]) -> Iterator[Noticed]:
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


def untyped_rubrics(cases: Iterable[Looked]) -> Iterator[Noticed]:
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


def spoken_messages(cases: Iterable[Looked]) -> Iterator[Noticed]:
    """Configs whose messages were to be spoken."""
    files = {
        item.config_file: None
        for item in cases
        if item.case.scenario is None and read_simulator(item.config.user_simulator_config).audio
    }
    for file in files:
        yield Noticed("warning", f"{file}: llm_audio is not supported yet: messages are sent as they are written")
