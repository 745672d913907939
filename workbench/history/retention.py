"""Which runs stay: deleted ones, the newest so many, and the one that is pinned as the baseline."""

import contextlib
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workbench.atomic import replace_content
from workbench.history.journal import FILE_NAME
from workbench.history.objects import drop_objects
from workbench.history.run_list import list_runs, load_summary
from workbench.history.state_dir import runs_dir

BASELINE = "baseline"
_SILENCE = 3600.0
"""Seconds without a word from a run after which it is taken to have been killed."""


def baseline(state: Path) -> str | None:
    """The id of the run that is pinned; None where none is, or it is gone."""
    try:
        run_id = (state / BASELINE).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return run_id if run_id and "/" not in run_id and (runs_dir(state) / run_id / FILE_NAME).is_file() else None


def pin(state: Path, run_id: str) -> None:
    """Makes a run the baseline in place of any other. Raises OSError."""
    replace_content(state / BASELINE, f"{run_id}\n".encode(), mode=0o600)


def unpin(state: Path) -> None:
    """No run is the baseline any more. Raises OSError."""
    (state / BASELINE).unlink(missing_ok=True)


def delete_runs(state: Path, run_ids: Iterable[str]) -> list[str]:
    """Deletes runs; those that could be. Contents of files that no other run used go with them."""
    gone = []
    for run_id in run_ids:
        folder = runs_dir(state) / run_id
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
    """The runs beyond the newest `keep`, without the baseline and without those that may still be going on."""
    pinned = baseline(state)
    older: Sequence[dict[str, Any]] = list_runs(state).runs[keep:]
    return [run["run_id"] for run in older if run["run_id"] != pinned and not _goes_on(state, run)]


def _goes_on(state: Path, run: dict[str, Any]) -> bool:
    """Whether the run has no end yet and something was written of it lately; one that was killed has none either."""
    if run["seconds"] is not None:
        return False
    try:
        written: float = (runs_dir(state) / str(run["run_id"]) / FILE_NAME).stat().st_mtime
        return time.time() - written < _SILENCE
    except OSError:
        return False


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
