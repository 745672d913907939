"""How many cases passed in the runs that are kept, the oldest first."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.history.run_list import list_runs, load_summary

MOST = 60
"""So many runs are looked at, the newest."""


@dataclass(frozen=True, slots=True)
class RunRate:
    """One run: `passed` of `total` cases, repeats counted. `started` is UTC in ISO 8601."""

    run_id: str
    started: str
    passed: int
    total: int

    @property
    def rate(self) -> float:
        return self.passed / self.total if self.total else 0.0


def pass_rates(state: Path, files: Collection[str] | None = None, most: int = MOST) -> list[RunRate]:
    """The newest `most` runs of a state folder, of all evalsets or only of `files` (relative to the root, with `/`).
    Runs that have no such case, that did not come to their end, or of which nothing can be read, are left out: what a
    run did not get to says nothing of how often cases pass. For a thread."""
    found: list[RunRate] = []
    for entry in list_runs(state).runs:
        if len(found) == most:
            break
        whole = entry.get("seconds") is not None and not entry.get("interrupted")
        counted = _counts(state, entry, files) if whole else None
        if counted is not None and counted[1]:
            found.append(RunRate(entry["run_id"], str(entry.get("started") or ""), *counted))
    return found[::-1]


def _counts(state: Path, entry: dict[str, Any], files: Collection[str] | None) -> tuple[int, int] | None:
    run_files = entry.get("files") or []
    if files is None or set(run_files) <= set(files):
        counts = entry.get("counts") or {}
        return counts.get("passed", 0), sum(counts.values())
    if not set(run_files) & set(files):
        return None
    try:
        summary, _ = load_summary(state, entry["run_id"])
    except (OSError, ValueError):
        return None
    states = [row["status"] for row in summary.rows.values() if row["ref"][1] in files]
    return states.count("passed"), len(states)
