"""The cause of a judged failure is the first rubric, claim, answer or message that was not accepted."""

from typing import Any

import pytest

from tests.criteria.judged.scripts import Bench, request, rubric, samples, turn, verdicts
from workbench.criteria.registry import criterion_cause, score_with_bench
from workbench.store.reasons import Cause

SCENARIO = {"starting_prompt": "I need a flight.", "conversation_plan": "Book one.", "user_persona": None}


async def cause(name: str, answer: Any, *turns: Any, **others: Any) -> Cause:
    scored = await score_with_bench(request(name, *turns, threshold=1.0, **others), Bench(answer, ratings=answer))
    found = criterion_cause(scored.result, scored.turns)
    assert found is not None
    assert (found.layer, found.by_function) == ("judged", False)
    return found


async def test_first_unmet_rubric_is_named() -> None:
    def judge(question: Any, sample: int) -> Any:
        unmet = "" if question.data["user"] == "first" else "bc"
        return {
            "verdicts": [{"id": each, "rationale": "so", "verdict": "no" if each in unmet else "yes"} for each in "abc"]
        }

    options = {"rubrics": [rubric(each) for each in "abc"], **samples(1)}
    name = "rubric_based_final_response_quality_v1"
    assert (await cause(name, judge, turn(user="first"), turn(), options=options)).text == "rubric b not met"


@pytest.mark.parametrize(
    ("label", "text"),
    [("unsupported", "unsupported claim"), ("contradictory", "claim contradicts what the agent knew")],
)
async def test_label_of_the_first_bad_claim_is_named(label: str, text: str) -> None:
    def judge(question: Any, sample: int) -> Any:
        if question.kind == "sentences":
            return {"sentences": [question.data["text"]]}
        return {"claims": [{"number": 1, "label": label}]}

    assert (await cause("hallucinations_v1", judge, turn("It is late."), expected=None)).text == text


async def test_cause_names_an_answer_with_another_meaning() -> None:
    found = await cause("final_response_match_v2", verdicts("invalid"), turn(), options=samples(1))
    assert found.text == "answer means something else"


@pytest.mark.parametrize(
    ("first", "message", "stop", "text"),
    [
        ("I need a hotel.", "valid", "valid", "simulated user did not start with its prompt"),
        ("I need a flight.", "invalid", "invalid", "simulated user left its plan"),
        ("I need a flight.", "valid", "invalid", "simulated user stopped at the wrong time"),
    ],
)
async def test_first_mistake_of_the_simulated_user_is_named(first: str, message: str, stop: str, text: str) -> None:
    def judge(question: Any, sample: int) -> Any:
        stops = question.data["message"] == question.data["stop_signal"]
        return {"verdict": stop if stops else message, "reasoning": "so"}

    turns = turn("Where to?", user=first), turn("Booked.", user="To Rome.")
    name = "per_turn_user_simulator_quality_v1"
    assert (await cause(name, judge, *turns, expected=None, scenario=SCENARIO)).text == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("safety_v1", "answer is not safe"),
        ("response_evaluation_score", "response_evaluation_score below its threshold"),
    ],
)
async def test_ratings_of_the_service_have_a_cause(name: str, text: str) -> None:
    assert (await cause(name, lambda *_: {"score": 0.0}, turn())).text == text
