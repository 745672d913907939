"""Summaries on disk: one file a run, and one index of all runs with a line each, so that a list opens at once."""

import contextlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.agents.worker.checked import checked_line
from workbench.atomic import replace_content
from workbench.dependencies.record import digest
from workbench.history.checked import read_checked, write_checked
from workbench.history.summary import Summary
from workbench.history.votes import case_votes

FILE_NAME = "summary.json"
INDEX = "index.jsonl"
_END = 64 * 1024
"""Bytes at the end of the index in which the newest runs stand."""

_MADE_OF = re.compile(rb'"data": {"journal_lines": (\d{1,15})')
_HEAD = 100
"""Bytes at the beginning of a summary in which that stands."""

IndexEntry = dict[str, Any]
"""A run in the list: `run_id`, `started`, `seconds` (None: it did not end by itself), `interrupted`, `scored_from`,
`counts` by status, `no_verdict` (how many executions it did not come to the end of; unless it ended whole they are
counted as cancelled), `cases` (a digest of those that it decided), `votes` (how many of them passed, one vote per case:
`workbench.history.votes`), `calls` and `tokens` of the agents' models, `commit`, `dirty`, `agents`, `files` (evalsets),
`bytes` of the journal that it was made of, whether `rules` judged anything, and whether a case was judged by
`other_criteria` than those of its file."""


class JournalSize(NamedTuple):
    """A journal as far as a summary knows it: `crc` the checksum of all that is in it, `modified` the time of its last
    change in nanoseconds, 0 if that is not known."""

    bytes: int
    lines: int
    crc: int
    modified: int = 0


def write_summary(folder: Path, summary: Summary, journal: JournalSize) -> None:
    """Keeps the summary of the run in `folder` with what tells the journal that it was made of, and puts the run into
    the index. What cannot be written is made again when it is asked for."""
    made_of = {"journal_lines": journal.lines, "journal_bytes": journal.bytes, "journal_crc32": f"{journal.crc:08x}"}
    made_of["journal_modified"] = journal.modified
    pieces = itertools.chain((json.dumps(made_of)[:-1] + ', "summary": ',), summary.as_text(), ("}",))
    draft = folder / f".{FILE_NAME}.{os.getpid()}.tmp"
    with contextlib.suppress(OSError, ValueError):
        # Without waiting for the disk: its checksum tells whether it arrived there.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            write_checked(out, pieces)
        draft.replace(folder / FILE_NAME)
    with contextlib.suppress(OSError):
        draft.unlink(missing_ok=True)  # On a full disk.
    with contextlib.suppress(OSError, ValueError):
        add_to_index(folder.parent, index_entry(folder.name, summary, journal.bytes))


def read_summary(
    folder: Path, journal_bytes: int, journal_crc: int | None = None, journal_modified: int | None = None
) -> Summary | None:
    """Return the summary of the run in `folder`.

    It is None if it is missing, damaged, or of a journal of another size or, if they are given, with another checksum
    or time of change (nanoseconds).
    """
    try:
        data = read_checked((folder / FILE_NAME).read_bytes())
        if data["journal_bytes"] != journal_bytes:
            return None
        if journal_crc is not None and data.get("journal_crc32") != f"{journal_crc:08x}":
            return None
        if journal_modified is not None and data.get("journal_modified") != journal_modified:
            return None
        return Summary.from_json(data["summary"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def lines_then(folder: Path, journal_lines: int) -> int:
    """How many lines the journal in `folder` had when its summary was made, if those are more than it has now."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            found = _MADE_OF.search(file.read(_HEAD))
        if found is None or int(found[1]) <= journal_lines:
            return 0
        # The number itself may be damaged; the rest, which is long, is read only now.
        return int(read_checked((folder / FILE_NAME).read_bytes())["journal_lines"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0


def index_entry(run_id: str, summary: Summary, journal_bytes: int | None = None) -> IndexEntry:
    """What the list shows of a run."""
    votes = case_votes(summary.rows.values())
    return {
        "run_id": run_id,
        "started": summary.started,
        "seconds": summary.seconds,
        "interrupted": summary.interrupted,
        "scored_from": summary.scored_from,
        "counts": summary.counts(),
        "no_verdict": summary.unreached,
        "cases": digest(sorted(votes)),
        "votes": math.fsum(votes.values()),
        **{name: _sum(row.get(name) for row in summary.rows.values()) for name in ("calls", "tokens")},
        "commit": summary.git.get("commit"),
        "dirty": summary.git.get("dirty"),
        "agents": sorted({str(ref[0]) for ref in summary.rows}),
        "files": sorted({str(ref[1]) for ref in summary.rows}),
        "bytes": journal_bytes,
        "rules": any(metric[5] == "rules" for row in summary.rows.values() for metric in row["metrics"].values()),
        "other_criteria": any(changed for _, _, changed, _ in summary.plans),
    }


def is_current(entry: IndexEntry) -> bool:
    """Whether this version wrote the entry: earlier ones counted cancelled cases as errors, and did not say which cases
    a run decided."""
    return "cancelled" in (entry.get("counts") or ()) and "cases" in entry


def _sum(values: Iterable[Any]) -> int:
    # A journal may say anything.
    return sum(value for value in values if isinstance(value, int))


def add_to_index(runs: Path, entry: IndexEntry) -> None:
    """Appends a line, in one write: two programs may do so at the same time. Raises OSError."""
    descriptor = os.open(runs / INDEX, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, checked_line(json.dumps(entry)))
    finally:
        os.close(descriptor)


def read_index(runs: Path) -> tuple[dict[str, IndexEntry], int]:
    """The runs of the index by their ids, the later line counting, and how many lines it has; damaged ones are left
    out."""
    try:
        lines = (runs / INDEX).read_bytes().splitlines(keepends=True)
    except OSError:
        return {}, 0
    return _entries(lines), len(lines)


def read_newest(runs: Path) -> list[IndexEntry]:
    """The runs that the last lines of the index name."""
    try:
        with (runs / INDEX).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(file.tell() - _END, 0))
            lines = file.read().splitlines(keepends=True)
    except OSError:
        return []
    return list(_entries(lines).values())  # The first line may be half a line: its checksum tells.


def _entries(lines: Iterable[bytes]) -> dict[str, IndexEntry]:
    """Return the runs by their ids, without damaged lines. The later line counts."""
    entries: dict[str, IndexEntry] = {}
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            entry = read_checked(line)
            entries[entry["run_id"]] = entry
    return entries


def write_index(runs: Path, entries: dict[str, IndexEntry]) -> None:
    """The index anew, without what is gone."""
    with contextlib.suppress(OSError):
        content = b"".join(checked_line(json.dumps(entry)) for entry in entries.values())
        replace_content(runs / INDEX, content, mode=0o600)
