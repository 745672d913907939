"""Rules for a criteria config whose JSON is valid: ADK's rules, and where the workbench is stricter.

ADK accepts a threshold of NaN or infinity (no score ever reaches it) and silently ignores a misspelt `criterias`. Here
both are errors, reported before anything runs.
"""

import math
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

from pydantic.alias_generators import to_camel

from workbench.files.breaches import Breach, below, nearest, nearest_hint
from workbench.files.case_rules import dropped, dropped_keys, mistyped
from workbench.files.criteria_schema import (
    SIMULATORS,
    BaseCriterion,
    CustomMetric,
    EvalConfig,
    LiveModel,
)
from workbench.files.schema_messages import breaches_of, describe
from workbench.files.spelling import get
from workbench.files.template_names import TEMPLATE_NAMES, TemplateFaultError, instruction_faults, names_in
from workbench.text.json_values import mapping

NO_CRITERIA = "no `criteria`: the defaults apply here, but ADK would judge nothing"
_CONFIG_KEYS = frozenset(EvalConfig.__annotations__)


def config_breaches(content: Any) -> list[Breach]:
    """Return everything that is wrong or suspicious in a config's content."""
    if not isinstance(content, dict):
        return [Breach((), f"a config must be an object with `criteria`, not {describe(content)}")]
    found = list(_key_breaches(content))
    found += breaches_of(EvalConfig, content)
    criteria = content.get("criteria")
    if isinstance(criteria, dict):
        for name, value in criteria.items():
            found += below(("criteria", name), criterion_breaches(name, value))
    simulator = get(content, "user_simulator_config")
    if isinstance(simulator, dict):
        found += below(("user_simulator_config",), _simulator_breaches(simulator))
    found += _dropped_inside(content)
    return found


def criterion_breaches(name: str, value: Any) -> Iterator[Breach]:
    """Yield what is wrong or suspicious in the value of one criterion."""
    if not isinstance(value, dict):
        yield from _threshold_breaches(value, f"`{name}`")
        return
    for breach in breaches_of(BaseCriterion, value):
        if breach.location != ("threshold",):
            yield breach
    if "threshold" in value:
        yield from below(("threshold",), _threshold_breaches(value["threshold"], "`threshold`"))


def number_of(value: Any) -> float | None:
    """Return the threshold as ADK reads it, or None if ADK rejects the value.

    ADK accepts numbers, text that spells a number, true and false.
    """
    if isinstance(value, (bool, int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if isinstance(value, str) and value.isascii():
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _threshold_breaches(value: Any, what: str) -> Iterator[Breach]:
    number = number_of(value)
    if number is None:
        wanted = "a number" if what == "`threshold`" else "a number, or an object with `threshold`"
        yield Breach((), f"{what} must be {wanted}, not {describe(value)}", _number_hint(value))
    elif not math.isfinite(number):
        yield Breach((), f"{what} is {number}: no score can be compared with it", "Write a finite number")
    elif not isinstance(value, (int, float)) or isinstance(value, bool):
        message = f"{what} is {describe(value)}: ADK reads it as the number {number:g}"
        yield Breach((), message, f"Write {number:g}", "warning")


def _number_hint(value: Any) -> str:
    if value is None:
        return "To leave out a criterion, delete its line"
    if isinstance(value, str) and value.rstrip().endswith("%"):
        return "Write 0.8 for 80%"
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]+,[0-9]+\s*", value):
        return "Use a decimal point, not a comma"
    return ""


def _key_breaches(content: dict[str, Any]) -> Iterator[Breach]:
    for key in content:
        if key in _spellings(_CONFIG_KEYS):
            continue
        if hint := nearest_hint(key, _CONFIG_KEYS):
            yield Breach((key,), f"unknown key `{key}`: ADK would ignore it", hint, on_key=True)
        else:
            yield dropped((key,), _CONFIG_KEYS)
    if "criteria" not in content and not any(nearest(key, {"criteria"}) for key in content):
        yield Breach((), NO_CRITERIA, 'Write "criteria": {} to judge nothing', "warning")
    elif content.get("criteria") == {}:
        yield Breach(("criteria",), "there are no criteria, so nothing is judged", "", "warning", on_key=True)


def _simulator_breaches(simulator: dict[str, Any]) -> Iterator[Breach]:
    kind = simulator.get("type") or "llm_backed"
    schema = SIMULATORS.get(kind) if isinstance(kind, str) else None
    if schema is None or (simulator.get("type") is not None and kind != simulator["type"]):
        known = ", ".join(SIMULATORS)
        yield Breach(
            ("type",), f"`type` is {describe(simulator['type'])}, which is not a known simulator", f"Known: {known}"
        )
        return
    yield from breaches_of(schema, {key: item for key, item in simulator.items() if key != "type" or item is not None})
    instructions = get(simulator, "custom_instructions")
    if isinstance(instructions, str):
        yield from below(("custom_instructions",), _template_breaches(instructions))
    for key in simulator.keys() - _spellings(schema.model_fields):
        yield from mistyped(key, schema.model_fields)


def _template_breaches(instructions: str) -> Iterator[Breach]:
    """Yield the faults that ADK finds in instructions.

    A scenario with a persona needs `persona` as well; that is checked with the case.
    """
    yield from (Breach((), fault) for fault in instruction_faults(instructions))
    with suppress(TemplateFaultError):
        for name in sorted(names_in(instructions) - {*TEMPLATE_NAMES, "persona"}):
            hint = nearest_hint(name, [*TEMPLATE_NAMES, "persona"])
            yield Breach((), f"the instructions use `{name}`, which is always empty", hint, "warning")


def _dropped_inside(content: dict[str, Any]) -> Iterator[Breach]:
    """Yield a warning for each key that ADK drops at deeper levels of a config."""
    for name, metric in mapping(get(content, "custom_metrics")).items():
        yield from below(("custom_metrics", name), dropped_keys(CustomMetric, metric))
    yield from below(("live_model_config",), dropped_keys(LiveModel, get(content, "live_model_config")))


def _spellings(known: Collection[str]) -> set[str]:
    return {*known, *map(to_camel, known)}
