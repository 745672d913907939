from typing import Any

import pytest

from tests.criteria.judged.scripts import Bench, Turn, call, event, request, result, rubric, said, samples, turn
from workbench.criteria.base import NotScorableError
from workbench.criteria.registry import score_with_bench

ANSWER = "rubric_based_final_response_quality_v1"
TOOLS = "rubric_based_tool_use_quality_v1"
WHOLE = "rubric_based_multi_turn_trajectory_quality_v1"


def _options(*rubrics: Turn, number: int = 5) -> Turn:
    return {"rubrics": list(rubrics), **samples(number)}


def _says(*by_sample: dict[str, str]) -> Any:
    def answer(question: Any, sample: int) -> Any:
        given = by_sample[min(sample, len(by_sample)) - 1]
        return {
            "verdicts": [{"id": each, "rationale": f"{each} {word}", "verdict": word} for each, word in given.items()]
        }

    return answer


async def test_details_hold_votes_and_the_winning_rationale() -> None:
    bench = Bench(_says({"a": "yes", "b": "yes"}, {"a": "yes", "b": "no"}, {"a": "yes", "b": "no"}, {"b": "no"}))
    scored = await score_with_bench(request(ANSWER, turn(), options=_options(rubric("a"), rubric("b"))), bench)
    assert (scored.result.status, scored.result.score) == ("passed", 0.5)
    a, b = scored.turns[0].details["rubrics"]
    assert (a["verdict"], a["score"], a["votes"]) == (
        "yes",
        1.0,
        {"yes": 3, "no": 0, "unclear": 0, "missing": 1, "unread": 0},
    )
    assert (b["verdict"], b["score"], b["rationale"], b["origin"]) == ("no", 0.0, "b no", "config")
    assert (b["asked"], b["of"]) == (4, 5)
    assert scored.turns[0].details["split"]
    assert scored.turns[0].reason == "1 of 2 rubrics fulfilled, not b: b no"
    assert scored.result.details["rubrics"] == [
        {"rubric_id": "a", "text": "text of a", "score": 1.0},
        {"rubric_id": "b", "text": "text of b", "score": 0.0},
    ]


async def test_rubric_without_a_verdict_is_an_error_that_keeps_the_score_of_the_rest() -> None:
    bench = Bench(_says({"a": "yes", "b": "unclear"}))
    scored = await score_with_bench(request(ANSWER, turn(), options=_options(rubric("a"), rubric("b"))), bench)
    assert (scored.result.status, scored.result.score, len(bench.asked)) == ("error", 1.0, 5)
    assert (scored.turns[0].status, scored.turns[0].score) == ("error", 1.0)
    assert scored.result.reason == "turn 1: the judge gave no verdict on b (5 samples): b unclear"
    assert scored.turns[0].details["rubrics"][1]["verdict"] == "unread"


async def test_reason_names_unreadable_replies() -> None:
    scored = await score_with_bench(request(ANSWER, turn(), options=_options(rubric("a"))), Bench(lambda *_: "hm"))
    assert scored.result.reason == "turn 1: no verdict (5 samples): the reply has no verdicts"
    assert scored.turns[0].details["rubrics"][0]["votes"]["unread"] == 5


async def test_replies_without_a_verdict_are_not_cached() -> None:
    both, one, unclear = {"a": "yes", "b": "no"}, {"a": "yes"}, {"a": "yes", "b": "unclear"}
    for replies, forgotten in (
        ((one, one, one), [1, 2, 3]),
        ((one, unclear, one), [1, 3]),
        ((both, one, both), []),
        ((unclear, unclear, unclear), []),
    ):
        bench = Bench(_says(*replies))
        await score_with_bench(request(ANSWER, turn(), options=_options(rubric("a"), rubric("b"), number=3)), bench)
        assert [sample for _, sample in bench.forgotten] == forgotten


async def test_turn_gets_rubrics_from_config_case_and_turns() -> None:
    kind = "FINAL_RESPONSE_QUALITY"
    first = turn(rubrics=[rubric("own", kind), rubric("other", "TOOL_USE_QUALITY"), rubric("plain")])
    first["rubrics"].append(rubric("misspelt", kind.lower()))
    expected = [turn(), turn(rubrics=[rubric("expected", kind)])]
    bench = Bench(_says({"config": "yes", "own": "yes", "case": "yes", "expected": "no"}))
    scored = await score_with_bench(
        request(
            ANSWER,
            first,
            turn(user="two"),
            expected=expected,
            rubrics=(rubric("case", kind),),
            options=_options(rubric("config")),
        ),
        bench,
    )
    rows = [[(row["rubric_id"], row["origin"]) for row in each.details["rubrics"]] for each in scored.turns]
    assert rows == [
        [("config", "config"), ("own", "turn"), ("case", "case")],
        [("config", "config"), ("case", "case"), ("expected", "turn")],
    ]
    assert scored.result.score == pytest.approx(5 / 6)
    assert scored.result.details["unused"] == ["plain", "misspelt"]
    assert scored.result.reason.endswith("; rubrics without a known type are not used: plain, misspelt")


async def test_score_is_the_mean_over_rubrics_not_turns() -> None:
    kind = "FINAL_RESPONSE_QUALITY"
    turns = (turn(rubrics=[rubric(each, kind) for each in "abc"]), turn(user="two", rubrics=[rubric("d", kind)]))
    bench = Bench(_says({"a": "yes", "b": "yes", "c": "yes", "d": "no"}))
    scored = await score_with_bench(request(ANSWER, *turns, expected=None), bench)
    assert (scored.turns[0].score, scored.turns[1].score, scored.result.score) == (1.0, 0.0, 0.75)


@pytest.mark.parametrize(
    ("options", "rubrics", "said"),
    [
        (_options(rubric("a")), (rubric("a", "FINAL_RESPONSE_QUALITY"),), "two rubrics with the id a"),
        (_options(rubric("a"), rubric("a")), (), "two rubrics with the id a"),
        ({}, (rubric("a", "X"), rubric("a", "Y")), "two rubrics with the id a"),
        ({"rubrics": [{"rubric_id": "a"}]}, (), "rubric_content"),
    ],
)
async def test_invalid_rubrics_are_refused(options: Turn, rubrics: Any, said: str) -> None:
    with pytest.raises(NotScorableError, match=said):
        await score_with_bench(request(ANSWER, turn(), rubrics=rubrics, options=options), Bench(_says({})))


async def test_case_without_rubrics_is_not_applicable_and_needs_no_judge() -> None:
    bench = Bench(_says({}))
    scored = await score_with_bench(request(ANSWER, turn()), bench)
    assert (scored.result.status, bench.asked) == ("not_applicable", [])
    scored = await score_with_bench(request(ANSWER, turn(), rubrics=(rubric("a"),)), bench)
    assert scored.result.reason == 'no rubrics: a lacks "type": "FINAL_RESPONSE_QUALITY"'


async def test_rubrics_in_only_some_turns_are_refused_as_in_adk() -> None:
    turns = (turn(rubrics=[rubric("a", "FINAL_RESPONSE_QUALITY")]), turn(user="two"))
    with pytest.raises(NotScorableError, match="turn 2 has no rubrics of type FINAL_RESPONSE_QUALITY"):
        await score_with_bench(request(ANSWER, *turns, expected=None), Bench(_says({})))


DESK = {"name": "desk", "instructions": "Be kind.", "tool_declarations": [{"name": "find"}]}
ACTED = turn(
    "It is 5.",
    event("desk", said("Let me see."), call("find", {"id": 7}, "c2"), call("find", {"id": 8}, "c1")),
    event("desk", result("find", {"price": 6}, "c1"), result("find", {"price": 5}, "c2")),
    event("desk", said("Found."), grounding_metadata={"web_search_queries": ["q"]}),
    user="price?",
    app_details={"agent_details": {"desk": DESK}},
)


async def test_question_about_answers_has_its_data() -> None:
    bench = Bench(_says({"a": "yes"}))
    options = {**_options(rubric("a")), "include_intermediate_responses_in_final": True}
    await score_with_bench(request(ANSWER, ACTED, options=options), bench)
    data = bench.asked[0][0].data
    assert data["answer"] == "Let me see.\nFound.\nIt is 5."
    assert data["instructions"] == "Agent desk:\nBe kind."
    assert data["tools"] == {"desk": [{"name": "find"}]}
    assert data["steps"] == [
        {"call": {"name": "find", "args": {"id": 7}}, "response": {"price": 5}},
        {"call": {"name": "find", "args": {"id": 8}}, "response": {"price": 6}},
    ]
    assert (data["grounding"], data["conversation"]) == ([{"web_search_queries": ["q"]}], None)


async def test_question_about_tool_calls_has_its_data() -> None:
    bench = Bench(_says({"a": "yes"}))
    await score_with_bench(request(TOOLS, ACTED, options=_options(rubric("a"))), bench)
    question = bench.asked[0][0]
    assert (question.data["answer"], question.data["instructions"], len(question.data["steps"])) == (None, "", 2)
    assert "It is 5." not in question.prompt
    assert '"price": 5' in question.prompt


async def test_calls_without_ids_get_results_in_order() -> None:
    data = {
        "tool_uses": [{"name": "f"}, {"name": "g"}, {"name": "f"}, {"name": "f"}],
        "tool_responses": [{"name": "f", "response": {"n": 1}}, {"name": "f", "response": {"n": 2}}],
    }
    bench = Bench(_says({"a": "yes"}))
    await score_with_bench(request(TOOLS, turn(intermediate_data=data), options=_options(rubric("a"))), bench)
    assert [step["response"] for step in bench.asked[0][0].data["steps"]] == [{"n": 1}, None, {"n": 2}, None]


async def test_conversation_is_judged_once_after_its_last_turn() -> None:
    kind = "TRAJECTORY_QUALITY"
    first = turn("Which one?", user="a price", rubrics=[rubric("lost", kind)])
    bench = Bench(_says({"case": "yes", "a": "no"}))
    scored = await score_with_bench(
        request(WHOLE, first, ACTED, expected=None, rubrics=(rubric("case", kind),), options=_options(rubric("a"))),
        bench,
    )
    assert [(each.status, each.score) for each in scored.turns] == [("not_applicable", None), ("passed", 0.5)]
    assert (scored.result.status, scored.result.score) == ("passed", 0.5)
    assert scored.result.reason == "turn 2: 1 of 2 rubrics fulfilled, not a: a no"
    (one, two) = bench.asked[0][0].data["conversation"]
    assert one == {"user": "a price", "events": [], "answer": {"author": "", "text": "Which one?"}}
    assert two["events"][0] == {"author": "desk", "text": "Let me see."}
    assert two["events"][3] == {"author": "desk", "result": {"name": "find", "response": {"price": 6}}}
    assert two["answer"] == {"author": "desk", "text": "It is 5."}


async def test_sampling_ends_when_all_rubrics_are_decided() -> None:
    given = [{"a": "yes", "b": word} for word in ("yes", "no", "yes", "no", "no")]
    bench = Bench(_says(*given))
    scored = await score_with_bench(request(ANSWER, turn(), options=_options(rubric("a"), rubric("b"))), bench)
    assert len(bench.asked) == 5
    assert [row["score"] for row in scored.turns[0].details["rubrics"]] == [1.0, 0.0]
