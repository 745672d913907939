"""An edit as a value: the changed bytes of files, for undo and redo."""

import base64
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.files.file_access import begun_hash, content_hash

_PIECE = 1 << 18
"""Bytes that are compared at once."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of one file: the bytes `old` at `start` became `new`.

    `file` is absolute. `before` and `after` are digests of the whole content, or "" for no file.
    """

    file: Path
    start: int
    old: bytes
    new: bytes
    before: str
    after: str

    def reversed(self) -> "FileChange":
        """Return the opposite change."""
        return FileChange(self.file, self.start, self.new, self.old, self.after, self.before)

    def apply(self, content: bytes | None) -> bytes | None:
        """Return the content after the change, or None for no file. `content` must have the digest `before`."""
        if not self.after:
            return None
        content = content or b""
        return content[: self.start] + self.new + content[self.start + len(self.old) :]

    def as_json(self, root: Path) -> dict[str, Any]:
        """Return the change as JSON data. Raises ValueError if the file is not below `root`."""
        old, new = (base64.b64encode(part).decode("ascii") for part in (self.old, self.new))
        file = self.file.relative_to(root).as_posix()
        return {"file": file, "start": self.start, "old": old, "new": new, "before": self.before, "after": self.after}

    @classmethod
    def from_json(cls, data: dict[str, Any], root: Path) -> "FileChange":
        """Return the change in `data`. Raises KeyError, TypeError or ValueError if `as_json` did not write it."""
        old, new = (base64.b64decode(data[name], validate=True) for name in ("old", "new"))
        relative = Path(data["file"])
        if relative.is_absolute() or ".." in relative.parts:
            raise ValueError("the file is outside of the project")
        return cls(root / relative, int(data["start"]), old, new, str(data["before"]), str(data["after"]))


@dataclass(frozen=True, slots=True)
class Edit:
    """One action of the user with its `label`, and the changes that it made.

    `earlier` means that it was read from disk: it was made before this start of the program, or somebody forged it.
    """

    label: str
    changes: tuple[FileChange, ...]
    earlier: bool = False

    def reversed(self) -> "Edit":
        """Return the opposite edit."""
        return Edit(self.label, tuple(change.reversed() for change in reversed(self.changes)))


def change_of(file: Path, before: bytes | None, after: bytes | None) -> FileChange:
    """Return the change from one content of a file to another; None means that there is no file.

    Equal bytes at both ends are left out, so a small edit of a 50 MB file stays small.
    """
    old, new = before or b"", after or b""
    start = _common(old, new)
    with ThreadPoolExecutor(2) as pool:  # Hashing releases the GIL.
        beginning = pool.submit(begun_hash, memoryview(new)[:start])

        def whole(content: bytes | None) -> str:
            if content is None:
                return ""
            hashed = beginning.result().copy()
            hashed.update(memoryview(content)[start:])
            return hashed.hexdigest()

        digests = pool.map(whole, (before, after))
        end = _common_end(old, new, min(len(old), len(new)) - start)
    return FileChange(file, start, old[start : len(old) - end], new[start : len(new) - end], *digests)


def digest(content: bytes | None) -> str:
    """Return the hash of a file's content, or "" for no file."""
    return "" if content is None else content_hash(content)


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix.

    Comparing slices is fast, and short ones stay in the processor's cache.
    """
    most = min(len(one), len(other))
    same = 0
    while same < most and one[same : same + _PIECE] == other[same : same + _PIECE]:
        same += _PIECE
    return min(same, most) if same >= most else same + _halved(one[same : same + _PIECE], other[same : same + _PIECE])


def _common_end(one: bytes, other: bytes, most: int) -> int:
    """Return the length of the common suffix, at most `most`."""
    same = 0
    while same < most:
        size = min(_PIECE, most - same)
        left, right = (text[len(text) - same - size : len(text) - same] for text in (one, other))
        if left != right:
            return same + _halved(left[::-1], right[::-1])
        same += size
    return same


def _halved(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix, found by bisection."""
    lengths = range(min(len(one), len(other)))
    return bisect_left(lengths, True, key=lambda length: one[: length + 1] != other[: length + 1])
