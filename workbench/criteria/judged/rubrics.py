"""Rubric criteria: does a judge find each of your rubrics fulfilled?

These are rubric_based_final_response_quality_v1, rubric_based_tool_use_quality_v1 and
rubric_based_multi_turn_trajectory_quality_v1. For each rubric, most of the judge's votes decide: yes (1.0) or no (0.0).
A tie means no, and `unclear` is not counted. A turn scores the mean of its rubrics. The case scores the mean over all
rubrics of all turns, so a turn with more rubrics weighs more (ADK's rule). The trajectory criterion sends one question
about the whole conversation, and the last turn shows its score. A rubric without any vote is an error of the criterion.

Details of a turn: `rubrics` [{"rubric_id", "text", "origin", "score", "verdict", "votes", "rationale", "asked", "of"}],
`asked`, `of`, `split`, `questions`. Details of the case: `judge`, `rubrics` [{"rubric_id", "text", "score"}] with the
mean over the turns, and `unused`: the ids of rubrics that no criterion uses, because none has their type.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from workbench.criteria.base import Bench, NotScorableError, Scored, ScoreRequest, require_same_length, unscored_result
from workbench.criteria.description import RubricOptions, read_options
from workbench.criteria.judged.descriptions import (
    ANSWER_RUBRICS,
    CONVERSATION_RUBRICS,
    TOOL_RUBRICS,
    AnswerRubricOptions,
)
from workbench.criteria.judged.evidence import (
    answer_text,
    conversation,
    grounding,
    instructions,
    steps,
    tools,
    user_text,
)
from workbench.criteria.judged.rubric_question import (
    Rubric,
    RubricVote,
    read_votes,
    rubrics_by_turn,
    rubrics_question,
    untyped_ids,
)
from workbench.criteria.judged.voting import (
    MAX_TEXT,
    SampledQuestion,
    ask,
    case_result,
    exact_mean,
    first_failure,
    judged_result,
    majority,
    samples_text,
    still_needed,
)
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.files.invocation import Invocation
from workbench.judges.base import Judge
from workbench.text.counting import counted

Votes = dict[str, RubricVote]


class _Kind(NamedTuple):
    type: str
    judged: Literal["answer", "tools", "conversation"]


_KINDS = {
    ANSWER_RUBRICS.name: _Kind(ANSWER_RUBRICS.rubric_type, "answer"),
    TOOL_RUBRICS.name: _Kind(TOOL_RUBRICS.rubric_type, "tools"),
    CONVERSATION_RUBRICS.name: _Kind(CONVERSATION_RUBRICS.rubric_type, "conversation"),
}


async def score(request: ScoreRequest, bench: Bench) -> Scored:
    """Judge each turn, or the whole conversation. The score is the mean over all rubrics.

    Raises:
        NotScorableError: Rubric ids repeat, only some turns have rubrics, the reference has another number of turns, or
            an option is refused.
        NotAvailableError: The judge cannot be used here.
    """
    criterion = request.criterion
    kind = _KINDS[criterion.name]
    require_same_length(request)
    rubrics = rubrics_by_turn(request, kind.type)
    if kind.judged == "conversation":
        rubrics = rubrics[-1:]
    if not any(rubrics):
        return _no_rubrics(request, kind)
    missing = next((number for number, own in enumerate(rubrics, 1) if not own), None)
    if missing is not None:
        raise NotScorableError(
            f"turn {missing} has no rubrics of type {kind.type}, but other turns do; as in ADK, every turn needs some"
        )
    options: RubricOptions
    if kind.judged == "answer":
        options = answer = read_options(AnswerRubricOptions, criterion)
        with_intermediate = answer.include_intermediate_responses_in_final
    else:
        options, with_intermediate = read_options(RubricOptions, criterion), False
    judge = bench.judge(options.judge_model_options.as_judge_options())
    if kind.judged == "conversation":
        data = [_question_data(request.actual[-1], kind, rubrics[0], with_intermediate, request.actual)]
    else:
        pairs = zip(request.actual, rubrics, strict=True)
        data = [_question_data(turn, kind, own, with_intermediate, (turn,)) for turn, own in pairs]
    sampled = await asyncio.gather(
        *(_ask(judge, each, own, all_votes=bench.all_votes) for each, own in zip(data, rubrics, strict=True))
    )
    judged = [_turn(criterion, judge, each, own) for each, own in zip(sampled, rubrics, strict=True)]
    earlier = unscored_result(criterion, "not_applicable", "judged once, after the last turn")
    return _case(request, judge, [*[earlier] * (len(request.actual) - len(judged)), *judged])


def _no_rubrics(request: ScoreRequest, kind: _Kind) -> Scored:
    untyped = untyped_ids(request)
    reason = f"no rubrics: add them to the criterion, or to a case or turn with the type {kind.type}"
    if untyped:
        lack = "lacks" if len(untyped) == 1 else "lack"
        reason = f'no rubrics: {", ".join(untyped)} {lack} "type": "{kind.type}"'
    turns = [unscored_result(request.criterion, "not_applicable", reason)] * len(request.actual)
    return case_result(request.criterion, turns, None, "", {"unused": untyped})


def _question_data(
    turn: Invocation, kind: _Kind, rubrics: Sequence[Rubric], with_intermediate: bool, turns: Sequence[Invocation]
) -> dict[str, Any]:
    """Return the data of the question; see `rubrics_question`."""
    of_answer, whole = kind.judged == "answer", kind.judged == "conversation"
    return {
        "rubrics": [{"id": rubric.id, "text": rubric.text} for rubric in rubrics],
        "user": user_text(turn),
        "answer": answer_text(turn, with_intermediate=with_intermediate) if of_answer else None,
        "instructions": instructions(turns) if of_answer or whole else "",
        "tools": tools(turns),
        "steps": [] if whole else steps(turn),
        "grounding": grounding(turn) if of_answer else [],
        "conversation": conversation(turns) if whole else None,
    }


async def _ask(
    judge: Judge, data: dict[str, Any], rubrics: Sequence[Rubric], *, all_votes: bool
) -> SampledQuestion[Votes]:
    def needed(answers: Sequence[Votes], left: int) -> int:
        return max(still_needed(*_count(answers, rubric), left) for rubric in rubrics)

    question = rubrics_question(data)
    sampled = await ask(judge, question, lambda text: read_votes(text, rubrics), needed, all_votes=all_votes)
    undecided = [rubric.id for rubric in rubrics if majority(*_count(sampled.answers, rubric)) is None]
    for sample in sampled.samples:
        if sample.answer is not None and any(each not in sample.answer for each in undecided):
            judge.forget(question, sample.number)
    return sampled


def _count(answers: Sequence[Votes], rubric: Rubric) -> tuple[int, int]:
    verdicts = [votes[rubric.id].verdict for votes in answers if rubric.id in votes]
    return verdicts.count("yes"), verdicts.count("no")


def _turn(
    criterion: Criterion, judge: Judge, sampled: SampledQuestion[Votes], rubrics: Sequence[Rubric]
) -> MetricResult:
    rows = [_row(sampled, rubric) for rubric in rubrics]
    scores = [row["score"] for row in rows if row["score"] is not None]
    details = {
        "rubrics": rows,
        "asked": len(sampled.samples),
        "of": sampled.of,
        "split": any(row["votes"]["yes"] and row["votes"]["no"] for row in rows),
        "questions": [sampled.record(judge, _shown)],
    }
    unread = len(scores) < len(rows)
    return judged_result(criterion, exact_mean(scores), _reason(rows, sampled), details, unjudged=unread)


def _row(sampled: SampledQuestion[Votes], rubric: Rubric) -> dict[str, Any]:
    given = [votes[rubric.id] for votes in sampled.answers if rubric.id in votes]
    yes, no = _count(sampled.answers, rubric)
    verdict = majority(yes, no)
    side = "unclear" if verdict is None else "yes" if verdict else "no"
    rationale = next((vote.rationale for vote in given if vote.verdict == side), "")
    return {
        "rubric_id": rubric.id,
        "text": rubric.text,
        "origin": rubric.origin,
        "score": None if verdict is None else float(verdict),
        "verdict": "unread" if verdict is None else side,
        "votes": {
            "yes": yes,
            "no": no,
            "unclear": len(given) - yes - no,
            "missing": len(sampled.answers) - len(given),
            "unread": len(sampled.samples) - len(sampled.answers),
        },
        "rationale": rationale[:MAX_TEXT],
        "asked": len(sampled.samples),
        "of": sampled.of,
    }


def _reason(rows: Sequence[dict[str, Any]], sampled: SampledQuestion[Votes]) -> str:
    """Return a sentence about the rubrics without a verdict, else about the unfulfilled ones, with a rationale."""
    samples = samples_text(len(sampled.samples), sampled.of)
    unread = [row for row in rows if row["score"] is None]
    if len(unread) == len(rows) and not sampled.answers:
        return f"no verdict ({samples}): {sampled.unread}"
    if unread:
        why = sampled.cut or unread[0]["rationale"]
        named = ", ".join(row["rubric_id"] for row in unread)
        return f"the judge gave no verdict on {named} ({samples}){f': {why}' if why else ''}"
    missed = [row for row in rows if not row["score"]]
    summary = f"{len(rows) - len(missed)} of {counted(len(rows), 'rubric')} fulfilled"
    if not missed:
        return summary
    rationale = f": {missed[0]['rationale']}" if missed[0]["rationale"] else ""
    return f"{summary}, not {', '.join(row['rubric_id'] for row in missed)}{rationale}"


def _case(request: ScoreRequest, judge: Judge, turns: Sequence[MetricResult]) -> Scored:
    rows = [row for turn in turns for row in turn.details.get("rubrics", ())]
    by_id: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_id.setdefault(row["rubric_id"], []).append(row)
    untyped = untyped_ids(request)
    details = {
        "judge": judge.identity.as_json(),
        "rubrics": [
            {"rubric_id": each, "text": own[0]["text"], "score": exact_mean(row["score"] for row in own)}
            for each, own in by_id.items()
        ],
        "unused": untyped,
    }
    reason = first_failure(turns, "all rubrics are fulfilled")
    if untyped:
        reason += f"; rubrics without a known type are not used: {', '.join(untyped)}"
    return case_result(request.criterion, turns, exact_mean(row["score"] for row in rows), reason, details)


def _shown(votes: Votes) -> dict[str, dict[str, str]]:
    return {each: {"verdict": vote.verdict, "rationale": vote.rationale[:MAX_TEXT]} for each, vote in votes.items()}
