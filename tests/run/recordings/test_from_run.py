"""Recordings from the stored events of a case."""

import base64
import json
from typing import Any

import pytest

from workbench.events.events import CallsRecorded, CaseRef, SpansRecorded, TurnFinished
from workbench.run.recordings.drift import remarks
from workbench.run.recordings.from_run import NotRecordedError, ends_of, take_recording
from workbench.run.recordings.recording import (
    Artifact,
    Declaration,
    Effects,
    Ended,
    ModelCall,
    Origin,
    RecordedError,
    ToolCall,
    digest,
)
from workbench.worker.jsonable import dumps
from workbench.worker.value_forms import decoded

_REF = CaseRef("order_desk", "refunds.evalset.json", "refunds", "late_parcel")
_ORIGIN = Origin("run_1", "2026-11-21T10:30:00Z", 1, "adk", "2.13.0")


def _event(turn: int, *calls: dict[str, Any], pieces: tuple[Any, ...] = ()) -> CallsRecorded:
    return CallsRecorded(_REF, turn, json.dumps(calls), {digest(piece): dumps(piece) for piece in pieces})


def _tool(tool: str, order: int, args: Any, **more: Any) -> dict[str, Any]:
    head = {"kind": "tool", "agent": "desk", "branch": "", "tool": tool, "order": order, "args": digest(args)}
    return {**head, "seconds": 0.12345, **more}


def test_recorded_calls_are_taken_in_the_order_of_the_model() -> None:
    args, answer, note = {"order": "A-18"}, {"status": "late"}, {"text": "y"}
    effects = {
        "state": digest({"seen": 1}),
        "artifacts": [{"name": "x.txt", "version": 0, "mime": "text/plain", "content": digest(note)}],
        "actions": digest({"skip_summarization": True}),
    }
    second = _tool("refund", 1, {}, error={"types": ["shop.Refused", "builtins.Exception"], "message": "no"})
    first = _tool("find", 0, args, answer=digest(answer), effects=effects)
    pieces: tuple[Any, ...] = (args, answer, {"seen": 1}, note, {"skip_summarization": True}, {})
    taken = take_recording(_REF, [_event(0, second, first, pieces=pieces)], None, _ORIGIN)
    assert taken.recording.calls == (
        ToolCall(
            1,
            "desk",
            "find",
            args,
            answer=answer,
            effects=Effects({"seen": 1}, (Artifact("x.txt", note, 0, "text/plain"),), {"skip_summarization": True}),
            seconds=0.123,
        ),
        ToolCall(
            1, "desk", "refund", {}, error=RecordedError(("shop.Refused", "builtins.Exception"), "no"), seconds=0.123
        ),
    )
    assert taken.recording.origin == Origin("run_1", "2026-11-21T10:30:00Z", 1, "python"), "no tools were reported"


def test_recording_has_all_data_that_the_worker_reports_about_a_call() -> None:
    error = {"types": ["shop.Refused"], "message": "no", "attributes": {"code": 7}}
    effects = {"in_place": digest({"cart": [1]})}
    failed, streamed = (
        _tool("refund", 0, {}, error=error, effects=effects),
        _tool("tail", 1, {}, lost="?", streams=True),
    )
    tool = {"name": "look", "toolset": 1, "hidden": True, "types": ["shop.Look"], "declaration": None}
    own = {"name": "", "toolset": 1, "config": [{"computer_use": {}}], "declaration": None}
    tools = {"kind": "tools", "agent": "desk", "tools": [tool, own]}
    recording = take_recording(
        _REF, [_event(0, failed, streamed, tools, pieces=({}, {"cart": [1]}))], None, _ORIGIN
    ).recording
    assert recording.calls[0].error == RecordedError(("shop.Refused",), "no", {"code": 7})
    assert recording.calls[0].effects == Effects(in_place={"cart": [1]})
    assert recording.tools["desk"] == (
        Declaration("look", toolset=1, hidden=True),
        Declaration("", toolset=1, config=({"computer_use": {}},)),
    )
    assert recording.tools["desk"][0].types == ("shop.Look",)
    assert [remark.partition(":")[0] for remark in remarks(recording)] == [
        "tail in turn 1 has no recorded outcome",
        "tail is a generator",
    ]


def test_models_are_taken_with_the_known_parts_of_their_requests() -> None:
    response = {"content": {"parts": [{"text": "hi"}]}}
    request = {"model": "scripted", "system": digest("be kind"), "contents": [digest("gone")]}
    call = {"kind": "model", "agent": "desk", "branch": "", "order": 0, "asked": "q1", "request": request}
    taken = take_recording(
        _REF,
        [_event(0, {**call, "responses": [digest(response)]}, pieces=(response, "be kind"))],
        None,
        _ORIGIN,
    )
    assert taken.recording.models == (ModelCall(1, "desk", "q1", request=request, responses=(response,)),)
    assert taken.recording.parts == {digest("be kind"): "be kind"}
    assert taken.recording.origin == _ORIGIN


def test_order_of_ends_is_kept_for_turns_with_parallel_calls() -> None:
    def call(order: int, ended: int, branch: str, tool: str = "") -> dict[str, Any]:
        kind = {"kind": "tool", "tool": tool} if tool else {"kind": "model"}
        return {**kind, "branch": branch, "order": order, "ended": ended}

    one_after_the_other = [(1, call(0, 1, "")), (1, call(1, 2, "", "find")), (1, call(2, 3, "both.left"))]
    branches = [(2, call(3, 5, "both.left", "slow")), (2, call(4, 4, "both.right", "quick"))]
    same = [(3, call(7, 7, "", "roll")), (3, call(6, 8, "", "roll"))]
    ends = [
        Ended(2, "both.right", "quick"),
        Ended(2, "both.left", "slow"),
        Ended(3, "", "roll", 2),
        Ended(3, "", "roll"),
    ]
    assert list(ends_of([*same, *branches, *one_after_the_other])) == ends
    assert not [*ends_of([(1, {**call(0, 2, "a"), "branch": None}), (1, call(1, 1, "b"))])], "it is not known"
    assert not [*ends_of([(1, call(0, 0, "a")), (1, call(1, 0, "b"))])], "an older run has no order"


def test_reported_tools_of_an_agent_are_collected() -> None:
    def tools(*names: str) -> dict[str, Any]:
        items = [{"name": name, "toolset": 1, "long_running": False, "declaration": digest(name)} for name in names]
        return {"kind": "tools", "agent": "desk", "tools": items}

    events = [_event(0, tools("a"), pieces=("a", "b")), _event(1, tools("a", "b"))]
    taken = take_recording(_REF, events, None, _ORIGIN)
    assert taken.recording.tools == {"desk": (Declaration("a", "a", 1), Declaration("b", "b", 1))}


def test_answer_with_a_secret_is_marked_and_such_an_argument_is_ignored() -> None:
    args, answer = {"order": 1, "key": "[secret SHOP_KEY]"}, ["x [secret SHOP_KEY]"]
    event = _event(0, _tool("find", 0, args, answer=digest(answer)), pieces=(args, answer))
    recording = take_recording(_REF, [event], None, _ORIGIN).recording
    assert recording.ignore == {"find": ("key",)}
    assert recording.calls[0].secret


def test_bytes_with_a_replaced_secret_can_still_be_read() -> None:
    answer = {"$form": "bytes", "value": "YWJj[secret SHOP_KEY]"}
    content = {"inline_data": {"data": "[secret SHOP_KEY]", "mime_type": "text/plain"}}
    effects = {"artifacts": [{"name": "x", "content": digest(content)}]}
    event = _event(0, _tool("f", 0, {}, answer=digest(answer), effects=effects), pieces=({}, answer, content))
    (call,) = take_recording(_REF, [event], None, _ORIGIN).recording.calls
    assert call.secret
    assert decoded(call.answer) == b"YWJj[secret SHOP_KEY]"
    assert base64.urlsafe_b64decode(call.effects.artifacts[0].content["inline_data"]["data"]) == b"[secret SHOP_KEY]"


def test_call_that_was_not_stored_says_why() -> None:
    event = _event(
        0,
        _tool("a", 0, {}, lost="it is larger than 4 MiB", too_large=True),
        _tool("b", 1, {}, answer="gone"),
        pieces=({},),
    )
    first, second = take_recording(_REF, [event], None, _ORIGIN).recording.calls
    assert first.lost == "it is larger than 4 MiB"
    assert second.lost.startswith("not recorded")


def test_replayed_calls_are_marked() -> None:
    calls = [_tool("a", 0, {}, answer=digest(1), **{"from": "frozen"}), _tool("b", 1, {}, answer=digest(1))]
    taken = take_recording(_REF, [_event(0, *calls, pieces=({}, 1))], None, _ORIGIN)
    assert taken.replayed == {0}


def test_injected_faults_are_never_recorded() -> None:
    event = _event(0, _tool("a", 0, {}, answer=digest(1), **{"from": "injected"}), pieces=({}, 1))
    with pytest.raises(NotRecordedError):
        take_recording(_REF, [event], None, _ORIGIN)


@pytest.mark.parametrize(
    "calls",
    [
        "{",
        "5",
        "[1, null]",
        '[{"kind": "tool", "agent": 5, "tool": [], "order": "x", "args": 7, "answer": {}, "seconds": "y"}]',
        '[{"kind": "model", "asked": 1, "responses": [[]], "request": {"contents": 5}}]',
        '[{"kind": "tools", "agent": "a", "tools": [{"name": 1, "declaration": []}, 5]}]',
        '[{"kind": "tool", "error": {"types": 1}, "effects": {"state": [], "artifacts": [{}]}, "args": "a"}]',
    ],
)
def test_damaged_events_give_only_lost_calls_and_no_exception(calls: str) -> None:
    taken = take_recording(_REF, [CallsRecorded(_REF, 0, calls)], None, _ORIGIN)
    assert all(call.lost for call in taken.recording.calls)


def _span(number: int, name: str, **facts: Any) -> dict[str, Any]:
    return {"id": number, "kind": "tool", "name": name, "start": 0.0, "end": 0.5, "agent": "desk", **facts}


def test_run_of_an_older_version_gives_calls_without_effects_from_its_spans() -> None:
    args, cut = {"order": 1}, {"cut_at": 1, "characters": 2, "begins": "["}
    spans = [
        {"id": 9, "kind": "agent", "name": "desk", "start": 0.0, "type": "LlmAgent"},
        _span(1, "find", args=digest(args), response=digest(None)),
        _span(2, "refund", args=digest(args), error="ValueError: no\nmoney"),
        _span(3, "refund", args=digest(args), error="Refused: no"),
        _span(4, "list", args=digest(args), response=digest(cut)),
        _span(5, "expert", args=digest(args), runs="expert_agent"),
        _span(6, "transfer_to_agent", args=digest(args)),
    ]
    pieces = {digest(piece): dumps(piece) for piece in (args, None, cut)}
    recording = take_recording(_REF, [SpansRecorded(_REF, 1, json.dumps(spans), pieces)], None, _ORIGIN).recording
    call = ToolCall(2, "desk", "find", args, None, seconds=0.5)
    assert recording.calls[0] == call
    assert recording.calls[1].error == RecordedError(("builtins.ValueError", "builtins.Exception"), "no\nmoney")
    assert recording.calls[2].error == RecordedError(("builtins.Exception",), "Refused: no")
    assert recording.calls[3].lost == "the run kept only the beginning of it"
    assert len(recording.calls) == 4
    assert not recording.origin.effects
    assert recording.models == ()


def test_report_without_spans_gives_calls_from_its_events() -> None:
    def event(part: dict[str, Any]) -> dict[str, Any]:
        return {"author": "desk", "content": {"parts": [part]}}

    called = event({"function_call": {"id": "c1", "name": "find", "args": {"order": 1}}})
    answered = event({"function_response": {"id": "c1", "name": "find", "response": {"status": "late"}}})
    actual = {"intermediate_data": {"invocation_events": [called, answered]}}
    recording = take_recording(_REF, [TurnFinished(_REF, 0, actual)], None, _ORIGIN).recording
    assert recording.calls == (ToolCall(1, "desk", "find", {"order": 1}, None, answer={"status": "late"}),)


def test_calls_that_escaped_the_gate_cannot_be_replayed() -> None:
    escaped: dict[str, Any] = {"kind": "escaped", "tools": ["find", 1, "lose"]}
    events = [_event(0, _tool("find", 0, {}, answer=digest(None)), pieces=({}, None)), _event(1, escaped, escaped)]
    taken = take_recording(_REF, events, None, _ORIGIN)
    assert len(taken.recording.calls) == 1
    assert taken.why_not.startswith("the agent itself calls find, lose, which")


def test_yielded_calls_of_a_plain_python_agent_cannot_be_replayed() -> None:
    spans = [{"id": 9, "kind": "agent", "name": "desk", "start": 0.0}, _span(1, "find", args="a", response="b")]
    taken = take_recording(_REF, [SpansRecorded(_REF, 0, json.dumps(spans))], None, _ORIGIN)
    assert taken.recording.calls == ()
    assert "the agent itself calls find, which" in taken.why_not
    assert "session.tool" in taken.why_not


def test_request_that_held_a_secret_is_not_compared() -> None:
    response, secret = {"content": {"parts": [{"text": "hi"}]}}, {"parts": [{"text": "[secret SHOP_KEY]"}]}
    calls = [
        {"kind": "model", "agent": "desk", "branch": "", "order": order, "asked": f"q{order}", "request": request}
        for order, request in enumerate(
            ({"model": "m", "contents": [digest("a"), digest("gone")]}, {"model": "m", "contents": [digest(secret)]})
        )
    ]
    event = _event(0, *[{**call, "responses": [digest(response)]} for call in calls], pieces=(response, "a", secret))
    assert [model.asked for model in take_recording(_REF, [event], None, _ORIGIN).recording.models] == ["q0", ""]
