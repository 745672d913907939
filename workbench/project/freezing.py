"""Freezing of cases of a stored run, or of cases on the screen."""

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from workbench.editing.freezing import Freezing, freezing_of, taken_from
from workbench.editing.saving import ChangedOnDiskError, Saver
from workbench.editing.thawing import ThawedFile, thawed_file
from workbench.events.events import CaseRef, RunStarted
from workbench.files.folders import state_dir
from workbench.files.frozen_path import frozen_path
from workbench.files.own_file import OwnFileError
from workbench.files.project_root import find_root
from workbench.files.run_options import UsageFaultError
from workbench.project.past_runs import root_of_run
from workbench.run.plan.selection import refuse_unknown_cases
from workbench.run.recordings.drift import merged
from workbench.run.recordings.from_run import NotRecordedError
from workbench.run.recordings.frozen_file import read_frozen
from workbench.run.recordings.recording import Recording
from workbench.store.details import read_details
from workbench.store.execution import Execution
from workbench.store.history.reading import open_run
from workbench.store.history.run_names import LAST, find_run, last_run_without_faults
from workbench.store.history.stored_events import read_run
from workbench.store.transcripts import StoredRun, stored_case

_TRIES = 3


def freezing_of_cases(
    records: Iterable[Execution], root: Path, state: Path, *, models: bool = False, prune: bool = False
) -> Freezing:
    """Prepare the freezing of cases on the screen. It reads files and writes none.

    `root` is the root of the project. The records may belong to different runs of the state folder.

    Raises:
        OSError: a file cannot be read.
    """
    by_run: dict[str, list[Execution]] = {}
    for record in records:
        by_run.setdefault(record.run_id, []).append(record)
    runs = [_run_of(run_id, found, state) for run_id, found in by_run.items()]
    ids = [ref.eval_id for run in runs for ref in run.cases]
    return freezing_of(runs, root, cases=ids, models=models, prune=prune)


def recording_of_run(record: Execution, root: Path, state: Path) -> tuple[Recording | None, bool]:
    """Return the recording that freezing a case would write, and whether the case has one now. Reads files.

    The recording is None if the run lacks calls that a replay needs, or a file cannot be read.
    """
    run = _run_of(record.run_id, [record], state)
    file = frozen_path(root / record.ref.evalset_file, record.ref.eval_id)
    old = None
    with contextlib.suppress(OwnFileError):
        old = read_frozen(file) if file.is_file() else None
    try:
        taken = taken_from(run.cases[record.ref], run)
    except (NotRecordedError, OSError):
        return None, old is not None
    return merged(old, taken, models=False, prune=False), old is not None


def thawed_files(
    records: Iterable[Execution], root: Path, state: Path
) -> tuple[dict[CaseRef, ThawedFile], dict[CaseRef, str]]:
    """Compare live cases on the screen with their recordings. Reads files.

    Return the compared files by case, and the reasons why cases are left out, by case. The reasons are raw texts.
    """
    runs: dict[str, StoredRun] = {}
    found: dict[CaseRef, ThawedFile] = {}
    left_out: dict[CaseRef, str] = {}
    for record in records:
        run = runs.setdefault(record.run_id, _run_of(record.run_id, (), state))
        try:
            found[record.ref] = thawed_file(stored_case(read_details(record)), run, root)
        except OwnFileError as error:
            left_out[record.ref] = error.faults[0].sentence(error.faults[0].file.name)
        except NotRecordedError as error:
            left_out[record.ref] = str(error)
    return found, left_out


def _run_of(run_id: str, records: Iterable[Execution], state: Path) -> StoredRun:
    """Return a run of these cases, with the start and the versions of the stored run if there is one."""
    run = StoredRun(run_id, cases={record.ref: stored_case(read_details(record)) for record in records})
    with contextlib.suppress(UsageFaultError, OSError, ValueError):
        run.file = find_run(run_id, state)
        for event in read_run(run.file):
            if isinstance(event, RunStarted):
                run.started, run.versions = event.started, event.versions
                break
    return run


def freeze_run(
    word: str,
    *,
    folder: Path,
    cases: Sequence[str] = (),
    models: bool = False,
    prune: bool = False,
    dry_run: bool = False,
    explicit_state: Path | None = None,
) -> Freezing:
    """Freeze cases of a stored run, and return what was done, or with `dry_run` what would be done.

    `word` is an id or the start of one, `last`, or a JSON report. `last` skips runs that injected faults, tried a
    fork or scored another run again. `folder` is in the project. The edit can be undone on the screen. The function
    reads and writes files, so do not call it in an event loop's thread.

    Raises:
        UsageFaultError: the run or a case does not exist, or the run has no cases.
        OSError: a file cannot be read or written. Nothing was written.
    """
    here = find_root(folder)
    state = state_dir(here, explicit_state)
    run = open_run(last_run_without_faults(state) if word == LAST else word, state, folder)
    if not run.cases:
        raise UsageFaultError(f"run {run.run_id} has no cases", "", "nothing")
    refuse_unknown_cases(cases, {ref.eval_id for ref in run.cases}, f"run {run.run_id}")
    root = root_of_run(run, here, explicit_state)
    for tries in range(_TRIES):
        freezing = freezing_of([run], root, cases=cases, models=models, prune=prune)
        try:
            if freezing.contents and not dry_run:
                Saver(state_dir(root, explicit_state), root).save(freezing.label, freezing.contents)
            return freezing
        except ChangedOnDiskError as error:
            if tries == _TRIES - 1:
                raise OSError(f"{error.file} is being changed by another program; nothing was frozen") from None
    raise AssertionError
