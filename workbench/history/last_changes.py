"""The verdicts that changed since the last comparable run, one entry per case."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workbench.history.comparable import last_comparable
from workbench.history.compare import compare
from workbench.history.listed_runs import ListedRun, newest_runs
from workbench.history.run_list import load_summary
from workbench.history.summary import Row, Summary
from workbench.history.votes import Case


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case whose verdict changed, with the statuses of its executions in both runs."""

    case: Case
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        """Whether a smaller share of its executions passes."""
        return _share(self.after) < _share(self.before)

    @property
    def is_better(self) -> bool:
        """Whether a larger share of its executions passes."""
        return _share(self.after) > _share(self.before)


@dataclass(frozen=True, slots=True)
class LastChanges:
    """The changes from the run `before`, which began at `started` (UTC, ISO 8601), to the run `after`."""

    before: ListedRun
    after: ListedRun
    cases: tuple[CaseChange, ...]

    @property
    def started(self) -> str:
        """When the earlier run began."""
        return self.before.started


def changes_since_comparable(state: Path, run_id: str) -> LastChanges | None:
    """Return how the verdicts of a run differ from those of the last comparable one, regressions first.

    Return None if there is no such run. Cases that passed as often as before are left out, whatever their scores. Reads
    summaries, so call it in a thread.

    Raises:
        OSError, ValueError: a summary cannot be read.
    """
    runs = [run for run in newest_runs(state) if not run.trouble]
    after = next((run for run in runs if run.run_id == run_id), None)
    summaries: dict[str, Summary] = {}

    def read(run: ListedRun) -> Summary:
        if run.run_id not in summaries:
            summaries[run.run_id] = load_summary(state, run.run_id)[0]
        return summaries[run.run_id]

    before = last_comparable(state, after, runs, read) if after is not None else None
    if before is None or after is None:
        return None
    found = compare(read(before), read(after), state)
    names = {_case(case.after) if case.after["ref"][3] else _case(case.before) for case in found.cases}
    then, now = _statuses(read(before), names), _statuses(read(after), names)
    changes = [CaseChange(name, then[name], now[name]) for name in then if name in now]
    worse = [change for change in changes if change.is_worse]
    return LastChanges(before, after, (*worse, *(change for change in changes if change.is_better)))


def _statuses(summary: Summary, names: set[Case]) -> dict[Case, tuple[str, ...]]:
    """Return the statuses of the executions with a verdict, in the order of the run's plan."""
    found: dict[Case, list[str]] = {}
    for row in summary.rows.values():
        status = summary.status_of(row)
        if status != "cancelled" and (name := _case(row)) in names:
            found.setdefault(name, []).append(status)
    return {name: tuple(statuses) for name, statuses in found.items()}


def _case(row: Row) -> Case:
    _, file, set_id, eval_id, _ = row["ref"]
    return str(file or set_id), str(eval_id)


def _share(statuses: Iterable[str]) -> float:
    listed = list(statuses)
    return listed.count("passed") / max(len(listed), 1)
