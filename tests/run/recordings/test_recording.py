"""Recordings as the worker gets them."""

from workbench.run.recordings.recording import (
    Artifact,
    Declaration,
    Effects,
    Ended,
    ModelCall,
    RecordedError,
    Recording,
    ToolCall,
    digest,
)
from workbench.worker.spans import Trace

_CALLS = (
    ToolCall(1, "desk", "find", {"id": 7}, answer=None, seconds=0.5),
    ToolCall(2, "desk", "find", {}, "desk.inner", error=RecordedError(("a.B", "builtins.Exception"), "no")),
    ToolCall(2, "desk", "save", {}, lost="too large"),
    ToolCall(2, "desk", "note", {}, effects=Effects({"a": 1}, (Artifact("x", {"text": "y"}),))),
)


def test_digest_equals_that_of_the_workers_pieces() -> None:
    assert digest({"ä": [1, None]}) == Trace().piece({"ä": [1, None]})


def test_frames_have_each_call_in_order_with_its_outcome() -> None:
    frames = list(Recording("set", "case", calls=_CALLS).frames("tools"))
    assert [frame["op"] for frame in frames] == ["recorded"] * 4
    head = {"kind": "tool", "agent": "desk", "branch": ""}
    assert [frame["call"] for frame in frames] == [
        {**head, "turn": 0, "order": 0, "seconds": 0.5, "tool": "find", "args": {"id": 7}, "answer": None},
        {
            **head,
            "turn": 1,
            "branch": "desk.inner",
            "order": 1,
            "seconds": None,
            "tool": "find",
            "args": {},
            "error": {"types": ["a.B", "builtins.Exception"], "message": "no"},
        },
        {**head, "turn": 1, "order": 2, "seconds": None, "tool": "save", "args": {}, "lost": "too large"},
        {
            **head,
            "turn": 1,
            "order": 3,
            "seconds": None,
            "tool": "note",
            "args": {},
            "answer": None,
            "effects": {"state": {"a": 1}, "artifacts": [{"name": "x", "content": {"text": "y"}}]},
        },
    ]


def test_model_calls_are_sent_only_if_models_are_replayed() -> None:
    request = {"model": "scripted", "system": "d2", "contents": ["d3"]}
    recording = Recording("set", "case", models=(ModelCall(1, "desk", "d1", request=request, responses=({},)),))
    assert list(recording.frames("tools")) == []
    (frame,) = recording.frames("all")
    assert frame["call"]["responses"] == [{}]
    assert frame["call"]["request"] == request


def test_settings_name_mode_ignored_arguments_and_declared_tools() -> None:
    tools = {"desk": (Declaration("find", {"name": "find"}, toolset=2),)}
    made = Recording("set", "case", ignore={"find": ("at",)}, tools=tools, ended=(Ended(2, "both.left", "find"),))
    settings = made.settings("tools", "live")
    declared = {"name": "find", "toolset": 2, "long_running": False, "declaration": {"name": "find"}}
    ended = [{"turn": 1, "branch": "both.left", "call": "find"}]
    known = {"ignore": {"find": ["at"]}, "tools": {"desk": [declared]}, "ended": ended}
    assert settings == {"mode": "tools", "on_miss": "live", **known}
