"""Problems of a criteria config, given the cases and agents that it applies to, and of rubrics anywhere."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.python_source import fails_in_adk, missing_evaluate, missing_function
from workbench.criteria.custom import function_path
from workbench.criteria.description import JUDGE, RUBRICS
from workbench.criteria.registry import described_criteria, rubric_types
from workbench.editing.check.problem import Rule
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.evalset import EvalCase
from workbench.files.faults import Breach, Location
from workbench.files.metrics_config import own_entry
from workbench.files.spelling import get, key_for
from workbench.judges.base import JudgeEnvironment, NotAvailableError
from workbench.judges.kinds import identify_judge, is_own, kind_of, suggested_name
from workbench.judges.model_options import read_judge_options
from workbench.judges.retiring import retires, successor_hint
from workbench.judges.vertex import vertex_access
from workbench.run.plan.blocking import lacks_rubrics
from workbench.run.plan.preflight_cases import models_by_user
from workbench.text.json_values import string

Found = Iterator[tuple[Rule, Breach]]


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """Summary of the cases under a config: counts with and without a simulated user, and rubric types."""

    scenarios: int = 0
    conversations: int = 0
    rubric_types: frozenset[str] = frozenset()

    def plus(self, other: "CaseCounts") -> "CaseCounts":
        """Return the sum of both."""
        return CaseCounts(
            self.scenarios + other.scenarios,
            self.conversations + other.conversations,
            self.rubric_types | other.rubric_types,
        )


def count_case(case: EvalCase) -> CaseCounts:
    """Return the summary of one case."""
    own = (turn.get("rubrics") or () for turn in case.turns or ())
    rubrics = [*case.rubrics, *(rubric for some in own for rubric in some)]
    types = frozenset(str(rubric["type"]) for rubric in rubrics if rubric.get("type"))
    return CaseCounts(int(case.turns is None), int(case.turns is not None), types)


def criteria_problems(config: CriteriaConfig) -> Found:
    """Yield the problems that do not depend on cases. Locations are in the config file."""
    for criterion, info in described_criteria(config):
        place: Location = ("criteria", criterion.name)
        yield from empty_rubrics(placed_rubrics((*place, RUBRICS), criterion.options.get(RUBRICS)))
        yield from _misspelt_judge(place, criterion)
        if criterion.threshold > info.highest and not info.informational:
            message = f"the threshold {criterion.threshold:g} is above the highest score {info.highest:g}"
            hint = f"Scores go from {info.range}: choose a threshold in this range"
            yield "never-passes", Breach(place, message, hint, "warning")
        for option, value, only in info.useless_options(criterion.options):
            message = f"the simulated user ends with `{only}`, but this criterion waits for `{value}`"
            yield "stop-signal", Breach((*place, option), message, f"Remove `{option}`", "warning")


def _misspelt_judge(place: Location, criterion: Criterion) -> Found:
    options = criterion.options.get(JUDGE)
    model = get(options, "judge_model")
    better = suggested_name(model) if isinstance(model, str) and not _of_a_plugin(model) else None
    if better is not None:
        message = f"the judge model `{model}` looks misspelled"
        found = (*place, JUDGE, key_for(options, "judge_model", camel=False))
        yield "judge", Breach(found, message, f"Did you mean `{better}`?", "warning")


def _of_a_plugin(model: str) -> bool:
    """Return whether a judge from another package has that name, so that its models are unknown here."""
    try:
        return not is_own(kind_of(model))
    except NotAvailableError:
        return False


def use_problems(config: CriteriaConfig, counts: CaseCounts) -> Found:
    """Yield criteria that do not apply to any case."""
    for criterion, info in described_criteria(config):
        if counts.scenarios and not counts.conversations and (info.needs_reference or info.scenarios == "no"):
            why = "all cases here have a simulated user, so there is no reference to compare with"
            hint = "Remove it, or move its cases to another folder"
        elif counts.conversations and not counts.scenarios and info.scenarios == "only":
            why, hint = "no case here has a simulated user", "Remove it, or add a case with a scenario"
        elif _without_rubrics(criterion, counts):
            kind = info.rubric_type
            why = f"neither it nor any case or turn has a rubric of the type {kind}"
            hint = f'Add `rubrics` to it, or set "type": "{kind}" in the rubrics of the cases'
        else:
            continue
        message = f"`{criterion.name}` does not apply: {why}"
        yield "cannot-apply", Breach(("criteria", criterion.name), message, hint, "warning")


def function_problems(config: CriteriaConfig, root: Path, folder: Path) -> Found:
    """Yield custom metrics whose function does not exist for the agent in `folder`, or that `adk eval` cannot use."""
    for criterion in config.criteria:
        own = config.custom_metrics.get(criterion.name)
        if of_agents_cli := own_entry(own):
            if of_agents_cli["kind"] == "function" and (why := missing_evaluate(of_agents_cli, root)):
                yield "function", Breach(("custom_metrics", criterion.name), f"`{criterion.name}`: {why}")
        elif own is not None and (why := missing_function(function_path(own), root, folder)):
            message = f"`{criterion.name}` cannot be computed: {why}"
            hint = "`code_config` needs package.module.function, importable from the agent's folder or above"
            yield "function", Breach(("custom_metrics", criterion.name), message, hint)
        elif own is not None and (how := fails_in_adk(function_path(own), root, folder)):
            message = f"`{criterion.name}` does not work under `adk eval`: {how}"
            yield "function", Breach(("custom_metrics", criterion.name), message, "", "note")


def judge_problems(config: CriteriaConfig, environment: JudgeEnvironment) -> Found:
    """Yield criteria that would not be evaluated because no judge is available."""
    for criterion in config.criteria:
        own = own_entry(config.custom_metrics.get(criterion.name))
        if own.get("kind") == "service" and config.broken and not own["metric"]:
            continue  # Its definition may be what is broken.
        if own.get("kind") == "service":
            reason = _service_obstacle(environment) if own["metric"] else NotAvailableError("only Google's service can")
        else:
            reason = _obstacle(own["judge_model_options"], environment) if own.get("kind") == "template" else None
        if reason is not None:
            nearest = f"the nearest criterion here is {own['nearest']}" if own.get("nearest") else ""
            hint = "; ".join(filter(None, (reason.hint, nearest)))
            message = f"`{criterion.name}` would not be evaluated: {reason}"
            yield "judge", Breach(("criteria", criterion.name), message, hint, "warning")
    for criterion, info in described_criteria(config):
        if not info.supported:
            continue
        if info.needs_service:
            reason = _service_obstacle(environment)
        else:
            given = criterion.options.get(JUDGE) or {}
            reason = _obstacle(given, environment) if info.needs_judge else None
        if reason is not None:
            message = f"`{criterion.name}` would not be evaluated: {reason}"
            yield "judge", Breach(("criteria", criterion.name), message, reason.hint, "warning")


def retiring_models(config: CriteriaConfig, counts: CaseCounts) -> Found:
    """Yield judges and simulated users whose model has an announced end, also the defaults."""
    for place, who, model in models_by_user(config, scenarios=bool(counts.scenarios)):
        if message := retires(who, model):
            yield "retires", Breach(place, message, successor_hint(model), "warning")


def _obstacle(options: Mapping[str, Any], environment: JudgeEnvironment) -> NotAvailableError | None:
    try:
        identify_judge(read_judge_options(options), environment)
    except NotAvailableError as error:
        return error
    except ValueError:
        return None  # Wrong options are reported as a fault of the config.
    return None


def _service_obstacle(environment: JudgeEnvironment) -> NotAvailableError | None:
    try:
        vertex_access(environment.values)
    except NotAvailableError as error:
        return error
    return None


def _without_rubrics(criterion: Criterion, counts: CaseCounts) -> bool:
    some = counts.scenarios or counts.conversations
    return bool(some) and lacks_rubrics(criterion, [{"type": each} for each in counts.rubric_types])


Placed = list[tuple[Location, Mapping[str, object]]]


def rubric_problems(case: EvalCase, names: set[str]) -> Found:
    """Yield the problems of a case's rubrics under criteria with these names. Locations are inside the case."""
    case_rubrics = placed_rubrics(("rubrics",), case.rubrics)
    turn_rubrics = [
        placed_rubrics(("conversation", number, "rubrics"), turn.get("rubrics") or ())
        for number, turn in enumerate(case.turns or ())
    ]
    for rubrics in (case_rubrics, *turn_rubrics):
        yield from _types(rubrics, names)
        yield from empty_rubrics(rubrics)
    # ADK appends a turn's rubrics to those of the case. Two turns may use the same ID.
    yield from _twice(case_rubrics, {})
    first = {str(rubric.get("rubric_id")): "the case" for _, rubric in case_rubrics}
    for rubrics in turn_rubrics:
        yield from _twice(rubrics, first)


def empty_rubrics(rubrics: Placed) -> Found:
    """Yield rubrics without text. Keys may be snake_case or camelCase."""
    for place, rubric in rubrics:
        if not string(get(get(rubric, "rubric_content"), "text_property")).strip():
            message = f"the rubric `{get(rubric, 'rubric_id')}` has no text, so there is nothing to judge"
            hint = "Write the requirement into rubric_content.text_property"
            yield "empty-rubric", Breach(place, message, hint, "warning")


def placed_rubrics(above: Location, rubrics: object) -> Placed:
    """Return the rubrics in a list, each with its location."""
    every = rubrics if isinstance(rubrics, list | tuple) else ()
    return [((*above, number), rubric) for number, rubric in enumerate(every) if isinstance(rubric, dict)]


def _types(rubrics: Placed, names: set[str]) -> Found:
    types = rubric_types()
    every = list(types.values())
    wanted = {name: kind for name, kind in types.items() if name in names}
    for place, rubric in rubrics:
        kind = rubric.get("type")
        if kind in wanted.values() or not (wanted or kind not in every):
            continue
        given = f"has the type `{kind}`" if kind else "has no type"
        if kind in every:
            message = f"this rubric {given}, which no criterion here uses"
            hint = f"The criteria here use {' and '.join(sorted(wanted.values()))}"
        else:
            message = f"this rubric {given}: ADK ignores it"
            hint = f"The types are {', '.join(every)}"
        yield "untyped-rubric", Breach(place, message, hint, "warning")


def _twice(rubrics: Placed, first: Mapping[str, str]) -> Found:
    seen = dict(first)
    for place, rubric in rubrics:
        name = str(rubric.get("rubric_id"))
        if name in seen:
            message = f"the rubric_id `{name}` is already used in {seen[name]}: ADK ends the whole run with an error"
            yield "same-rubric", Breach((*place, "rubric_id"), message, "Use another rubric_id", "warning")
        seen.setdefault(name, "this list")
