"""An edit as a value: which bytes of which files became which others, so that it can be undone and made again."""

import base64
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.atomic import begun_hash, content_hash

_PIECE = 1 << 18
"""Bytes that are compared at once."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """In one file, the bytes `old` at `start` became `new`. `before` and `after` are the digests of its whole content,
    "" where there was no file, or is none any more. `file` is absolute."""

    file: Path
    start: int
    old: bytes
    new: bytes
    before: str
    after: str

    def reversed(self) -> "FileChange":
        """The change that takes it back."""
        return FileChange(self.file, self.start, self.new, self.old, self.after, self.before)

    def apply(self, content: bytes | None) -> bytes | None:
        """The content after the change, None for no file. `content` must be what it was made for: see `before`."""
        if not self.after:
            return None
        content = content or b""
        return content[: self.start] + self.new + content[self.start + len(self.old) :]

    def as_json(self) -> dict[str, Any]:
        old, new = (base64.b64encode(part).decode("ascii") for part in (self.old, self.new))
        file = self.file.as_posix()
        return {"file": file, "start": self.start, "old": old, "new": new, "before": self.before, "after": self.after}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "FileChange":
        """Raises KeyError, TypeError or ValueError where that is not what `as_json` wrote."""
        old, new = (base64.b64decode(data[name], validate=True) for name in ("old", "new"))
        return cls(Path(data["file"]), int(data["start"]), old, new, str(data["before"]), str(data["after"]))


@dataclass(frozen=True, slots=True)
class Edit:
    """What the user did at once, in words (`label`), and what that changed."""

    label: str
    changes: tuple[FileChange, ...]

    def reversed(self) -> "Edit":
        return Edit(self.label, tuple(change.reversed() for change in reversed(self.changes)))


def change_of(file: Path, before: bytes | None, after: bytes | None) -> FileChange:
    """The change from one content of a file to another; None is no file. What they have in common at both ends is left
    out: an edit of a file of 50 MB is as small as what was typed."""
    old, new = before or b"", after or b""
    start = _common(old, new)
    with ThreadPoolExecutor(2) as pool:  # hashing leaves the interpreter to others
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
    """The hash of a file's content, "" for no file."""
    return "" if content is None else content_hash(content)


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with: comparing slices is fast, and short ones stay in the processor's cache."""
    most = min(len(one), len(other))
    same = 0
    while same < most and one[same : same + _PIECE] == other[same : same + _PIECE]:
        same += _PIECE
    return min(same, most) if same >= most else same + _halved(one[same : same + _PIECE], other[same : same + _PIECE])


def _common_end(one: bytes, other: bytes, most: int) -> int:
    """How many bytes both end with, at most so many."""
    same = 0
    while same < most:
        size = min(_PIECE, most - same)
        left, right = (text[len(text) - same - size : len(text) - same] for text in (one, other))
        if left != right:
            return same + _halved(left[::-1], right[::-1])
        same += size
    return same


def _halved(one: bytes, other: bytes) -> int:
    """How many bytes both begin with, found by halving."""
    lengths = range(min(len(one), len(other)))
    return bisect_left(lengths, True, key=lambda length: one[: length + 1] != other[: length + 1])
