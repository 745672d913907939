import asyncio
from typing import Any

import pytest

from tests.criteria.judged.scripts import Bench, event, request, said, samples, turn, verdicts
from workbench.criteria.base import NotScorableError
from workbench.criteria.registry import score_with_bench
from workbench.judges.base import Reply

NAME = "final_response_match_v2"


async def test_three_equal_samples_of_five_decide_the_verdict() -> None:
    bench = Bench(verdicts("valid", "valid", "valid"))
    scored = await score_with_bench(request(NAME, turn("Paris", user="capital?")), bench)
    assert (scored.result.status, scored.result.score) == ("passed", 1.0)
    assert scored.result.details["judge"]["model"] == "scripted"
    details = scored.turns[0].details
    assert (details["asked"], details["of"], details["split"]) == (3, 5, False)
    assert details["votes"] == {"valid": 3, "invalid": 0, "unread": 0}
    (record,) = details["questions"]
    assert "Paris" in record["prompt"]
    assert [reply["verdict"] for reply in record["replies"]] == [{"verdict": "valid", "rationale": "it is valid"}] * 3
    assert scored.turns[0].reason == "valid by 3 of 3 votes (3 of 5 samples): it is valid"


async def test_all_votes_requests_every_sample_and_marks_a_split() -> None:
    bench = Bench(verdicts("valid", "invalid", "valid", "valid", "invalid"), all_votes=True)
    scored = await score_with_bench(request(NAME, turn()), bench)
    assert len(bench.asked) == 5
    assert scored.turns[0].details["split"]
    assert scored.turns[0].reason.startswith("valid by 3 of 5 votes (5 samples)")


async def test_turn_without_votes_is_an_error_and_other_turns_keep_their_scores() -> None:
    def answer(question: Any, sample: int) -> Any:
        return "no idea" if question.data["user"] == "second" else {"verdict": "valid"}

    scored = await score_with_bench(request(NAME, turn(), turn(user="second"), options=samples(3)), Bench(answer))
    assert (scored.result.status, scored.result.score) == ("error", 1.0)
    assert scored.result.reason == "turn 2: no verdict (3 samples): the reply has no verdict"
    assert [each.status for each in scored.turns] == ["passed", "error"]
    (record,) = scored.turns[1].details["questions"]
    assert [reply["text"] for reply in record["replies"]] == ["no idea"] * 3


async def test_turn_with_some_failed_calls_still_gets_a_verdict() -> None:
    scored = await score_with_bench(
        request(NAME, turn()), Bench(verdicts("fault", "valid", "valid", "garbage", "valid"))
    )
    assert (scored.result.status, scored.turns[0].details["votes"]["unread"]) == ("passed", 2)
    assert scored.turns[0].details["asked"] == 4


async def test_option_adds_intermediate_texts_to_both_answers() -> None:
    actual = turn("B", event("a", said("A")))
    expected = {
        "user_content": {"parts": [{"text": "expected user"}]},
        "final_response": {"parts": [{"text": "Y"}]},
        "intermediate_data": {"intermediate_responses": [["a", [{"text": "X"}]]]},
    }
    for options, answers in (({}, ("B", "Y")), ({"include_intermediate_responses_in_final": True}, ("A\nB", "X\nY"))):
        bench = Bench(verdicts("valid", "valid", "valid"))
        await score_with_bench(request(NAME, actual, expected=[expected], options=options), bench)
        data = bench.asked[0][0].data
        assert (data["response"], data["reference"]) == answers
        assert data["user"] == "expected user"


async def test_empty_answer_is_judged() -> None:
    bench = Bench(verdicts("invalid", "invalid", "invalid"))
    scored = await score_with_bench(request(NAME, turn(None)), bench)
    assert (scored.result.status, bench.asked[0][0].data["response"]) == ("failed", "")


@pytest.mark.parametrize(
    "options",
    [
        {"judge_model_options": {"num_samples": 0}},
        {"judge_model_options": {"samples": 2}},
        {"include_intermediate_responses_in_final": "maybe"},
    ],
)
async def test_invalid_options_are_refused(options: Any) -> None:
    with pytest.raises(NotScorableError, match=NAME):
        await score_with_bench(request(NAME, turn(), options=options), Bench(verdicts()))


async def test_judge_gets_the_options_of_its_criterion() -> None:
    options = {"judge_model_options": {"judge_model": "m", "num_samples": 1, "parallelism_limit": 7}}
    bench = Bench(verdicts("valid"))
    await score_with_bench(request(NAME, turn(), options=options), bench)
    assert (bench.options.model, bench.options.samples, bench.options.parallel) == ("m", 1, 7)


async def test_all_turns_are_judged_concurrently() -> None:
    everybody = asyncio.Event()

    class Slow(Bench):
        async def ask(self, question: Any, sample: int = 1) -> Reply:
            reply = await super().ask(question, sample)
            if len(self.asked) == 12:
                everybody.set()
            await everybody.wait()
            return reply

    bench = Slow(verdicts("valid", "valid", "valid"))
    turns = [turn(user=str(number)) for number in range(4)]
    async with asyncio.timeout(60):
        scored = await score_with_bench(request(NAME, *turns), bench)
    assert (scored.result.score, len(bench.asked)) == (1.0, 12)


async def test_cancelled_scoring_ends_at_once() -> None:
    gone = []

    class Stuck(Bench):
        async def ask(self, question: Any, sample: int = 1) -> Reply:
            try:
                await asyncio.Event().wait()
            finally:
                gone.append(sample)
            raise AssertionError

    task = asyncio.create_task(score_with_bench(request(NAME, turn(), turn()), Stuck(verdicts())))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(gone) == [1, 1, 2, 2, 3, 3]
