"""The runs that are kept, newest first, from the index; what it lacks is read from summaries or journals."""

import contextlib
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workbench.counting import counted
from workbench.history.ages import ages
from workbench.history.journal_lines import read_lines
from workbench.history.state_dir import JOURNAL_FILE as FILE_NAME
from workbench.history.state_dir import runs_dir
from workbench.history.summary import Gathering, Summary
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

_STALE = 200
"""Lines of the index that say nothing any more, before it is written anew."""
_PIECE = 256 * 1024


@dataclass
class RunList:
    """`runs` newest first; `trouble` names what is in the folder and cannot be listed, and why; `unreadable` the same
    by the id of the run."""

    runs: list[IndexEntry] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)


def list_runs(state: Path) -> RunList:
    """All runs of a state folder. Reads one file, and of each run that it does not know, or of which the journal is not
    as long any more as it was, its summary or journal."""
    runs = runs_dir(state)
    found = RunList()
    try:
        with os.scandir(runs) as items:
            ids = [item.name for item in items if item.is_dir(follow_symlinks=False)]
    except OSError:
        return found
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
    """The summary of a run and what of its journal could not be read. Made of the journal again where it is lost,
    damaged or of a journal of another length: for what looks at many runs.

    Raises:
        OSError: there is no journal.
        ValueError: it is none, or one of a later version.
    """
    folder = runs_dir(state) / run_id
    kept = read_summary(folder, (folder / FILE_NAME).stat().st_size)
    return (kept, []) if kept is not None else _made_again(folder)


def checked_summary(state: Path, run_id: str) -> tuple[Summary, list[str]]:
    """The same for somebody who looks at this very run: its journal is read, to see whether it is still the one that
    the summary was made of. Raises as `load_summary`."""
    folder = runs_dir(state) / run_id
    size, crc = _checksum(folder / FILE_NAME)
    kept = read_summary(folder, size, crc)
    if kept is not None:
        return kept, []
    summary, trouble = _made_again(folder)
    if trouble and read_summary(folder, size) is not None:
        # What only looks at the length believed it. From now on the list reads this journal, and says it, too.
        with contextlib.suppress(OSError):
            (folder / SUMMARY).unlink()
            add_to_index(folder.parent, {**index_entry(run_id, summary), "seconds": None})
    return summary, trouble


def summary_for_opening(state: Path, run_id: str) -> tuple[Summary, list[str]]:
    """Return the same as `checked_summary`, without reading a journal that has neither another length nor another time
    of change than when the summary was made of it. What is shown of a case is checked when it is read."""
    folder = runs_dir(state) / run_id
    journal = (folder / FILE_NAME).stat()
    kept = read_summary(folder, journal.st_size, journal_modified=journal.st_mtime_ns)
    return (kept, []) if kept is not None else checked_summary(state, run_id)


def _made_again(folder: Path) -> tuple[Summary, list[str]]:
    """A summary of the journal as it is."""
    journal = folder / FILE_NAME
    modified = journal.stat().st_mtime_ns
    size, crc = _checksum(journal)
    summary, trouble = summarize(journal)
    # A run that goes on writes its own when it ends.
    if summary.seconds is not None and not trouble:
        with journal.open("rb") as file:
            lines = sum(1 for _ in file)
        write_summary(folder, summary, JournalSize(size, lines, crc, modified))
    return summary, trouble


def _checksum(journal: Path) -> tuple[int, int]:
    """The size and the checksum of a journal: of 10,000 cases it has 240 MB, and two are compared at once. Raises
    OSError."""
    size = crc = 0
    with journal.open("rb") as file:
        while piece := file.read(_PIECE):
            size, crc = size + len(piece), zlib.crc32(piece, crc)
    return size, crc


def summarize(journal: Path) -> tuple[Summary, list[str]]:
    """The summary of what can be read of a journal, and what cannot.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no journal, or one of a later version.
    """
    gathering, trouble = Gathering(), []
    for line in read_lines(journal):
        if line.said:
            trouble.append(line.said)
        if line.data is not None:
            gathering.take(line.data, line.offset, line.length)
    summary = gathering.summary
    summary.run_id = summary.run_id or journal.parent.name
    return summary, trouble


def is_as_listed(runs: Path, entry: IndexEntry) -> bool:
    """Whether the journal of a run in the index is still there and as long as it was then."""
    return _journal_bytes(runs, str(entry["run_id"])) == entry.get("bytes") is not None


def _journal_bytes(runs: Path, run_id: str) -> int | None:
    # Ten thousand paths take their time as objects.
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
        yield f"and {counted(len(damaged) - 1, 'more line')} of it"
