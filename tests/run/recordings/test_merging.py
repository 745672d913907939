"""New recordings of cases that already have one."""

from dataclasses import replace

from hypothesis import given, settings

from tests.run.recordings.recordings import RECORDINGS, recording
from workbench.run.recordings.drift import merged
from workbench.run.recordings.from_run import Taken
from workbench.run.recordings.recording import Declaration, ModelCall, Origin, Recording, ToolCall


def _calls(*calls: ToolCall) -> Recording:
    return recording(calls=calls, models=(), parts={})


def _call(tool: str, answer: object = None, *, seconds: float | None = None, **args: object) -> ToolCall:
    return ToolCall(1, "desk", tool, args, answer=answer, seconds=seconds)


def _merged(old: Recording, taken: Taken, *, prune: bool = False) -> Recording:
    return merged(old, taken, models=False, prune=prune)


def test_first_recording_has_models_only_on_request() -> None:
    assert merged(None, Taken(recording()), models=False, prune=False) == recording(models=(), parts={})
    assert merged(None, Taken(recording()), models=True, prune=False) == recording()


def test_live_run_replaces_the_recording_but_keeps_times_and_ignored_arguments() -> None:
    old = replace(_calls(_call("a", 1, seconds=0.5), _call("b", 1), _call("gone", 1)), ignore={"a": ("at",)})
    new = _calls(_call("a", 1, seconds=0.7, at="now"), _call("b", 2, seconds=0.1))
    result = _merged(old, Taken(replace(new, origin=Origin("run_2"))))
    assert result.ignore == {"a": ("at",)}
    assert result.origin.run == "run_2"
    assert [(call.tool, call.answer, call.seconds) for call in result.calls] == [("a", 1, 0.7), ("b", 2, 0.1)]


@given(RECORDINGS)
@settings(max_examples=12, deadline=None)
def test_equal_run_leaves_the_recording_unchanged(made: Recording) -> None:
    later = replace(
        made,
        origin=Origin("later"),
        calls=tuple(replace(call, seconds=9.0) for call in made.calls),
        models=tuple(replace(model, seconds=9.0) for model in made.models),
    )
    made, later = replace(made, parts={}), replace(later, parts={})
    assert merged(made, Taken(later), models=bool(made.models), prune=False) is made
    replayed = Taken(later, frozenset(range(len(made.calls))), frozenset(range(len(made.models))))
    assert merged(made, replayed, models=bool(made.models), prune=True) is made


def test_live_call_after_a_miss_is_added_behind_its_predecessor() -> None:
    old = _calls(_call("a", 1, seconds=0.5), _call("b", 1, x=1), _call("c", 1))
    new = _calls(_call("a", 1, seconds=0.0), _call("b", 7, x=2), _call("c", 1, seconds=0.0))
    result = _merged(old, Taken(replace(new, origin=Origin("run_2")), frozenset({0, 2})))
    assert result.calls == (old.calls[0], new.calls[1], *old.calls[1:])
    assert result.origin == old.origin


def test_pruning_leaves_out_calls_that_a_frozen_run_did_not_use() -> None:
    old = _calls(_call("a", 1), _call("b", 1, x=1), _call("b", 1, x=1))
    new = _calls(_call("a", 1), _call("b", 1, x=1))
    taken = Taken(new, frozenset({0, 1}))
    assert _merged(old, taken).calls == old.calls
    assert _merged(old, taken, prune=True).calls == old.calls[:2]


def test_live_call_replaces_a_recorded_call_without_outcome() -> None:
    old = _calls(_call("a", 1), ToolCall(1, "desk", "b", {}, lost="too large"), _call("c", 1))
    new = _calls(_call("a", 1), _call("b", 5), _call("c", 1))
    result = _merged(old, Taken(new, frozenset({0, 2})))
    assert [call.answer for call in result.calls] == [1, 5, 1]


def test_unknown_branches_of_old_calls_become_known() -> None:
    old = _calls(ToolCall(1, "desk", "a", {}, None, answer=1, seconds=0.5))
    new = _calls(ToolCall(2, "desk", "a", {}, "desk.inner", answer=1))
    result = _merged(old, Taken(new, frozenset({0})))
    assert result.calls == (ToolCall(2, "desk", "a", {}, "desk.inner", answer=1, seconds=0.5),)


def test_frozen_run_updates_only_declarations_of_tools_without_old_answers() -> None:
    old_a, old_b, new_a, new_b = (
        Declaration(name, {"is": state}, source=state) for state in ("old", "new") for name in ("a", "b")
    )
    old = replace(_calls(_call("a", 1), _call("b", 1)), tools={"desk": (old_a, old_b)})
    new = replace(_calls(_call("a", 1), _call("b", 2)), tools={"desk": (new_a, new_b, Declaration("c"))})
    tools = _merged(old, Taken(new, frozenset({0}))).tools
    assert tools == {"desk": (old_a, new_b, Declaration("c"))}, "the answer of a is still that of the old code"
    assert _merged(old, Taken(new)).tools == new.tools


def test_models_stay_in_a_recording_even_if_not_requested() -> None:
    new = replace(recording(), models=(ModelCall(1, "desk", "other", responses=({},)),))
    assert _merged(recording(), Taken(new)).models == new.models
    assert _merged(recording(), Taken(new)).parts == {}
