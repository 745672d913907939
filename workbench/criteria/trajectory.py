"""tool_trajectory_avg_score: did the agent call the expected tools with the expected arguments?

A turn scores 1.0 or 0.0, a case the mean of its turns. Only names and args are compared, as `json_difference`
describes. A call without args is not equal to one with {}, as in ADK.

Details of a turn: `match_type`, `ignore_args`, `args_match` (if there are rules, as in the config),
`include_agent_tools` (if true), `rows` (see `call_rows`), `more_rows` (rows above `MAX_ROWS`, which are left out) and
`other_match_types`: the scores under EXACT, IN_ORDER and ANY_ORDER, and `names only` for the configured match type
without args. Details of the case: the same without rows; `other_match_types` holds means.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from workbench.criteria.base import (
    NotScorableError,
    Scored,
    ScoreRequest,
    mean,
    scored_result,
    turn_pairs,
    unscored_result,
)
from workbench.criteria.call_rows import CallRules, Calls, call_rows, faulty_rows
from workbench.criteria.description import CriterionDescription, Options, decides, read_options
from workbench.criteria.json_difference import sentence
from workbench.criteria.value_rules import AnyRule
from workbench.events.events import InnerCalls, MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import tool_calls, with_inner_calls

MatchType = Literal["EXACT", "IN_ORDER", "ANY_ORDER"]
MATCH_TYPES: tuple[MatchType, ...] = get_args(MatchType)
"""Names in the order of ADK's numbers 0, 1, 2."""
NAMES_ONLY = "names only"
MAX_ROWS = 2_000
_ONLY_IF_SET = ("args_match", "include_agent_tools")
"""Options that details have only if they are set."""


def read_match_type(value: Any) -> MatchType:
    """Read a match type as ADK does: a name in any case, with blanks or dashes, or 0, 1, 2 (also 1.0, true).

    Raises:
        ValueError: The value is not a match type.
    """
    if isinstance(value, str):
        name = value.strip().upper().replace("-", "_").replace(" ", "_")
        for match_type in MATCH_TYPES:
            if name == match_type:
                return match_type
    elif isinstance(value, int | float) and value in (0, 1, 2):
        return MATCH_TYPES[int(value)]
    raise ValueError("EXACT, IN_ORDER or ANY_ORDER (or 0, 1, 2)")


class TrajectoryOptions(Options):
    """Options for comparing calls."""

    match_type: Annotated[MatchType, BeforeValidator(read_match_type)] = decides(
        "EXACT",
        "EXACT: the same calls and no others. IN_ORDER: the expected calls in this order; others are "
        "allowed. ANY_ORDER: the expected calls in any order; others are allowed.",
    )
    ignore_args: bool = decides(False, "Compare only the names of the tools.", way=f"by {NAMES_ONLY}")
    args_match: dict[str, dict[str, AnyRule]] = Field(
        default_factory=dict,
        description='Rules for arguments, by tool (or `*`) and dotted path, such as `{"refund": {"note": "any"}}`: '
        "see [rules for values](#rules-for-values).",
    )
    include_agent_tools: bool = Field(
        False,
        description="Also compare calls that agents make while they are used as tools (AgentTool), right after the "
        "calls of those tools.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.ignore_args and self.args_match:
            raise ValueError("`args_match` has no effect together with `ignore_args`: remove one of them")
        return self

    @property
    def rules(self) -> CallRules:
        """The rules for comparing two calls."""
        return CallRules(self.ignore_args, self.args_match)


DESCRIPTION = CriterionDescription(
    name="tool_trajectory_avg_score",
    title="Tool calls match",
    short_name="trajectory",
    short="traj",
    measures="Whether the agent called the expected tools with the expected arguments.",
    when_to_use="When the tool calls matter: the right tools, in the right order, with the right arguments. If several "
    "trajectories are correct, relax it with match_type or ignore_args.",
    how_to_read="Each turn is 1 (all calls as expected) or 0. The score is the share of turns that match. Names and "
    'arguments are compared exactly: 12.5 differs from the text "12.50", and a call without args from one with {}.',
    score="workbench.criteria.trajectory:score",
    rescore="workbench.criteria.trajectory:rescore",
    cause="workbench.criteria.call_rows:call_cause",
    options=TrajectoryOptions,
    needs_reference=True,
    scenarios="no",
    first_threshold=1.0,
    looks_at=frozenset({"calls"}),
    shown_in=frozenset({"calls"}),
    adk_ignores=frozenset({"args_match", "include_agent_tools"}),
    presets=MappingProxyType(
        {
            "regression in CI": 1.0,
            "functional correctness": {"threshold": 1.0, "match_type": "IN_ORDER"},
            "tool-heavy agents": {"threshold": 1.0, "match_type": "ANY_ORDER"},
        }
    ),
)


def score(request: ScoreRequest) -> Scored:
    """Score each turn and their mean, and record how the calls align.

    Raises:
        NotScorableError: There is no reference, the two conversations differ in length, an option is refused, or a
            pattern takes too long.
    """
    criterion = request.criterion
    rule = read_options(TrajectoryOptions, criterion)
    pairs = turn_pairs(request)
    if rule.include_agent_tools:
        if unknown := unknown_calls(request.inner_calls, len(request.actual)):
            return Scored(unscored_result(criterion, "not_evaluated", unknown))
        pairs = [
            (expected, with_inner_calls(actual, inner or ()))
            for (expected, actual), inner in zip(pairs, request.inner_calls, strict=True)
        ]
    turns = tuple(_turn(criterion, rule, *pair) for pair in pairs)
    others = [turn.details["other_match_types"] for turn in turns]
    details = {
        **_stored(rule),
        "other_match_types": {name: mean([other[name] for other in others]) for name in (*MATCH_TYPES, NAMES_ONLY)},
    }
    return Scored(scored_result(criterion, mean(turn.score for turn in turns), _case_reason(turns), details), turns)


def includes_agent_tools(criteria: Iterable[Criterion]) -> bool:
    """Return whether these criteria compare the calls inside agents that are used as tools."""
    criterion = next((one for one in criteria if one.name == DESCRIPTION.name), None)
    try:
        return criterion is not None and read_options(TrajectoryOptions, criterion).include_agent_tools
    except NotScorableError:
        return False


def unknown_calls(inner_calls: Sequence[InnerCalls], turns: int) -> str:
    """Return why not all calls inside agents that are used as tools are known in these turns, or ""."""
    if len(inner_calls) != turns or None in inner_calls:
        return "the calls inside agents that are used as tools were not recorded: run the case again"
    hidden = next((call for calls in inner_calls for call in calls or () if call.get("hidden")), None)
    if hidden is None:
        return ""
    return f"the calls inside `{hidden.get('tool')}` are not known: its AgentTool has include_plugins=False"


def rescore(details: Mapping[str, Any], options: TrajectoryOptions) -> float | None:
    """Return the score under other options if the `details` of a case contain it, else None."""
    scores, wanted = details.get("other_match_types"), _stored(options)
    if not isinstance(scores, dict) or any(details.get(name) != wanted.get(name) for name in _ONLY_IF_SET):
        return None
    name: str = options.match_type
    if options.ignore_args and not details.get("ignore_args") and details.get("match_type") == name:
        name = NAMES_ONLY
    elif details.get("ignore_args") != options.ignore_args:
        return None
    return float(scores[name]) if name in scores else None


def used_rules(details: Mapping[str, Any]) -> CallRules:
    """Return the rules by which the calls of a result were compared, or the default rules for invalid details."""
    stored = {name: details[name] for name in ("ignore_args", "args_match") if name in details}
    try:
        return TrajectoryOptions.model_validate(stored).rules
    except ValidationError:
        return CallRules()


def _stored(rule: TrajectoryOptions) -> dict[str, Any]:
    stored = rule.model_dump(mode="json", include={"match_type", "ignore_args", *_ONLY_IF_SET})
    return {name: value for name, value in stored.items() if value or name not in _ONLY_IF_SET}


def _turn(
    criterion: Criterion, rule: TrajectoryOptions, expected: dict[str, Any], actual: dict[str, Any]
) -> MetricResult:
    wanted, got = tool_calls(expected), tool_calls(actual)
    rows = call_rows(wanted, got, rule.rules)
    calls = Calls(wanted, got, rule.rules)
    others: dict[str, float] = {name: float(calls.match(name)) for name in MATCH_TYPES}
    value = others[rule.match_type]
    others[NAMES_ONLY] = float(Calls(wanted, got, CallRules(ignore_args=True)).match(rule.match_type))
    reason = "" if value else next(_complaints(rows, rule.match_type), "")
    details: dict[str, Any] = {**_stored(rule), "rows": rows[:MAX_ROWS], "other_match_types": others}
    if len(rows) > MAX_ROWS:
        details["more_rows"] = len(rows) - MAX_ROWS
    return scored_result(criterion, value, reason, details)


def _complaints(rows: list[dict[str, Any]], match_type: str) -> Iterator[str]:
    """Yield one sentence, in order, for each row that keeps the turn from matching."""
    for fault, row, instead in faulty_rows(rows, match_type):
        expected, actual = row["expected"], row["actual"]
        call = f"call {1 + (row['actual_index'] if expected is None else row['expected_index'])}"
        if fault == "differs":
            hint = '; ADK distinguishes missing args from empty args: write "args": {}'
            hint = hint if (expected["args"], actual["args"]) == (None, {}) else ""
            yield f"{sentence(row['differences'][0])}{hint} ({call}: {expected['name']})"
        elif fault == "missing":
            what = f"got {instead}" if instead else "which was not called"
            yield f"{call}: expected {expected['name']}, {what}"
        elif fault == "extra":
            yield f"{call}: {actual['name']} was called but not expected"
        else:
            yield f"{call}: {expected['name']} was called out of order, as call {row['actual_index'] + 1}"


def _case_reason(turns: Sequence[MetricResult]) -> str:
    complaints = [(number, turn.reason) for number, turn in enumerate(turns, 1) if turn.reason]
    if not complaints:
        return ""
    number, reason = complaints[0]
    others = f", and {len(complaints) - 1} more of {len(turns)} turns" if len(complaints) > 1 else ""
    return f"turn {number}: {reason}{others}" if len(turns) > 1 else reason
