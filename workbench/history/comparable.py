"""The past runs that a run is best compared with."""

from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path

from workbench.engine.plan.run_options import UsageFaultError
from workbench.history.listed_runs import ListedRun
from workbench.history.summary_lookup import open_summary
from workbench.history.votes import Case, are_enough, case_votes

_MAX_RUNS = 20
"""Number of past runs whose summaries are read, the newest first."""


def runs_by_question(
    state: Path, run: ListedRun, others: Sequence[ListedRun], pinned: str | None, today: date
) -> list[tuple[str, ListedRun]]:
    """Return the past runs that answer common questions, each with its question, such as `since yesterday`.

    A run of today has changed since yesterday if it differs from the last comparable run of an earlier day. It has
    changed since the last commit if it differs from the last comparable run of the same commit without other changes.
    `pinned` is the baseline. Reads summaries, so call it in a thread.
    """
    baseline = next((other for other in others if other.run_id == pinned and not other.adk), None)
    earlier = [other for other in others if (day := _day(other)) is not None and day < today]
    committed = [other for other in others if run.commit and other.commit == run.commit and not other.dirty]
    found = [
        ("against the baseline", baseline),
        ("since the run before", last_comparable(state, run, others)),
        ("since yesterday", last_comparable(state, run, earlier) if _day(run) == today else None),
        ("since the last commit", last_comparable(state, run, committed)),
    ]
    return [(question, other) for question, other in found if other is not None]


def _day(run: ListedRun) -> date | None:
    """Return the day of a run in the user's time zone, or None if it is unknown."""
    try:
        return datetime.fromisoformat(run.started).astimezone().date()
    except (ValueError, OverflowError, OSError):
        return None


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
