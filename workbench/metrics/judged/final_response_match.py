"""final_response_match_v2: does a judge find the final answer equivalent to the expected one?

A turn scores 1.0 if most of the judge's votes are valid, else 0.0 (a tie is invalid); the case the mean of its turns.
The judge sees the user's message and the two answers; with `include_intermediate_responses_in_final` what was said on
the way belongs to both answers. An unreadable reply is no vote; a turn without any vote is an error.

Details of a turn: `votes` {"valid", "invalid", "unread"}, `asked`, `of`, `split`, `questions`. Details of the case:
`judge`.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from workbench.events import MetricResult
from workbench.judge.base import Judge
from workbench.metrics.base import Bench, Scored, ScoreRequest, mean, turn_pairs
from workbench.metrics.judged.options_read import flag, judge_of
from workbench.metrics.judged.outcome import asked_of, first_below, over_case, turn_result, votes_split
from workbench.metrics.judged.prompts import final_response_match as prompt
from workbench.metrics.judged.turn_texts import answer_text, user_text
from workbench.metrics.judged.verdict_reply import Verdict, read_verdict
from workbench.metrics.judged.voting import MAX_KEPT, Asked, ask, majority, still_needed
from workbench.model.criteria import Criterion


async def score(request: ScoreRequest, bench: Bench) -> Scored:
    """The verdict of each turn and their mean.

    Raises:
        NotScorableError: the conversations differ in length, or an option is refused.
        NotAvailableError: the judge cannot be asked here.
    """
    criterion = request.criterion
    pairs = turn_pairs(request)
    both = flag(criterion, "include_intermediate_responses_in_final")
    judge = judge_of(criterion, bench)
    questions = [
        prompt.question(
            # ADK takes the message from the reference: it is what the expected answer answers.
            user_text(expected),
            answer_text(actual, with_intermediate=both),
            answer_text(expected, with_intermediate=both),
        )
        for expected, actual in pairs
    ]
    asked = await asyncio.gather(
        *(ask(judge, question, read_verdict, open_votes, all_votes=bench.all_votes) for question in questions)
    )
    turns = [_turn(criterion, judge, each) for each in asked]
    overall = mean([turn.score for turn in turns if turn.score is not None])
    fine = "every answer means the same as the expected one"
    return over_case(criterion, turns, overall, first_below(turns, fine), {"judge": judge.identity.as_json()})


def open_votes(verdicts: Sequence[Verdict], left: int) -> int:
    """How many further samples are needed at least."""
    valid = sum(verdict.valid for verdict in verdicts)
    return still_needed(valid, len(verdicts) - valid, left)


def verdict_details(asked: Asked[Verdict], judge: Judge) -> dict[str, Any]:
    """What details keep of a question that is answered with valid or invalid."""
    answers = asked.answers
    valid = sum(verdict.valid for verdict in answers)
    votes = {"valid": valid, "invalid": len(answers) - valid, "unread": len(asked.samples) - len(answers)}
    return {
        "votes": votes,
        "asked": len(asked.samples),
        "of": asked.of,
        "split": votes_split(votes, ("valid", "invalid")),
        "questions": [asked.record(judge, _shown)],
    }


def verdict_reason(asked: Asked[Verdict], verdict: bool | None) -> str:
    """One sentence: the votes, and what the first judge on the winning side says."""
    if verdict is None:
        return f"no reply of the judge could be read ({asked_of(len(asked.samples), asked.of)}): {asked.unread}"
    winners = [answer for answer in asked.answers if answer.valid is verdict]
    name = "valid" if verdict else "invalid"
    said = f"{name} by {len(winners)} of {len(asked.answers)} votes ({asked_of(len(asked.samples), asked.of)})"
    reasoning = next((answer.reasoning for answer in winners if answer.reasoning), "")
    return f"{said}: {reasoning}" if reasoning else said


def _turn(criterion: Criterion, judge: Judge, asked: Asked[Verdict]) -> MetricResult:
    valid = sum(verdict.valid for verdict in asked.answers)
    verdict = majority(valid, len(asked.answers) - valid)
    reason = verdict_reason(asked, verdict)
    return turn_result(criterion, None if verdict is None else float(verdict), reason, verdict_details(asked, judge))


def _shown(verdict: Verdict) -> dict[str, str]:
    return {"verdict": "valid" if verdict.valid else "invalid", "rationale": verdict.reasoning[:MAX_KEPT]}
