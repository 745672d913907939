"""Past results of one case, read from summaries without parsing their other cases.

A summary of 10,000 cases is 4 MB of JSON. The row of a case is found by its first key and parsed alone.
"""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from workbench.agents.worker.checked import HEAD
from workbench.history.run_list import list_runs
from workbench.history.state_dir import runs_dir
from workbench.history.summary import Row, has_verdict
from workbench.history.summary_files import FILE_NAME, INDEX, IndexEntry
from workbench.state_folder import read_stored

Name: TypeAlias = tuple[str, str, str, str]
"""A case without its repeat: agent, evalset_file, eval_set_id, eval_id."""
_CHECKSUM = 8
_DATA = len(HEAD) + _CHECKSUM + len(b'", "data": ')
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that decided the case. `rows` are its executions with a verdict, in the order of repeats."""

    run_id: str
    started: str
    rows: tuple[Row, ...]


class PastRuns:
    """Past runs of a case, for use in one thread at a time.

    The list of runs is read again only when it has changed.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._stamp: tuple[int, ...] = ()
        self._listed: list[IndexEntry] = []

    def of(self, name: Name, most: int) -> tuple[PastRun, ...]:
        """Return the newest `most` runs with a verdict for the case, newest first.

        Runs without a valid summary are skipped.
        """
        found: list[PastRun] = []
        for entry in self._entries():
            if name[1] not in (entry.get("files") or ()):
                continue
            rows = tuple(filter(has_verdict, case_rows(runs_dir(self._state) / entry["run_id"] / FILE_NAME, name)))
            if rows:
                found.append(PastRun(entry["run_id"], str(entry.get("started") or ""), rows))
            if len(found) == most:
                break
        return tuple(found)

    def _entries(self) -> list[IndexEntry]:
        folder = runs_dir(self._state)
        try:
            stamp: tuple[int, ...] = (
                folder.stat().st_mtime_ns,
                (folder / INDEX).stat().st_mtime_ns,
                (folder / INDEX).stat().st_size,
            )
        except OSError:
            stamp = ()
        if not stamp or stamp != self._stamp:
            self._listed, self._stamp = list_runs(self._state).runs, stamp
        return self._listed


def case_rows(summary: Path, name: Name) -> Iterator[Row]:
    """Yield the rows of a case in a summary file; none if the file is missing or damaged."""
    try:
        line = read_stored(summary)
    except OSError:
        return
    encoded = line[_DATA:-2]
    if line[len(HEAD) : len(HEAD) + _CHECKSUM] != b"%08x" % zlib.crc32(encoded):
        return
    text = encoded.decode("ascii", "replace")
    # The text that `json.dumps` writes, up to the number of the repeat.
    head = f'{{"ref": {json.dumps(list(name))[:-1]}, '
    place = text.find(head)
    while place >= 0:
        try:
            row, place = _decode(text, place)
        except ValueError:
            return
        yield row
        place = text.find(head, place)
