"""A verdict made under criteria that are not in the file says so on every surface."""

import json
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from tests.cli.stores import ANSWER_PASSED, FILE, case_events, ref
from workbench.__main__ import main
from workbench.events.event_json import as_line
from workbench.events.events import Event, PlannedCase, RunFinished, RunStarted
from workbench.exporting.html import build_html
from workbench.exporting.junit import junit_pieces
from workbench.exporting.report import report_pieces
from workbench.exporting.tables import build_csv, build_markdown
from workbench.results.document import Subject
from workbench.results.panes import plain_case
from workbench.results.plain_lines import case_line
from workbench.results.title import notes
from workbench.store.details import read_details, read_records
from workbench.store.execution import CaseRecord
from workbench.store.history.reading import load_summary, read_run_events
from workbench.store.history.run_list import list_all_runs
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.stored_events import read_report
from workbench.store.store import Store
from workbench.ui.session.run_labels import flags

RUN = "2026-11-21T10-30-00-3f2a"
SENTENCE = "response_match_score ≥ 0.3 instead of 0.8"
CHANGED, AS_IN_FILE = ref("late_parcel"), ref("on_time")


@pytest.fixture
def events() -> list[Event]:
    """A run of two cases, for one of which a criterion was changed."""
    planned = (PlannedCase(CHANGED, FILE, "the file", (SENTENCE,)), PlannedCase(AS_IN_FILE, FILE, "the file"))
    cases = [event for case in (CHANGED, AS_IN_FILE) for event in case_events(case, "passed", [ANSWER_PASSED])]
    return [RunStarted(RUN, "/x", "2026-11-21T10:30:00Z", planned), *cases, RunFinished(1.0)]


def store_of(events: list[Event]) -> Store:
    store = Store()
    for event in events:
        store.apply(event)
    return store


def is_marked(record: CaseRecord) -> bool:
    """Return whether line, title and pane all mark the case. Fail if only some of them do."""
    subject = Subject(record, None, None)
    title = notes(subject, 100).plain
    pane = "\n".join(plain_case(record, 100))
    found = {"(other criteria)" in case_line(record), "≠ other criteria" in title, "≠ other criteria" in pane}
    assert len(found) == 1
    assert (SENTENCE in pane) is found.copy().pop()
    return found.pop()


def test_other_criteria_are_marked_in_lines_title_and_pane(events: list[Event]) -> None:
    store = store_of(events)
    assert store.run.other_criteria
    assert [is_marked(read_details(store.records[case])) for case in (CHANGED, AS_IN_FILE)] == [True, False]


def test_each_export_marks_only_the_case_with_other_criteria(events: list[Event]) -> None:
    store = store_of(events)
    cases = json.loads(b"".join(report_pieces(store)))["cases"]
    assert [case["criteria_changed"] for case in cases] == [[SENTENCE], []]
    suite = Tree.fromstring(b"".join(junit_pieces(store)))
    values = [[one.get("value") for one in case.iter("property")] for case in suite.iter("testcase")]
    assert values == [[SENTENCE], []]
    for built in (build_markdown(store), build_html(store), build_csv(store)):
        text = built.decode("utf-8-sig")
        assert [SENTENCE in line for line in text.splitlines() if "late_parcel" in line][-1]
        assert not any(SENTENCE in line for line in text.splitlines() if "on_time" in line)


def test_mark_is_stored_with_the_run(events: list[Event], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = RunWriter.open(tmp_path, RUN)
    journal.write(map(as_line, events), sync=False)
    journal.close()
    assert journal.path is not None
    records = read_records(journal.path, {CHANGED, AS_IN_FILE})
    assert [is_marked(records[case]) for case in (CHANGED, AS_IN_FILE)] == [True, False]
    kept = load_summary(tmp_path, RUN)[0]
    (listed,), _ = list_all_runs(tmp_path, tmp_path, ())
    assert "≠ other criteria" in flags(listed, baseline=None, running="")
    with pytest.raises(SystemExit):
        main(["history", str(tmp_path), "--state-dir", str(tmp_path)])
    assert "other criteria" in capsys.readouterr().out
    brief = kept.executions
    assert ["(other criteria)" in case_line(read_details(brief[case])) for case in (CHANGED, AS_IN_FILE)] == [
        True,
        False,
    ]
    assert [is_marked(read_details(brief[case])) for case in (CHANGED, AS_IN_FILE)] == [True, False]


def test_mark_survives_reading_a_report(events: list[Event], tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(b"".join(report_pieces(store_of(events))))
    assert read_report(file).cases[CHANGED].planned.criteria_changed == (SENTENCE,)
    again = store_of(read_run_events(str(file), tmp_path, tmp_path))
    assert [is_marked(read_details(again.records[case])) for case in (CHANGED, AS_IN_FILE)] == [True, False]


@pytest.mark.parametrize("foreign", [None, 3, "text", {"a": 1}, [1, None, SENTENCE]])
def test_invalid_mark_in_a_report_is_ignored(events: list[Event], tmp_path: Path, foreign: object) -> None:
    file = tmp_path / "report.json"
    report = json.loads(b"".join(report_pieces(store_of(events))))
    report["cases"][0]["criteria_changed"] = foreign
    file.write_text(json.dumps(report), "utf-8")
    wanted = (SENTENCE,) if isinstance(foreign, list) else ()
    assert read_report(file).cases[CHANGED].planned.criteria_changed == wanted
