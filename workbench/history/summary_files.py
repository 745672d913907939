"""Summaries on disk: one file per run, and an index with a line per run so that a list opens at once."""

import contextlib
import io
import itertools
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.agents.worker.checked import checked_line
from workbench.dependencies.record import digest
from workbench.history.checked import read_checked, write_checked
from workbench.history.summary import Summary
from workbench.history.votes import case_votes
from workbench.judge.judge_details import is_without_model
from workbench.state_folder import append_stored, read_stored, reading, replace_stored, replacing

FILE_NAME = "summary.json"
INDEX = "index.jsonl"
_END = 64 * 1024
"""Bytes at the end of the index that are read for the newest runs."""

_MADE_OF = re.compile(rb'"data": {"journal_lines": (\d{1,15})')
_HEAD = 100
"""Bytes at the beginning of a summary that contain the number of journal lines."""

IndexEntry = dict[str, Any]
"""A run in the list, as a JSON object.

- `run_id`, `started`, `interrupted`, `scored_from`, `commit`, `dirty`, `agents`
- `seconds`: None if the run did not end by itself.
- `counts`: number of executions by status.
- `no_verdict`: number of executions that did not end. Unless the run is complete, they are counted as cancelled.
- `cases`: digest of the cases that the run decided.
- `votes`: how many of them passed, one vote per case (`workbench.history.votes`).
- `calls`, `tokens`: usage of the agents' models.
- `files`: its evalsets.
- `bytes`: size of the journal that the entry was made from.
- `by_function`: whether a function judged anything.
- `other_criteria`: whether a case was judged by other criteria than its file's.
- `injected`: whether faults were injected into calls. May be missing.
- `fork`: the run that it forks, or "". May be missing.
- `frozen`: number of executions that were replayed. May be missing.
"""


class JournalSize(NamedTuple):
    """State of a journal when its summary was made.

    `crc` is the checksum of the whole file. `modified` is its change time in nanoseconds, or 0 if unknown.
    """

    bytes: int
    lines: int
    crc: int
    modified: int = 0


def write_summary(folder: Path, summary: Summary, journal: JournalSize) -> None:
    """Store the summary of the run in `folder`, and add the run to the index.

    `journal` identifies the journal that the summary was made from. Errors are ignored: a missing summary is rebuilt
    when it is needed.
    """
    made_of = {"journal_lines": journal.lines, "journal_bytes": journal.bytes, "journal_crc32": f"{journal.crc:08x}"}
    made_of["journal_modified"] = journal.modified
    pieces = itertools.chain((json.dumps(made_of)[:-1] + ', "summary": ',), summary.as_text(), ("}",))
    # No fsync: the checksum tells whether it reached the disk.
    with contextlib.suppress(OSError, ValueError), replacing(folder / FILE_NAME) as out:
        write_checked(out, pieces)
    with contextlib.suppress(OSError, ValueError):
        add_to_index(folder.parent, index_entry(folder.name, summary, journal.bytes))


def read_summary(
    folder: Path, journal_bytes: int, journal_crc: int | None = None, journal_modified: int | None = None
) -> Summary | None:
    """Return the summary of the run in `folder`, or None if it is missing, damaged or outdated.

    It is outdated if the size of the journal has changed. If given, checksum and change time (in nanoseconds) must also
    match.
    """
    try:
        data = read_checked(read_stored(folder / FILE_NAME))
        if data["journal_bytes"] != journal_bytes:
            return None
        if journal_crc is not None and data.get("journal_crc32") != f"{journal_crc:08x}":
            return None
        if journal_modified is not None and data.get("journal_modified") != journal_modified:
            return None
        return Summary.from_json(data["summary"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def recorded_line_count(folder: Path, journal_lines: int) -> int:
    """Return the journal's line count from its summary, or 0 if the journal has not become shorter."""
    try:
        with reading(folder / FILE_NAME) as file:
            found = _MADE_OF.search(file.read(_HEAD))
        if found is None or int(found[1]) <= journal_lines:
            return 0
        # The number itself may be damaged, so check the whole file before using it.
        return int(read_checked(read_stored(folder / FILE_NAME))["journal_lines"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0


def index_entry(run_id: str, summary: Summary, journal_bytes: int | None = None) -> IndexEntry:
    """Return the index entry of a run."""
    votes = case_votes(summary.rows.values())
    return {
        "run_id": run_id,
        "started": summary.started,
        "seconds": summary.seconds,
        "interrupted": summary.interrupted,
        "scored_from": summary.scored_from,
        "counts": summary.counts(),
        "no_verdict": summary.unreached,
        "decided": digest(sorted(votes)),
        "votes": math.fsum(votes.values()),
        **{name: _sum(row.get(name) for row in summary.rows.values()) for name in ("calls", "tokens")},
        "commit": summary.git.get("commit"),
        "dirty": summary.git.get("dirty"),
        "agents": sorted({str(ref[0]) for ref in summary.rows}),
        "files": sorted({str(ref[1]) for ref in summary.rows}),
        "bytes": journal_bytes,
        "by_function": any(
            is_without_model(metric[5]) for row in summary.rows.values() for metric in row["metrics"].values()
        ),
        "other_criteria": any(changed for _, _, changed, _ in summary.plans),
        "injected": summary.has_faults,
        "fork": str(summary.fork.get("run_id") or ""),
        "frozen": sum("frozen" in row for row in summary.rows.values()),
    }


def is_current(entry: IndexEntry) -> bool:
    """Return whether this version wrote the entry.

    Older entries count cancelled cases as errors, or count errors in the votes.
    """
    return "cancelled" in (entry.get("counts") or ()) and "decided" in entry


def _sum(values: Iterable[Any]) -> int:
    # Values in a journal may have any type.
    return sum(value for value in values if isinstance(value, int))


def add_to_index(runs: Path, entry: IndexEntry) -> None:
    """Append an entry. Raises OSError."""
    append_stored(runs / INDEX, checked_line(json.dumps(entry)))


def read_index(runs: Path) -> tuple[dict[str, IndexEntry], int]:
    """Return the runs of the index by ID, and its number of lines.

    If a run has several lines, the last one counts. Damaged lines are skipped.
    """
    try:
        lines = read_stored(runs / INDEX).splitlines(keepends=True)
    except OSError:
        return {}, 0
    return _entries(lines), len(lines)


def read_newest(runs: Path) -> list[IndexEntry]:
    """Return the runs named in the last lines of the index."""
    try:
        with reading(runs / INDEX) as file:
            file.seek(0, io.SEEK_END)
            file.seek(max(file.tell() - _END, 0))
            lines = file.read().splitlines(keepends=True)
    except OSError:
        return []
    return list(_entries(lines).values())  # An incomplete first line fails its checksum.


def _entries(lines: Iterable[bytes]) -> dict[str, IndexEntry]:
    """Return the runs by ID. Damaged lines are skipped, and the last line of a run counts."""
    entries: dict[str, IndexEntry] = {}
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            entry = read_checked(line)
            entries[entry["run_id"]] = entry
    return entries


def write_index(runs: Path, entries: dict[str, IndexEntry]) -> None:
    """Rewrite the index with these entries only."""
    with contextlib.suppress(OSError):
        content = b"".join(checked_line(json.dumps(entry)) for entry in entries.values())
        replace_stored(runs / INDEX, content)
