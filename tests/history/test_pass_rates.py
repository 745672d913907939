"""Pass rates of the runs that are kept, of all evalsets or of some."""

from pathlib import Path

from workbench.engine.event_lines import as_line
from workbench.events import CaseFinished, CaseRef, Event, PlannedCase, RunFinished, RunStarted
from workbench.history.journal import FILE_NAME, Journal
from workbench.history.pass_rates import pass_rates


def keep(state: Path, day: str, **passed: bool) -> Path:
    """A run in which `a1=True` is a case of a.evalset.json that passed."""
    refs = {CaseRef("desk", f"{name[0]}.evalset.json", name[0], name): good for name, good in passed.items()}
    planned = tuple(PlannedCase(ref, None, "") for ref in refs)
    ended = [CaseFinished(ref, "passed" if good else "failed", None, 0.1) for ref, good in refs.items()]
    journal = Journal.open(state, f"{day}T10-00-00-aaaa")
    started = RunStarted(f"{day}T10-00-00-aaaa", "/shop", f"{day}T10:00:00Z", planned)
    events: list[Event] = [started, *ended, RunFinished(1.0)]
    for event in events:
        journal.write([as_line(event)], sync=False)
    journal.close()
    assert journal.path is not None
    return journal.path


def told(state: Path, files: set[str] | None = None, most: int = 60) -> list[tuple[str, int, int]]:
    return [(rate.started[8:10], rate.passed, rate.total) for rate in pass_rates(state, files, most)]


def test_all_runs_or_those_of_some_evalsets_the_oldest_first(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1=True, b1=False)
    keep(tmp_path, "2026-11-22", a1=True, a2=True)
    keep(tmp_path, "2026-11-21", b1=True)
    assert told(tmp_path) == [("20", 1, 2), ("21", 1, 1), ("22", 2, 2)]
    assert told(tmp_path, {"a.evalset.json"}) == [("20", 1, 1), ("22", 2, 2)]
    assert told(tmp_path, most=1) == [("22", 2, 2)]
    assert told(tmp_path / "nowhere") == []


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1=True, b1=True)
    journal = keep(tmp_path, "2026-11-21", a1=True, b1=True)
    pass_rates(tmp_path)
    (journal.parent / FILE_NAME).unlink()
    assert told(tmp_path, {"a.evalset.json"}) == [("20", 1, 1)]


def test_a_run_that_did_not_get_to_all_cases_is_no_dip(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1=True, a2=True)
    for day, ending in (("2026-11-21", None), ("2026-11-22", RunFinished(1.0, interrupted=True))):
        refs = [CaseRef("desk", "a.evalset.json", "a", name) for name in ("a1", "a2")]
        started = RunStarted(f"{day}T10-00-00-aaaa", "/shop", "", tuple(PlannedCase(ref, None, "") for ref in refs))
        events: list[Event] = [started, CaseFinished(refs[0], "passed", None, 0.1), *([ending] if ending else [])]
        journal = Journal.open(tmp_path, started.run_id)
        journal.write(map(as_line, events), sync=False)
        journal.close()
    for files in (None, {"a.evalset.json"}):
        assert told(tmp_path, files) == [("20", 2, 2)]
