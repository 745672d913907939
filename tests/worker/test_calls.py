"""Calls are reported once, in pieces that fit into frames, and too large values are marked."""

import json
from typing import Any

import pytest

from workbench.worker import calls as module
from workbench.worker.calls import Calls, TooLargeError


def reported(calls: Calls) -> tuple[list[dict[str, Any]], dict[str, str]]:
    messages = calls.take()
    pieces = {name: text for message in messages for name, text in message["pieces"].items()}
    return [call for message in messages for call in json.loads(message["calls"])], pieces


def test_call_is_reported_once_and_equal_values_are_one_piece() -> None:
    calls = Calls()
    for _ in range(2):
        calls.begin(kind="tool", args=calls.argument_piece({"n": 1}), call=None).answered({"n": 1})
    (first, second), pieces = reported(calls)
    assert {**first, "seconds": 0, "ended": 2} == {**second, "seconds": 0}
    assert "call" not in first
    assert pieces == {first["answer"]: '{"n":1}'} == {first["args"]: '{"n":1}'}
    assert calls.take() == []


def test_too_large_answer_is_marked_and_too_large_arguments_have_no_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_LIMIT", 100)
    calls = Calls()
    calls.begin(args=calls.argument_piece("x" * 200)).answered("y" * 200)
    (call,), pieces = reported(calls)
    assert (call["too_large"], pieces) == (True, {})
    assert "larger than" in call["lost"]


def test_all_pieces_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECES_LIMIT", 100)
    calls = Calls()
    calls.piece("x" * 80)
    calls.piece("x" * 80)
    with pytest.raises(TooLargeError, match="together"):
        calls.piece("y" * 80)


def test_messages_are_small_enough_for_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOGETHER", 100)
    calls = Calls()
    for number in range(10):
        calls.begin().answered(f"{number}" * 60)
    messages = calls.take()
    assert [len(message["pieces"]) for message in messages] == [1] * 10
    assert [len(json.loads(message["calls"])) for message in messages] == [0] * 9 + [10]


def test_value_that_cannot_be_recorded_loses_only_its_call() -> None:
    class Strange(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            raise RuntimeError("not today")

    calls = Calls()
    calls.begin().answered([Strange(a=1), {1: Strange()}])
    calls.begin().raised(ValueError("no"))
    (lost, raised), _ = reported(calls)
    assert "not today" in lost["lost"]
    assert raised["error"] == {"types": ["builtins.ValueError", "builtins.Exception"], "message": "no"}
