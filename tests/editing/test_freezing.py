"""Freezing of the cases of a run as one edit."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workbench.editing.freezing import Freezing, freezing_of, ignoring
from workbench.editing.saving import Saver
from workbench.events.events import (
    CallsRecorded,
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    ErrorKind,
    Event,
    ForkOf,
    PlannedCase,
    RunStarted,
    TurnFinished,
)
from workbench.files.frozen_path import frozen_folder, frozen_path
from workbench.results.freezing import total_words
from workbench.run.recordings.frozen_file import read_frozen
from workbench.run.recordings.recording import digest
from workbench.store.transcripts import StoredRun, collect
from workbench.worker.jsonable import dumps

_FILE = "order_desk/refunds.evalset.json"
_LATE = CaseRef("order_desk", _FILE, "refunds", "late_parcel")
_LARGE = "x" * 20_000


@pytest.fixture
def evalset(tmp_path: Path) -> Path:
    """An evalset with the cases `late_parcel` and `other`."""
    file = tmp_path / _FILE
    file.parent.mkdir()
    _write(file, "late_parcel", "other")
    return file


def _write(file: Path, *ids: str) -> None:
    cases: list[Any] = [{"eval_id": eval_id, "conversation": []} for eval_id in ids]
    file.write_text(json.dumps({"eval_set_id": "refunds", "eval_cases": cases}))


def _case(
    ref: CaseRef,
    *answers: Any,
    status: CaseStatus = "passed",
    error: ErrorKind | None = None,
    tools: tuple[str, ...] = (),
    whence: str = "live",
) -> list[Event]:
    """Return the events of a case with one turn, in which the tools `find`, or `tools`, answered in this order."""
    names = tools or ("find",) * len(answers)
    calls = [
        {"kind": "tool", "agent": "desk", "tool": name, "order": number, "args": digest({"n": number}), "from": whence}
        | {"answer": digest(answer), "seconds": 0.5}
        for number, (name, answer) in enumerate(zip(names, answers, strict=True))
    ]
    pieces = {digest(piece): dumps(piece) for piece in (*answers, *({"n": number} for number in range(len(answers))))}
    ended = None if error is None else CaseError(error, "it broke")
    turns = [] if error else [TurnFinished(ref, 0, {})]
    return [
        CaseStarted(ref, 0.0, ({},), {}),
        CallsRecorded(ref, 0, json.dumps(calls), pieces),
        *turns,
        CaseFinished(ref, status, ended, 1.0),
    ]


def _run(*cases: Iterable[Event], run_id: str = "run_1") -> StoredRun:
    events = [event for case in cases for event in case]
    refs = dict.fromkeys(event.case for event in events if isinstance(event, CaseStarted))
    planned = tuple(PlannedCase(ref, None, "") for ref in refs)
    started = RunStarted(run_id, "", "2026-11-21T10:30:00Z", planned, versions={"google-adk": "2.13.0"})
    return collect([started, *events])


def _save(root: Path, freezing: Freezing) -> Saver:
    saver = Saver(root / ".workbench", root)
    saver.save(freezing.label, freezing.contents)
    return saver


def test_finished_case_is_frozen_beside_its_evalset(tmp_path: Path, evalset: Path) -> None:
    freezing = freezing_of([_run(_case(_LATE, {"status": "late"}))], tmp_path)
    (case,) = freezing.cases
    assert (case.change, case.file) == ("new", frozen_path(evalset, "late_parcel"))
    assert freezing.label == "freeze late_parcel"
    assert not case.file.exists()
    saver = _save(tmp_path, freezing)
    recording = read_frozen(case.file)
    assert [call.answer for call in recording.calls] == [{"status": "late"}]
    assert (recording.origin.run, recording.origin.framework) == ("run_1", "python")
    saver.undo()
    assert not frozen_folder(evalset).exists()
    saver.redo()
    assert read_frozen(case.file) == recording


def test_equal_run_changes_nothing(tmp_path: Path, evalset: Path) -> None:
    _save(tmp_path, freezing_of([_run(_case(_LATE, 1))], tmp_path))
    again = freezing_of([_run(_case(_LATE, 1), run_id="run_2")], tmp_path)
    assert again.cases[0].change == "unchanged"
    assert not again.contents


def test_totals_count_the_large_values_of_chosen_cases(tmp_path: Path, evalset: Path) -> None:
    other = replace(_LATE, eval_id="other")
    freezing = freezing_of([_run(_case(_LATE, 1), _case(other, _LARGE, _LARGE + "y"))], tmp_path)
    assert total_words(freezing, freezing.cases) == ["2 files", "3 tool calls", "2 large values in their own files"]
    assert total_words(freezing, freezing.cases[:1]) == ["1 file", "1 tool call"]


def test_large_answers_that_nothing_names_any_more_are_removed(tmp_path: Path, evalset: Path) -> None:
    other = replace(_LATE, eval_id="other")
    _save(tmp_path, freezing_of([_run(_case(_LATE, _LARGE), _case(other, _LARGE, _LARGE + "y"))], tmp_path))
    beside = frozen_folder(evalset) / f"{digest(_LARGE)}.json"
    _save(tmp_path, freezing_of([_run(_case(_LATE, 1))], tmp_path))
    assert beside.exists(), "the other case still names it"
    saver = _save(tmp_path, freezing_of([_run(_case(other, 1))], tmp_path))
    assert {path.name for path in frozen_folder(evalset).iterdir()} == {
        "late_parcel.frozen.json",
        "other.frozen.json",
    }
    saver.undo()
    assert read_frozen(frozen_path(evalset, "other")).calls[0].answer == _LARGE


def test_first_repeat_that_passed_is_frozen(tmp_path: Path, evalset: Path) -> None:
    repeats = [
        _case(_LATE, 1, status="failed"),
        _case(replace(_LATE, repeat=2), 2, status="error", error="timeout"),
        _case(replace(_LATE, repeat=3), 3),
    ]
    (case,) = freezing_of([_run(*repeats)], tmp_path).cases
    assert case.recording is not None
    assert case.recording.calls[0].answer == 3
    assert case.recording.origin.repeat == 3


def test_only_the_chosen_cases_are_frozen(tmp_path: Path, evalset: Path) -> None:
    run = _run(_case(_LATE, 1), _case(replace(_LATE, eval_id="other"), 1))
    assert [case.ref.eval_id for case in freezing_of([run], tmp_path, cases=["other"]).cases] == ["other"]


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (_case(_LATE, 1, status="error", error="timeout"), "its transcript is not complete: it broke"),
        (
            _case(_LATE, 1, status="error", error="frozen_miss"),
            "its transcript is not complete: it broke; run it with --frozen --on-miss live first",
        ),
        (_case(_LATE, status="error", error="agent_raised"), "it has no calls of tools, only an error: it broke"),
        (
            [
                *_case(_LATE, 1)[:2],
                CallsRecorded(_LATE, 0, '[{"kind": "escaped", "tools": ["lose"]}]'),
                *_case(_LATE, 1)[2:],
            ],
            "the agent itself calls lose, which a replay cannot answer; in plain Python, use `session.tool`",
        ),
        (_case(_LATE, 1, whence="injected"), "a fault was injected into one of its calls"),
        (_case(replace(_LATE, eval_id="gone"), 1), "refunds.evalset.json no longer has this case"),
        (_case(replace(_LATE, evalset_file="gone.evalset.json"), 1), "there is no evalset gone.evalset.json"),
        (_case(replace(_LATE, evalset_file="../order_desk/x.json"), 1), "there is no evalset ../order_desk/x.json"),
    ],
)
def test_case_that_cannot_be_replayed_is_not_frozen(tmp_path: Path, evalset: Path, case: Any, why: str) -> None:
    freezing = freezing_of([_run(case)], tmp_path)
    assert [(case.change, case.why) for case in freezing.cases] == [("not frozen", why)]
    assert not freezing.contents


def test_case_of_a_broken_evalset_is_not_frozen_and_the_place_is_named(tmp_path: Path, evalset: Path) -> None:
    good = evalset.read_text()
    evalset.write_text("[\n" + good)
    found = [_case(_LATE, 1), _case(replace(_LATE, eval_id=""), status="error", error="broken_file")]
    why = [case.why for one in found for case in freezing_of([_run(one)], tmp_path).cases]
    assert len(why) == 2
    for text in why:
        assert text.startswith(f"its evalset is broken: {_LATE.evalset_file}:")
    evalset.write_text(good)
    assert freezing_of([_run(found[0])], tmp_path).cases[0].change == "new"
    assert "was broken when the run read it" in freezing_of([_run(found[1])], tmp_path).cases[0].why


def test_case_that_raised_after_a_call_is_frozen_with_a_remark(tmp_path: Path, evalset: Path) -> None:
    (case,) = freezing_of([_run(_case(_LATE, 1, status="error", error="agent_raised"))], tmp_path).cases
    assert case.change == "new"
    assert case.remarks == ("the case ended with an error, which a replay repeats; later calls are unknown",)


def test_live_call_after_a_miss_is_added(tmp_path: Path, evalset: Path) -> None:
    _save(tmp_path, freezing_of([_run(_case(_LATE, 1, 2, tools=("a", "b")))], tmp_path))
    run = _run(_case(_LATE, 1, 5, tools=("a", "c")), run_id="run_2")
    event = run.cases[_LATE].steps[0]
    assert isinstance(event, CallsRecorded)
    calls = json.loads(event.calls)
    calls[0]["from"] = "frozen"
    run.cases[_LATE].steps[0] = replace(event, calls=json.dumps(calls))
    (case,) = freezing_of([run], tmp_path).cases
    assert case.recording is not None
    assert [call.tool for call in case.recording.calls] == ["a", "c", "b"]
    (pruned,) = freezing_of([run], tmp_path, prune=True).cases
    assert pruned.recording is not None
    assert [call.tool for call in pruned.recording.calls] == ["a", "c"]


def test_pruning_removes_recordings_of_cases_that_are_gone(tmp_path: Path, evalset: Path) -> None:
    run = _run(_case(_LATE, 1), _case(replace(_LATE, eval_id="other"), _LARGE))
    _save(tmp_path, freezing_of([run], tmp_path))
    _write(evalset, "late_parcel")
    freezing = freezing_of([_run(_case(_LATE, 1))], tmp_path, prune=True)
    assert freezing.pruned == (frozen_path(evalset, "other"),)
    _save(tmp_path, freezing)
    assert [path.name for path in frozen_folder(evalset).iterdir()] == ["late_parcel.frozen.json"]


def test_nothing_is_pruned_if_the_evalset_is_broken(tmp_path: Path, evalset: Path) -> None:
    _save(tmp_path, freezing_of([_run(_case(_LATE, 1))], tmp_path))
    evalset.write_text('{"eval_set_id": "refunds", "eval_cases": [')
    freezing = freezing_of([_run(_case(_LATE, 1))], tmp_path, prune=True)
    assert not freezing.contents


def test_damaged_recording_is_replaced_and_a_later_one_is_not(tmp_path: Path, evalset: Path) -> None:
    _save(tmp_path, freezing_of([_run(_case(_LATE, 1))], tmp_path))
    file = frozen_path(evalset, "late_parcel")
    file.write_text("{")
    (case,) = freezing_of([_run(_case(_LATE, 1))], tmp_path).cases
    assert case.change == "changed"
    assert "could not be read and is replaced" in case.remarks[0]
    file.write_text('{"schema": "agent-workbench/frozen/2"}')
    (case,) = freezing_of([_run(_case(_LATE, 1))], tmp_path).cases
    assert case.change == "not frozen"
    assert "Update agent-workbench" in case.why


def test_cases_of_several_runs_are_frozen_as_one_edit(tmp_path: Path, evalset: Path) -> None:
    runs = [_run(_case(_LATE, 1)), _run(_case(replace(_LATE, eval_id="other"), 2), run_id="run_2")]
    freezing = freezing_of(runs, tmp_path)
    assert freezing.label == "freeze 2 cases"
    _save(tmp_path, freezing)
    assert read_frozen(frozen_path(evalset, "other")).origin.run == "run_2"


def test_ignoring_an_argument_changes_one_line_of_the_recording(tmp_path: Path, evalset: Path) -> None:
    _save(tmp_path, freezing_of([_run(_case(_LATE, 1))], tmp_path))
    file = frozen_path(evalset, "late_parcel")
    file.write_text(json.dumps(json.loads(file.read_bytes()), indent=1))
    lines = file.read_text().splitlines()
    for _ in range(2):
        Saver(tmp_path / ".workbench", tmp_path).save("ignore n of find", ignoring(file, "find", "n"))
        assert read_frozen(file).ignore == {"find": ("n",)}
    after = file.read_text().splitlines()
    assert [line for line in lines if line not in after] == [' "ignore": {},']


def test_forks_and_tried_faults_are_not_frozen(tmp_path: Path, evalset: Path) -> None:
    run = _run(_case(_LATE, 1))
    run.cases[_LATE].planned = PlannedCase(_LATE, None, "", fork=ForkOf("run_0", 1, 0))
    (case,) = freezing_of([run], tmp_path).cases
    assert case.why == "the run only tried a fault or a fork: freeze a run of the case itself"


def test_scored_run_names_the_run_in_which_the_agent_ran(tmp_path: Path, evalset: Path) -> None:
    run = _run(_case(_LATE, 1))
    run.scored_from = "2026-11-20T08-01-02-3f2a"
    (case,) = freezing_of([run], tmp_path).cases
    assert case.recording is not None
    assert (case.recording.origin.run, case.recording.origin.at) == (run.scored_from, "2026-11-20T08:01:02Z")


def test_link_in_place_of_a_recording_is_neither_followed_nor_replaced(tmp_path: Path, evalset: Path) -> None:
    outside, file = tmp_path / "outside.json", frozen_path(evalset, "late_parcel")
    outside.write_text("{}")
    file.parent.mkdir()
    file.symlink_to(outside)
    (case,) = freezing_of([_run(_case(_LATE, 1))], tmp_path).cases
    assert (case.change, case.why) == ("not frozen", "late_parcel.frozen.json: it is a link, which is not followed")
    assert outside.read_text() == "{}"


def test_linked_folder_of_recordings_is_not_written_to(tmp_path: Path, evalset: Path) -> None:
    outside, file = tmp_path / "outside", frozen_path(evalset, "late_parcel")
    outside.mkdir()
    file.parent.symlink_to(outside)
    made = freezing_of([_run(_case(_LATE, 1))], tmp_path)
    assert made.cases[0].why == "late_parcel.frozen.json: its folder is a link, which is not followed"
    assert not made.contents


def test_unreadable_recording_affects_only_its_case(tmp_path: Path, evalset: Path) -> None:
    frozen_path(evalset, "late_parcel").mkdir(parents=True)
    made = freezing_of([_run(_case(_LATE, 1), _case(replace(_LATE, eval_id="other"), 1))], tmp_path)
    assert [case.change for case in made.cases] == ["not frozen", "new"]
    assert "cannot be read" in made.cases[0].why


def test_no_value_is_removed_if_a_recording_cannot_be_read(tmp_path: Path, evalset: Path) -> None:
    _save(tmp_path, freezing_of([_run(_case(_LATE, _LARGE))], tmp_path))
    (frozen_folder(evalset) / "gone.frozen.json").mkdir()
    made = freezing_of([_run(_case(_LATE, 1))], tmp_path, prune=True)
    assert made.cases[0].change == "changed"
    assert not made.pruned
    assert list(made.contents) == [frozen_path(evalset, "late_parcel")]
