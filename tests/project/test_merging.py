"""Reports of shards joined into one run: equal to a run of the whole plan, or refused with file and difference."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.cli.stores import all_statuses, case_events, feed
from tests.schemas import validate_report
from tests.stored import change_event, drop_events, event_texts, forget_rows, number_of, sql
from workbench.cli.exit_codes import exit_code
from workbench.events.event_json import as_line
from workbench.events.events import (
    CaseFinished,
    CaseRef,
    Event,
    MetricResult,
    Noticed,
    OutputCaptured,
    PlannedCase,
    RunFinished,
    RunResumed,
    RunStarted,
    UserSimulated,
)
from workbench.events.shards import Shard
from workbench.exporting.junit import junit_pieces
from workbench.exporting.report import report_pieces
from workbench.files.folders import why_untrusted
from workbench.files.run_options import UsageFaultError
from workbench.project.shards import merge_shards, plan_digest
from workbench.store.database.database import database, run_path
from workbench.store.database.runs import delete_runs
from workbench.store.details import read_details
from workbench.store.history.run_writer import RunWriter
from workbench.store.store import Store

Change = Callable[[dict[str, Any]], object]


def run_of(store: Store, index: int = 1, count: int = 1, **state: Any) -> Store:
    """Return the part of a finished run that a shard would have run, or the whole run if there is one shard."""
    return feed(events_of_run(store, index, count, **state))


def events_of_run(store: Store, index: int, count: int, **state: Any) -> list[Event]:
    """Return the events of the run that `run_of` returns."""
    refs = store.current[index - 1 :: count]
    shard = None
    if count > 1:
        facts: dict[str, Any] = {
            "files": {"desk/agent.py": "a1", "desk/refunds.evalset.json": "b2"},
            "criteria": {"desk/test_config.json": "c3"},
            "options": {},
            "versions": {"python": "3.12.1", "google-adk": "2.13.0"},
            "commit": "0123456789abcdef",
        }
        plan = plan_digest(store.current)
        shard = Shard(index, count, len(store.current), plan, **(facts | state))
    planned = tuple(store.current_record(ref).planned for ref in refs)
    events: list[Event] = [
        RunStarted(f"run-{index}", "/work space/root", f"2026-11-21T10:30:0{index}Z", planned, shard=shard),
        Noticed("warning", "gemini-1.5-pro is retired", in_report=True),
    ]
    for ref in refs:
        events += _events_of(store, ref)
    return [*events, RunFinished(4.0 + index)]


def _events_of(store: Store, ref: CaseRef) -> list[Event]:
    record = store.current_record(ref)
    if record.state == "cancelled":
        return []  # It never started.
    if not read_details(record).turns:
        return [CaseFinished(ref, record.status, record.error, 0.0)]
    events = case_events(
        ref, record.status, read_details(record).metrics.values(), record.error, text=f"hello {ref.label}"
    )
    simulated = UserSimulated(ref, 1, "stop_signal", {"model": "m", "replies": []})
    return [*events[:-1], simulated, OutputCaptured(ref, "stderr", "a warning\n"), events[-1]]


def written(store: Store, file: Path) -> Path:
    file.write_bytes(b"".join(report_pieces(store)))
    return file


@cache
def report_of(index: int, count: int) -> bytes:
    return b"".join(report_pieces(run_of(all_statuses(), index, count)))


def reports(folder: Path, count: int = 3, **state: Any) -> list[Path]:
    """Write the reports of all shards of a run. The last shard ran in another state if there is one."""
    files = [folder / f"{index}.json" for index in range(1, count + 1)]
    for index, file in enumerate(files, 1):
        file.write_bytes(report_of(index, count))
    if state:
        written(run_of(all_statuses(), count, count, **state), files[-1])
    return files


@pytest.mark.parametrize("count", [1, 3])
def test_report_of_a_shard_has_the_schema_of_reports(count: int) -> None:
    for index in range(1, count + 1):
        validate_report(json.loads(report_of(index, count)))


def changed(file: Path, change: Change) -> None:
    data = json.loads(file.read_text("ascii"))
    change(data)
    file.write_text(json.dumps(data), "ascii")


def content(store: Store) -> dict[str, Any]:
    """Return a report without ids and times."""
    data: dict[str, Any] = json.loads(b"".join(report_pieces(store)))
    return {name: value for name, value in data.items() if name not in ("run_id", "started", "duration_seconds")}


def junit(store: Store) -> str:
    return re.sub(r' (time(stamp)?)="[^"]*"', "", b"".join(junit_pieces(store)).decode())


@pytest.mark.parametrize("count", [2, 3, 7, 9])
def test_merged_shards_equal_one_run(tmp_path: Path, count: int) -> None:
    one, merged = run_of(all_statuses()), merge_shards(reports(tmp_path, count)[::-1])
    assert content(merged) == content(one)
    assert junit(merged) == junit(one)
    assert exit_code(merged) == exit_code(one) == 3
    assert merged.run.started == "2026-11-21T10:30:01Z"
    assert merged.run.duration_seconds == 4.0 + count
    assert "shard" not in json.loads(b"".join(report_pieces(merged)))


def test_merged_shards_that_passed_exit_with_0(tmp_path: Path) -> None:
    refs = [CaseRef("desk", "desk/a.evalset.json", "a", name) for name in ("one", "two")]
    passed = MetricResult("response_match_score", "passed", 1.0, 0.8)
    whole = feed(
        [RunStarted("whole", "/r", "", tuple(PlannedCase(ref, None, "defaults") for ref in refs))],
        *(case_events(ref, "passed", [passed]) for ref in refs),
        [RunFinished(1.0)],
    )
    files = [written(run_of(whole, index, 2), tmp_path / f"{index}.json") for index in (1, 2)]
    assert exit_code(merge_shards(files)) == 0


def test_missing_shard_is_named(tmp_path: Path) -> None:
    first, _, third, *_ = reports(tmp_path, 5)
    with pytest.raises(UsageFaultError, match=r"^missing: shards 2/5, 4/5, 5/5\n") as refused:
        merge_shards([first, third])
    assert "--shard 2/5" in refused.value.hint


def test_error_names_only_a_few_of_many_missing_shards(tmp_path: Path) -> None:
    file = reports(tmp_path, 2)[0]
    changed(file, lambda data: data["shard"].update(count=10**30, executions=3 * 10**30 + 1))
    with pytest.raises(UsageFaultError, match=r"^missing: shards 2/1(0){30}, .* and [0-9,]+ more\n"):
        merge_shards([file])


def test_duplicate_shard_is_named_with_both_files(tmp_path: Path) -> None:
    files = reports(tmp_path)
    again = tmp_path / "again.json"
    again.write_bytes(files[1].read_bytes())
    with pytest.raises(UsageFaultError, match=r"^shard 2/3 is given twice: .*/2\.json and .*/again\.json\n"):
        merge_shards([*files, again])


def test_shards_of_different_counts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "four").mkdir()
    files = [*reports(tmp_path)[:2], reports(tmp_path / "four", 4)[2]]
    with pytest.raises(
        UsageFaultError, match=r"four/3\.json \(shard 3/4\) is from a run with 4 shards, the others from a run with 3\n"
    ):
        merge_shards(files)


@pytest.mark.parametrize(
    ("state", "difference"),
    [
        ({"commit": "fedcba9876543210"}, "another commit: fedcba98, not 01234567"),
        ({"versions": {"python": "3.12.1"}}, "other versions: google-adk none, not 2.13.0"),
        ({"options": {"--timeout": 5.0}}, "other options: --timeout 5.0, not none"),
        ({"criteria": {"desk/test_config.json": "d4"}}, "other criteria: desk/test_config.json differs"),
        ({"criteria": {"defaults": "d4"}}, "other criteria: defaults was added"),
        ({"files": {"desk/refunds.evalset.json": "b2"}}, "other files: desk/agent.py is missing"),
    ],
)
def test_shard_from_another_state_is_named_with_the_difference(
    tmp_path: Path, state: dict[str, Any], difference: str
) -> None:
    files = reports(tmp_path, **state)
    with pytest.raises(UsageFaultError) as refused:
        merge_shards([files[2], *files[:2]])
    assert str(refused.value).startswith(f"{files[2]} (shard 3/3) is from another run than {files[0]}: {difference}")
    assert refused.value.kind == "usage"


def test_shard_of_another_plan_is_refused(tmp_path: Path) -> None:
    files = reports(tmp_path)
    changed(files[2], lambda data: data["shard"].update(plan="another"))
    with pytest.raises(UsageFaultError, match=r"3\.json \(shard 3/3\) .* another plan: other cases"):
        merge_shards(files)


def test_unknown_commit_does_not_count_as_a_difference(tmp_path: Path) -> None:
    assert merge_shards(reports(tmp_path, commit="")).run.finished


def _flip(data: dict[str, Any]) -> None:
    """Turn a failed case into a passed one, in the summary, too."""
    next(case for case in data["cases"] if case["status"] == "failed")["status"] = "passed"
    data["summary"]["passed"] += 1
    data["summary"]["failed"] -= 1


def _rename(data: dict[str, Any]) -> None:
    data["cases"][0]["eval_id"] = "other"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda data: data["cases"].pop(),
            "shard 2/3 of 7 executions has 2 of them, but the report has 1 case",
        ),
        (lambda data: data["cases"].reverse(), "the cases in these reports are not those of their plan"),
        (_rename, "the cases in these reports are not those of their plan"),
        (_flip, "2.json: desk/refunds/late_parcel passed, but its criteria say failed"),
        (
            lambda data: data["cases"][0].update(status="passed"),
            "its summary says passed 0, but its cases say 1",
        ),
        (lambda data: data["cases"][0].update(status="fine"), "2.json: case 1: status: "),
        (lambda data: data["cases"][1].update(duration_seconds=-1), "2.json: case 2: duration_seconds: "),
        (lambda data: data["cases"].insert(0, None), "2.json: case 1: "),
        (lambda data: data["shard"].update(index=4), "2.json: there is no shard 4/3"),
        (lambda data: data["shard"].update(index=0), "2.json: outside of its cases: shard.index: "),
        (lambda data: data.update(shard=[]), "2.json: outside of its cases: shard: "),
        (lambda data: data.update(summary=None), "2.json: outside of its cases: summary: "),
        (lambda data: data.pop("shard"), "2.json is not the report of a shard"),
        (lambda data: data.update(shard=None, cases=[]), "2.json is not the report of a shard: nothing was selected"),
        (lambda data: data.update(cases=3), "2.json is not a JSON report: it has no list of cases"),
        (lambda data: data.update(error={"message": "no"}), "2.json says that nothing ran: no"),
        (lambda data: data.update(schema="agent-workbench/report/9"), "2.json is not a JSON report: its schema is"),
    ],
)
def test_damaged_report_is_refused_with_its_place(tmp_path: Path, change: Change, message: str) -> None:
    files = reports(tmp_path)
    changed(files[1], change)
    with pytest.raises(UsageFaultError, match=re.escape(message)) as refused:
        merge_shards(files)
    assert refused.value.hint


@pytest.mark.parametrize("text", ["", "{", '{"schema": ', "[" * 100_000, "\ufeff{}", "null", "\0"])
def test_file_that_is_no_report_is_named(tmp_path: Path, text: str) -> None:
    files = reports(tmp_path)
    files[1].write_text(text, "utf-8")
    with pytest.raises(UsageFaultError, match=r"2\.json is not a JSON report") as refused:
        merge_shards(files)
    assert refused.value.hint


def test_folder_without_state_and_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageFaultError, match="is not a state folder") as refused:
        merge_shards([tmp_path])
    assert f"{tmp_path}/*.json" in refused.value.hint
    with pytest.raises(UsageFaultError, match=r"none\.json: No such file"):
        merge_shards([tmp_path / "none.json"])


def test_merged_run_without_cases_does_not_exit_with_0(tmp_path: Path) -> None:
    empty = feed([RunStarted("whole", "/r", "", ())], [RunFinished(0.0)])
    files = [written(run_of(empty, index, 2), tmp_path / f"{index}.json") for index in (1, 2)]
    assert exit_code(merge_shards(files)) == 3
    assert exit_code(run_of(empty, 1, 2)) == 0


def test_passed_case_with_an_unjudged_criterion_needs_allow_not_evaluated(tmp_path: Path) -> None:
    ref = CaseRef("desk", "desk/a.evalset.json", "a", "one")
    metrics = [
        MetricResult("response_match_score", "passed", 1.0, 0.8),
        MetricResult("safety_v1", "not_evaluated", None, 0.8),
    ]
    whole = feed(
        [RunStarted("whole", "/r", "", (PlannedCase(ref, None, "defaults"),))],
        case_events(ref, "passed", metrics),
        [RunFinished(1.0)],
    )
    for options, refused in (({"--allow-not-evaluated": True}, False), ({}, True)):
        files = [written(run_of(whole, index, 2, options=options), tmp_path / f"{index}.json") for index in (1, 2)]
        if refused:
            with pytest.raises(UsageFaultError, match="one passed, but its criteria say not_evaluated"):
                merge_shards(files)
        else:
            assert exit_code(merge_shards(files)) == 0


def test_shards_of_the_same_state_have_no_differences() -> None:
    one = Shard(1, 2, 4, "p", {"a": "1"}, {"defaults": "2"}, {"--runs": 2}, {"python": "3"}, "c")
    assert replace(one, index=2).differences(one) == []
    assert [replace(one, index=index, executions=5).size for index in (1, 2)] == [3, 2]


def stored(state: Path, events: list[Event], run_id: str) -> Path:
    """Store the events of a run, and return the path that names it."""
    writer = RunWriter.open(state, run_id)
    assert writer.path is not None
    writer.write(map(as_line, events), sync=False)
    writer.close()
    return writer.path


def shard_in(state: Path, index: int, count: int = 3, *, day: int = 1, **facts: Any) -> Path:
    """Store a shard of a run of that day."""
    return stored(state, events_of_run(all_statuses(), index, count, **facts), f"2026-11-{day:02}T10-30-0{index}-ab12")


def refusal(*paths: Path) -> UsageFaultError:
    with pytest.raises(UsageFaultError) as refused:
        merge_shards(paths)
    assert refused.value.hint
    return refused.value


def test_merged_folders_equal_merged_reports(tmp_path: Path) -> None:
    """Of each kind: a state folder by its own name, a project, and a report."""
    files = reports(tmp_path)
    folders = [tmp_path / "state", tmp_path / "project", tmp_path / "other"]
    states = [folders[0], folders[1] / ".workbench", folders[2] / ".workbench"]
    for index, state in enumerate(states, 1):
        shard_in(state, index)
    expected = merge_shards(files)
    for paths in (folders, [files[0], *folders[:0:-1]], [folders[0], files[1], states[2]]):
        merged = merge_shards(paths)
        assert content(merged) == content(expected)
        assert junit(merged) == junit(expected)
        assert merged.run.started == expected.run.started
        assert merged.run.duration_seconds == expected.run.duration_seconds


def test_newest_run_of_each_shard_in_a_shared_folder_counts(tmp_path: Path) -> None:
    stored(tmp_path, events_of_run(all_statuses(), 1, 2), "2026-11-01T10-30-01-old1")
    shard_in(tmp_path, 2, day=2, commit="0ther")
    for index in (1, 2, 3):
        shard_in(tmp_path, index, day=3)
    stored(tmp_path, events_of_run(all_statuses(), 1, 1), "2026-11-04T10-30-01-whole")
    assert content(merge_shards([tmp_path])) == content(run_of(all_statuses()))
    again = shard_in(tmp_path, 2, day=5, options={"--timeout": 5.0})
    message = str(refusal(tmp_path))
    assert message.startswith(f"{again} (shard 2/3) is from another run than ")
    assert message.endswith("other options: --timeout 5.0, not none")


def test_shard_given_as_folder_and_report_is_refused_as_duplicate(tmp_path: Path) -> None:
    files = reports(tmp_path)
    path = shard_in(tmp_path / "state", 2)
    assert str(refusal(*files, tmp_path / "state")).startswith(f"shard 2/3 is given twice: {files[1]} and {path}")
    assert str(refusal(tmp_path / "state")) == "missing: shards 1/3, 3/3"


def test_folder_without_shards_is_named(tmp_path: Path) -> None:
    stored(tmp_path, events_of_run(all_statuses(), 1, 1), "2026-11-04T10-30-01-whole")
    assert str(refusal(tmp_path)).startswith(f"{tmp_path} has no stored shard run")


def test_folder_named_for_merge_is_trusted(tmp_path: Path) -> None:
    for index in (1, 2, 3):
        shard_in(tmp_path / ".workbench", index)
    (tmp_path / ".workbench/id").unlink()
    assert why_untrusted(tmp_path)
    assert exit_code(merge_shards([tmp_path])) == 3
    assert why_untrusted(tmp_path)
    assert not (tmp_path / ".workbench/id").exists()


def test_link_in_a_project_is_not_followed(tmp_path: Path) -> None:
    for index in (1, 2, 3):
        shard_in(tmp_path / "state", index)
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.workbench").symlink_to(tmp_path / "state")
    assert str(refusal(tmp_path / "project")).startswith(f"{tmp_path}/project/.workbench is a link")


def _without_end(events: list[Event]) -> list[Event]:
    return events[:-1]


def _going_on(events: list[Event]) -> list[Event]:
    return [*events[:-1], RunFinished(1.0, interrupted=True), RunResumed("2026-11-05T10:30:00Z")]


@pytest.mark.parametrize("cut", [_without_end, _going_on])
def test_killed_shard_is_refused_despite_an_older_run_that_ended(
    tmp_path: Path, cut: Callable[[list[Event]], list[Event]]
) -> None:
    for index in (1, 2, 3):
        shard_in(tmp_path, index)
    path = stored(tmp_path, cut(events_of_run(all_statuses(), 2, 3)), "2026-11-05T10-30-02-dead")
    assert str(refusal(tmp_path)).startswith(f"{path} (shard 2/3) has not ended: it was killed")


def test_unfinished_case_of_an_interrupted_shard_counts_as_cancelled(tmp_path: Path) -> None:
    ref = CaseRef("desk", "desk/a.evalset.json", "a", "one")
    whole = feed([RunStarted("whole", "/r", "", (PlannedCase(ref, None, "defaults"),))], [RunFinished(1.0)])
    stored(tmp_path, [*events_of_run(whole, 1, 2)[:1], RunFinished(1.0, interrupted=True)], "2026-11-05T10-30-02-stop")
    stored(tmp_path, events_of_run(whole, 2, 2), "2026-11-05T10-30-03-stop")
    merged = merge_shards([tmp_path])
    assert [record.status for record in merged.current_records()] == ["cancelled"]
    assert exit_code(merged) == 3


def test_any_damaged_or_lost_event_is_refused(tmp_path: Path) -> None:
    """The rows made from the events are damaged, too, so that they cannot tell that the last event is missing."""
    others, whole = reports(tmp_path)[1:], tmp_path / "whole"
    for day in (1, 2):
        path = shard_in(whole, 1, day=day)
    database(whole).close()
    count = len(event_texts(path))
    for number in range(1, count + 1):
        for damage in ("change", "drop"):
            state = tmp_path / f"{number}-{damage}"
            shutil.copytree(whole, state)
            damaged = run_path(state, path.name)
            if damage == "drop":
                drop_events(damaged, number)
            else:
                change_event(damaged, number, '"event"', '"evemt"')
            if number == count:
                forget_rows(damaged)
            refused = str(refusal(state, *others))
            assert refused.startswith(f"{state}/runs.db")
            assert path.name in refused


def test_run_with_a_lost_plan_blocks_the_merge_until_all_shards_rerun(tmp_path: Path) -> None:
    for index in (1, 2, 3):
        shard_in(tmp_path, index, day=index)
    killed = RunWriter.open(tmp_path, "2026-11-04T12-00-00-lost")
    killed.release()
    refused = refusal(tmp_path)
    assert "the plan of run 2026-11-04T12-00-00-lost is damaged or missing" in str(refused)
    assert "--fresh" in refused.hint
    for index in (1, 2):
        shard_in(tmp_path, index, day=4 + index)
        assert "newer run of shard 3/3" in str(refusal(tmp_path))
    shard_in(tmp_path, 3, day=7)
    assert merge_shards([tmp_path]).run.finished


@pytest.mark.parametrize("damage", ["DELETE FROM run WHERE id = 6", "UPDATE run SET deleted = 1 WHERE id = 6"])
def test_run_with_a_lost_row_blocks_the_merge(tmp_path: Path, damage: str) -> None:
    for day in (1, 2):
        for index in (1, 2, 3):
            shard_in(tmp_path, index, day=day)
    sql(tmp_path, damage)
    assert re.search(r"the plan of run (number 6|2026-11-02\S*) is damaged or missing", str(refusal(tmp_path)))


def test_deleted_run_of_a_shard_is_replaced_by_the_previous_one(tmp_path: Path) -> None:
    for day in (1, 2):
        for index in (1, 2, 3):
            path = shard_in(tmp_path, index, day=day)
    assert database(tmp_path).write(lambda connection: delete_runs(connection, [number_of(path)]))
    assert content(merge_shards([tmp_path])) == content(run_of(all_statuses()))


def test_merge_is_refused_if_the_database_was_replaced_after_a_shard_started(tmp_path: Path) -> None:
    for index in (1, 2, 3):
        shard_in(tmp_path, index, day=3)
    for name in ("20261102-000000", "20261102-000000-2", "no-time"):
        (tmp_path / f"runs.damaged-{name}.db").write_bytes(b"")
    assert merge_shards([tmp_path]).run.finished
    (tmp_path / "runs.damaged-20261103-103002.db").write_bytes(b"")
    assert "was damaged and replaced at 2026-11-03T10:30:02Z" in str(refusal(tmp_path))


def test_stored_verdict_that_contradicts_its_criteria_is_refused(tmp_path: Path) -> None:
    whole = all_statuses()
    for index in (1, 2, 3):
        events = events_of_run(whole, index, 3)
        passed: list[Event] = [
            replace(event, status="passed") if isinstance(event, CaseFinished) else event for event in events
        ]
        stored(tmp_path, passed, f"2026-11-05T10-30-0{index}-ab12")
    assert re.search(r"passed, but (its criteria say|has an error)", str(refusal(tmp_path)))


def test_event_of_an_unplanned_case_is_refused(tmp_path: Path) -> None:
    started, *rest = events_of_run(all_statuses(), 1, 3)
    other = CaseFinished(CaseRef("no", "no.evalset.json", "no", "such"), "passed", None, 1.0)
    path = stored(tmp_path, [started, other, *rest], "2026-11-05T10-30-02-ab12")
    assert str(refusal(tmp_path)).startswith(f"{path}: its events do not fit together")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"no database"])
def test_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "runs.db").write_bytes(content)
    assert str(tmp_path) in str(refusal(tmp_path))


def test_database_of_a_later_version_is_refused(tmp_path: Path) -> None:
    for index in (1, 2, 3):
        shard_in(tmp_path, index)
    database(tmp_path).close()
    sql(tmp_path, "PRAGMA user_version = 99")
    assert "a later version of agent-workbench made it" in str(refusal(tmp_path))
