"""Files that change whenever an agent runs, so that the watch would run it forever.

Writes of the agent itself are known. This module finds writes by programs that the agent starts.
"""

from collections.abc import Collection
from pathlib import Path

TIMES = 8
"""Number of saves of a file in a row, each during a run, after which the file is ignored."""
_SOURCES = frozenset((".py", ".yaml", ".yml"))
"""Suffixes of files that are written by hand, so they are never ignored."""


class Recurring:
    """A counter of saves during runs."""

    def __init__(self) -> None:
        self._times: dict[Path, int] = {}
        self.ignored: set[Path] = set()

    def take(self, changed: Collection[Path], *, running: bool) -> set[Path]:
        """Count a save, and return the files to ignore from now on.

        `running` means that an agent runs or has just ended.
        """
        before = self._times if running else {}
        self._times = {path: before.get(path, 0) + 1 for path in changed if path.suffix not in _SOURCES}
        found = {path for path, times in self._times.items() if times > TIMES} - self.ignored
        self.ignored |= found
        return found
