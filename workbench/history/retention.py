"""Retention of stored runs: limits of number, size and age, deletion, and the pinned baseline.

The baseline, a run in progress, and a run whose transcripts a remaining run was scored from are never removed by
limits.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from workbench.config import Limits
from workbench.history.journal import FILE_NAME
from workbench.history.journal_lock import is_being_written, lock_journal
from workbench.history.objects import drop_objects
from workbench.history.run_list import list_runs, load_summary
from workbench.history.run_names import BASELINE, baseline
from workbench.history.state_dir import runs_dir
from workbench.history.summary_files import IndexEntry
from workbench.state_folder import (
    delete_stored,
    delete_stored_folder,
    listed,
    open_stored,
    replace_stored,
    stored_folders,
)

_LOCK = "tidying"
_SPARE = 20
"""The limit may be exceeded by one part in 20 before anything is deleted."""
_MEGABYTE = 1024 * 1024
_DAY = len("2026-11-21")


def pin(state: Path, run_id: str) -> None:
    """Make a run the baseline, in place of any other.

    Raises:
        OSError: the state folder cannot be written, or another workbench has deleted the run.
    """
    (runs_dir(state) / run_id / FILE_NAME).stat()
    replace_stored(state / BASELINE, f"{run_id}\n".encode())


def unpin(state: Path) -> None:
    """Clear the baseline. Raises OSError."""
    delete_stored(state / BASELINE, missing_ok=True)


def delete_runs(state: Path, run_ids: Iterable[str]) -> list[str]:
    """Delete runs that are not being written, and file contents that no other run uses. Return the deleted IDs."""
    deleted = []
    for run_id in run_ids:
        folder = runs_dir(state) / run_id
        if folder.is_symlink():  # Its target does not belong to the workbench.
            with contextlib.suppress(OSError):
                delete_stored(folder)
                deleted.append(run_id)
            continue
        if is_being_written(folder / FILE_NAME):
            continue
        # Delete the journal first: if deleting is interrupted, the rest no longer counts as a run.
        try:
            delete_stored(folder / FILE_NAME)
        except OSError:
            continue
        delete_stored_folder(folder)
        deleted.append(run_id)
    if deleted:
        _drop_unused(state)
    return deleted


def deletable_runs(state: Path, keep: int) -> list[str]:
    """Return the IDs of runs beyond the newest `keep` that may be deleted."""
    runs = list_runs(state).runs
    return _deletable(state, runs[:keep], runs[keep:])


def tidy(state: Path, limits: Limits) -> list[str]:
    """Delete the oldest runs beyond `limits`, and return their IDs.

    The limits may be slightly exceeded, so that not every run leads to deletions. Reads and deletes files, so do not
    call it in an event loop's thread.
    """
    folders = _folders(state)
    if limits.runs and len(folders) > limits.runs + limits.runs // _SPARE:
        return _tidy(state, limits)
    if limits.megabytes or limits.days:
        sizes = {name: _size(folder) for name, folder in folders.items()}
        most = limits.megabytes * _MEGABYTE
        if most and sum(sizes.values()) > most + most // _SPARE:
            return _tidy(state, limits)
        if limits.days and folders and min(folders)[:_DAY] < _day_before(limits.days + 1):
            return _tidy(state, limits)
    return []


def _tidy(state: Path, limits: Limits) -> list[str]:
    descriptor = open_stored(state / _LOCK, os.O_WRONLY | os.O_CREAT)
    try:
        if not lock_journal(descriptor):
            return []  # Another workbench is deleting.
        runs = list_runs(state).runs
        return delete_runs(state, _deletable(state, *_split(state, runs, limits)))
    finally:
        os.close(descriptor)


def _split(state: Path, runs: Sequence[IndexEntry], limits: Limits) -> tuple[list[IndexEntry], list[IndexEntry]]:
    """Return the runs within the limits and those beyond. The newest run always stays."""
    stay: list[IndexEntry] = []
    go: list[IndexEntry] = []
    size, oldest = 0, _day_before(limits.days) if limits.days else ""
    for run in runs:
        size += _size(runs_dir(state) / str(run["run_id"])) if limits.megabytes else 0
        beyond = (
            (limits.runs and len(stay) >= limits.runs)
            or (limits.megabytes and size > limits.megabytes * _MEGABYTE)
            or str(run["run_id"])[:_DAY] < oldest
        )
        (go if beyond and stay else stay).append(run)
    return stay, go


def _deletable(state: Path, stay: Sequence[IndexEntry], go: Sequence[IndexEntry]) -> list[str]:
    needed = {name for run in stay for name in str(run["scored_from"]).split(", ")} | {baseline(state)}
    ids = [str(run["run_id"]) for run in go]
    return [
        run_id for run_id in ids if run_id not in needed and not is_being_written(runs_dir(state) / run_id / FILE_NAME)
    ]


def _folders(state: Path) -> dict[str, Path]:
    runs = runs_dir(state)
    return {name: runs / name for name in stored_folders(runs) if name[:1].isdigit()}


def _size(folder: Path) -> int:
    """Return the bytes of a run's files."""
    with contextlib.suppress(OSError):
        return sum(item.stat(follow_symlinks=False).st_size for item in listed(folder))
    return 0


def _day_before(days: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"


def _drop_unused(state: Path) -> None:
    used: set[str] = set()
    for run in list_runs(state).runs:
        # An unreadable run may still use them, so delete nothing.
        try:
            summary, trouble = load_summary(state, run["run_id"])
        except (OSError, ValueError):
            return
        if trouble:
            return
        for files in summary.sources.values():
            with contextlib.suppress(AttributeError, TypeError):
                used.update(files.values())
    drop_objects(state, used)
