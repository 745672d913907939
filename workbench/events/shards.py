"""Shards: a run in N parts, each made by a command of its own, and what tells whether parts belong together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_LONGEST = 80
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class ShardNumber:
    """The part K of N that `--shard K/N` names. K counts from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of a plan, and the state of the project in which it ran. Equal for all parts except `index`.

    Digests have no secret salt, so that they can be compared between machines. No variable of the environment is among
    them, because its value could be guessed.
    """

    index: int
    """Counted from 1."""
    count: int
    executions: int
    """Number of executions in the whole plan."""
    plan: str
    """Digest of the whole plan: its executions in order."""
    files: dict[str, Any] = field(default_factory=dict)
    """Evalsets, agents' sources, Python judges and recordings: path relative to the root → digest of the content."""
    criteria: dict[str, Any] = field(default_factory=dict)
    """Config, relative to the root, or `defaults` → digest of the criteria."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the command line that affect results and differ from their defaults, by name."""
    versions: dict[str, Any] = field(default_factory=dict)
    """Package → version."""
    commit: str = ""
    """The git commit of the root, or "" if it is not known."""

    @property
    def number(self) -> ShardNumber:
        """Its number."""
        return ShardNumber(self.index, self.count)

    @property
    def size(self) -> int:
        """The number of its executions."""
        return (self.executions - self.index) // self.count + 1

    def differences(self, usual: "Shard") -> list[str]:
        """Return one text for each respect in which it belongs to another run than `usual`, the most telling first.

        The texts are not yet safe for a terminal.
        """
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
