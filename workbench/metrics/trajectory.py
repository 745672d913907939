"""tool_trajectory_avg_score: did the agent call the expected tools with the expected arguments?

A turn scores 1.0 or 0.0, a case the mean of its turns. Only names and args are compared, as `json_difference`
describes. A call without args is not equal to one with {}, as in ADK.

Details of a turn: `match_type`, `ignore_args`, `args_match` (if there are rules, as in the config), `rows` (see
`call_rows`), `more_rows` (rows above `MAX_ROWS`, which are left out) and `other_match_types`: the scores under EXACT,
IN_ORDER and ANY_ORDER, and `names only` for the configured match type without args. Details of the case: the same
without rows; `other_match_types` holds means.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from workbench.events import MetricResult
from workbench.metrics.base import Scored, ScoreRequest, mean, status_of, turn_pairs
from workbench.metrics.call_rows import CallRules, Calls, call_rows, faulty_rows
from workbench.metrics.description import CriterionDescription, Options, decides, read_options
from workbench.metrics.json_difference import sentence
from workbench.metrics.value_rules import AnyRule
from workbench.model.criteria import Criterion
from workbench.model.invocation import tool_calls

MatchType = Literal["EXACT", "IN_ORDER", "ANY_ORDER"]
MATCH_TYPES: tuple[MatchType, ...] = get_args(MatchType)
"""Names in the order of ADK's numbers 0, 1, 2."""
NAMES_ONLY = "names only"
MAX_ROWS = 2_000


def read_match_type(value: Any) -> MatchType:
    """Read a match type as ADK does: a name in any case, with blanks or dashes, or 0, 1, 2 (also 1.0, true)."""
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
        "EXACT (default): the same calls and no others. IN_ORDER: the expected calls in this order, with others "
        "between them. ANY_ORDER: the expected calls in any order.",
    )
    ignore_args: bool = decides(False, "Compare only the names of the tools.", way=f"by {NAMES_ONLY}")
    args_match: dict[str, dict[str, AnyRule]] = Field(
        default_factory=dict,
        description='Rules for arguments, by tool (or `*`) and dotted path, such as `{"refund": {"note": "any"}}`: '
        "see [rules for values](#rules-for-values).",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.ignore_args and self.args_match:
            raise ValueError("`args_match` has no effect together with `ignore_args`: remove one of them")
        return self

    @property
    def rules(self) -> CallRules:
        """How two calls are compared."""
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
    score="workbench.metrics.trajectory:score",
    rescore="workbench.metrics.trajectory:rescore",
    cause="workbench.metrics.call_cause:call_cause",
    options=TrajectoryOptions,
    needs_reference=True,
    scenarios="no",
    first_threshold=1.0,
    looks_at=frozenset({"calls"}),
    shown_in=frozenset({"calls"}),
    adk_ignores=frozenset({"args_match"}),
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
        NotScorableError: The two conversations differ in length, or an option is refused.
    """
    criterion = request.criterion
    rule = read_options(TrajectoryOptions, criterion)
    turns = tuple(_turn(criterion, rule, *pair) for pair in turn_pairs(request))
    others = [turn.details["other_match_types"] for turn in turns]
    details = {
        **_stored(rule),
        "other_match_types": {name: mean([other[name] for other in others]) for name in (*MATCH_TYPES, NAMES_ONLY)},
    }
    overall = mean(turn.score for turn in turns)
    return Scored(
        MetricResult(
            criterion.name,
            status_of(overall, criterion.threshold),
            overall,
            criterion.threshold,
            _case_reason(turns),
            details,
        ),
        turns,
    )


def rescore(details: Mapping[str, Any], options: TrajectoryOptions) -> float | None:
    """Return the score under other options if the `details` of a case contain it, else None."""
    scores = details.get("other_match_types")
    if not isinstance(scores, dict) or details.get("args_match", {}) != _stored(options).get("args_match", {}):
        return None
    name: str = options.match_type
    if options.ignore_args and not details.get("ignore_args") and details.get("match_type") == name:
        name = NAMES_ONLY
    elif details.get("ignore_args") != options.ignore_args:
        return None
    return float(scores[name]) if name in scores else None


def used_rules(details: Mapping[str, Any]) -> CallRules:
    """Return how the calls of a result were compared, from its `details`."""
    stored = {name: details[name] for name in ("ignore_args", "args_match") if name in details}
    try:
        return TrajectoryOptions.model_validate(stored).rules
    except ValidationError:
        return CallRules()


def _stored(rule: TrajectoryOptions) -> dict[str, Any]:
    stored = rule.model_dump(mode="json", include={"match_type", "ignore_args", "args_match"})
    return stored if rule.args_match else {name: stored[name] for name in ("match_type", "ignore_args")}


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
    details: dict[str, Any] = {
        **_stored(rule),
        "rows": rows[:MAX_ROWS],
        "other_match_types": others,
    }
    if len(rows) > MAX_ROWS:
        details["more_rows"] = len(rows) - MAX_ROWS
    return MetricResult(
        criterion.name, status_of(value, criterion.threshold), value, criterion.threshold, reason, details
    )


def _complaints(rows: list[dict[str, Any]], match_type: str) -> Iterator[str]:
    """Yield one sentence, in order, for each row that keeps the turn from matching."""
    for fault, row, instead in faulty_rows(rows, match_type):
        expected, actual = row["expected"], row["actual"]
        call = f"call {1 + (row['actual_index'] if expected is None else row['expected_index'])}"
        if fault == "differs":
            yield f"{sentence(row['differences'][0])}{_args_hint(row)} ({call}: {expected['name']})"
        elif fault == "missing":
            what = f"got {instead}" if instead else "which was not called"
            yield f"{call}: expected {expected['name']}, {what}"
        elif fault == "extra":
            yield f"{call}: {actual['name']} was called but not expected"
        else:
            yield f"{call}: {expected['name']} was called out of order, as call {row['actual_index'] + 1}"


def _args_hint(row: dict[str, Any]) -> str:
    args = [row[side]["args"] for side in ("expected", "actual")]
    if args == [None, {}]:
        return '; ADK distinguishes missing args from empty args: write "args": {}'
    return ""


def _case_reason(turns: Sequence[MetricResult]) -> str:
    complaints = [(number, turn.reason) for number, turn in enumerate(turns, 1) if turn.reason]
    if not complaints:
        return ""
    number, reason = complaints[0]
    others = f", and {len(complaints) - 1} more of {len(turns)} turns differ" if len(complaints) > 1 else ""
    return f"turn {number}: {reason}{others}" if len(turns) > 1 else reason
