"""Single rules: what they decide, and what they leave unclear instead of passing it."""

import json
from typing import Any

import pytest

from workbench.judge.heuristic.answers import compare
from workbench.judge.heuristic.claims import Claim, label
from workbench.judge.heuristic.rubrics import decide, situation
from workbench.judge.heuristic.user_messages import consistent

QUESTION = "Could I get a refund for E-5, please?"


@pytest.mark.parametrize(
    ("response", "reference", "valid"),
    [
        ("", "", True),
        ("", "Yes.", False),
        ("We open at noon!", "we open at noon", True),
        ("Your refund of 32.00 € for order E-5 is on its way.", "We are sending 32 euros back to you.", True),
        ("Thank you! Your refund of 32 € is on its way.", "Your refund of 32 € is on its way.", True),
        ("No, we are closed.", "Yes, we are open.", False),
        ("It takes 2 days.", "It takes 9 days.", False),
        ("It takes 48 hours.", "It takes 2 days.", True),
    ],
)
def test_comparable_answers_are_decided(response: str, reference: str, valid: bool) -> None:
    assert compare(QUESTION, response, reference).holds is valid


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("Pets are not allowed.", "Pets are allowed."),
        ("The pool is open in the garden.", "The pool is open."),
        ("The pool is open. That was last year.", "The pool is open."),
        ("The pool is open. But only for members.", "The pool is open."),
        ("The pool is open. The guard locked it.", "The pool is open."),
        ("The pool is open. Just kidding!", "The pool is open."),
        ("We send 12 € to me.", "We send 12 €."),
        ("Restart before you save.", "Save before you restart."),
        ("Bob paid Ann.", "Ann paid Bob."),
        ("The pool will open.", "The pool is open."),
        ("It costs 12 € and 3 € for the bag.", "It costs 12 €."),
        ("It is out of stock.", "It is in stock."),
        ("I cannot say.", "Breakfast is served at seven."),
        ("You may leave.", "You can cancel for free."),
        ("It seats 40.", "It seats 30."),
        ("駐車できません。", "駐車できます。"),
    ],
)
def test_answer_that_rules_cannot_compare_is_unclear(response: str, reference: str) -> None:
    assert compare("", response, reference).holds is None


def test_answer_need_not_repeat_the_question() -> None:
    assert compare("Where is D-21?", "Your parcel arrives in 3 days.", "D-21 arrives in 3 days.").holds


def context(*calls: tuple[str, Any, Any], user: str = "") -> list[dict[str, Any]]:
    """Return the context of a question about claims, with these (tool, arguments, result)."""
    pieces: list[dict[str, Any]] = [{"kind": "user", "name": "", "text": user, "call_id": None}]
    for number, (name, args, result) in enumerate(calls):
        for kind, value in (("call", args), ("result", result)):
            pieces.append({"kind": kind, "name": name, "text": json.dumps(value), "call_id": str(number)})
    return pieces


FIND = ("find_order", {"id": "A-7"}, {"id": "A-7", "item": "tea kettle", "price": 12.5, "paid": False})
TRACK = ("track_parcel", {"id": "A-7"}, {"id": "A-7", "status": "late", "days": 9, "note": "not before May"})
OTHER = ("find_order", {"id": "B-12"}, {"id": "B-12", "item": "desk lamp", "price": 40.0, "paid": True})


def labelled(sentence: str, *calls: tuple[str, Any, Any], user: str = "") -> Claim:
    return label([sentence], context(*calls, user=user))[0]


@pytest.mark.parametrize(
    ("sentence", "expected", "quote"),
    [
        ("Order A-7 is a tea kettle for 12.50 €.", "supported", '"price": 12.5'),
        ("I am sorry: your parcel for order A-7 is 9 days late.", "supported", '"days": 9'),
        ("It arrives in 2 days.", "contradictory", '"days": 9'),
        ("Order A-7 was paid.", "contradictory", '"paid": false'),
        ("It left our warehouse in Hamburg.", "unsupported", ""),
        ("It will be sent on 12 March.", "unsupported", ""),
        ("Can I help?", "not_applicable", ""),
    ],
)
def test_claims_found_in_tool_results_are_decided(sentence: str, expected: str, quote: str) -> None:
    claim = labelled(sentence, FIND, TRACK)
    assert (claim.label, claim.supporting_excerpt + claim.contradicting_excerpt) == (expected, quote)


@pytest.mark.parametrize(
    "sentence",
    [
        "The tea kettle is not late.",
        "The tea kettle is green.",
        "Order A-7 is a desk lamp.",
        "Both together cost 52.50 €.",
        "It has 5 parts.",
        "It comes before May.",
        "Order A-7 was lost.",
    ],
)
def test_claim_that_rules_cannot_look_up_is_unclear(sentence: str) -> None:
    assert labelled(sentence, FIND, TRACK, OTHER, user="Is it green, lost or 5 parts?").label == "unclear"


def test_claim_without_identifier_is_unclear_if_a_tool_was_called_twice() -> None:
    assert labelled("It is a desk lamp.", FIND, OTHER).label == "unclear"
    assert labelled("It is a desk lamp.", OTHER).label == "supported"


def test_words_of_the_user_do_not_support_claims() -> None:
    assert labelled("The parcel is late.", user="Is the parcel late?").label == "unclear"


def test_texts_too_long_for_rules_are_unclear() -> None:
    assert {claim.label for claim in label(["It is late."] * 201, context(TRACK))} == {"unclear"}
    assert labelled("It is late.", ("t", {}, {"text": "x" * 60_000})).label == "unclear"
    assert compare("", "a" * 30_000, "a" * 30_000).holds is None


SITUATION: dict[str, Any] = {
    "user": "Where is my kettle, A-7?",
    "answer": "I am sorry. Your kettle for 12.50 € is 9 days late.",
    "tools": {"desk": [{"name": "refund"}]},
    "steps": [
        {"call": {"name": "find_order", "args": {"id": "A-7"}}, "response": {"price": 12.5, "item": "kettle"}},
        {"call": {"name": "track_parcel", "args": {"id": "A-7"}}, "response": {"status": "late", "days": 9}},
    ],
    "conversation": None,
}


@pytest.mark.parametrize(
    ("rubric", "holds"),
    [
        ('The answer mentions "kettle".', True),
        ('The answer must not mention a "ticket".', True),
        ('The answer must not mention "kettle" or "ticket".', False),
        ('The response includes "kettle" and "lamp".', False),
        ("The answer is at most two sentences long.", True),
        ("The answer has fewer than 5 words.", False),
        ("The agent apologises.", True),
        ("The agent must not apologise.", False),
        ('If a tool result says "late", the agent apologises.', True),
        ('If a tool result says "lost", the agent thanks.', True),
        ("The answer names no date.", False),
        ("Every figure in the answer comes from a tool result.", True),
        ("The answer states the price.", True),
        ("The answer states the item of the order.", True),
        ("find_order is called before track_parcel.", True),
        ("track_parcel is called before find_order or refund.", False),
        ("find_order is called exactly once.", True),
        ("find_order is never called more than once.", True),
        ("refund is not called.", True),
        ("refund is called.", False),
        ("find_order is called with the id that the user named.", True),
    ],
)
def test_rubrics_with_a_matching_rule_are_decided(rubric: str, holds: bool) -> None:
    assert decide(rubric, situation(SITUATION)).holds is holds


@pytest.mark.parametrize(
    "rubric",
    [
        "",
        "The answer is friendly.",
        'The answer mentions "kettle" and is friendly.',
        "The agent apologises sincerely.",
        "If the parcel is late, the agent apologises.",
        "The answer states the weight.",
        "The answer is at most two sentences long, without jargon.",
        "unknown_tool is called once.",
        "Every figure in the answer comes from a tool result and is rounded.",
        "x" * 700,
    ],
)
def test_rubric_with_an_unknown_word_is_unclear(rubric: str) -> None:
    assert decide(rubric, situation(SITUATION)).holds is None


def test_rubrics_on_answers_are_unclear_if_only_calls_are_judged() -> None:
    assert decide("The agent apologises.", situation({**SITUATION, "answer": None})).holds is None


def test_figures_that_no_tool_returned_are_named() -> None:
    found = decide(
        "Every figure in the answer comes from a tool result.", situation({**SITUATION, "answer": "It is 2 days late."})
    )
    assert (found.holds, "2 days" in found.why) == (False, True)


def test_arguments_that_the_user_did_not_name_fail() -> None:
    found = decide("find_order is called with the id that the user named.", situation({**SITUATION, "user": "Hello"}))
    assert found.holds is False


PLAN = "Your order is A-7. Ask for a refund. When the refund is on its way, you are done."


@pytest.mark.parametrize(
    ("message", "heard", "expected"),
    [
        ("It is A-7.", "Which order is it?", True),
        ("I want a refund.", "It is late.", True),
        ("", "Hello", False),
        ("How can I help you?", "Hello", False),
        ("It is B-12.", "Which order is it?", False),
        ("Hello", "Which order is it?", False),
        ("I do not want a refund.", "It is late.", None),
        ("Is it sunny?", "It is late.", None),
        ("</finished>", "Which order is it?", False),
        ("</finished>", "Anything else?", False),
        ("</finished>", "Your refund for A-7 is on its way.", True),
        ("</finished>", "A-7 is a kettle.", None),
    ],
)
def test_messages_of_a_simulated_user_are_decided(message: str, heard: str, expected: bool | None) -> None:
    history = [{"role": "user", "text": "Hello"}, {"role": "agent", "text": heard}]
    data = {
        "plan": PLAN,
        "starting_prompt": "Hello",
        "history": history,
        "message": message,
        "stop_signal": "</finished>",
    }
    assert consistent(data).holds is expected


@pytest.mark.parametrize("sentence", ["We cancelled A-7.", "Ann lost A-7."])
def test_verb_before_an_identifier_is_part_of_the_claim(sentence: str) -> None:
    evidence = context(("find_order", {"id": "A-7"}, {"id": "A-7", "customer": "Ann"}))
    assert label([sentence], evidence)[0].label == "unclear"


@pytest.mark.parametrize(
    ("rubric", "answer"),
    [
        ('The answer mentions "art".', "We start at noon."),
        ('The answer must not mention "ticket".', "Here are two tickets."),
        ("The agent apologises.", "I am not sorry at all."),
        ("The agent apologises.", "No apology is due."),
        ("The answer names no date.", "It arrives next week."),
        ("The answer states the status.", "It was not shipped."),
    ],
)
def test_rubric_with_an_ambiguous_match_is_unclear(rubric: str, answer: str) -> None:
    steps = [{"call": {"name": "find_order", "args": {}}, "response": {"response": {"status": "shipped"}}}]
    assert decide(rubric, situation({"user": "", "answer": answer, "steps": steps})).holds is None
