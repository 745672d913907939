"""Stored runs as transcripts to score again, from the database or a JSON report."""

from collections.abc import Iterator
from pathlib import Path

from workbench.engine.plan.run_options import UsageFaultError
from workbench.engine.plan.transcripts import StoredRun, collect
from workbench.events import CaseError, CaseFinished, Event, Noticed
from workbench.history.run_names import find_run
from workbench.history.state_dir import is_stored
from workbench.history.stored_events import UNREADABLE_CASES, is_reading_problem, read_run
from workbench.history.stored_report import read_report
from workbench.regular_file import unreadable_text


def open_run(word: str, state: Path, folder: Path) -> StoredRun:
    """Return the run named `word`: a run of the state folder `state`, or a file relative to `folder`.

    Parts that cannot be read are named in `trouble`.

    Raises:
        UsageFaultError: there is no such run, or none of it can be read.
    """
    path = find_run(word, state, folder)
    try:
        return _read_stored(path) if is_stored(path) else read_report(path)
    except OSError as error:
        raise UsageFaultError(unreadable_text(error), kind="broken_file") from None


def _read_stored(path: Path) -> StoredRun:
    trouble: list[str] = []

    def readable() -> Iterator[Event | None]:
        for event in read_run(path):
            if isinstance(event, Noticed) and is_reading_problem(event, path):
                trouble.append(event.message)
                yield None
            else:
                yield event

    try:
        run = collect(readable())
    except (OSError, ValueError) as error:
        raise UsageFaultError(unreadable_text(error), kind="broken_file") from None
    run.trouble, run.file = trouble, path
    if UNREADABLE_CASES in run.cases:
        why = CaseError("broken_file", "the list of the run's cases cannot be read: the database is damaged")
        run.cases[UNREADABLE_CASES].take(CaseFinished(UNREADABLE_CASES, "error", why, 0.0))
    run.run_id = run.run_id or path.name
    return run
