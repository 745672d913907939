"""Runs that other programs make in the same state folder, followed while they are written."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from workbench.history.journal_lines import JournalLines
from workbench.history.journal_lock import is_being_written
from workbench.history.latest import LatestRun
from workbench.history.run_list import summary_for_opening
from workbench.history.state_dir import JOURNAL_FILE, runs_dir
from workbench.history.summary import Row, Summary, SummaryBuilder, has_verdict
from workbench.history.summary_files import INDEX, IndexEntry, read_newest
from workbench.state_folder import reading, stored_folders

_NEWEST = 8
"""Number of newest runs that are checked for being written when the workbench opens."""
_QUIET = 3
"""Number of looks without a new line after which an unlocked run without an end counts as stopped."""
_AT_ONCE = 16 << 20
"""Bytes of a journal that are read at once, so that a large run does not keep the processor busy."""


@dataclass(frozen=True)
class OtherRun:
    """A run of another program, as far as it is written.

    `latest` has the verdicts that are new since the last look, or all of them once the run has ended. Repeats of a
    case come together. `stopped` means that the program ended before its run did.
    """

    latest: LatestRun
    state: Literal["running", "ended", "stopped"]
    total: int
    done: int

    @property
    def run_id(self) -> str:
        """The ID of the run."""
        return self.latest.summary.run_id


class OtherRuns:
    """The runs that appear in a state folder. `is_own` returns whether this program made a run.

    Call the methods in threads, one at a time, because they read files.
    """

    def __init__(self, state: Path, is_own: Callable[[str], bool]) -> None:
        self._state = state
        self._is_own = is_own
        self._known: set[str] = set()
        self._index: tuple[int, ...] = ()
        self._ended: dict[str, int | None] = {}
        """Run → size of its journal in the index, or when its end was reported."""
        self._followed: dict[str, _Followed] = {}

    @property
    def active(self) -> bool:
        """Whether another program is running cases, so that there will be more to read without any other sign."""
        return bool(self._followed)

    def begin(self) -> None:
        """Take the current runs as known, except those that are still being written."""
        self._known = set(stored_folders(runs_dir(self._state)))
        self._ended = {run["run_id"]: self._bytes(run) for run in self._listed()}
        newest = sorted(self._known, reverse=True)[:_NEWEST]
        for run_id in (one for one in newest if one not in self._ended):
            if not self._is_own(run_id) and is_being_written(self._journal(run_id)):
                self._follow(run_id)

    def look(self) -> list[OtherRun]:
        """Return the runs with news since the last look."""
        ids = stored_folders(runs_dir(self._state))
        for run_id in sorted(set(ids) - self._known):
            self._known.add(run_id)
            if not self._is_own(run_id):
                self._follow(run_id)
        for run in self._listed():
            # An interrupted run that another program resumes is listed without an end, and later with one.
            run_id, size = run["run_id"], self._bytes(run)
            resumed = run.get("bytes") is None and is_being_written(self._journal(run_id))
            is_changed = resumed or self._ended.get(run_id, size) != size
            if is_changed and run_id in self._known and not self._is_own(run_id):
                self._follow(run_id, self._ended.get(run_id) or 0)
            self._ended[run_id] = size
        return [found for run_id in list(self._followed) if (found := self._read(run_id)) is not None]

    def _follow(self, run_id: str, known: int = 0) -> None:
        self._followed.setdefault(run_id, _Followed(self._journal(run_id), known))

    def _journal(self, run_id: str) -> Path:
        return runs_dir(self._state) / run_id / JOURNAL_FILE

    def _bytes(self, run: IndexEntry) -> int | None:
        """Return the size of a run's journal in the index, or on disk if the index does not have it."""
        with contextlib.suppress(OSError):
            return run.get("bytes") or self._journal(run["run_id"]).stat().st_size
        return None

    def _listed(self) -> Iterator[IndexEntry]:
        """Yield the newest entries of the index if it has changed."""
        try:
            status = (runs_dir(self._state) / INDEX).stat()
        except OSError:
            return
        index = status.st_size, status.st_mtime_ns, status.st_ino
        if index != self._index:
            self._index = index
            yield from read_newest(runs_dir(self._state))

    def _read(self, run_id: str) -> OtherRun | None:
        followed = self._followed[run_id]
        try:
            # The lock comes first: a run that ends meanwhile has written everything by the next look.
            written = is_being_written(followed.journal)
            grown = followed.has_news() and followed.read()
        except (OSError, ValueError):
            # The run was deleted, its program has not written a line, or a later version writes it.
            if not followed.journal.parent.is_dir() or followed.unreadable:
                del self._followed[run_id]
            followed.unreadable = True
            return None
        if followed.offset <= followed.known:
            # It is only held open to find out whether it can be resumed, by this program or another.
            if not written:
                del self._followed[run_id]
            return None
        if grown and (written or followed.summary.seconds is None):
            followed.quiet = 0
            return followed.report("running", followed.decided())
        if written:
            return None
        followed.quiet += 1
        if followed.summary.seconds is None and followed.quiet < _QUIET:
            return None  # Some file systems have no locks.
        return self._end(run_id, followed)

    def _end(self, run_id: str, followed: "_Followed") -> OtherRun:
        del self._followed[run_id]
        self._ended[run_id] = followed.offset
        with contextlib.suppress(OSError, ValueError):
            followed.summary, _ = summary_for_opening(self._state, run_id)
        rows = tuple(row for row in followed.summary.rows.values() if has_verdict(row))
        return followed.report("stopped" if followed.summary.seconds is None else "ended", rows)


class _Followed:
    """A journal that is read while another program writes it. Its first `known` bytes are no news."""

    def __init__(self, journal: Path, known: int) -> None:
        self.journal, self.known = journal, known
        self.unreadable = False
        self._lines = JournalLines(journal)
        self._builder = SummaryBuilder()
        self.summary: Summary = self._builder.summary
        self.offset = 0
        """Bytes that were read."""
        self.quiet = 0
        """Number of looks since the last new line."""
        self._told: set[tuple[str, str]] = set()

    def has_news(self) -> bool:
        """Return whether the journal is longer than what is known. Until then, a large one need not be read.

        Raises:
            OSError: the file is gone.
        """
        return self.journal.stat().st_size > max(self.known, self.offset)

    def read(self) -> bool:
        """Read the complete lines since the last call. Return whether there were any.

        Raises:
            OSError: the file cannot be read.
            ValueError: another version writes it.
        """
        with reading(self.journal) as file:
            file.seek(self.offset)
            data = file.read(_AT_ONCE)
            data += file.readline() if len(data) == _AT_ONCE else b""
        end = data.rfind(b"\n") + 1
        for line in data[:end].splitlines(keepends=True):
            event, _ = self._lines.take(line)
            if event is not None:
                self._builder.take(event, self.offset, len(line))
            self.offset += len(line)
        return end > 0

    def decided(self) -> tuple[Row, ...]:
        """Return the rows of cases that were decided since the last call, in all their repeats."""
        open_cases = {(row["ref"][1], row["ref"][3]) for row in self.summary.rows.values() if row["status"] is None}
        rows = []
        for row in self.summary.rows.values():
            case = row["ref"][1], row["ref"][3]
            if case not in open_cases and case not in self._told and has_verdict(row):
                rows.append(row)
        self._told.update((row["ref"][1], row["ref"][3]) for row in rows)
        return tuple(rows)

    def report(self, state: Literal["running", "ended", "stopped"], rows: tuple[Row, ...]) -> OtherRun:
        """Return the run with these new rows."""
        summary = self.summary
        done = sum(row["status"] is not None for row in summary.rows.values())
        return OtherRun(LatestRun(summary, self.journal, rows), state, len(summary.rows), done)
