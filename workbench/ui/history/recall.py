"""The newest verdicts of the cases, as the workbench knew them when it was closed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.details import DetailCache
from workbench.events import CaseRef
from workbench.history.latest import LatestRun, latest_runs
from workbench.history.summary import Row
from workbench.store import CaseRecord, RunSummary
from workbench.stored_records import brief_records

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace


@dataclass(frozen=True)
class Recalled:
    """The cases whose newest verdict is that of one run; their details stay in its journal."""

    run: RunSummary
    records: dict[CaseRef, CaseRecord]
    latest: LatestRun


def recall(state: Path, workspace: "Workspace", detail_cache: DetailCache) -> Iterator[Recalled]:
    """Yield the newest verdicts that are kept, those of the newest run first. Reads files: for a thread."""
    ids = workspace.case_ids
    for latest in latest_runs(state, ids):
        # A case that was renamed or deleted since has no verdict to count.
        rows = [row for row in latest.rows if _is_there(row, ids)]
        if rows:
            records = brief_records(latest.summary, latest.file, rows, detail_cache)
            yield Recalled(_told(latest, records), records, latest)


def _told(latest: LatestRun, records: dict[CaseRef, CaseRecord]) -> RunSummary:
    summary = latest.summary
    return RunSummary(
        summary.run_id,
        summary.root,
        summary.started,
        interrupted=summary.interrupted,
        duration_seconds=summary.seconds or 0.0,
        scored_from=summary.scored_from,
        until_sure=summary.until_sure,
        other_criteria=any(record.planned.criteria_changed for record in records.values()),
    )


def _is_there(row: Row, ids: dict[str, set[str]]) -> bool:
    """Whether the file still has the case; of one in which nothing can be read, that is not known."""
    _, file, _, eval_id, _ = row["ref"]
    return not ids[file] or eval_id in ids[file]
