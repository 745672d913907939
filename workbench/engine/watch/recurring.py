"""Files that change whenever an agent runs, and would have it run for ever: what it writes itself it was seen to write,
what a program that it starts writes, nobody tells."""

from collections.abc import Collection
from pathlib import Path

TIMES = 8
"""Saves of the same files in a row, each while something ran, from which they are no saves of anybody's."""
_SOURCES = frozenset((".py", ".yaml", ".yml"))
"""Only people write them."""


class Recurring:
    """Counts the saves that came while something ran."""

    def __init__(self) -> None:
        self._times: dict[Path, int] = {}
        self.ignored: set[Path] = set()

    def take(self, changed: Collection[Path], *, running: bool) -> set[Path]:
        """Takes in a save of files that run something; gives those that are to be passed over from now on. `running`:
        an agent runs, or has just ended."""
        before = self._times if running else {}
        self._times = {path: before.get(path, 0) + 1 for path in changed if path.suffix not in _SOURCES}
        found = {path for path, times in self._times.items() if times > TIMES} - self.ignored
        self.ignored |= found
        return found
