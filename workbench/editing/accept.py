"""Acceptance of an agent's behavior as expected, hunk by hunk. A hunk is a difference that can be accepted alone.

The rest of the case keeps the spelling of its keys and the form of its steps.

A rule is an alternative to a new expected value. It is stored in the criteria config that governs the case, as
`args_match` of the criterion for tool calls.
"""

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from workbench.criteria.base import NotScorableError
from workbench.criteria.call_rows import CallRules
from workbench.criteria.description import read_options
from workbench.criteria.json_difference import ABSENT, phrase, shown, type_name
from workbench.criteria.trajectory import DESCRIPTION, TrajectoryOptions
from workbench.criteria.value_rules import Difference, Rules, ValueRule, compare, described
from workbench.editing.accept_turn import Hunk, TurnComparison
from workbench.editing.criteria_change import ConfigDraft, Content, with_value
from workbench.editing.turn_steps import Shape, in_both_shapes, shape_of
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.invocation import content_text
from workbench.files.spelling import get, is_camel, key_for
from workbench.text.json_values import mapping, value_at
from workbench.text.json_values import number as number_of

_STATE = "final_session_state"


class NotComparableError(ValueError):
    """Nothing of the transcript can be accepted. The message gives the reason and, if there is one, a remedy."""


class Comparison:
    """Comparison of a case's JSON (`raw`) with its transcript.

    `actual` has an invocation in snake_case for each turn, or None for an incomplete turn. `end_state` is the session
    state after all turns, or None if unknown, and `rules` say how it is compared. `notes` name the turns that are left
    out, and why. If a turn is left out, so is the end state, because it follows from all turns.

    Raises:
        NotComparableError: the case is a scenario, has no turns, or all of them are left out.
    """

    def __init__(
        self,
        raw: Mapping[str, Any],
        actual: Sequence[Mapping[str, Any] | None],
        end_state: Mapping[str, Any] | None = None,
        rules: Rules = MappingProxyType({}),
    ) -> None:
        self._raw, self._actual = raw, actual
        self._camel = is_camel(raw)
        self._default_shape = _shape(raw)
        turns, self.notes = self._comparable()
        try:
            state = () if end_state is None or self.notes else tuple(self._state_hunks(end_state, rules))
        except NotScorableError as error:
            state, self.notes = (), (*self.notes, f"the end state: {error}")
        self.hunks: tuple[Hunk, ...] = (
            *(hunk for number in turns for hunk in self._compare(number, raw).hunks()),
            *state,
        )

    def accepted(self, hunks: Iterable[Hunk]) -> dict[str, Any]:
        """Return the case with these hunks accepted, in any order. `raw` is not changed."""
        wanted = frozenset(hunks)
        case: dict[str, Any] = copy.deepcopy(dict(self._raw))
        for number in sorted({hunk.turn for hunk in wanted if hunk.kind != "state"}):
            self._compare(number, case).accept(wanted)
        for hunk in wanted:
            if hunk.kind == "state":
                *above, key = hunk.steps
                holder = value_at(get(case, _STATE), above)
                if hunk.new is ABSENT:
                    del holder[key]
                else:
                    holder[key] = hunk.new
        # Accepted values still belong to the transcript, so copy them.
        return copy.deepcopy(case)

    def _state_hunks(self, actual: Mapping[str, Any], rules: Rules) -> Iterator[Hunk]:
        """Yield the differences from the case's expected end state, if any. A list that differs is one difference."""
        expected = get(self._raw, _STATE)
        if not isinstance(expected, dict):
            return
        found = (one for one in compare(expected, actual, rules, "") if not one.accepted)
        for steps in dict.fromkeys(_keys_of(one.steps) for one in found):
            old, new = (mapping(value_at(side, steps[:-1])).get(steps[-1], ABSENT) for side in (expected, actual))
            verb = "expect" if old is ABSENT else "no longer expect" if new is ABSENT else "change"
            what = f"end state: {verb} {'.'.join(steps)}"
            yield Hunk(len(self._raw["conversation"]), "state", steps=steps, what=what, old=old, new=new)

    def _compare(self, number: int, case: Mapping[str, Any]) -> TurnComparison:
        turn = case["conversation"][number]
        return TurnComparison(number, turn, self._actual[number], camel=self._camel, default_shape=self._default_shape)

    def _comparable(self) -> tuple[list[int], tuple[str, ...]]:
        """Return the turns that can be compared, and a note about each of the others."""
        if get(self._raw, "conversation_scenario") is not None:
            why = "its simulated user varies from run to run, so it has no expected answers"
            raise NotComparableError(f"this case is a scenario: {why}")
        turns = self._raw.get("conversation")
        if not isinstance(turns, list) or not turns:
            raise NotComparableError("this case has no turns: add one first (e)")
        found, notes = [], []
        for number, turn in enumerate(turns):
            obstacle = _obstacle(turn, self._actual[number] if number < len(self._actual) else None)
            if obstacle:
                notes.append(f"turn {number + 1}: {obstacle}")
            else:
                found.append(number)
        if not found:
            raise NotComparableError(notes[0])
        return found, tuple(notes)


def _keys_of(steps: Iterable[str | int]) -> tuple[str, ...]:
    """Return the first keys of a path, up to its first list index."""
    return tuple(str(step) for step in takewhile(lambda step: isinstance(step, str), steps))


def _obstacle(turn: Any, actual: Mapping[str, Any] | None) -> str:
    """Return why a turn cannot be accepted, or "" if it can."""
    if actual is None:
        return "the agent did not complete this turn in the last run"
    if not isinstance(turn, dict):
        return "it is not an object: fix it first (E)"
    if in_both_shapes(turn):
        return "it has both tool_uses and invocation_events, but ADK reads only one: remove one first (E)"
    expected, recorded = (content_text(mapping(get(one, "user_content"))) for one in (turn, actual))
    if expected != recorded:
        return "the user's message has changed since the last run: run the case again (r)"
    return ""


def _shape(raw: Mapping[str, Any]) -> Shape:
    """Return the form for turns without steps: `recorded` if all turns with steps have it, else `authored`."""
    turns = raw.get("conversation")
    shapes = {shape_of(turn) for turn in turns} if isinstance(turns, list) else set()
    return "recorded" if "recorded" in shapes and "authored" not in shapes else "authored"


CRITERION = DESCRIPTION.name
_SHARES = (0.01, 0.05, 0.1, 0.5)
"""Relative tolerances. The smallest one that accepts the value is offered."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A rule that accepts a difference. `path` is the dotted path of a value in the arguments of `tool`."""

    tool: str
    path: str
    rule: ValueRule
    expected: Any

    @property
    def text(self) -> str:
        """The accepted values, as safe text."""
        if self.rule.kind == "contains":
            return "the expected value, or more"
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
    """Return the rules by which these criteria compare calls.

    The default rules apply if the criterion for tool calls is missing or has invalid options.
    """
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
    return [
        Offer(hunk.tool, path, rule, expected)
        for path, expected, actual in {place[0]: place for place in places}.values()
        for rule in _candidates(expected, actual, now.get(path))
        if all(one.accepted for one in _compared(hunk, {path: rule}))
    ]


def accepted_by(hunk: Hunk, rules: CallRules) -> str:
    """Return the rule that accepts a hunk's argument, as safe text, or "" if the rules do not accept it.

    If several values inside the argument differ, the result is the rule for the first of them.
    """
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
    """Yield rules for a value, in the order in which they are offered."""
    yield ValueRule("any")
    yield ValueRule("contains")
    yield ValueRule("ignore_case")
    numbers = None not in (number_of(expected), number_of(actual))
    distance = number_of(abs(expected - actual)) if numbers else None
    if distance is not None and math.isfinite(distance):
        yield ValueRule("abs", _rounded_up(distance))
        yield from [ValueRule("rel", share) for share in _SHARES if distance <= share * abs(expected)][:1]
    values = now.operand if now is not None and now.kind == "one_of" else [expected]
    yield ValueRule("one_of", [value for value in (*values, actual) if value is not ABSENT])


def _rounded_up(distance: float) -> float:
    """Return the smallest power of ten that is not below the distance (0.004 becomes 0.01), or 1 for 0."""
    power = math.ceil(math.log10(distance)) if distance else 0
    return 10**power if power >= 0 else float(f"1e{power}")
