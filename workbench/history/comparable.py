"""The past run that a run is best compared with."""

from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.engine.plan.run_options import UsageFaultError
from workbench.history.listed_runs import ListedRun
from workbench.history.summary import Summary
from workbench.history.summary_lookup import open_summary
from workbench.history.votes import Case, are_enough, case_votes

_MAX_RUNS = 20
"""Number of past runs whose summaries are read, the newest first."""


def last_comparable(
    state: Path,
    run: ListedRun,
    others: Sequence[ListedRun],
    read: Callable[[ListedRun], Summary] | None = None,
) -> ListedRun | None:
    """Return the newest past run that decided at least half of the cases of `run`.

    Fall back to the newest past run that decided any of them, else return None. Reads summaries, so call it in a
    thread. `read` reads one of them, or raises an OSError or ValueError. By default, journals are checked too.
    """
    read = read or (lambda run: open_summary(run.word, state, state)[0])
    wanted = _decided(run, read).keys()
    past = [other for other in others if other.path != run.path and other.started <= run.started]
    fallback: ListedRun | None = None
    for other in past[:_MAX_RUNS]:
        shared = wanted & _decided(other, read).keys()
        if are_enough(shared, wanted):
            return other
        if shared and fallback is None:
            fallback = other
    return fallback


def _decided(run: ListedRun, read: Callable[[ListedRun], Summary]) -> dict[Case, float]:
    try:
        return case_votes(read(run).rows.values())
    except (UsageFaultError, OSError, ValueError):
        return {}
