"""Order of runs by the time they started."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Age = tuple[bool, str, str]
_AHEAD = timedelta(days=1)
_SECOND = len("2026-11-21T10-30-00")


def ages() -> Callable[[str, str], Age]:
    """Return a sort key for runs, oldest first. Its arguments are the run's ID and start time.

    If the start time is "", the ID tells it. A wrong clock can leave runs that start in the future. They would stay the
    newest until that time comes, so runs more than a day ahead count as the oldest.
    """
    latest = f"{datetime.now(UTC) + _AHEAD:%Y-%m-%dT%H-%M-%S}"

    def age(run_id: str, started: str) -> Age:
        start = started or run_id
        return start[:_SECOND].replace(":", "-") <= latest, start, run_id

    return age
