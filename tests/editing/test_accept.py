"""Accepting an agent's behavior as expected: any part of it, and nothing else."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ui.transcripts import execute
from workbench.criteria.json_difference import ABSENT
from workbench.criteria.session_state import SessionStateOptions
from workbench.criteria.value_rules import compare
from workbench.editing.accept import Comparison, NotComparableError
from workbench.files.current_cases import validate_case
from workbench.files.evalset_edit import EvalsetText
from workbench.files.invocation import tool_calls

Json = dict[str, Any]


def text(words: str, role: str = "model") -> Json:
    return {"role": role, "parts": [{"text": words}]}


def call_event(name: str, args: Json | None, eval_id: str, author: str = "desk") -> Json:
    call = {"id": eval_id, "name": name} | ({} if args is None else {"args": args})
    return {"author": author, "content": {"role": "model", "parts": [{"function_call": call}]}}


def response_event(name: str, response: Json, eval_id: str, author: str = "desk") -> Json:
    part = {"function_response": {"id": eval_id, "name": name, "response": response}}
    return {"author": author, "content": {"role": "user", "parts": [part]}}


def said_event(author: str, words: str) -> Json:
    return {"author": author, "content": text(words)}


def actual_turn(*events: Json, answer: str = "Done.") -> Json:
    turn = {"user_content": text("Hello", "user"), "intermediate_data": {"invocation_events": list(events)}}
    return turn | ({"final_response": text(answer)} if answer else {})


def authored(calls: list[Json], answer: str = "Done.", texts: list[Any] | None = None) -> Json:
    data = {"tool_uses": calls, "intermediate_responses": texts or []}
    turn = {"invocation_id": "e-1", "user_content": text("Hello", "user"), "intermediate_data": data}
    return {"eval_id": "late_parcel", "conversation": [{**turn, "final_response": text(answer)}]}


def recorded(*events: Json, answer: str = "Done.") -> Json:
    return {"eval_id": "late_parcel", "conversation": [actual_turn(*events, answer=answer)]}


def camel(case: Any) -> Any:
    """Return the case in camelCase. Arguments and responses are the user's and stay."""
    from pydantic.alias_generators import to_camel

    if isinstance(case, list):
        return [camel(item) for item in case]
    if not isinstance(case, dict):
        return case
    return {to_camel(key): item if key in ("args", "response") else camel(item) for key, item in case.items()}


def calls_of(case: Json) -> list[tuple[str, Any]]:
    return [(call.name, call.args) for call in tool_calls(validated(case)["conversation"][0])]


def validated(case: Json) -> Json:
    value, breaches = validate_case(json.dumps(case).encode())
    assert value is not None, breaches
    return value


REFUND = {"name": "refund", "args": {"order": "A1", "amount": 12}}
LOOK = {"name": "look", "args": {"order": "A1"}}
_BOTH = {"tool_uses": [LOOK], "invocation_events": [said_event("a", "b")]}
BOTH_SHAPES = {"eval_id": "x", "conversation": [{"user_content": text("Hello", "user"), "intermediate_data": _BOTH}]}


def test_accepting_an_argument_changes_nothing_else() -> None:
    case = authored([LOOK, REFUND], answer="Here is your money.")
    actual = actual_turn(
        call_event("look", {"order": "A1"}, "1"), call_event("refund", {"order": "A1", "amount": 12.5}, "2")
    )
    found = Comparison(case, [actual]).hunks
    assert [(hunk.what, hunk.old, hunk.new) for hunk in found] == [
        ("refund: change amount", 12, 12.5),
        ("replace the answer", "Here is your money.", "Done."),
    ]
    changed = Comparison(case, [actual]).accepted(found[:1])
    wanted = copy.deepcopy(case)
    wanted["conversation"][0]["intermediate_data"]["tool_uses"][1]["args"]["amount"] = 12.5
    assert json.dumps(changed) == json.dumps(wanted)


def test_end_state_is_accepted_key_by_key() -> None:
    expected = {"cart": {"total": "2", "items": ["tea"], "at": "noon"}, "seen": 1, "tier": None}
    actual = {"cart": {"total": 2, "items": ["tea", "milk"], "at": "later"}, "tier": "gold", "new": True}
    case = {**authored([LOOK]), "final_session_state": expected}
    rules = SessionStateOptions.model_validate({"mode": "contains", "state_match": {"cart.at": "any"}}).rules
    comparison = Comparison(case, [actual_turn(call_event("look", {"order": "A1"}, "1"), answer="")], actual, rules)
    found = [(hunk.what, hunk.old, hunk.new) for hunk in comparison.hunks if hunk.kind == "state"]
    assert found == [
        ("end state: change cart.total", "2", 2),
        ("end state: no longer expect seen", 1, ABSENT),
        ("end state: change tier", None, "gold"),
    ]
    changed = comparison.accepted(hunk for hunk in comparison.hunks if hunk.steps != ("seen",) and hunk.steps)
    assert changed["final_session_state"] == {
        "cart": {"total": 2, "items": ["tea"], "at": "noon"},
        "seen": 1,
        "tier": "gold",
    }
    assert expected["seen"] == 1
    exact = SessionStateOptions.model_validate({"mode": "exact", "ignore": ["cart", "seen", "tier"]}).rules
    (added,) = [
        hunk for hunk in Comparison(case, [actual_turn(answer="")], actual, exact).hunks if hunk.kind == "state"
    ]
    assert (added.what, added.steps, added.old, added.new) == ("end state: expect new", ("new",), ABSENT, True)
    everything = Comparison(case, [actual_turn(answer="")], actual, exact).accepted([added])
    assert everything["final_session_state"]["new"] is True


def test_end_state_of_another_conversation_is_not_offered() -> None:
    case = {**authored([LOOK]), "final_session_state": {"a": 1}}
    case["conversation"].append({"user_content": text("Bye", "user")})
    comparison = Comparison(case, [actual_turn(), actual_turn()], {"a": 2})
    assert comparison.notes
    assert not any(hunk.kind == "state" for hunk in comparison.hunks)


def test_arguments_are_added_and_removed() -> None:
    case = authored([{"name": "refund", "args": {"order": "A1", "note": "x"}}])
    actual = actual_turn(call_event("refund", {"order": "A1", "urgent": True}, "1"))
    comparison = Comparison(case, [actual])
    assert [hunk.what for hunk in comparison.hunks] == ["refund: remove note", "refund: add urgent"]
    assert calls_of(comparison.accepted(comparison.hunks[:1])) == [("refund", {"order": "A1"})]
    assert calls_of(comparison.accepted(comparison.hunks)) == [("refund", {"order": "A1", "urgent": True})]


def test_missing_arguments_differ_from_an_empty_object() -> None:
    comparison = Comparison(authored([{"name": "look"}]), [actual_turn(call_event("look", {}, "1"))])
    assert [hunk.kind for hunk in comparison.hunks] == ["arguments"]
    assert calls_of(comparison.accepted(comparison.hunks)) == [("look", {})]


def test_calls_are_added_at_their_place_and_removed() -> None:
    case = authored([LOOK, {"name": "greet", "args": {}}])
    events = [call_event(name, {"order": "A1"}, name) for name in ("check", "look", "refund")]
    comparison = Comparison(case, [actual_turn(*events)])
    by_kind = {(hunk.kind, hunk.what): hunk for hunk in comparison.hunks}
    assert list(by_kind) == [
        ("call added", "add the call check"),
        ("call removed", "remove the call greet"),
        ("call added", "add the call refund"),
    ]
    last = by_kind["call added", "add the call refund"]
    assert [name for name, _ in calls_of(comparison.accepted([last]))] == ["look", "refund", "greet"]
    assert [name for name, _ in calls_of(comparison.accepted(comparison.hunks))] == ["check", "look", "refund"]


def test_order_of_calls_is_accepted_alone() -> None:
    case = authored([LOOK, REFUND])
    events = [call_event("refund", {"order": "A1", "amount": 12}, "1"), call_event("look", {"order": "A1"}, "2")]
    comparison = Comparison(case, [actual_turn(*events)])
    assert [hunk.kind for hunk in comparison.hunks] == ["order"]
    assert comparison.accepted(comparison.hunks)["conversation"][0]["intermediate_data"]["tool_uses"] == [REFUND, LOOK]


def test_recorded_case_keeps_its_form_authors_and_tool_results() -> None:
    case = recorded(
        call_event("look", {"order": "A1"}, "one", "boss"),
        response_event("look", {"late": False}, "one", "boss"),
        call_event("greet", {}, "two"),
        response_event("greet", {"ok": True}, "two"),
    )
    actual = actual_turn(
        call_event("look", {"order": "A1"}, "adk-1", "desk"),
        response_event("look", {"late": True}, "adk-1"),
        call_event("refund", {"amount": 12.5}, "one", "till"),
        response_event("refund", {"paid": True}, "one", "till"),
    )
    comparison = Comparison(case, [actual])
    assert [hunk.kind for hunk in comparison.hunks] == ["result", "call removed", "call added"]
    events = comparison.accepted(comparison.hunks)["conversation"][0]["intermediate_data"]["invocation_events"]
    assert events == [
        call_event("look", {"order": "A1"}, "one", "boss"),
        response_event("look", {"late": True}, "one", "boss"),
        # The id that the transcript has is taken.
        call_event("refund", {"amount": 12.5}, "one_2", "till"),
        response_event("refund", {"paid": True}, "one_2", "till"),
    ]


def test_intermediate_texts_are_added_changed_and_removed() -> None:
    case = authored([], texts=[["desk", [{"text": "One moment"}]], ["till", [{"text": "Paid"}]]])
    actual = actual_turn(said_event("desk", "Wait, please"), said_event("boss", "Fine"))
    comparison = Comparison(case, [actual])
    kinds = {hunk.kind: hunk for hunk in comparison.hunks}
    assert set(kinds) == {"text", "text removed", "text added"}
    changed = comparison.accepted([kinds["text"], kinds["text added"]])
    texts = changed["conversation"][0]["intermediate_data"]["intermediate_responses"]
    assert [(author, parts[0]["text"]) for author, parts in texts] == [
        ("desk", "Wait, please"),
        ("boss", "Fine"),
        ("till", "Paid"),
    ]


def test_unexpected_and_missing_answers_are_accepted() -> None:
    case = authored([])
    del case["conversation"][0]["final_response"]
    comparison = Comparison(case, [actual_turn()])
    assert comparison.accepted(comparison.hunks)["conversation"][0]["final_response"] == text("Done.")
    comparison = Comparison(authored([]), [actual_turn(answer="")])
    assert [hunk.what for hunk in comparison.hunks] == ["expect no answer"]
    assert "final_response" not in comparison.accepted(comparison.hunks)["conversation"][0]


@pytest.mark.parametrize(
    ("case", "turns", "words"),
    [
        ({"eval_id": "x", "conversationScenario": {"startingPrompt": "a", "conversationPlan": "b"}}, [], "scenario"),
        ({"eval_id": "x", "conversation": []}, [], "no turns"),
        (authored([]), [None], "did not complete this turn"),
        (authored([]), [{"user_content": text("Bye", "user")}], "has changed since"),
        (BOTH_SHAPES, [actual_turn()], "both tool_uses and"),
        ({"eval_id": "x", "conversation": ["Hello"]}, [actual_turn()], "turn 1: it is not an object"),
    ],
)
def test_case_that_cannot_be_accepted_has_a_reason(case: Json, turns: list[Any], words: str) -> None:
    with pytest.raises(NotComparableError, match=words):
        Comparison(case, turns)


def test_unreached_turn_does_not_block_the_others() -> None:
    case = authored([], answer="Other.")
    case["conversation"].append(copy.deepcopy(case["conversation"][0]))
    comparison = Comparison(case, [actual_turn(), None])
    assert [hunk.turn for hunk in comparison.hunks] == [0]
    assert comparison.notes == ("turn 2: the agent did not complete this turn in the last run",)


def test_file_changes_only_at_the_hunk() -> None:
    case = camel(authored([LOOK, REFUND]))
    content = json.dumps({"evalSetId": "s", "eval_cases": [case, case]}, indent=3).replace(": 12", ": 1.2e1").encode()
    document = EvalsetText(content)
    actual = actual_turn(
        call_event("look", {"order": "A1"}, "1"), call_event("refund", {"order": "B", "amount": 12}, "2")
    )
    comparison = Comparison(document.stored(1), [actual])
    changed = document.with_case(1, comparison.accepted(comparison.hunks))
    before, after = content.decode().split("\n"), changed.decode().split("\n")
    differ = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert [(one.strip(), other.strip()) for one, other in differ] == [('"order": "A1",', '"order": "B",')]


# Whatever case and whatever transcript

names = st.sampled_from(["look", "refund", "greet"])
values = st.sampled_from([1, 12.5, "A1", True, None, {"deep": [1, "é"]}])
arguments = st.none() | st.dictionaries(st.sampled_from(["order", "amount", "note"]), values, max_size=3)
words = st.sampled_from(["One moment", "お待ちください", "Fine"])
authors = st.sampled_from(["desk", "till"])


@st.composite
def event_lists(draw: st.DrawFn) -> list[Json]:
    found: list[Json] = []
    for number in range(draw(st.integers(0, 4))):
        if draw(st.booleans()) and draw(st.booleans()):
            found.append(said_event(draw(authors), draw(words)))
            continue
        name, author, eval_id = draw(names), draw(authors), f"id{number}"
        event = call_event(name, draw(arguments), eval_id, author)
        if draw(st.booleans()):
            event["content"]["parts"].insert(0, {"text": draw(words)})
        found.append(event)
        if draw(st.booleans()):
            found.append(response_event(name, {"result": draw(values)}, eval_id, author))
    return found


@st.composite
def own_turns(draw: st.DrawFn) -> Json:
    if draw(st.booleans()):
        return actual_turn(*draw(event_lists()), answer=draw(words))
    calls = draw(st.lists(st.builds(lambda name, args: {"name": name, "args": args}, names, arguments), max_size=4))
    texts = draw(st.lists(st.builds(lambda who, what: [who, [{"text": what}]], authors, words), max_size=3))
    turn: Json = authored(calls, draw(words), texts)["conversation"][0]
    return turn


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Json, list[Json]]:
    own = draw(st.lists(own_turns(), min_size=1, max_size=2))
    case = {"eval_id": "x", "conversation": own}
    actual = [actual_turn(*draw(event_lists()), answer=draw(words)) for _ in own]
    return (camel(case) if draw(st.booleans()) else case), actual


@settings(max_examples=100)
@given(pairs())
def test_accepting_all_hunks_gives_the_agents_behavior(pair: tuple[Json, list[Json]]) -> None:
    case, actual = pair
    before = json.dumps([case, actual])
    comparison = Comparison(case, actual)
    changed = comparison.accepted(comparison.hunks)
    assert json.dumps([case, actual]) == before
    assert Comparison(changed, actual).hunks == ()
    turns = validated(changed)["conversation"]
    record = execute(turns, actual)
    scores = {name: result.score for name, result in record.metrics.items()}
    assert scores["tool_trajectory_avg_score"] == 1.0
    # ROUGE knows words of Latin letters and digits only.
    if all(turn["final_response"]["parts"][0]["text"].isascii() for turn in actual):
        assert scores["response_match_score"] == 1.0
    assert [len(tool_calls(turn)) for turn in turns] == [len(tool_calls(turn)) for turn in actual]


@settings(max_examples=100)
@given(pairs(), st.data())
def test_any_subset_of_hunks_can_be_accepted_in_any_order(pair: tuple[Json, list[Json]], data: st.DataObject) -> None:
    case, actual = pair
    comparison = Comparison(case, actual)
    assert comparison.accepted([]) == case
    if not comparison.hunks:
        return
    chosen = data.draw(st.lists(st.sampled_from(comparison.hunks), unique=True))
    changed = comparison.accepted(chosen)
    assert json.dumps(changed) == json.dumps(comparison.accepted(reversed(chosen)))
    turns = {hunk.turn for hunk in chosen}
    for number, turn in enumerate(case["conversation"]):
        if number not in turns:
            assert changed["conversation"][number] == turn
    for turn in validated(changed)["conversation"]:
        _answers_follow_calls(turn)


@settings(max_examples=100)
@given(pairs())
def test_accepted_argument_changes_only_its_place(pair: tuple[Json, list[Json]]) -> None:
    case, actual = pair
    comparison = Comparison(case, actual)
    for hunk in comparison.hunks:
        if hunk.kind == "argument":
            (found,) = compare(_known(case), _known(comparison.accepted([hunk])), {}, "")
            assert found.path.endswith(f".args.{hunk.argument}")
            assert (found.expected, found.actual) == (_known(hunk.old), _known(hunk.new))


def _known(value: Any) -> Any:
    """Return the value with lists as texts, because a list is compared as a whole."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return repr(value)
    return [_known(item) for item in value] if isinstance(value, list) else value


def _answers_follow_calls(turn: Json) -> None:
    seen: set[str] = set()
    for event in (turn.get("intermediate_data") or {}).get("invocation_events") or ():
        for part in event["content"]["parts"]:
            if "function_call" in part:
                assert part["function_call"]["id"] not in seen
                seen.add(part["function_call"]["id"])
            elif "function_response" in part:
                assert part["function_response"]["id"] in seen
