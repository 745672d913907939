"""Which of two runs is the newer one, by when they say that they began."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Age = tuple[bool, str, str]
_AHEAD = timedelta(days=1)
_SECOND = len("2026-11-21T10-30-00")


def ages() -> Callable[[str, str], Age]:
    """Of the id of a run and of when it began ("": as its id says) what runs are sorted by, the oldest first.

    A clock that was wrong and was set right leaves runs that begin in the future. They would be the newest until then,
    and stand before all that is done meanwhile, so those of more than a day ahead count as the oldest.
    """
    latest = f"{datetime.now(UTC) + _AHEAD:%Y-%m-%dT%H-%M-%S}"

    def age(run_id: str, started: str) -> Age:
        begun = started or run_id
        return begun[:_SECOND].replace(":", "-") <= latest, begun, run_id

    return age
