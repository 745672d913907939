"""The events of a recorded conversation: two turns, and five calls."""

import json
from typing import Any

from workbench.events.events import CallsRecorded, CaseRef, CaseStarted, Event, SpansRecorded, TurnFinished, TurnStarted
from workbench.run.forking import Original, read_original

REF = CaseRef("desk", "desk/labels.evalset.json", "labels", "label")
STARTED = CaseStarted(REF, 0.0, None, {})
PIECES = {
    "args": '{"number": 1}',
    "answer": '{"item": "kettle"}',
    "system": '"Be kind."',
    "said": '{"usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 2}}',
}


def _content(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def _call(number: int) -> dict[str, Any]:
    return {"author": "desk", "content": _content({"function_call": {"id": f"c{number}", "name": "find", "args": {}}})}


def _response(number: int) -> dict[str, Any]:
    part = {"function_response": {"id": f"c{number}", "name": "find", "response": {"item": "kettle"}}}
    return {"author": "desk", "content": _content(part)}


def _model(order: int, span: int) -> dict[str, Any]:
    request = {"model": "gemini", "system": "system", "contents": []}
    head = {"kind": "model", "agent": "desk", "branch": "", "order": order, "span": span, "asked": "x"}
    return {**head, "request": request, "responses": ["said"], "state": f"s{order}"}


def _tool(order: int, number: int) -> dict[str, Any]:
    head = {"kind": "tool", "agent": "desk", "branch": "", "order": order, "tool": "find", "call": f"c{number}"}
    return {**head, "args": "args", "answer": "answer", "state": f"s{order}"}


def _spans(turn: int, *models: tuple[int, int]) -> SpansRecorded:
    items = [
        {"id": span, "kind": "model", "name": "gemini", "start": 0.0, "events": [event], "request": {}}
        for span, event in models
    ]
    return SpansRecorded(REF, turn, json.dumps(items))


def _turn(turn: int, said: str, calls: list[dict[str, Any]], spans: SpansRecorded, events: list[Any]) -> list[Event]:
    user = {"role": "user", "parts": [{"text": said}]}
    answer = _content({"text": f"answer {turn + 1}"})
    actual = {"user_content": user, "final_response": answer, "intermediate_data": {"invocation_events": events}}
    actual["app_details"] = {}
    recorded = CallsRecorded(REF, turn, json.dumps(calls), PIECES)
    return [TurnStarted(REF, turn, user), spans, recorded, TurnFinished(REF, turn, actual)]


def steps() -> list[Event]:
    """Return the events."""
    answer = {"author": "desk"}
    return [
        *_turn(
            0,
            "A kettle",
            [_model(0, 1), _tool(1, 1), _model(2, 3)],
            _spans(0, (1, 0), (3, 2)),
            [_call(1), _response(1), answer],
        ),
        *_turn(1, "Thanks", [_model(3, 5), _tool(4, 2)], _spans(1, (5, 0)), [_call(2), _response(2), answer]),
    ]


def original() -> Original:
    """Return the conversation."""
    return read_original(REF, "run", STARTED, steps(), None)
