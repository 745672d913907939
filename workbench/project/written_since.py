"""Whether files are still what they were when a run of an earlier session read them."""

import math
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path


def last_written(paths: Iterable[Path]) -> float:
    """When the last of them was written, in seconds of the epoch; infinite where one is not there, or there is none."""
    return max(map(_written, paths), default=math.inf)


def end_of_second(run_id: str) -> float:
    """The end of the second in which a run was planned, by its id; 0 for an id that tells none."""
    try:
        return datetime.strptime(run_id[:19] + "+0000", "%Y-%m-%dT%H-%M-%S%z").timestamp() + 1
    except ValueError:
        return 0.0


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return math.inf
