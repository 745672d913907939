"""Cases of kept runs as records: whole, without an end, or not at all."""

from pathlib import Path

from tests.cli.stores import ANSWER_PASSED, FAILED, PASSED, case_events
from tests.history.test_run_list import keep_run
from workbench.ui.history.records import as_it_ended, read_records


def test_what_has_no_end_is_an_error_that_says_so(tmp_path: Path) -> None:
    events = [*case_events(PASSED, "passed", [ANSWER_PASSED]), *case_events(FAILED, "failed")[:2]]
    file = keep_run(tmp_path, "2026-11-20T10-00-00-aaaa", events, ended=False)
    records = read_records(file, {PASSED, FAILED})
    assert [records[ref].state for ref in (PASSED, FAILED)] == ["passed", "running"]
    shown = as_it_ended(records)
    assert [shown[ref].state for ref in (PASSED, FAILED)] == ["passed", "error"]
    error = shown[FAILED].error
    assert error is not None
    assert "while this case was running" in error.message
    other = keep_run(tmp_path, "2026-11-21T10-00-00-aaaa", [], ended=False)
    never = as_it_ended(read_records(other, {FAILED}))[FAILED].error
    assert never is not None
    assert "before this case started" in never.message
