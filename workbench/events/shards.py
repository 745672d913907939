"""Shards: the parts of a run that separate commands make, and the check whether parts belong together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_LONGEST = 80
"""Maximum number of characters of a value in a message."""


@dataclass(frozen=True, slots=True)
class ShardNumber:
    """The number of a shard, as in `--shard K/N`. `index` is K, counted from 1, and `count` is N."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of a plan, and the state of the project in which it ran.

    All parts of a run are equal except for `index`. Digests have no secret salt, so that they can be compared between
    machines. They include no environment variables, because their values could be guessed.
    """

    index: int
    """Counted from 1."""
    count: int
    executions: int
    """Number of executions in the whole plan."""
    plan: str
    """Digest of all executions of the plan in order."""
    files: dict[str, Any] = field(default_factory=dict)
    """Evalsets, agents' sources, Python judges and recordings: path relative to the root → digest of the content."""
    criteria: dict[str, Any] = field(default_factory=dict)
    """Config, relative to the root, or `defaults` → digest of the criteria."""
    options: dict[str, Any] = field(default_factory=dict)
    """Command-line options that affect results and differ from their defaults, by name."""
    versions: dict[str, Any] = field(default_factory=dict)
    """Package → version."""
    commit: str = ""
    """The git commit of the root, or "" if it is not known."""

    @property
    def number(self) -> ShardNumber:
        """The number of the shard, such as 2/3."""
        return ShardNumber(self.index, self.count)

    @property
    def size(self) -> int:
        """The number of executions in the shard."""
        return (self.executions - self.index) // self.count + 1

    def differences(self, usual: "Shard") -> list[str]:
        """Return a text for each difference from the shard `usual`, most informative first. Texts are not made safe."""
        found = []
        if self.commit and usual.commit and self.commit != usual.commit:
            found.append(f"another commit: {self.commit[:8]}, not {usual.commit[:8]}")
        if self.executions != usual.executions:
            found.append(f"another plan: {self.executions:,} executions, not {usual.executions:,}")
        elif self.plan != usual.plan:
            found.append("another plan: other cases, or the same in another order")
        found += _unlike("versions", self.versions, usual.versions)
        found += _unlike("options", self.options, usual.options)
        found += (f"other criteria: {name} {how}" for name, how in _changed(self.criteria, usual.criteria))
        found += (f"other files: {name} {how}" for name, how in _changed(self.files, usual.files))
        return found


def _unlike(what: str, mine: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*mine, *usual}):
        if mine.get(name) != usual.get(name):
            value, other = (str(values.get(name, "none"))[:_LONGEST] for values in (mine, usual))
            yield f"other {what}: {name} {value}, not {other}"


def _changed(mine: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in sorted({*mine, *usual}):
        if name not in usual:
            yield name, "was added"
        elif name not in mine:
            yield name, "is missing"
        elif mine[name] != usual[name]:
            yield name, "differs"
