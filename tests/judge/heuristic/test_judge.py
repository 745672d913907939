"""The heuristic judge as the pool uses it: the criteria can read its replies to every kind of question."""

import inspect
import json
import random
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.judge.answering import Answerer, JudgeCallError
from workbench.judge.base import JudgeOptions, Question, QuestionKind
from workbench.judge.heuristic import VERSION
from workbench.judge.heuristic.judge import Heuristic, reply
from workbench.metrics.judged.prompts import claims as claims_prompt
from workbench.metrics.judged.prompts import final_response_match, rubrics, sentences, user_message
from workbench.metrics.judged.rubric_reply import read_votes
from workbench.metrics.judged.rubric_sources import Rubric

OPTIONS = JudgeOptions(model="heuristic")
TURN: dict[str, Any] = {
    "rubrics": [{"id": "names", "text": 'The answer mentions "A-7".'}, {"id": "taste", "text": "It is elegant."}],
    "user": "Where is A-7?",
    "answer": "A-7 is late.",
    "instructions": "",
    "tools": {"desk": [{"name": "find_order"}]},
    "steps": [{"call": {"name": "find_order", "args": {"id": "A-7"}}, "response": {"status": "late"}}],
    "grounding": [],
    "conversation": None,
}
FIGURES = {
    "rubrics": [{"id": "figures", "text": "Every figure in the answer comes from a tool result."}],
    "answer": "5 €",
}


def _deep() -> Any:
    value: Any = 1
    for _ in range(200_000):
        value = [value]
    return value


async def ask(question: Question) -> Any:
    judge: Answerer = Heuristic()
    answered = await judge.answer(question, OPTIONS, 1)
    await judge.close()
    assert answered.text is not None
    assert answered.model_version == VERSION
    return json.loads(answered.text)


async def test_answer_is_compared_with_the_reference() -> None:
    said = await ask(final_response_match.question("How much?", "It is 12,50 €.", "12.50 EUR"))
    assert said["verdict"] == "valid"
    assert set(said) == set(final_response_match.SCHEMA["required"])


async def test_rubric_without_a_matching_rule_is_unclear() -> None:
    question = rubrics.question(TURN)
    answered = await Heuristic().answer(question, OPTIONS, 1)
    votes = read_votes(answered.text or "", [Rubric(r["id"], r["text"], "config") for r in TURN["rubrics"]])
    assert {name: vote.verdict for name, vote in votes.items()} == {"names": "yes", "taste": "unclear"}
    assert all(vote.rationale for vote in votes.values())


async def test_conversation_is_judged_by_all_answers_and_calls() -> None:
    events = [
        {"author": "desk", "call": {"name": "find_order", "args": {"id": "A-7"}}},
        {"author": "desk", "result": {"name": "find_order", "response": {"price": 12.5}}},
        {"author": "desk", "call": {"name": "refund", "args": {"amount": 12.5}}},
    ]
    asked = [{"id": "order", "text": "find_order is called before refund."}, {"id": "sorry", "text": "It apologises."}]
    turns = [
        {"user": "Hi", "events": [], "answer": {"author": "desk", "text": "Hello!"}},
        {"user": "Refund A-7", "events": events, "answer": {"author": "desk", "text": "Done."}},
    ]
    said = await ask(rubrics.question({**TURN, "rubrics": asked, "answer": None, "steps": [], "conversation": turns}))
    assert [entry["verdict"] for entry in said["verdicts"]] == ["yes", "no"]


async def test_claims_are_about_the_sentences_of_the_first_reply() -> None:
    text = "Hello! A-7 is late. It costs 99 €."
    found = (await ask(sentences.question(text)))["sentences"]
    assert found == ["Hello!", "A-7 is late.", "It costs 99 €."]
    result = '{\n "id": "A-7",\n "status": "late",\n "price": 12.5\n}'
    context = [{"kind": "result", "name": "find_order", "text": result, "event": 1, "call_id": None}]
    labelled = (await ask(claims_prompt.question(text, found, context)))["claims"]
    assert [(claim["number"], claim["label"]) for claim in labelled] == [
        (1, "not_applicable"),
        (2, "supported"),
        (3, "contradictory"),
    ]
    assert labelled[2]["contradicting_excerpt"] == '"price": 12.5'
    for claim in labelled:
        assert set(claim) == set(claims_prompt.SCHEMA["properties"]["claims"]["items"]["required"])
        assert claim["supporting_excerpt"] in result
        assert claim["contradicting_excerpt"] in result


async def test_messages_of_a_simulated_user_are_judged() -> None:
    scenario = {"conversation_plan": "You want a refund for A-7.", "starting_prompt": "Hello"}
    history = [{"role": "user", "text": "Hello"}, {"role": "agent", "text": "Which order is it?"}]
    told = await ask(user_message.question(scenario, history, "A-7", "</finished>"))
    left = await ask(user_message.question(scenario, history, "</finished>", "</finished>"))
    assert (told["verdict"], left["verdict"]) == ("valid", "invalid")


async def test_rules_refuse_to_play_a_user() -> None:
    question = Question("simulated_user", "", None, {"plan": "", "history": []})
    with pytest.raises(JudgeCallError, match="cannot simulate a user") as refused:
        await Heuristic().answer(question, OPTIONS, 1)
    assert not refused.value.retryable


async def test_malformed_data_is_a_fault_not_a_verdict() -> None:
    broken: list[tuple[QuestionKind, Any]] = [
        ("final_response_match", {"user": "x"}),
        ("rubrics", {"rubrics": ["x"]}),
        ("rubrics", {"rubrics": [], "steps": [None]}),
        ("rubrics", {}),
        ("claims", {"sentences": ["It costs 5 €."], "context": [3]}),
        ("sentences", {"text": None}),
        ("user_message", {"history": ["x"]}),
    ]
    for kind, data in broken:
        with pytest.raises(JudgeCallError, match="cannot read the data"):
            await Heuristic().answer(Question(kind, "", None, data), OPTIONS, 1)


async def test_deeply_nested_data_is_judged() -> None:
    data = {**TURN, **FIGURES, "steps": [{"call": {"name": "deep", "args": _deep()}, "response": None}]}
    assert (await ask(Question("rubrics", "", None, data)))["verdicts"][0]["verdict"] == "no"


async def test_lone_surrogates_are_judged() -> None:
    assert (await ask(Question("sentences", "", None, {"text": "So \ud800 it is. Yes."})))["sentences"] == [
        "So \ud800 it is.",
        "Yes.",
    ]


async def test_prompt_is_never_read() -> None:
    data = {"user": "How much?", "response": "99 €", "reference": "12 €"}
    replies = {
        (await Heuristic().answer(Question("final_response_match", prompt, None, data), OPTIONS, sample)).text
        for prompt in ("", "Reply with valid.")
        for sample in (1, 2, 3)
    }
    assert len(replies) == 1


PIECES = st.sampled_from(
    [
        "12.50 €",
        "A-7",
        "not",
        "no",
        "yes",
        ". ",
        "\n",
        "- ",
        "```",
        "「",
        "」",
        "。",
        "返金",
        "できません",
        "{",
        '"a": 1,',
        "3 days",
    ]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map(" ".join))


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, TEXTS)
async def test_any_texts_get_a_reply(one: str, two: str, three: str) -> None:
    for question in (
        final_response_match.question(one, two, three),
        sentences.question(one),
        claims_prompt.question(one, [one, two], [{"kind": "result", "name": two, "text": three, "call_id": None}]),
        rubrics.question({**TURN, "rubrics": [{"id": "1", "text": one}], "answer": two, "user": three}),
        rubrics.question({**TURN, "rubrics": [{"id": "1", "text": one}], "answer": None, "user": three}),
        user_message.question({"conversation_plan": one, "starting_prompt": two}, [], three, "</finished>"),
    ):
        assert isinstance(await ask(question), dict)


@settings(max_examples=40, deadline=None)
@given(TEXTS)
async def test_sentences_are_in_the_text_in_its_order(text: str) -> None:
    at = 0
    for sentence in (await ask(sentences.question(text)))["sentences"]:
        for line in filter(str.strip, sentence.splitlines()):
            at = text.index(line.strip(), at)


def work(question: Question) -> int:
    """Count the lines of Python that run for a question: a measure of work that needs no clock."""
    lines = 0

    def count(frame: Any, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    sys.settrace(count)
    try:
        reply(question)
    finally:
        sys.settrace(None)
    return lines


def long_text(sentences_in_it: int) -> str:
    generator = random.Random(7)
    words = ["parcel", "order", "late", "kettle", "refund", "price", "window", "river", "garden", "invoice"]
    return " ".join(
        f"The {generator.choice(words)} {generator.choice(words)} costs {generator.randint(1, 900)} euros."
        for _ in range(sentences_in_it)
    )


@pytest.mark.parametrize("kind", ["final_response_match", "claims", "sentences", "user_message"])
def test_work_is_linear_in_the_length_of_the_text(kind: str) -> None:
    def question(size: int) -> Question:
        text = long_text(size)
        if kind == "final_response_match":
            return final_response_match.question("How much?", text, text + " Yes.")
        if kind == "claims":
            context = [{"kind": "result", "name": "t", "text": text, "call_id": None}]
            return claims_prompt.question(text, [f"{part}." for part in text.split(". ")][:40], context)
        if kind == "sentences":
            return sentences.question(text)
        return user_message.question({"conversation_plan": text}, [], text, "</finished>")

    small, large = work(question(120)), work(question(480))
    assert large < 5 * small, (small, large)


def test_judge_implements_the_answerer_protocol() -> None:
    assert inspect.iscoroutinefunction(Heuristic.answer)
