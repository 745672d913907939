"""The past run that a run is best compared with."""

from collections.abc import Sequence
from pathlib import Path

from workbench.engine.plan.run_options import UsageFaultError
from workbench.history.listed_runs import ListedRun
from workbench.history.summary_lookup import open_summary
from workbench.history.votes import Case, are_enough, case_votes

_MAX_RUNS = 20
"""Number of past runs whose summaries are read, the newest first."""


def last_comparable(state: Path, run: ListedRun, others: Sequence[ListedRun]) -> ListedRun | None:
    """Return the newest past run that decided at least half of the cases of `run`.

    Fall back to the newest past run that decided any of them, else return None. Reads summaries, so call it in a
    thread.
    """
    wanted = _decided(run, state).keys()
    past = [other for other in others if other.path != run.path and other.started <= run.started]
    fallback: ListedRun | None = None
    for other in past[:_MAX_RUNS]:
        shared = wanted & _decided(other, state).keys()
        if are_enough(shared, wanted):
            return other
        if shared and fallback is None:
            fallback = other
    return fallback


def _decided(run: ListedRun, state: Path) -> dict[Case, float]:
    try:
        return case_votes(open_summary(run.word, state, state)[0].rows.values())
    except (UsageFaultError, OSError, ValueError):
        return {}
