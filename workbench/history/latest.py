"""The newest verdict of each case, over the runs that are kept: what somebody who comes back wants to see."""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from workbench.events import CaseRef
from workbench.history.ages import ages
from workbench.history.journal import FILE_NAME
from workbench.history.run_list import checked_summary
from workbench.history.state_dir import runs_dir
from workbench.history.summary import Row, Summary, has_verdict
from workbench.history.summary_files import read_newest
from workbench.regular_file import read_regular

_LOOKED_AT = 20
"""Runs, the newest first, in which verdicts are looked for."""
_MOST = 64 * 2**20
"""Bytes of journals: of what lies further back only the history tells."""


@dataclass(frozen=True, slots=True)
class LatestRun:
    """A run that has the newest verdict of the cases `refs`, all repeats of each; `file` is its journal."""

    summary: Summary
    file: Path
    refs: tuple[CaseRef, ...]


def latest_runs(state: Path, files: Collection[str]) -> list[LatestRun]:
    """The runs with the newest verdicts of the cases of these evalsets (relative to the root), the newest run first.
    What cannot be read is passed over; a case without a verdict in a run is looked for further back, unless that may
    have been lost."""
    found: list[LatestRun] = []
    seen: set[tuple[str, str]] = set()
    wanted, left = set(files), _MOST
    for run_id in _newest(runs_dir(state), wanted)[:_LOOKED_AT]:
        journal = runs_dir(state) / run_id / FILE_NAME
        try:
            left -= journal.stat().st_size
            if left < 0:
                break
            summary, damaged = checked_summary(state, run_id)
        except (OSError, ValueError):
            continue
        of_files = [row for row in summary.rows.values() if row["ref"][1] in wanted]
        # What is lost may have been verdicts: neither another repeat nor an earlier run, which may have passed, stands
        # in for them.
        lost = {_name(row) for row in of_files if damaged and row["status"] is None}
        rows = [row for row in of_files if has_verdict(row) and _name(row) not in lost]
        names = {_name(row) for row in rows} - seen
        if names:
            refs = tuple(CaseRef(*row["ref"]) for row in rows if _name(row) in names)
            found.append(LatestRun(summary, journal, refs))
        seen |= names | lost
        if damaged and not summary.started:
            break  # Nobody knows which cases it had.
    return found


def _name(row: Row) -> tuple[str, str]:
    return row["ref"][1], row["ref"][3]


def _newest(runs: Path, wanted: set[str]) -> list[str]:
    """The ids of runs, the newest first, without those that the end of the index knows to have had other evalsets.
    Ids begin with the time: not even the index has to be read as a whole."""
    try:
        with os.scandir(runs) as items:
            ids = [item.name for item in items if item.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    age = ages()
    ids.sort(key=lambda run_id: age(run_id, ""), reverse=True)
    others = {run["run_id"] for run in read_newest(runs) if not wanted.intersection(run.get("files") or ())}
    return [run_id for run_id in ids if run_id not in others] if wanted else []


def agents_changed(sources: Mapping[str, Any], root: Path, clean: Callable[[str], str]) -> set[str]:
    """The agents of which a file is not as it was when a run kept these `sources` (agent → path → digest); `clean`
    takes secrets out, as they were taken out then. Reads the files: for a thread."""
    return {agent for agent, files in sources.items() if isinstance(files, dict) and _differs(files, root, clean)}


def _differs(files: Mapping[str, Any], root: Path, clean: Callable[[str], str]) -> bool:
    for path, digest in files.items():
        try:
            content = read_regular(root / path)
        except (OSError, ValueError):
            return True
        cleaned = clean(content.decode("utf-8", "replace")).encode("utf-8", "replace")
        if blake2b(cleaned, digest_size=16).hexdigest() != digest:
            return True
    return False
