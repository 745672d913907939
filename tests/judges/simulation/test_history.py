"""The conversation as a simulated user sees it."""

from typing import Any

from tests.judges.simulation.conversations import said, turn
from workbench.judges.simulated_user import history, transcript

CALL = {"author": "desk", "content": {"parts": [{"function_call": {"name": "find", "args": {"b": 1, "a": "é"}}}]}}
RESULT = {"author": "desk", "content": {"parts": [{"function_response": {"name": "find", "response": {"ok": True}}}]}}


def spoken(turns: list[dict[str, Any]], **options: bool) -> list[tuple[str, str]]:
    return [(line.author, line.text) for line in history(turns, **options)]


def test_texts_of_user_and_agents_are_in_order() -> None:
    waiter = {"author": "waiter", "content": said("model", "One moment.", "I look.")}
    turns = [turn("Hi", "Hello"), turn("A table", "Done", waiter)]
    assert spoken(turns) == [
        ("user", "Hi"),
        ("desk", "Hello"),
        ("user", "A table"),
        ("waiter", "One moment."),
        ("waiter", "I look."),
        ("desk", "Done"),
    ]


def test_calls_are_included_only_on_request() -> None:
    turns = [turn("Find it", "Found", CALL, RESULT)]
    assert spoken(turns) == [("user", "Find it"), ("desk", "Found")]
    assert spoken(turns, function_calls=True) == [
        ("user", "Find it"),
        ("desk", '[calls find with {"a": "é", "b": 1}]'),
        ("desk", '[find gives {"ok": true}]'),
        ("desk", "Found"),
    ]


def test_thoughts_are_left_out() -> None:
    asked = turn("Hi", "Hello")
    asked["final_response"]["parts"].insert(0, {"text": "They greet me.", "thought": True})
    assert spoken([asked]) == [("user", "Hi"), ("desk", "Hello")]


def test_answer_repeated_in_its_event_appears_once() -> None:
    answer = {"author": "desk", "content": said("model", "Done")}
    made = {**turn("Go", "Done"), "intermediate_data": {"invocation_events": [answer]}}
    assert spoken([made]) == [("user", "Go"), ("desk", "Done")]


def test_grounding_event_does_not_replace_the_answer() -> None:
    grounded = {"author": "search", "grounding_metadata": {}}
    waiter = {"author": "waiter", "content": said("model", "One moment.")}
    assert spoken([turn("Go", "Done", grounded, waiter)])[-1] == ("desk", "Done")


def test_turns_may_lack_events_or_answer() -> None:
    assert spoken([{"user_content": said("user", "Hi"), "final_response": said("model", "Hello")}]) == [
        ("user", "Hi"),
        ("agent", "Hello"),
    ]
    assert spoken([{"user_content": said("user", "Hi")}]) == [("user", "Hi")]


def test_transcript_joins_authors_and_texts() -> None:
    assert transcript(history([turn("Hi", "Hello")])) == "user: Hi\n\ndesk: Hello"
