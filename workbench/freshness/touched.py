"""The files of the project that an agent used."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Touched:
    """An agent's use of the project's files in all runs so far.

    `files` were read, `folders` were listed, and `written` were written. Written files are results, even if they are
    read later.
    """

    files: set[Path] = field(default_factory=set)
    folders: set[Path] = field(default_factory=set)
    written: set[Path] = field(default_factory=set)
    written_in: set[Path] = field(init=False)
    """The folders of the written files."""

    def __post_init__(self) -> None:
        self.written_in = {path.parent for path in self.written}

    def add_written(self, paths: set[Path]) -> None:
        """Record written files. It takes no longer if there are many already."""
        fresh = paths - self.written
        self.written |= fresh
        self.written_in |= {path.parent for path in fresh}
        self.files -= fresh

    def __or__(self, other: "Touched") -> "Touched":
        written = self.written | other.written
        return Touched((self.files | other.files) - written, self.folders | other.folders, written)
