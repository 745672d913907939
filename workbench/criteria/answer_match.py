"""answer_match: texts and patterns that the agent's answers must or must not contain. It needs no judge and no key.

A turn scores 1.0 if its final answer meets every condition, else 0.0. A case scores the mean of the turns that `turns`
selects; the others are not applicable. Letters are compared as they are; `(?i)` at the start of a pattern ignores
upper and lower case. Thoughts are not part of the answer.

Details of a turn: `{"checks": [{"kind": "contains" | "not_contains" | "regex", "text", "met"}]}`. Details of the case:
`{"turns"}`.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from workbench.criteria.base import NotScorableError, Scored, ScoreRequest, mean, scored_result, unscored_result
from workbench.criteria.description import CriterionDescription, Options, read_options
from workbench.criteria.value_rules import check_pattern, matches
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.text.counting import counted
from workbench.text.json_values import mapping, objects, parts_of, string
from workbench.text.safe_text import one_line


def _texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _text(value: Any) -> Any:
    if value == "":
        raise ValueError("a text of at least one character (every answer contains the empty text)")
    return value


def _pattern(value: Any) -> Any:
    check_pattern(_text(value), "a regular expression")
    return value


def _selection(value: Any) -> Any:
    if value in ("all", "last") or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise ValueError('"all", "last" or the number of a turn, from 1')


_Texts = Annotated[list[Annotated[str, BeforeValidator(_text)]], BeforeValidator(_texts)]


class AnswerMatchOptions(Options):
    """Conditions on answers."""

    contains: _Texts = Field(default_factory=list, description="Texts that the answer must contain.")
    not_contains: _Texts = Field(default_factory=list, description="Texts that the answer must not contain.")
    regex: Annotated[list[Annotated[str, BeforeValidator(_pattern)]], BeforeValidator(_texts)] = Field(
        default_factory=list, description="Regular expressions that must match somewhere in the answer."
    )
    turns: Annotated[Literal["all", "last"] | int, BeforeValidator(_selection)] = Field(
        "all", description="The turns whose answers are checked: `all`, `last`, or the number of one turn, from 1."
    )

    @model_validator(mode="after")
    def _some_condition(self) -> Self:
        if not (self.contains or self.not_contains or self.regex):
            raise ValueError("`answer_match` needs `contains`, `not_contains` or `regex`")
        return self

    def checks(self, answer: str) -> Iterator[dict[str, Any]]:
        """Yield each condition, and whether the answer meets it.

        Raises:
            NotScorableError: A pattern takes too long.
        """
        for text in self.contains:
            yield {"kind": "contains", "text": text, "met": text in answer}
        for text in self.not_contains:
            yield {"kind": "not_contains", "text": text, "met": text not in answer}
        for pattern in self.regex:
            yield {"kind": "regex", "text": pattern, "met": matches(pattern, answer)}


DESCRIPTION = CriterionDescription(
    name="answer_match",
    title="Answer contains",
    short_name="answer",
    short="answer",
    measures="Whether the final answers contain, or do not contain, given texts and patterns.",
    when_to_use="When you know words that a right answer has: an id, an amount, a name. It needs no judge and no key, "
    "and works with simulated users. `adk eval` skips it.",
    how_to_read="The share of checked turns whose answers meet all conditions.",
    score="workbench.criteria.answer_match:score",
    cause="workbench.criteria.answer_match:cause",
    options=AnswerMatchOptions,
    first_threshold=1.0,
    needs_one_of=("contains", "not_contains", "regex"),
    looks_at=frozenset({"answer"}),
    only_here=True,
)


def score(request: ScoreRequest) -> Scored:
    """Check the answers of the selected turns.

    Raises:
        NotScorableError: An option is refused, the conversation lacks the turn, or a pattern takes too long.
    """
    criterion = request.criterion
    options = read_options(AnswerMatchOptions, criterion)
    count = len(request.actual)
    if isinstance(options.turns, int) and options.turns > count:
        raise NotScorableError(f"`turns` is {options.turns}, but the conversation has {counted(count, 'turn')}")
    selected = {"all": range(count), "last": range(count - 1, count)}.get(str(options.turns))
    wanted = selected if selected is not None else [int(options.turns) - 1]
    left_out = unscored_result(criterion, "not_applicable", "this turn is not checked")
    turns = tuple(
        _turn(criterion, options, turn) if index in wanted else left_out for index, turn in enumerate(request.actual)
    )
    overall = mean(turn.score for turn in turns)
    failed = [(number, turn.reason) for number, turn in enumerate(turns, 1) if turn.status == "failed"]
    reason = ""
    if failed:
        where = f"turn {failed[0][0]}: " if count > 1 else ""
        others = f", and {len(failed) - 1} more of {counted(count, 'turn')}" if len(failed) > 1 else ""
        reason = f"{where}{failed[0][1]}{others}"
    return Scored(scored_result(criterion, overall, reason, {"turns": options.turns}), turns)


def cause(result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return `answer lacks "refund"`, `answer contains "sorry"` and the like, or ""."""
    failed = next((turn for turn in turns if turn.status == "failed"), None)
    unmet = (check for check in objects(mapping(failed and failed.details).get("checks")) if check.get("met") is False)
    return next(map(_complaint, unmet), "")


def final_answer(turn: dict[str, Any]) -> str:
    """Return the final answer as the user sees it: the texts without thoughts, joined by line breaks."""
    parts = parts_of(turn.get("final_response"))
    return "\n".join(string(part.get("text")) for part in parts if part.get("text") and part.get("thought") is not True)


def _turn(criterion: Criterion, options: AnswerMatchOptions, turn: dict[str, Any]) -> MetricResult:
    checks = list(options.checks(final_answer(turn)))
    unmet = [_complaint(check) for check in checks if not check["met"]]
    reason = "; ".join(unmet[:3]) + (f"; {len(unmet) - 3} more" if len(unmet) > 3 else "")
    return scored_result(criterion, 0.0 if unmet else 1.0, reason, {"checks": checks})


def _complaint(check: dict[str, Any]) -> str:
    text = one_line(string(check.get("text")), limit=60)
    match check.get("kind"):
        case "contains":
            return f'answer lacks "{text}"'
        case "not_contains":
            return f'answer contains "{text}"'
    return f"answer does not match {text}"
