import json
from dataclasses import replace
from typing import Any

import pytest

from tests.run.forking.recorded import REF, STARTED, original, steps
from workbench.events.events import CallsRecorded, SpansRecorded
from workbench.run.conversation.transcript import case_of
from workbench.run.forking import (
    CannotForkError,
    Change,
    Choice,
    Fork,
    Point,
    choices_at,
    describe_point,
    point_of,
    read_original,
)


def test_point_is_the_turn_or_call_under_the_cursor() -> None:
    known = original()
    assert point_of(known, ["span/0/2", "call/0/c1", "user/0"]) == Point(0, 1)
    assert point_of(known, ["span/0/3", "event/0/2"]) == Point(0, 2)
    assert point_of(known, ["evidence/0/answer", "event/0/2", "user/0"]) == Point(0, 2)
    assert point_of(known, ["evidence/1/user", "user/1"]) == Point(1)
    assert point_of(known, ["event/0/9", "user/0"]) == Point(0)
    assert point_of(known, ["other", "user/7", ""]) is None
    assert describe_point(known, Point(0, 1)) == "call 2 of 5 (find)"
    assert describe_point(known, Point(1)) == "turn 2"


def test_choices_depend_on_the_point() -> None:
    known = original()
    assert [(choice.kind, choice.text) for choice in choices_at(known, Point(0, 1))] == [
        ("answer", '{\n  "item": "kettle"\n}'),
        ("instruction", "Be kind."),
        ("model", "gemini"),
        ("nothing", ""),
    ]
    assert [choice.kind for choice in choices_at(known, Point(1))] == ["message", "instruction", "model", "nothing"]
    with pytest.raises(ValueError, match="Expecting"):
        Choice("answer").change("{")
    assert Choice("model", "desk").change("other") == Change("model", "other", "desk")


@pytest.mark.parametrize(
    ("point", "change", "why"),
    [
        ((2, None), Change(), "there is no turn 3"),
        ((1, 0), Change(), "there is no such call in turn 2"),
        ((0, 1), Change("message", "x"), "a message can be changed only at its turn"),
        ((0, 0), Change("answer", 1), "an answer can be changed only at the call of a tool"),
        ((0, 0), Change("model", "x", "desc"), "no agent desc asked its model; agents of the conversation: desk"),
        ((0, 0), Change("instruction", "x"), "the agent is not named; agents of the conversation: desk"),
    ],
)
def test_change_that_does_not_fit_its_point_is_refused(point: tuple[int, int | None], change: Change, why: str) -> None:
    with pytest.raises(CannotForkError, match=why):
        Fork(original(), *point, change)


def test_fork_of_a_datasets_case_keeps_what_its_metrics_read() -> None:
    given = {"prompt": {"parts": [{"text": "A kettle"}]}, "context": "a shop"}
    known = read_original(REF, "run", replace(STARTED, dataset_case=given), steps(), None)
    assert case_of(Fork(known, 0).original.started).dataset_case == given


def test_fork_sends_what_comes_before_its_point() -> None:
    def sent(fork: Fork) -> tuple[list[Any], list[Any]]:
        frames = list(fork.frames())
        expected = [(frame["turn"], len(frame["acted"])) for frame in frames if frame["op"] == "expected"]
        calls = [frame["call"] for frame in frames if frame["op"] == "recorded"]
        return [turn for turn, _ in expected], [call.get("answer", "model") for call in calls]

    known = original()
    assert sent(Fork(known, 0)) == ([], [])
    assert sent(Fork(known, 0, 2)) == ([0, 0], ["model", {"item": "kettle"}])
    assert sent(Fork(known, 0, 1, Change("answer", "pot"))) == ([0], ["model", "pot"])
    assert sent(Fork(known, 1, None, Change("message", "No."))) == ([0, 0, 0], ["model", {"item": "kettle"}, "model"])
    message = Fork(known, 1, None, Change("message", "No."))
    assert [content["parts"] for content in message.messages()] == [[{"text": "A kettle"}], [{"text": "No."}]]
    assert message.origin().text == "No."
    assert Fork(known, 0, 1, Change("answer", {"a": "é"})).origin().text == '{"a": "é"}'
    following = Fork(known, 0, 2, Change("model", "x", "desk")).settings()["next"]
    assert following == [{"kind": "model", "agent": "desk", "branch": "", "state": "s2"}]
    rest = Fork(known, 0, 0, frozen=True).rest()
    assert rest is not None
    assert [call.tool for call in rest.calls] == ["find", "find"]


def test_conversation_without_recorded_calls_cannot_be_forked() -> None:
    old = [step for step in steps() if not isinstance(step, CallsRecorded)]
    with pytest.raises(CannotForkError, match="its calls were not recorded"):
        read_original(REF, "run", STARTED, old, None)
    lost = json.loads('[{"kind": "model", "agent": "desk", "order": 0, "lost": "too large"}]')
    plain = [step for step in old if not isinstance(step, SpansRecorded)]
    known = read_original(REF, "run", STARTED, [*plain, CallsRecorded(REF, 0, json.dumps(lost))], None)
    with pytest.raises(CannotForkError, match="the outcome of call 1 was not recorded: too large"):
        Fork(known, 1)


def test_turn_after_calls_that_the_agent_made_itself_cannot_be_forked() -> None:
    escaped = CallsRecorded(REF, 0, '[{"kind": "escaped", "tools": ["pay", "mail"]}]')
    known = read_original(REF, "run", STARTED, [*steps(), escaped], None)
    assert Fork(known, 0).messages()
    with pytest.raises(CannotForkError, match="the agent itself called pay, mail in turn 1, and would again"):
        Fork(known, 1)
