"""The bytes of a JSON file: what they are as text, and where a byte stands."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal

from workbench.model.faults import Fault
from workbench.model.places import Places
from workbench.regular_file import LARGEST, read_regular

_BREAK = re.compile(rb"\r\n?|\n")
_OTHER_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}

Encoding = Literal["utf-8", "surrogates", "broken"]


class TextFile:
    """A file as it was when it was read. Offsets into `data` are bytes, after a byte-order mark if there was one.

    The whole file stays in memory, so that what was listed is what runs, whatever an editor writes meanwhile; a map
    of the file would save that memory and die with the process when somebody truncates the file.
    """

    def __init__(self, content: bytes) -> None:
        self.has_bom = content.startswith(BOM_UTF8)
        self.data = content.removeprefix(BOM_UTF8)
        self._last_line = (0, 1)

    @classmethod
    def read(cls, path: Path, limit: int = LARGEST) -> "TextFile":
        """Return the file at `path`.

        Raises:
            OSError: it cannot be read, is no regular file, or is too large.
        """
        return cls(read_regular(path, limit))

    @cached_property
    def encoding(self) -> Encoding:
        """Whether the bytes are UTF-8, are but for surrogates written as bytes, or are not."""
        return _encoding(self.data)

    def text(self, start: int = 0, end: int | None = None) -> str:
        """A piece of the file, never failing: bytes that are not UTF-8 become U+FFFD, surrogates written as bytes
        become lone surrogates."""
        errors = {"utf-8": "strict", "surrogates": "surrogatepass", "broken": "replace"}[self.encoding]
        return self.data[start:end].decode("utf-8", errors)

    def places(self, start: int, end: int) -> Places:
        """Lines and columns of the characters of `text(start, end)`."""
        return Places(self.text(start, end), *self.at(start))

    def at(self, offset: int) -> tuple[int, int]:
        """Line and column of the byte at `offset`, counted from 1, the column in characters."""
        # Faults are asked for from the top down: counting goes on where it stopped. (Read once: there may be threads.)
        known = self._last_line
        base, line = known if known[0] <= offset else (0, 1)
        line += (
            len(_BREAK.findall(self.data, base, offset)) if self._has_returns else self.data.count(b"\n", base, offset)
        )
        start = (
            max(self.data.rfind(b"\n", 0, offset), self.data.rfind(b"\r", 0, offset) if self._has_returns else -1) + 1
        )
        self._last_line = (start, line)
        return line, len(self.text(start, offset)) + 1

    @cached_property
    def _has_returns(self) -> bool:
        return b"\r" in self.data

    @property
    def other_encoding(self) -> str | None:
        """What the file says that it is, if that is not UTF-8."""
        return next((name for mark, name in _OTHER_MARKS.items() if self.data.startswith(mark)), None)

    def undecodable(self) -> tuple[int, int, str] | None:
        """Line and column of the first byte that is not UTF-8, and what is wrong; None where all are."""
        if self.encoding != "broken":
            return None
        if self.other_encoding:
            return 1, 1, f"the file is {self.other_encoding}, not UTF-8"
        try:
            self.data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            line, column = self.at(error.start)
            return line, column, f"the byte 0x{self.data[error.start]:02x} is not UTF-8"
        return None


def _encoding(data: bytes) -> Encoding:
    if data.isascii():
        return "utf-8"
    for errors, encoding in (("strict", "utf-8"), ("surrogatepass", "surrogates")):
        try:
            data.decode("utf-8", errors)
        except UnicodeDecodeError:
            continue
        return encoding  # type: ignore[return-value]
    return "broken"


def unreadable(path: Path, error: OSError) -> Fault:
    """The fault of a file that the system does not give."""
    if isinstance(error, FileNotFoundError):
        return Fault(path, 0, 0, "", "the link leads nowhere" if path.is_symlink() else "there is no such file")
    return Fault(path, 0, 0, "", f"the file cannot be read: {error.strerror or error}")


def file_faults(path: Path, file: TextFile) -> Iterator[Fault]:
    """What is wrong with the bytes: not UTF-8, or marked as what ADK cannot read."""
    if file.has_bom:
        message = "the file begins with a byte-order mark: ADK cannot read it"
        yield Fault(path, 1, 1, "", message, "Save it as UTF-8 without BOM", "warning")
    undecodable = file.undecodable()
    if undecodable is not None:
        line, column, message = undecodable
        yield Fault(path, line, column, "", message, "Save it as UTF-8")
