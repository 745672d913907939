"""Rules that accept what an agent did differently, as an alternative to a new expected value.

A rule belongs into the criteria config that governs the case, as `args_match` of the criterion for tool calls.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from workbench.criteria.base import NotScorableError
from workbench.criteria.call_rows import CallRules
from workbench.criteria.description import read_options
from workbench.criteria.json_difference import ABSENT, phrase, shown, type_name
from workbench.criteria.trajectory import DESCRIPTION, TrajectoryOptions
from workbench.criteria.value_rules import Difference, Rules, ValueRule, compare, described
from workbench.editing.accept_turn import Hunk
from workbench.editing.config_file import ConfigDraft
from workbench.editing.criteria_change import Content, with_value
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.spelling import is_camel, key_for
from workbench.text.json_values import mapping, value_at

CRITERION = DESCRIPTION.name
_SHARES = (0.01, 0.05, 0.1, 0.5)
"""Relative distances, of which the smallest that accepts the value is offered."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A rule that accepts a difference. `path` is the dotted path of a value in the arguments of `tool`."""

    tool: str
    path: str
    rule: ValueRule
    expected: Any

    @property
    def text(self) -> str:
        """The accepted forms, as safe text."""
        if self.rule.kind == "contains":
            return "what is expected, or more"
        return self.rule.phrase(self.expected, phrase(type_name(self.expected), shown(self.expected)))


def obstacle(config: CriteriaConfig) -> str:
    """Return why rules for arguments have no effect with this config, or ""."""
    criterion = _criterion(config.criteria)
    if criterion is None:
        return f"{CRITERION} is not in the criteria: press esc, then c to add it"
    if CRITERION in config.custom_metrics:
        return f"a custom metric replaces {CRITERION}"
    if rules_of(config.criteria).ignore_args:
        return f"{CRITERION} ignores arguments (ignore_args)"
    return ""


def rules_of(criteria: Iterable[Criterion]) -> CallRules:
    """Return the rules by which these criteria compare calls."""
    criterion = _criterion(criteria)
    try:
        return CallRules() if criterion is None else read_options(TrajectoryOptions, criterion).rules
    except NotScorableError:
        return CallRules()


def offers(hunk: Hunk, rules: CallRules) -> list[Offer]:
    """Return the rules that would accept the argument of a hunk, or [] for a hunk of another kind.

    If a single value inside the argument differs, its rules come first.
    """
    if hunk.kind != "argument":
        return []
    inside = list(_compared(hunk, {}))
    places = [] if len(inside) != 1 else [(inside[0].dotted, inside[0].expected, inside[0].actual)]
    places += [(hunk.argument, hunk.old, hunk.new)]
    now = rules.for_tool(hunk.tool)
    found = (
        Offer(hunk.tool, path, rule, expected)
        for path, expected, actual in {place[0]: place for place in places}.values()
        for rule in _candidates(expected, actual, now.get(path))
    )
    return [offer for offer in found if all(one.accepted for one in _compared(hunk, {offer.path: offer.rule}))]


def accepted_by(hunk: Hunk, rules: CallRules) -> str:
    """Return what the rules accept in place of a hunk's argument, as safe text, or "" if they do not."""
    found = list(_compared(hunk, rules.for_tool(hunk.tool))) if hunk.kind == "argument" else []
    return str(described(found[0]).get("rule", "")) if found and all(one.accepted for one in found) else ""


def with_rules(draft: ConfigDraft, chosen: Iterable[Offer]) -> Content:
    """Return the content of a config with these rules. A criterion that is only a number becomes an object."""
    content = draft.content
    for offer in chosen:
        options = mapping(value_at(content, ("criteria", CRITERION)))
        key = key_for(options, "args_match", camel=is_camel(options))
        content = with_value(content, ("criteria", CRITERION, key, offer.tool, offer.path), offer.rule.json)
    return content


def _criterion(criteria: Iterable[Criterion]) -> Criterion | None:
    return next((one for one in criteria if one.name == CRITERION), None)


def _compared(hunk: Hunk, rules: Rules) -> Iterator[Difference]:
    old, new = ({} if value is ABSENT else {hunk.argument: value} for value in (hunk.old, hunk.new))
    return compare(old, new, rules, "args")


def _candidates(expected: Any, actual: Any, now: ValueRule | None) -> Iterator[ValueRule]:
    """Yield rules for a value, the widest first."""
    yield ValueRule("any")
    yield ValueRule("contains")
    yield ValueRule("ignore_case")
    if type_name(expected) == type_name(actual) == "number" and math.isfinite(distance := abs(expected - actual)):
        yield ValueRule("abs", _rounded_up(distance))
        yield from [ValueRule("rel", share) for share in _SHARES if distance <= share * abs(expected)][:1]
    values = now.operand if now is not None and now.kind == "one_of" else [expected]
    yield ValueRule("one_of", [value for value in (*values, actual) if value is not ABSENT])


def _rounded_up(distance: float) -> float:
    """Return the next power of ten: 0.004 becomes 0.01."""
    power = math.ceil(math.log10(distance)) if distance else 0
    return 10**power if power >= 0 else float(f"1e{power}")
