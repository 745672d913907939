"""The rules by which a fork compares its beginning with the recording, without an agent."""

from typing import Any

import pytest

from workbench.worker.fork import Asked, Fork
from workbench.worker.matching import Recorded

POINT = {"kind": "tool", "agent": "desk", "branch": "", "tool": "pay", "state": "s3"}


def text(author: str, said: str) -> dict[str, Any]:
    return {"author": author, "content": {"parts": [{"text": said}]}}


def called(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    part = {"function_call": {"id": call_id, "name": name, "args": args}}
    return {"author": "desk", "content": {"parts": [part]}}


def asked(tool: str = "pay", state: str | None = "s3", **args: Any) -> Asked:
    return Asked("tool" if tool else "model", "desk", "", tool, args, state)


def fork(turn: int = 1, **settings: Any) -> Fork:
    """Return a fork after two calls of `find`, one in each turn."""
    made = Fork({"turn": turn, "next": [POINT], **settings})
    for number, state in ((0, "s1"), (1, "s2")):
        call = {
            "kind": "tool",
            "turn": number,
            "agent": "desk",
            "tool": "find",
            "args": {"n": number},
            "answer": number,
        }
        made.load(Recorded({**call, "state": state}))
    made.expect(0, called("find", "then", n=0))
    made.expect(0, text("desk", "found"))
    made.expect(1, called("find", "then", n=1))
    return made


def play(made: Fork, first: str = "found") -> str:
    """Let the agent do what was recorded, until the point. Return the difference, or ""."""
    for number, (said, state) in enumerate((("", "s1"), ("", "s2"))):
        fault = made.begin_turn(number)
        if fault is not None:
            return fault["message"]
        made.note(number, called("find", "now", n=number))
        find = Asked("tool", "desk", "", "find", {"n": number}, state)
        fault = made.check(find)
        if fault is not None:
            return fault["message"]
        assert made.take(find) is not None, said
        if not number:
            made.note(0, text("desk", first))
    return ""


def test_equal_beginning_passes_and_everything_after_it_is_live() -> None:
    made = fork()
    assert play(made) == ""
    assert made.recorded(asked()) is None
    assert made.check(asked()) is None
    assert made.passed
    assert made.take(Asked("tool", "desk", "", "find", {"n": 1}, None)) is None
    assert made.check(asked("other", "another")) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (asked("refund", order=1), "turn 2: then desk called pay, now desk called refund(order=1)"),
        (asked(""), "turn 2: then desk called pay, now desk asked its model"),
        (asked(state="other"), "turn 2: the session's state differs when desk calls pay"),
    ],
)
def test_first_live_call_must_equal_the_recorded_call(call: Asked, message: str) -> None:
    made = fork()
    assert play(made) == ""
    fault = made.check(call)
    assert fault is not None
    assert fault["kind"] == "fork_diverged"
    assert fault["message"].endswith(message)
    assert not made.passed


def test_difference_in_an_earlier_turn_is_found_before_the_fork_point() -> None:
    assert play(fork(), "lost").endswith('turn 1, event 2: content.parts[0].text was "found", now "lost"')


def test_new_missing_and_further_steps_are_differences() -> None:
    made = fork()
    made.note(0, text("desk", "before"))
    assert "turn 1, event 1" in play(made)

    made = fork()
    made.expect(1, text("desk", "wait"))
    assert play(made) == ""
    fault = made.check(asked())
    assert fault is not None
    assert fault["message"].endswith("turn 2, event 2: is missing")

    made = fork()
    made.expect(1, text("other", "I am parallel"))  # Another agent may be behind.
    assert play(made) == ""
    assert made.check(asked()) is None

    made = fork()
    made.begin_turn(0)
    fault = made.check(asked("pay", order=1))
    assert fault is not None
    assert "turn 1" in fault["message"]


@pytest.mark.parametrize(
    ("now", "message"), [({"a.txt": "x"}, ""), ({"a.txt": "y"}, "differs"), ({"a.txt": ""}, "is missing"), ({}, "")]
)
def test_artifacts_are_compared_if_they_are_known(now: dict[str, str], message: str) -> None:
    made = fork(artifacts={"a.txt": "x"})
    assert play(made) == ""
    fault = made.check(asked(), now)
    assert (fault["message"].rpartition("a.txt ")[2] if fault is not None else "") == message


def test_change_applies_to_the_first_request_after_the_recorded_requests() -> None:
    made = Fork({"turn": 0, "change": {"kind": "model", "agent": "desk", "text": "better"}})
    made.load(Recorded({"kind": "model", "turn": 0, "agent": "desk", "asked": "x", "responses": []}))
    made.begin_turn(0)
    assert made.changes("model", "desk") is None
    assert made.changes("model", "helper") is None
    assert made.take(Asked("model", "desk", "", "", {}, None)) is not None
    change = made.changes("model", "desk")
    assert change is not None
    assert change.text == "better"
    assert made.changes("instruction", "desk") is None


MODEL = {"kind": "model", "agent": "desk", "branch": ""}


def test_turn_that_ends_before_the_point_differs() -> None:
    made = fork(next=[POINT, MODEL])
    assert play(made) == ""
    fault = made.end_turn(1)
    assert fault is not None
    assert fault["message"].endswith("turn 2: then desk called pay, now the turn ended")
    assert not made.passed
    early = fork(next=[MODEL])
    early.begin_turn(1)
    fault = early.end_turn(1)
    assert fault is not None
    assert fault["message"].endswith("turn 2, event 1: is missing")


@pytest.mark.parametrize("following", [[POINT], []])
def test_turn_may_end_without_calls_after_a_change_or_in_plain_python(following: list[Any]) -> None:
    made = fork(next=following)
    assert play(made) == ""
    assert made.end_turn(0) is None
    assert not made.passed
    assert made.end_turn(1) is None
    assert made.passed
