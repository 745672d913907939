"""Order of runs by the time they started."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Age = tuple[bool, str, str]
_AHEAD = timedelta(days=1)
_SECOND = len("2026-11-21T10-30-00")
_ID_TIME = "%Y-%m-%dT%H-%M-%S"


def ages() -> Callable[[str, str], Age]:
    """Return a sort key for runs, oldest first. Its arguments are the run's ID and start time.

    If the start time is "", the ID tells it. A wrong clock can leave runs that start in the future. They would stay the
    newest until that time comes, so runs more than a day ahead count as the oldest.
    """
    latest = f"{datetime.now(UTC) + _AHEAD:{_ID_TIME}}"

    def age(run_id: str, started: str) -> Age:
        start = started or run_id
        return start[:_SECOND].replace(":", "-") <= latest, start, run_id

    return age


def started_at(run_id: str) -> str:
    """Return when a run started (UTC, ISO 8601) by its ID, or "" if the ID does not begin with a time."""
    try:
        return f"{datetime.strptime(run_id[:_SECOND], _ID_TIME).replace(tzinfo=UTC):%Y-%m-%dT%H:%M:%SZ}"
    except ValueError:
        return ""
