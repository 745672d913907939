"""final_response_match_v2: does a judge find the final answer equivalent to the expected one?

A turn scores 1.0 if most of the judge's votes are valid, else 0.0 (a tie is invalid). The case scores the mean of its
turns. The judge sees the user's message and both answers. With `include_intermediate_responses_in_final`, both answers
include the texts before them. An unreadable reply is no vote; a turn without any vote is an error.

Details of a turn: `votes` {"valid", "invalid", "unread"}, `asked`, `of`, `split`, `questions`. Details of the case:
`judge`.
"""

import asyncio

from workbench.criteria.base import Bench, Scored, ScoreRequest, mean, turn_pairs
from workbench.criteria.description import read_options
from workbench.criteria.judged.descriptions import AnswerOptions
from workbench.criteria.judged.outcome import case_result, first_failure, turn_result
from workbench.criteria.judged.turn_texts import answer_text, user_text
from workbench.criteria.judged.verdicts import (
    Verdict,
    open_votes,
    read_verdict,
    verdict_details,
    verdict_of,
    verdict_reason,
)
from workbench.criteria.judged.voting import SampledQuestion, ask
from workbench.criteria.prompts import final_response_match as prompt
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion
from workbench.judges.base import Judge


async def score(request: ScoreRequest, bench: Bench) -> Scored:
    """Judge each turn, and score the mean.

    Raises:
        NotScorableError: The conversations differ in length, or an option is refused.
        NotAvailableError: The judge cannot be used here.
    """
    criterion = request.criterion
    pairs = turn_pairs(request)
    options = read_options(AnswerOptions, criterion)
    both = options.include_intermediate_responses_in_final
    judge = bench.judge(options.judge_model_options.as_judge_options())
    questions = [
        prompt.question(
            # ADK takes the user's message from the reference, because the expected answer belongs to it.
            user_text(expected),
            answer_text(actual, with_intermediate=both),
            answer_text(expected, with_intermediate=both),
        )
        for expected, actual in pairs
    ]
    sampled = await asyncio.gather(
        *(ask(judge, question, read_verdict, open_votes, all_votes=bench.all_votes) for question in questions)
    )
    turns = [_turn(criterion, judge, each) for each in sampled]
    overall = mean(turn.score for turn in turns)
    fine = "every answer means the same as the expected one"
    return case_result(criterion, turns, overall, first_failure(turns, fine), {"judge": judge.identity.as_json()})


def _turn(criterion: Criterion, judge: Judge, sampled: SampledQuestion[Verdict]) -> MetricResult:
    verdict = verdict_of(sampled)
    reason = verdict_reason(sampled, verdict)
    return turn_result(criterion, None if verdict is None else float(verdict), reason, verdict_details(sampled, judge))
