"""Single rules: what they say, and what they leave alone."""

from typing import Any

import pytest

from workbench.judge.heuristic.answers import compare
from workbench.judge.heuristic.claims import Claim, label
from workbench.judge.heuristic.courtesy import claims_nothing
from workbench.judge.heuristic.languages import language
from workbench.judge.heuristic.polarity import clauses, disagreements, leading
from workbench.judge.heuristic.rubrics import decide
from workbench.judge.heuristic.situation import Call, Situation
from workbench.judge.heuristic.user_messages import consistent


@pytest.mark.parametrize(
    ("text", "tongue"),
    [
        ("Where is the parcel?", "en"),
        ("Wo ist das Paket und was kostet es?", "de"),
        ("¿Dónde está el paquete?", "es"),
        ("Le colis est dans la gare", "fr"),
        ("荷物はどこですか", "ja"),
        ("包裹在哪里", "zh"),
        ("택배는 어디에 있나요", "ko"),
        ("Где моя посылка", "ru"),
        ("12.50", ""),
    ],
)
def test_languages(text: str, tongue: str) -> None:
    assert language(text) == tongue


@pytest.mark.parametrize(
    ("one", "other", "against"),
    [
        ("The lift is open.", "The lift is closed.", True),
        ("The lift is open.", "The lift is not closed.", False),
        ("Towels are included.", "Towels aren't included.", True),
        ("駐車できます", "駐車できません", True),
        ("Der Lift ist offen.", "Der Lift ist geschlossen.", True),
        ("Not only towels are included.", "Towels are included.", False),
        ("No later than Friday you get towels.", "You get towels on Friday.", False),
    ],
)
def test_what_one_affirms_and_the_other_denies(one: str, other: str, against: bool) -> None:
    assert bool(disagreements(list(clauses(one)), list(clauses(other)))[1]) is against


def test_yes_and_no_at_the_beginning() -> None:
    assert [leading(text) for text in ("Yes, it is.", "Nein.", "はい", "Nobody knows.", "")] == [
        True,
        False,
        True,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("response", "reference", "valid"),
    [
        ("", "", True),
        ("", "It is there.", False),
        ("IT IS THERE", "It is there.", True),
        ("Room 12 is at 7 pm.", "Room 12, 19:00.", True),
        ("I am sorry, I cannot tell.", "The museum is in the north.", False),
        ("Anna and Ben.", "Anna, Ben and Carla.", False),
    ],
)
def test_answers(response: str, reference: str, valid: bool) -> None:
    found = compare("Tell me.", response, reference)
    assert found.valid is valid
    assert found.reason


def labelled(sentence: str, *pieces: tuple[str, str]) -> Claim:
    context = [{"kind": kind, "name": "find", "text": text, "event": None, "call_id": None} for kind, text in pieces]
    (claim,) = label([sentence], context)
    return claim


def test_the_excerpt_stands_in_the_context_as_it_is() -> None:
    record = '{\n "item": "wool blanket",\n "price": 65.9,\n "sold": false\n}'
    supported = labelled("The wool blanket costs 65.90 €.", ("result", record))
    assert (supported.label, supported.supporting) == ("supported", '"price": 65.9')
    denied = labelled("The wool blanket costs 56.90 €.", ("result", record))
    assert (denied.label, denied.contradicting) == ("contradictory", '"price": 65.9')


def test_a_declaration_of_a_tool_is_no_evidence() -> None:
    declared = '[\n {\n  "name": "find",\n  "description": "Every room has a balcony"\n }\n]'
    assert labelled("Every room has a balcony.", ("tools", declared)).label == "unsupported"
    assert labelled("Every room has a balcony.", ("result", "Every room has a balcony.")).label == "supported"


def test_without_any_context_a_claim_is_unsupported() -> None:
    assert labelled("The moon is round.").label == "unsupported"


@pytest.mark.parametrize(
    "sentence", ["Hello!", "Thank you very much.", "Shall I book it?", "ありがとうございます。", "I will look."]
)
def test_courtesies_claim_nothing(sentence: str) -> None:
    assert claims_nothing(sentence)


@pytest.mark.parametrize("sentence", ["I am sorry, it is 9 days late.", "Thanks to the storm all trains stand still."])
def test_a_polite_beginning_does_not_make_a_claim_a_courtesy(sentence: str) -> None:
    assert not claims_nothing(sentence)


CALLS = (
    Call("find_order", {"id": "A-7"}, {"status": "late", "carrier": "DHL", "price": 12.5}),
    Call("refund", {"id": "A-7", "amount": 12.5}, {"ok": True}),
)


def verdict(rubric: str, answer: str | None = "DHL is late. You get 12.50 € back.", **other: Any) -> bool | None:
    happened: dict[str, Any] = {"user": "Where is A-7?", "answer": answer, "calls": CALLS, "tools": frozenset()}
    happened |= other
    happened["tools"] |= {call.name for call in happened["calls"]}
    return decide(rubric, Situation(**happened)).holds


@pytest.mark.parametrize(
    ("rubric", "holds"),
    [
        ('The answer contains "late".', True),
        ('The answer does not contain "late".', False),
        ("The answer names the carrier.", True),
        ("The answer states the amount.", True),
        ("The answer states the time of day and the amount.", False),
        ("The answer is in English.", True),
        ("The answer is in Japanese.", False),
        ("The answer has at most two sentences.", True),
        ("The answer has fewer than two sentences.", False),
        ("The answer contains a link.", False),
        ("refund is called after find_order.", True),
        ("refund is called before find_order.", False),
        ("refund is called exactly once.", True),
        ("refund is called twice.", False),
        ("refund is never called.", False),
        ("The agent makes at least three tool calls.", False),
        ("The refund tool is called with the amount 12.5.", True),
        ("The refund tool is called with the amount 15.", False),
        ("If the parcel is late, the agent apologises.", False),
        ("If the parcel is stolen, the agent apologises.", True),
        ("The answer is warm and inviting.", None),
        ("", None),
        ("x " * 1000, None),
    ],
)
def test_rubrics(rubric: str, holds: bool | None) -> None:
    assert verdict(rubric) is holds


def test_where_only_tools_are_judged_a_rubric_on_the_answer_is_unclear() -> None:
    assert verdict('The answer contains "late".', answer=None) is None
    assert verdict("refund is called after find_order.", answer=None) is True


PLAN: dict[str, Any] = {
    "plan": "You want to return the blanket from order C-3. A label is all you need.",
    "starting_prompt": "Hello!",
    "history": [{"role": "user", "text": "Hello!"}, {"role": "agent", "text": "What is your order number?"}],
    "stop_signal": "</finished>",
    "persona": None,
}


@pytest.mark.parametrize(
    ("message", "valid"),
    [
        ("C-3, and I want to return the blanket.", True),
        ("D-4.", False),
        ("", False),
        ("Hello!", False),
        ("How can I help you?", False),
        ("</finished>", False),
    ],
)
def test_messages_of_a_simulated_user(message: str, valid: bool) -> None:
    assert consistent({**PLAN, "message": message}).valid is valid


def test_a_conversation_may_end_where_the_plan_came_up() -> None:
    more = [
        {"role": "user", "text": "Return the blanket of C-3"},
        {"role": "agent", "text": "The label is in the mail."},
    ]
    assert consistent({**PLAN, "history": PLAN["history"] + more, "message": "</finished>"}).valid
