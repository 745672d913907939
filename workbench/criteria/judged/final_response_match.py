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
from workbench.criteria.judged.evidence import answer_text, blocks, user_text
from workbench.criteria.judged.voting import (
    ask,
    case_result,
    first_failure,
    object_schema,
    open_votes,
    read_verdict,
    verdict_result,
)
from workbench.judges.base import Question

SCHEMA = object_schema(
    {
        "reasoning": {"type": "string", "description": "What is the same and what is not, in one to three sentences."},
        "verdict": {"type": "string", "enum": ["valid", "invalid"]},
    }
)

_TASK = """\
You check the work of an AI agent. You get a user's message, the reference answer that the author of the test expects,
and the agent's answer. Decide whether the agent's answer serves this user as the reference does.

Only the content counts:
- Each fact of the reference that the user asked for or needs must be in the agent's answer: figures with their units,
  names, dates, outcomes, conditions, and whether something was done, refused or asked back.
- How it is said is no fault: other words, another order, more or fewer sentences, another tone, lists, tables,
  Markdown, other ways to write the same number, date, time or amount.
- Additional details are no fault if they are compatible with the reference. They are a fault if they contradict it,
  or replace what was asked for.
- What the reference says besides, and the user neither asked for nor needs, may be missing.
- A wrong figure, name, unit or sign is a fault, however much else is right. So is a claim that something was done where
  the reference says it was not, or the other way round; so is doubt about an outcome of which the reference is sure.
- Take the reference as true, even if you know better.
- An empty answer is valid only if the reference is empty too.

"""
_REPLY = """
Compare first, then decide. Reply with one JSON object and nothing else:
{"reasoning": "what is the same and what is not, in one to three sentences", "verdict": "valid" or "invalid"}
"""


def answer_question(user: str, response: str, reference: str) -> Question:
    """Return the question that asks whether the answer serves the user as the reference does. Reply: see `SCHEMA`."""
    data = {"user": user, "response": response, "reference": reference}
    shown = blocks([("user's message", user), ("reference answer", reference), ("agent's answer", response)])
    return Question("final_response_match", _TASK + shown + _REPLY, SCHEMA, data)


async def score(request: ScoreRequest, bench: Bench) -> Scored:
    """Judge each turn. The score is their mean.

    Raises:
        NotScorableError: There is no reference, the conversations differ in length, or an option is refused.
        NotAvailableError: The judge cannot be used here.
    """
    criterion = request.criterion
    pairs = turn_pairs(request)
    options = read_options(AnswerOptions, criterion)
    both = options.include_intermediate_responses_in_final
    judge = bench.judge(options.judge_model_options.as_judge_options())
    questions = [
        answer_question(
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
    turns = [verdict_result(criterion, judge, each) for each in sampled]
    overall = mean(turn.score for turn in turns)
    fine = "every answer means the same as the expected one"
    return case_result(criterion, turns, overall, first_failure(turns, fine), {"judge": judge.identity.as_json()})
