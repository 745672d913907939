"""Recordings for tests, by hand and as strategies of Hypothesis."""

from typing import Any

from hypothesis import strategies as st

from workbench.run.recordings.recording import (
    Artifact,
    Declaration,
    Effects,
    Ended,
    ModelCall,
    Origin,
    RecordedError,
    Recording,
    ToolCall,
)

_TEXTS = st.one_of(
    st.sampled_from(["", "a", "\x1b[31m", "\ud800", "é\u202e", "line\nbreak", "_in"]), st.text(max_size=8)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        _TEXTS,
        st.just("x" * 17_000),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXTS, inner, max_size=3)),
    max_leaves=5,
)
_OBJECTS = st.dictionaries(_TEXTS, VALUES, max_size=2)
_SECONDS = st.one_of(st.none(), st.floats(0, 1e6))
_BRANCHES = st.sampled_from(["", None, "desk.inner"])
_ARTIFACTS = st.builds(Artifact, _TEXTS, _OBJECTS, st.one_of(st.none(), st.integers()), _TEXTS)
_EFFECTS = st.builds(Effects, _OBJECTS, st.lists(_ARTIFACTS, max_size=2).map(tuple), _OBJECTS, _OBJECTS)
_ERRORS = st.builds(RecordedError, st.lists(_TEXTS, min_size=1, max_size=3).map(tuple), _TEXTS, _OBJECTS)
_TURNS = st.integers(1, 5)
_REQUESTS = st.one_of(st.none(), st.fixed_dictionaries({"model": _TEXTS, "contents": st.lists(_TEXTS, max_size=2)}))


def _calls(outcomes: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[ToolCall]:
    def call(
        outcome: dict[str, Any], turn: int, branch: str | None, args: Any, effects: Effects, took: Any
    ) -> ToolCall:
        return ToolCall(turn, "desk", "find", args, branch, effects=effects, seconds=took, secret=turn == 3, **outcome)

    return st.builds(call, outcomes, _TURNS, _BRANCHES, _OBJECTS, _EFFECTS, _SECONDS)


_LOST_OR_ERROR = st.one_of(
    st.fixed_dictionaries({"error": _ERRORS}), st.fixed_dictionaries({"lost": st.sampled_from(["too large"])})
)
CALLS = _calls(st.one_of(st.fixed_dictionaries({"answer": VALUES}), _LOST_OR_ERROR))


def _model(outcome: dict[str, Any], turn: int, branch: str | None, request: Any, took: Any) -> ModelCall:
    return ModelCall(turn, "desk", "d1", branch, request, seconds=took, **outcome)


_RESPONSES = st.fixed_dictionaries({"responses": st.lists(VALUES, max_size=2).map(tuple)})
MODELS = st.builds(_model, st.one_of(_RESPONSES, _LOST_OR_ERROR), _TURNS, _BRANCHES, _REQUESTS, _SECONDS)
_DECLARATIONS = st.builds(
    Declaration,
    _TEXTS,
    VALUES,
    st.integers(0, 3),
    st.booleans(),
    hidden=st.booleans(),
    config=st.lists(_OBJECTS, max_size=1).map(tuple),
    types=st.lists(_TEXTS, max_size=2).map(tuple),
    since=st.integers(1, 3),
)
RECORDINGS = st.builds(
    Recording,
    _TEXTS,
    st.just("case"),
    _TEXTS,
    st.builds(Origin, _TEXTS, _TEXTS, st.integers(1, 3), _TEXTS, _TEXTS, st.booleans()),
    st.dictionaries(_TEXTS, st.lists(_TEXTS, min_size=1, max_size=2).map(tuple), max_size=2),
    st.dictionaries(_TEXTS, st.lists(_DECLARATIONS, max_size=2).map(tuple), max_size=2),
    st.lists(CALLS, max_size=3).map(tuple),
    st.lists(MODELS, max_size=2).map(tuple),
    st.dictionaries(_TEXTS, VALUES, max_size=2),
    st.lists(st.builds(Ended, _TURNS, _TEXTS, _TEXTS, st.integers(1, 3)), max_size=2).map(tuple),
)


def recording(**changes: Any) -> Recording:
    """Return a small recording with a call, an error and a model call."""
    hello = {"role": "user", "parts": [{"text": "hello"}]}
    request = {"model": "scripted", "system": "d2", "contents": ["d3"]}
    known: dict[str, Any] = {
        "agent": "order_desk",
        "origin": Origin("2026-11-21T10-30-00-3f2a", "2026-11-21T10:30:00Z", 1, "adk", "2.13.0"),
        "tools": {"desk": (Declaration("find", {"name": "find", "parameters": {"type": "OBJECT"}}, toolset=1),)},
        "calls": (
            ToolCall(1, "desk", "find", {"order": "A-18"}, answer={"status": "late"}, seconds=0.25),
            ToolCall(2, "desk", "refund", {}, error=RecordedError(("shop.Refused", "builtins.Exception"), "no")),
        ),
        "models": (ModelCall(1, "desk", "d1", request=request, responses=({"content": {"parts": [{"text": "hi"}]}},)),),
        "parts": {"d2": "be kind", "d3": hello},
    }
    return Recording("refunds", "late_parcel", **(known | changes))
