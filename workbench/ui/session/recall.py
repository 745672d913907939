"""The newest stored verdicts of all cases, loaded when the workbench opens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.events.events import CaseName, CaseRef
from workbench.store.execution import Execution
from workbench.store.history.latest import LatestRun, latest_runs
from workbench.store.store import RunSummary

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace

_MAX_PREVIOUS = 20
"""Maximum number of older runs that are searched for previous verdicts."""


@dataclass(frozen=True)
class Recalled:
    """A stored run, and the executions that are the newest of their cases. Their details stay in the database."""

    run: RunSummary
    records: dict[CaseRef, Execution]
    latest: LatestRun


def recall(state: Path, workspace: "Workspace") -> Iterator[Recalled]:
    """Yield the newest stored verdicts, newest run first. Reads files, so call it in a thread."""
    for latest in latest_runs(state, workspace.case_ids):
        if (recalled := recall_run(latest, workspace)) is not None:
            yield recalled


def recall_previous(state: Path, workspace: "Workspace", newest_first: Iterable[Recalled]) -> Iterator[Execution]:
    """Yield the previous verdicts of the newest run's cases. Reads files, so call it in a thread.

    If the newest run cancelled a case, its newest verdict is in an older run, and the one before that is its previous
    verdict.
    """
    wanted: set[CaseName] | None = None
    for newest in newest_first:
        cases: dict[str, set[str]] = {}
        for ref in newest.records:
            if wanted is None or ref.name in wanted:
                cases.setdefault(ref.evalset_file, set()).add(ref.eval_id)
        for latest in latest_runs(state, cases, before=newest.run.run_id, most=_MAX_PREVIOUS) if cases else ():
            if (recalled := recall_run(latest, workspace)) is not None:
                yield from (one for ref, one in recalled.records.items() if ref.eval_id in cases[ref.evalset_file])
        planned = {ref.name for ref in newest.latest.summary.executions}
        wanted = (planned if wanted is None else wanted & planned) - {ref.name for ref in newest.records}
        if not wanted:
            return


def recall_run(latest: LatestRun, workspace: "Workspace") -> Recalled | None:
    """Return the verdicts of one run, or None if it has none of the workspace's cases."""
    ids = workspace.case_ids
    # A case that was renamed or deleted since has no verdict to count.
    records = {one.ref: one for one in latest.executions if _is_there(one.ref, ids)}
    if not records:
        return None
    summary = latest.summary
    run = RunSummary(
        summary.run_id,
        summary.root,
        summary.started,
        interrupted=summary.interrupted,
        duration_seconds=summary.seconds or 0.0,
        scored_from=summary.scored_from,
        until_sure=summary.until_sure,
        other_criteria=any(record.planned.criteria_changed for record in records.values()),
        cancelled=sum(one.state == "cancelled" for one in summary.executions.values()),
    )
    return Recalled(run, records, latest)


def _is_there(ref: CaseRef, ids: dict[str, set[str]]) -> bool:
    """Return whether the file still has the case, or cannot be read."""
    known = ids.get(ref.evalset_file)
    return known is not None and (not known or ref.eval_id in known)
