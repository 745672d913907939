from typing import Any

import pytest

from tests.criteria.judged.scripts import Bench, request, samples, turn
from workbench.criteria.registry import score_with_bench

NAME = "per_turn_user_simulator_quality_v1"
SCENARIO = {"starting_prompt": "I need a flight.", "conversation_plan": "Book one, to Rome.", "user_persona": None}
TURNS = (turn("Where to?", user=" I need a flight.\n"), turn("Booked.", user="To Rome."))


def _judge(**words: str) -> Any:
    """Answer the question about stopping with `stop`, and all others with `message`."""

    def answer(question: Any, sample: int) -> Any:
        stops = question.data["message"] == question.data["stop_signal"]
        return {"verdict": words["stop" if stops else "message"], "reasoning": "so"}

    return answer


def _request(*turns: Any, **others: Any) -> Any:
    others = {"scenario": SCENARIO, "expected": None, **others}
    return request(NAME, *(turns or TURNS), **others)


async def test_every_message_and_the_stop_is_judged() -> None:
    bench = Bench(_judge(message="valid", stop="valid"))
    scored = await score_with_bench(_request(), bench)
    assert (scored.result.status, scored.result.score) == ("passed", 1.0)
    first, second = scored.turns
    assert first.details == {"compared": True, "message": " I need a flight.\n"}
    assert (second.details["message"], second.details["asked"], second.details["of"]) == ("To Rome.", 3, 5)
    assert scored.result.details["stop"]["verdict"] == "valid"
    assert scored.result.details["plan"] == "Book one, to Rome."
    message, stop = (question for question, sample in bench.asked if sample == 1)
    assert message.data["history"] == [
        {"role": "user", "text": " I need a flight.\n"},
        {"role": "agent", "text": "Where to?"},
    ]
    assert len(stop.data["history"]) == 4
    assert (stop.data["message"], stop.data["stop_signal"]) == ("</finished>", "</finished>")
    assert "Here the next message is the stop signal" in stop.prompt
    assert "Here the next message is the stop signal" not in message.prompt


async def test_wrong_stop_sets_the_last_turn_to_zero() -> None:
    for threshold in (0.0, 0.5, 1.0):
        bench = Bench(_judge(message="valid", stop="invalid"))
        scored = await score_with_bench(_request(threshold=threshold), bench)
        assert [each.score for each in scored.turns] == [1.0, 0.0]
        assert scored.result.score == 0.5
        assert scored.result.reason.startswith("turn 2: stopping after the last turn: invalid by 3 of 3 votes")


@pytest.mark.parametrize(("lost", "scores"), [("message", [1.0, None]), ("stop", [1.0, 1.0])])
async def test_unjudged_message_is_an_error(lost: str, scores: list[float | None]) -> None:
    words = {"message": "valid", "stop": "valid", lost: "who knows"}
    scored = await score_with_bench(_request(), Bench(_judge(**words)))
    assert (scored.result.status, scored.result.score) == ("error", 1.0)
    assert [each.score for each in scored.turns] == scores
    assert scored.result.details["stop"]["verdict"] == ("unread" if lost == "stop" else "valid")


async def test_first_message_must_be_the_starting_prompt() -> None:
    bench = Bench(_judge(stop="valid"))
    scored = await score_with_bench(_request(turn(user="A flight!"), options=samples(1)), bench)
    assert (scored.result.status, scored.result.score, len(bench.asked)) == ("failed", 0.0, 1)
    assert scored.result.reason == "turn 1: the first message is not the starting prompt"
    nothing = await score_with_bench(_request({"user_content": {"role": "user"}}), bench)
    assert (nothing.result.status, nothing.result.score) == ("error", None)


async def test_question_uses_the_cases_persona_and_the_configs_stop_signal() -> None:
    persona = {"id": "GRUMPY", "description": "Grumbles.", "behaviors": []}
    bench = Bench(_judge(message="valid", stop="valid"))
    scenario = {**SCENARIO, "user_persona": persona}
    await score_with_bench(_request(scenario=scenario, options={"stop_signal": "BYE"}), bench)
    question = bench.asked[0][0]
    assert question.data["persona"] == persona
    assert "Grumbles." in question.prompt
    assert "BYE" in question.prompt


async def test_case_without_scenario_is_not_applicable() -> None:
    scored = await score_with_bench(request(NAME, turn()), Bench(_judge()))
    assert scored.result.status == "not_applicable"
    scored = await score_with_bench(request(NAME, expected=[turn()], scenario=SCENARIO), Bench(_judge()))
    assert scored.result.status == "not_applicable"
