"""Which runs stay: limits of number, size and age, deleted ones, and the one that is pinned as the baseline.

Nothing takes away the baseline, a run that is being written, or one whose transcripts another run that stays was scored
from.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from workbench.atomic import replace_content
from workbench.config import Limits
from workbench.history.holding import is_written, take_hold
from workbench.history.journal import FILE_NAME
from workbench.history.objects import drop_objects
from workbench.history.run_list import list_runs, load_summary
from workbench.history.run_words import BASELINE, baseline
from workbench.history.state_dir import runs_dir
from workbench.history.summary_files import IndexEntry

_LOCK = "tidying"
_SPARE = 20
"""A twentieth more than the limit is borne."""
_MEGABYTE = 1024 * 1024
_DAY = len("2026-11-21")


def pin(state: Path, run_id: str) -> None:
    """Makes a run the baseline in place of any other. Raises OSError: it cannot be written, or the run is gone: another
    workbench may have deleted it."""
    (runs_dir(state) / run_id / FILE_NAME).stat()
    replace_content(state / BASELINE, f"{run_id}\n".encode(), mode=0o600)


def unpin(state: Path) -> None:
    """No run is the baseline any more. Raises OSError."""
    (state / BASELINE).unlink(missing_ok=True)


def delete_runs(state: Path, run_ids: Iterable[str]) -> list[str]:
    """Deletes runs; those that could be: one that is being written stays. Contents of files that no other run used go
    with them."""
    gone = []
    for run_id in run_ids:
        folder = runs_dir(state) / run_id
        if folder.is_symlink():  # What it leads to is somebody else's.
            with contextlib.suppress(OSError):
                folder.unlink()
                gone.append(run_id)
            continue
        if is_written(folder / FILE_NAME):
            continue
        # First its journal: what is cut off in the middle is no run any more.
        try:
            (folder / FILE_NAME).unlink()
        except OSError:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        gone.append(run_id)
    if gone:
        _drop_unused(state)
    return gone


def superfluous(state: Path, keep: int) -> list[str]:
    """The runs beyond the newest `keep` that may go."""
    runs = list_runs(state).runs
    return _may_go(state, runs[:keep], runs[keep:])


def tidy(state: Path, limits: Limits) -> list[str]:
    """Deletes the oldest runs where there are more, larger or older ones than `limits` allows; which. Something is left
    over at first, so that it is not to do after each run. Reads and deletes files: not for an event loop's thread."""
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
    descriptor = os.open(state / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        if not take_hold(descriptor):
            return []  # Another workbench is at it.
        runs = list_runs(state).runs
        return delete_runs(state, _may_go(state, *_split(state, runs, limits)))
    finally:
        os.close(descriptor)


def _split(state: Path, runs: Sequence[IndexEntry], limits: Limits) -> tuple[list[IndexEntry], list[IndexEntry]]:
    """Those within the limits, and those beyond; the newest one stays whatever it is."""
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


def _may_go(state: Path, stay: Sequence[IndexEntry], go: Sequence[IndexEntry]) -> list[str]:
    named = {name for run in stay for name in str(run["scored_from"]).split(", ")} | {baseline(state)}
    ids = [str(run["run_id"]) for run in go]
    return [run_id for run_id in ids if run_id not in named and not is_written(runs_dir(state) / run_id / FILE_NAME)]


def _folders(state: Path) -> dict[str, Path]:
    try:
        return {path.name: path for path in runs_dir(state).iterdir() if path.name[:1].isdigit()}
    except OSError:
        return {}


def _size(folder: Path) -> int:
    """Bytes of the files of a run."""
    found = 0
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            found += path.stat().st_size
    return found


def _day_before(days: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"


def _drop_unused(state: Path) -> None:
    used: set[str] = set()
    for run in list_runs(state).runs:
        # What cannot be read may still name them.
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
