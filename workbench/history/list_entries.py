"""Entries of the list of runs."""

import math
from collections.abc import Iterable
from typing import Any

from workbench.dependencies.record import digest
from workbench.history.summary import Summary
from workbench.history.votes import case_votes
from workbench.judge.judge_details import is_without_model

ListEntry = dict[str, Any]
"""A run in the list, as a JSON object.

- `run_id`, `started`, `interrupted`, `scored_from`, `commit`, `dirty`, `agents`
- `seconds`: None if the run did not end by itself.
- `counts`: number of executions by status.
- `no_verdict`: number of executions that did not end. Unless the run is complete, they are counted as cancelled.
- `decided`: digest of the cases that the run decided.
- `votes`: how many of them passed, one vote per case (`workbench.history.votes`).
- `calls`, `tokens`: usage of the agents' models.
- `files`: its evalsets.
- `by_function`: whether a function judged anything.
- `other_criteria`: whether a case was judged by other criteria than its file's.
- `injected`: whether faults were injected into calls. May be missing.
- `fork`: the run that it forks, or "". May be missing.
- `frozen`: number of executions that were replayed. May be missing.
"""


def list_entry(run_id: str, summary: Summary) -> ListEntry:
    """Return the entry of a run."""
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
        "by_function": any(
            is_without_model(metric[5]) for row in summary.rows.values() for metric in row["metrics"].values()
        ),
        "other_criteria": any(changed for _, _, changed, _ in summary.plans),
        "injected": summary.has_faults,
        "fork": str(summary.fork.get("run_id") or ""),
        "frozen": sum("frozen" in row for row in summary.rows.values()),
    }


def _sum(values: Iterable[Any]) -> int:
    # Values in an event may have any type.
    return sum(value for value in values if isinstance(value, int))
