"""Registry of all criteria: their descriptions, checks of a config that uses them, scoring, and the causes of failures.

A criterion is an entry point that names its description. A description is loaded on first use, the scoring function
when a case is scored. The description also names the function that turns a failed result into its cause.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

from workbench.criteria.base import Bench, Scored, ScoreRequest, unscored_result
from workbench.criteria.description import (
    INTERMEDIATE,
    JUDGE,
    CriterionDescription,
    Effect,
    IntermediateOptions,
    combined_breach,
    option_breaches,
)
from workbench.events.events import MetricResult, MetricStatus
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.faults import Fault, Location, below, json_path, nearest, nearest_hint, snake
from workbench.files.invocation import leaves_out
from workbench.files.metrics_config import own_entry
from workbench.files.plugins import OWN, BrokenExtensionError, ExtensionPoint, resolve
from workbench.judges.base import NotAvailableError
from workbench.store.reasons import LAYERS, UNKNOWN, Cause, Layer, error_text, is_without_model, judged_by, make_cause

CRITERIA: Final = ExtensionPoint("criteria", CriterionDescription)


def descriptions() -> Mapping[str, CriterionDescription]:
    """Return all descriptions by name: our criteria in the order of `OWN`, then those of other packages."""
    return CRITERIA


def effect_of(criterion: str, option: str) -> Effect:
    """Return what a change of `threshold` or an option of a criterion requires."""
    info = descriptions().get(criterion)
    return info.effect_of(option) if info is not None else "decide" if option == "threshold" else "score"


def rubric_types() -> Mapping[str, str]:
    """Return the rubric type of each criterion that reads rubrics, by criterion name."""
    return {name: info.rubric_type for name, info in descriptions().items() if info.rubric_type}


def described_criteria(config: CriteriaConfig) -> Iterator[tuple[Criterion, CriterionDescription]]:
    """Yield the known criteria of a config with their descriptions. Custom metrics are skipped."""
    for criterion in config.criteria:
        info = descriptions().get(criterion.name)
        if info is not None and criterion.name not in config.custom_metrics:
            yield criterion, info


def with_informational(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return the criteria of a config, followed by the figures that every run measures."""
    names = {criterion.name for criterion in criteria}
    return (*criteria, *(always for always in _informational() if always.name not in names))


@cache
def _informational() -> tuple[Criterion, ...]:
    return tuple(Criterion(info.name, 0.0, None, {}) for info in descriptions().values() if info.informational)


def needs_bench(name: str, *, custom: bool = False) -> bool:
    """Return whether a criterion needs a `Bench`: for a judge, a service, or the user's own function (`custom`)."""
    info = CRITERIA.get(name)
    return custom or (info is not None and info.supported and (info.needs_judge or info.needs_service))


def score(request: ScoreRequest) -> Scored:
    """Judge one case by one criterion that needs no `Bench`.

    A case that cannot be judged gets a result too: `not_evaluated` if this version lacks the criterion,
    `not_applicable` if the case has nothing to judge.

    Raises:
        NotScorableError: The request cannot be scored, for example because the conversations differ in length.
        ValueError: The criterion needs a `Bench`.
    """
    unscored = _unscored(request)
    if unscored is not None:
        return unscored
    name = request.criterion.name
    if needs_bench(name, custom=request.custom):
        raise ValueError(f"{name} needs a bench: score it with score_with_bench")
    return _checked(name, resolve(CRITERIA[name].score)(request))


async def score_with_bench(request: ScoreRequest, bench: Bench) -> Scored:
    """Judge one case by any criterion. `bench` provides judges, services and functions.

    If the judge, service or function that the criterion needs is not available, the result is `not_evaluated`, and its
    reason says why.

    Raises:
        NotScorableError: The request cannot be scored, for example because the conversations differ in length.
    """
    criterion = request.criterion
    if not needs_bench(criterion.name, custom=request.custom):
        return score(request)
    unscored = _unscored(request)
    if unscored is not None:
        return unscored
    try:
        if request.custom:
            is_own = bool(own_entry(request.custom_config))
            module = "workbench.criteria.judged.agents_cli" if is_own else "workbench.criteria.custom"
            scored: Scored = await resolve(f"{module}:score")(request, bench)
            return scored
        return _checked(criterion.name, await resolve(CRITERIA[criterion.name].score)(request, bench))
    except NotAvailableError as error:
        reason = f"{error}: {error.hint}" if error.hint else str(error)
        return Scored(unscored_result(criterion, "not_evaluated", reason))


def _checked(name: str, scored: Any) -> Scored:
    """Return a score unchanged if it is a `Scored` of this criterion. Functions of other packages may return anything.

    An unknown status would count as neither failed nor passed.
    """
    if not isinstance(scored, Scored):
        raise TypeError(f"the score of {name} has the type {type(scored).__name__}, not Scored")
    for result in (scored.result, *scored.turns):
        if result.status not in get_args(MetricStatus) or result.name != name:
            raise ValueError(f"the score of {name} has a result named {result.name} with the status {result.status}")
    return scored


def _unscored(request: ScoreRequest) -> Scored | None:
    """Return the result of a case that needs no scoring, or None for other cases."""
    criterion = request.criterion
    if request.custom:
        return None
    info = CRITERIA.get(criterion.name)
    if info is None or not info.supported:
        why = "is not a criterion" if info is None else "is not supported yet"
        return Scored(unscored_result(criterion, "not_evaluated", f"{criterion.name} {why}"))
    reason = "" if info.informational else _nothing_to_judge(info, request)
    return Scored(unscored_result(criterion, "not_applicable", reason)) if reason else None


def _nothing_to_judge(info: CriterionDescription, request: ScoreRequest) -> str:
    if info.needs_reference and request.expected is None:
        return "the user is simulated, so there is no reference to compare with"
    if info.compares_answers and _leaves_out("final_response", request):
        return "the dataset's case has no `reference` to compare with"
    if info.compares_calls and _leaves_out("intermediate_data", request):
        return "the dataset's case has no `agent_workbench.tool_uses` to compare with"
    if info.scenarios == "only" and request.scenario is None:
        return "only for cases with a simulated user"
    if not request.actual and (not request.expected or not info.needs_reference):
        return "the conversation has no turns"
    return ""


def _leaves_out(key: str, request: ScoreRequest) -> bool:
    return bool(request.expected) and all(leaves_out(turn, key) for turn in request.expected or ())


def check_criteria(config: CriteriaConfig) -> tuple[Fault, ...]:
    """Return the faults of the criteria's names, thresholds and options.

    Errors are problems that ADK notices only after the agent has run, if at all: unknown names, refused values,
    misspelt keys. Warnings are settings that are valid but odd, such as keys that ADK drops or a threshold that no
    score reaches. Notes say what `adk eval` ignores.
    """
    return tuple(fault for criterion in config.criteria for fault in _check_criterion(config, criterion))


def _check_criterion(config: CriteriaConfig, criterion: Criterion) -> Iterator[Fault]:
    name = criterion.name
    location = ("criteria", name)
    info = CRITERIA.get(name)
    if name in config.custom_metrics:
        if info is not None:
            message = f"the custom metric `{name}` replaces ADK's criterion of the same name"
            yield _fault(config, location, message, severity="warning")
        yield from _check_interval(config, criterion)
        return
    if info is None:
        yield _unknown(config, name)
    elif info.informational:
        message = f"`{name}` is measured in every run and never decides a verdict; ADK refuses it as a criterion"
        hint = f"Use `limits` with `{info.limit}`" if info.limit else "Remove it from the criteria"
        yield _fault(config, location, message, hint)
    else:
        low, high = info.lowest, info.highest
        # Every score reaches such a threshold, or none can.
        if not low <= criterion.threshold <= high:
            always = "every score passes" if criterion.threshold < low else "no score reaches it"
            message = f"the threshold is {criterion.threshold:g}, but scores run from {low:g} to {high:g}: {always}"
            yield _fault(config, location, message, severity="warning")
        found = [
            fault
            for key, value in criterion.options.items()
            for fault in _check_option(config, criterion, info, key, value)
        ]
        yield from found
        if all(fault.severity != "error" for fault in found) and (message := combined_breach(info.options, criterion)):
            yield _fault(config, location, message)
        if info.only_here:
            yield _fault(config, location, f"`adk eval` does not know `{name}` and skips it", severity="note")
        for key in info.adk_ignores & criterion.options.keys():
            message = f"ADK ignores `{key}` of `{name}`, so `adk eval` may score differently"
            yield _fault(config, (*location, key), message, severity="note")


def _unknown(config: CriteriaConfig, name: str) -> Fault:
    """Return the fault of an unknown name, or of a criterion whose package cannot be used."""
    try:
        CRITERIA.load(name)
    except BrokenExtensionError as error:
        return _fault(config, ("criteria", name), f"`{name}` cannot be used: {error}", "Update its package")
    except KeyError:
        pass
    hint = nearest_hint(name, [*CRITERIA, *config.custom_metrics], "docs/criteria.md lists all criteria")
    return _fault(config, ("criteria", name), f"`{name}` is not a criterion", hint)


def _check_interval(config: CriteriaConfig, criterion: Criterion) -> Iterator[Fault]:
    """Yield a warning if the declared interval is empty or excludes the threshold."""
    from workbench.criteria.custom import declared_interval  # Loads asyncio, which only custom metrics need here.

    name = criterion.name
    entry = config.custom_metrics[name]
    interval = declared_interval(entry) if isinstance(entry, dict) else None
    if interval is not None and interval.is_empty:
        message = f"the interval {interval} of `{name}` is empty: every score will be an error"
        yield _fault(config, ("custom_metrics", name), message, "Swap its ends", severity="warning")
    elif interval is not None and criterion.threshold not in interval:
        message = f"the threshold {criterion.threshold:g} of `{name}` is outside its declared interval {interval}"
        yield _fault(config, ("criteria", name), message, severity="warning")


def _check_option(
    config: CriteriaConfig, criterion: Criterion, info: CriterionDescription, key: str, value: Any
) -> Iterator[Fault]:
    name, location = info.name, ("criteria", info.name, key)
    if key in info.option_names:
        for breach in below(location, option_breaches(info.options, key, value)):
            yield _fault(config, breach.location, breach.message, breach.hint, breach.severity)
        if key == JUDGE and info.asks is not None and not info.asks.votes and "num_samples" in map(snake, _keys(value)):
            message = "`num_samples` has no effect here: as in ADK, each text is judged once"
            yield _fault(config, (*location, "num_samples"), message, "Remove it", severity="warning")
    elif key == INTERMEDIATE:
        refused = option_breaches(IntermediateOptions, key, value)
        message = refused[0].message if refused else f"`{key}` has no effect on `{name}`"
        yield _fault(config, location, message, severity="error" if refused else "warning")
    else:
        written = next((each for each in _keys(criterion.value) if snake(each) == key), key)
        closest = nearest(key, ["threshold", INTERMEDIATE, *info.option_names])
        message, hint = f"`{name}` has no option `{written}`", f"Did you mean `{closest}`?"
        if closest:
            yield _fault(config, (*location[:2], written), message, hint)
        else:
            yield _fault(config, (*location[:2], written), f"{message}: ADK ignores it", severity="warning")


def _keys(value: Any) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def _fault(
    config: CriteriaConfig,
    location: Location,
    message: str,
    hint: str = "",
    severity: Literal["error", "warning", "note"] = "error",
) -> Fault:
    file, place = config.path or Path("criteria"), config.place(location)
    return Fault(file, *place, json_path(location), message, hint, severity)


_ORDER = {name: place for place, name in enumerate(OWN["criteria"])}
_GENERAL: dict[Layer, str] = {"calls": "tool calls differ", "answer": "answer differs"}


def case_cause(
    status: str, error_message: str | None, scored: Iterable[tuple[MetricResult, Sequence[MetricResult]]]
) -> Cause | None:
    """Return why a case fails, from the results of its criteria and of their turns, or None if it does not fail."""
    found = ((result.name, criterion_cause(result, turns)) for result, turns in scored)
    return first_cause(status, error_message, ((name, cause) for name, cause in found if cause is not None))


def first_cause(status: str, error_message: str | None, causes: Iterable[tuple[str, Cause]]) -> Cause | None:
    """Return why a case with this status fails, or None if the status is neither `failed` nor `error`.

    `error_message` is None for a case without an error of its own. `causes` are the names of its criteria with the
    results of `criterion_cause`, in any order.
    """
    causes = [item for item in causes if status != "failed" or item[1].layer != "error"]
    if status == "error" and error_message is not None:
        # The error of a criterion begins with its name, of which `error_text` would replace parts.
        own = (cause for name, cause in causes if error_message.startswith(f"{name}: ") and cause.layer == "error")
        return next(own, None) or make_cause("error", error_text(error_message) or "error without a message")
    if status not in ("failed", "error") or not causes:
        return UNKNOWN if status in ("failed", "error") else None
    # Judges answer in any order, so the order of a layer's criteria is that of their documentation, then by name.
    first = min(causes, key=lambda item: (LAYERS.index(item[1].layer), _ORDER.get(item[0], len(_ORDER)), item[0]))
    return first[1]


def criterion_cause(result: MetricResult, turns: Sequence[MetricResult] = ()) -> Cause | None:
    """Return the cause that a criterion gives for a failing case, or None if it neither failed nor is an error."""
    if result.status == "error":
        return make_cause("error", f"{result.name}: {error_text(result.reason) or 'error without a message'}")
    if result.status != "failed":
        return None
    # The user's own function may replace a criterion of the same name. It compares no threshold.
    info = None if "adk_status" in result.details else descriptions().get(result.name)
    layer = _layer(info)
    general = f"{result.name} {'failed' if info is None else 'below its threshold'}"
    text = _own_text(info, result, turns) or _GENERAL.get(layer, general)
    by_function = any(is_without_model(judged_by(one.details)) for one in (result, *turns))
    return make_cause(layer, text, by_function=by_function)


def _layer(info: CriterionDescription | None) -> Layer:
    if info is None:
        return "other"
    if info.asks is not None:
        return "judged"
    return "calls" if info.compares_calls else "answer" if info.compares_answers else "other"


def _own_text(info: CriterionDescription | None, result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return the cause from the criterion's own function, or "" if it has no function or the function has no cause."""
    if info is None or not info.cause:
        return ""
    try:
        text = resolve(info.cause)(result, turns)
    except Exception:  # Stored details may have any form, and a plugin may do anything.
        return ""
    return text if isinstance(text, str) else ""
