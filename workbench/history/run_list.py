"""The list of stored runs, newest first.

It is read from the index. Runs that the index lacks are read from their summaries or journals.
"""

import contextlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workbench.counting import counted
from workbench.history.ages import ages
from workbench.history.journal_lines import STEPS, read_lines
from workbench.history.journal_lock import is_being_written
from workbench.history.state_dir import JOURNAL_FILE as FILE_NAME
from workbench.history.state_dir import runs_dir
from workbench.history.summary import Summary, SummaryBuilder
from workbench.history.summary_files import FILE_NAME as SUMMARY
from workbench.history.summary_files import (
    IndexEntry,
    JournalSize,
    add_to_index,
    index_entry,
    is_current,
    read_index,
    read_summary,
    write_index,
    write_summary,
)
from workbench.state_folder import delete_stored, reading, stored_folders

_STALE = 200
"""Number of outdated index lines before the index is rewritten."""
_PIECE = 256 * 1024


@dataclass
class RunList:
    """The runs of a state folder, the newest first.

    `trouble` says what cannot be listed, and why. `unreadable` has the same by run ID.
    """

    runs: list[IndexEntry] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


def list_runs(state: Path) -> RunList:
    """Return all runs of a state folder.

    Read the index. Also read the summary or journal of each run that the index lacks, or whose journal has a different
    size than in the index.
    """
    runs = runs_dir(state)
    found = RunList()
    ids = stored_folders(runs)
    index, lines = read_index(runs)
    for run_id in sorted(ids, reverse=True):
        entry, size = index.get(run_id), _journal_bytes(runs, run_id)
        if entry is None or entry.get("seconds") is None or entry.get("bytes") != size or not is_current(entry):
            entry = _unlisted(runs, run_id, size, found)
        if entry is not None:
            found.runs.append(entry)
    known = {entry["run_id"]: entry for entry in found.runs if entry["run_id"] in index}
    if lines > len(known) + _STALE:
        write_index(runs, known)
    age = ages()
    found.runs.sort(key=lambda entry: age(entry["run_id"], str(entry.get("started"))), reverse=True)
    return found


def load_summary(state: Path, run_id: str) -> tuple[Summary, list[str]]:
    """Return the summary of a run and the parts of its journal that could not be read.

    Rebuild the summary from the journal if it is lost or damaged, or if the journal's size differs. Use this function
    to read many runs.

    Raises:
        OSError: there is no journal.
        ValueError: the file is not a journal, or a later version wrote it.
    """
    folder = runs_dir(state) / run_id
    kept = read_summary(folder, (folder / FILE_NAME).stat().st_size)
    return (kept, []) if kept is not None else _rebuild(folder)


def checked_summary(state: Path, run_id: str) -> tuple[Summary, list[str]]:
    """Return the same as `load_summary` after checking the journal's checksum.

    Use this function for a single run: it reads the whole journal. Raises the same errors as `load_summary`.
    """
    folder = runs_dir(state) / run_id
    size, crc = _checksum(folder / FILE_NAME)
    kept = read_summary(folder, size, crc)
    if kept is not None:
        return kept, []
    summary, trouble = _rebuild(folder)
    if trouble and read_summary(folder, size) is not None:
        # The size alone did not reveal the damage. Without the summary, the list reads the journal and reports it too.
        with contextlib.suppress(OSError):
            delete_stored(folder / SUMMARY)
            add_to_index(folder.parent, {**index_entry(run_id, summary), "seconds": None})
    return summary, trouble


def summary_for_opening(state: Path, run_id: str) -> tuple[Summary, list[str]]:
    """Return the same as `checked_summary`, but trust a journal with unchanged size and change time.

    Details of a case are checked when they are read.
    """
    folder = runs_dir(state) / run_id
    journal = (folder / FILE_NAME).stat()
    kept = read_summary(folder, journal.st_size, journal_modified=journal.st_mtime_ns)
    return (kept, []) if kept is not None else checked_summary(state, run_id)


def _rebuild(folder: Path) -> tuple[Summary, list[str]]:
    """Build the summary from the journal, and save it unless a process is writing the run."""
    journal = folder / FILE_NAME
    modified = journal.stat().st_mtime_ns
    size, crc = _checksum(journal)
    summary, trouble = summarize(journal)
    # A run in progress writes its own summary when it ends. One that was killed has none.
    if not trouble and (summary.seconds is not None or not is_being_written(journal)):
        with reading(journal) as file:
            lines = sum(1 for _ in file)
        write_summary(folder, summary, JournalSize(size, lines, crc, modified))
    return summary, trouble


def _checksum(journal: Path) -> tuple[int, int]:
    """Return the size and the checksum of a journal.

    The file is read in pieces: 10,000 cases take 240 MB, and two journals may be compared at once. Raises OSError.
    """
    size = crc = 0
    with reading(journal) as file:
        while piece := file.read(_PIECE):
            size, crc = size + len(piece), zlib.crc32(piece, crc)
    return size, crc


def summarize(journal: Path) -> tuple[Summary, list[str]]:
    """Return the summary of the readable part of a journal, and what could not be read.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a journal, or a later version wrote it.
    """
    builder, trouble = SummaryBuilder(), []
    for line in read_lines(journal, STEPS):
        if line.problem:
            trouble.append(line.problem)
        if line.data is not None:
            builder.take(line.data, line.offset, line.length)
    summary = builder.summary
    summary.run_id = summary.run_id or journal.parent.name
    return summary, trouble


def is_as_listed(runs: Path, entry: IndexEntry) -> bool:
    """Return whether the journal of an indexed run still exists with the indexed size."""
    return _journal_bytes(runs, str(entry["run_id"])) == entry.get("bytes") is not None


def _journal_bytes(runs: Path, run_id: str) -> int | None:
    # Building 10,000 Path objects is slow.
    try:
        return os.stat(f"{runs}/{run_id}/{FILE_NAME}").st_size  # noqa: PTH116
    except (OSError, ValueError):
        return None


def _unlisted(runs: Path, run_id: str, size: int | None, found: RunList) -> IndexEntry | None:
    try:
        summary, damaged = load_summary(runs.parent, run_id)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        found.trouble.append(str(error))
        found.unreadable[run_id] = str(error)
        return None
    found.trouble += _first(damaged)
    entry = index_entry(run_id, summary, size)
    if summary.seconds is not None and not damaged:
        try:
            add_to_index(runs, entry)
        except OSError:
            return entry
    return entry


def _first(damaged: list[str]) -> Iterator[str]:
    yield from damaged[:1]
    if len(damaged) > 1:
        yield f"and {counted(len(damaged) - 1, 'more line')} of this journal"
