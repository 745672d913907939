"""session_state_match: is the session state at the end of a case as expected?

The expected state is the case's `final_session_state`, which ADK keeps but does not compare. The score is 1.0 or 0.0.
Values are compared exactly, except where `state_match` has a rule.

Details: `mode`, `differences` (see `value_rules.described`), `more_differences` (the number of those above
`MAX_DIFFERENCES`, if any), and `accepted`: the differences that a rule accepts, if any. Paths begin with `state`.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from workbench.criteria.base import NotScorableError, Scored, ScoreRequest, scored_result, unscored_result
from workbench.criteria.call_rows import MAX_DIFFERENCES, difference_cause
from workbench.criteria.description import CriterionDescription, Options, read_options
from workbench.criteria.json_difference import sentence
from workbench.criteria.value_rules import AnyRule, Rules, ValueRule, compare, described
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.text.json_values import objects

ROOT = "state"
_ALL = ("any", "contains")
"""Rules that accept every value where none is expected."""


def _path(value: Any) -> Any:
    if value == "":
        raise ValueError("a key or a dotted path")
    return value


class SessionStateOptions(Options):
    """Options for comparing the session state."""

    mode: Literal["contains", "exact"] = Field(
        "contains",
        description="With contains, the state may have more than is expected, also inside objects and lists. With "
        "exact, it may not.",
    )
    ignore: list[Annotated[str, BeforeValidator(_path)]] = Field(
        default_factory=list, description="Keys, or dotted paths, that are not compared."
    )
    state_match: dict[str, AnyRule] = Field(
        default_factory=dict,
        description='Rules for values, by dotted path, such as `{"cart.total": {"abs": 0.01}}`: see [rules for '
        "values](#rules-for-values).",
    )

    @model_validator(mode="after")
    def _one_rule_each(self) -> Self:
        if both := sorted(set(self.ignore) & set(self.state_match)):
            raise ValueError(f"`{both[0]}` is in both `ignore` and `state_match`: remove one of them")
        return self

    @property
    def rules(self) -> Rules:
        """Rules by dotted path; "" is the whole state."""
        whole = {"": ValueRule("contains")} if self.mode == "contains" else {}
        return {**whole, **{path: ValueRule("any") for path in self.ignore}, **self.state_match}


DESCRIPTION = CriterionDescription(
    name="session_state_match",
    title="End state matches",
    short_name="end state",
    short="state",
    measures="Whether the session state at the end of the case is the expected `final_session_state`.",
    when_to_use="When tools change the session state, and the result matters more than the steps. It works with "
    "simulated users. `adk eval` skips it.",
    how_to_read="1 if the state is as expected, else 0. The reason names the first value that differs, with its type.",
    score="workbench.criteria.session_state:score",
    cause="workbench.criteria.session_state:cause",
    options=SessionStateOptions,
    first_threshold=1.0,
    only_here=True,
    compares_end_state=True,
)


def rules_of(criteria: Iterable[Criterion]) -> Rules:
    """Return the rules by which these criteria compare end states. Without valid options, return the default rules."""
    criterion = next((one for one in criteria if one.name == DESCRIPTION.name), None)
    try:
        options = None if criterion is None else read_options(SessionStateOptions, criterion)
    except NotScorableError:
        options = None
    return (options or SessionStateOptions.model_validate({})).rules


def score(request: ScoreRequest) -> Scored:
    """Compare the session state at the end of the case.

    Raises:
        NotScorableError: An option is refused, or a pattern takes too long.
    """
    criterion = request.criterion
    options = read_options(SessionStateOptions, criterion)
    expected, actual = request.final_session_state, request.end_state
    if expected is None:
        reason = "the case has no final_session_state to compare with"
        return Scored(unscored_result(criterion, "not_applicable", reason))
    if not expected and options.mode == "contains" and not options.state_match:
        reason = "the expected final_session_state is empty, so there is nothing to compare"
        return Scored(unscored_result(criterion, "not_applicable", reason))
    if actual is None:
        return Scored(unscored_result(criterion, "not_evaluated", "the session state at the end is not known"))
    found = list(compare(expected, actual, options.rules, ROOT))
    if not expected and options.mode == "contains" and all(each.rule and each.rule.kind in _ALL for each in found):
        reason = "the expected final_session_state is empty, and no rule compares a value of the state"
        return Scored(unscored_result(criterion, "not_applicable", reason))
    differing = [described(each) for each in found if not each.accepted]
    # Under "contains", values without an expectation are always accepted, so they are left out.
    accepted = [each for each in found if each.accepted and each.rule != ValueRule("contains")]
    details: dict[str, Any] = {"mode": options.mode, "differences": differing[:MAX_DIFFERENCES]}
    if len(differing) > MAX_DIFFERENCES:
        details["more_differences"] = len(differing) - MAX_DIFFERENCES
    if accepted:
        details["accepted"] = [described(each) for each in accepted[:MAX_DIFFERENCES]]
    reason = sentence(differing[0]) if differing else ""
    reason += f", and {len(differing) - 1} more" if len(differing) > 1 else ""
    return Scored(scored_result(criterion, 0.0 if differing else 1.0, reason, details))


def cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return `end state: cart.total is text, expected number` and the like, or ""."""
    first = next(iter(objects(result.details.get("differences"))), None)
    return "" if first is None else f"end state: {difference_cause(first, ROOT)}"
