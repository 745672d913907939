"""Live runs compared with recordings, and what is accepted of the difference."""

from collections.abc import Collection
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.run.recordings.recordings import RECORDINGS, recording
from workbench.run.conversation.replaying import thawed
from workbench.run.recordings.drift import MISSING, Drift, Thaw
from workbench.run.recordings.recording import (
    Declaration,
    Effects,
    Ended,
    ModelCall,
    Origin,
    RecordedError,
    Recording,
    ToolCall,
)


def _call(tool: str, answer: object = None, *, seconds: float | None = None, **args: object) -> ToolCall:
    return ToolCall(1, "desk", tool, args, answer=answer, seconds=seconds)


def _of(*calls: ToolCall, **more: object) -> Recording:
    return replace(recording(calls=calls, models=(), parts={}, tools={}), **more)  # type: ignore[arg-type]


def _kinds(thaw: Thaw) -> list[tuple[str, str]]:
    return [(drift.kind, drift.tool) for drift in thaw.drifts]


OLD = _of(_call("find", {"status": "late", "days": 3}, seconds=0.5), _call("refund", 1), _call("mail", 1))
LIVE = _of(_call("find", {"status": "lost", "days": 3}), _call("refund", 1.0), _call("note", 1), origin=Origin("run_2"))


def test_each_call_is_same_changed_gone_or_new() -> None:
    thaw = Thaw(OLD, LIVE)
    assert _kinds(thaw) == [("changed", "find"), ("same", "refund"), ("new", "note"), ("gone", "mail")]
    assert thaw.drifts[0].where == [("answer.status", "late", "lost")]
    assert thaw.drifts[2].values[0] is MISSING
    assert [thaw.count(kind) for kind in ("same", "changed", "gone", "new")] == [1, 1, 1, 1]


def test_call_is_unknown_if_the_run_ended_before_it() -> None:
    thaw = Thaw(OLD, LIVE, complete=False)
    assert _kinds(thaw)[-1] == ("unknown", "mail")
    assert thaw.accepted(thaw.changes).calls[-1] is OLD.calls[2]


def test_chosen_changes_are_taken_over_and_others_stay() -> None:
    thaw = Thaw(OLD, LIVE)
    find, _, note, mail = thaw.drifts
    assert thaw.accepted([]).calls == OLD.calls
    assert thaw.accepted([find]).calls == (LIVE.calls[0], *OLD.calls[1:])
    assert [call.tool for call in thaw.accepted([note, mail]).calls] == ["find", "refund", "note"]
    assert thaw.accepted([find]).origin.run == OLD.origin.run
    every = thaw.accepted(thaw.changes)
    assert (every.calls, every.origin.run) == ((LIVE.calls[0], OLD.calls[1], LIVE.calls[2]), "run_2")


def test_calls_end_in_the_live_order_once_all_changes_of_their_turn_are_accepted() -> None:
    def run(state: str, *ends: str) -> Recording:
        calls = [_call("find", state), _call("mail", state), replace(_call("refund", state), turn=2), _call("note", 1)]
        numbered = [replace(call, order=number) for number, call in enumerate(calls)]
        return _of(*numbered, ended=tuple(Ended(turn, "", tool) for turn in (1, 2) for tool in ends))

    thaw = Thaw(run("late", "find", "mail"), run("lost", "mail", "find"))
    find, mail, refund, _ = thaw.drifts

    def ends(*chosen: Drift) -> list[str]:
        return [end.call for end in thaw.accepted(chosen).ended]

    assert ends(find, mail) == ["mail", "find", "find", "mail"]
    assert ends(find) == ["find", "mail", "find", "mail"]
    assert ends(refund) == ["find", "mail", "mail", "find"]
    assert ends(find, mail, refund) == ["mail", "find", "mail", "find"]


def test_accepted_call_with_a_replaced_secret_is_found_by_its_other_arguments() -> None:
    thaw = Thaw(OLD, replace(LIVE, ignore={"note": ("key",), "find": ("token",)}))
    assert thaw.accepted([thaw.drifts[2]]).ignore == {**OLD.ignore, "note": ("key",)}


def test_new_error_in_a_drift_is_shown_by_its_type_and_message() -> None:
    error = RecordedError(("mcp.Gone", "builtins.Exception"), "no server")
    live = _of(replace(OLD.calls[1], answer=None, error=error))
    (change,) = thawed("a.frozen.json", Thaw(_of(OLD.calls[1]), live)).changes
    assert {"path": "error", "then": None, "now": "Gone: no server"} in change["where"]


def test_effects_count_only_if_both_runs_recorded_them() -> None:
    live = _of(replace(OLD.calls[0], effects=Effects({"a": 1})))
    assert Thaw(_of(OLD.calls[0]), live).drifts[0].where == [("effects", MISSING, {"state": {"a": 1}})]
    older = _of(OLD.calls[0], origin=Origin(effects=False))
    assert Thaw(older, live).drifts[0].kind == "same"


def test_answer_that_was_lost_cannot_be_accepted() -> None:
    thaw = Thaw(OLD, _of(replace(OLD.calls[0], answer=None, lost="too large"), *OLD.calls[1:]))
    assert thaw.drifts[0].kind == "changed"
    assert thaw.changes == []


def test_models_of_a_run_that_ended_early_or_lost_an_answer_cannot_be_accepted() -> None:
    asked = [ModelCall(1, "desk", f"d{number}", responses=({"text": "yes"},)) for number in (1, 2)]
    old = _of(models=tuple(asked))
    early = Thaw(old, _of(_call("note"), models=tuple(asked[:1])), complete=False)
    assert [drift.about for drift in early.changes] == ["call"]
    assert early.accepted(early.changes).models == old.models
    lost = Thaw(old, _of(models=(asked[0], replace(asked[1], responses=(), lost="too large"))))
    assert [(drift.about, drift.why_not) for drift in lost.drifts] == [("models", "too large")]
    assert lost.changes == []


def test_changed_declaration_and_models_are_one_change_each() -> None:
    one, two = (Declaration("find", {"description": text}) for text in ("a", "b"))
    models = [(ModelCall(1, "desk", "d1", responses=(text,)),) for text in ("a", "b")]
    old = _of(OLD.calls[0], tools={"desk": (one,)}, models=models[0])
    live = _of(OLD.calls[0], tools={"desk": (two,), "new": (one,)}, models=models[1])
    thaw = Thaw(old, live)
    assert [(drift.kind, drift.about) for drift in thaw.changes] == [
        ("changed", "declaration"),
        ("new", "declaration"),
        ("changed", "models"),
    ]
    assert thaw.changes[0].where == [("declaration.description", "a", "b")]
    assert thaw.accepted(thaw.changes[:1]).tools == {"desk": (two,)}
    assert thaw.accepted(thaw.changes[2:]).models == models[1]
    assert thaw.count("changed") == 0


def test_toolsets_of_an_agent_stay_complete_for_any_accepted_changes() -> None:
    toolsets = tuple(Declaration("", None, position) for position in (1, 2))
    old = _of(OLD.calls[0], tools={"desk": (*toolsets, Declaration("find", {"description": "a"}, 2))})
    live = _of(OLD.calls[0], tools={"desk": (*toolsets, Declaration("find", {"description": "b"}, 2))})
    thaw = Thaw(old, live)
    assert [drift.tool for drift in thaw.changes] == ["find"]
    assert thaw.accepted([]).tools == old.tools
    assert thaw.accepted(thaw.changes).tools == live.tools


def test_changed_model_answer_is_listed_before_the_changed_request() -> None:
    models = [(ModelCall(1, "desk", asked, responses=(asked,)),) for asked in ("d1", "d2")]
    (drift,) = Thaw(_of(OLD.calls[0], models=models[0]), _of(OLD.calls[0], models=models[1])).changes
    assert [path for path, _, _ in drift.where] == ["[0].responses[0]", "[0].asked"]


@given(RECORDINGS, RECORDINGS, st.data())
@settings(max_examples=25, deadline=None)
def test_accepted_changes_are_no_longer_drift(old: Recording, live: Recording, data: st.DataObject) -> None:
    thaw = Thaw(old, live)
    chosen: Collection[Drift] = [drift for drift in thaw.changes if data.draw(st.booleans())]
    after = Thaw(thaw.accepted(chosen), live)
    assert len(after.changes) <= len(thaw.changes)
    assert len(thaw.accepted([]).calls) == len(old.calls)
    if len(chosen) == sum(drift.kind != "same" for drift in thaw.drifts):
        assert after.changes == []
