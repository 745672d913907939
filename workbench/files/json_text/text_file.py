"""The bytes of a JSON file: their encoding, their text, and the line of each byte."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal

from workbench.files.faults import Fault, Places
from workbench.files.file_access import LARGEST, read_regular

_BREAK = re.compile(rb"\r\n?|\n")
_OTHER_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}

Encoding = Literal["utf-8", "surrogates", "broken"]


class TextFile:
    """The content of a file at the time of reading. Offsets into `data` are bytes, after any byte-order mark.

    The whole file stays in memory, so that the listed content is what runs, whatever an editor writes meanwhile. A
    memory map would save that memory, but the process would die if somebody truncated the file.
    """

    def __init__(self, content: bytes) -> None:
        self.has_bom = content.startswith(BOM_UTF8)
        self.data = content.removeprefix(BOM_UTF8)
        self._last_line = (0, 1)

    @classmethod
    def read(cls, path: Path, limit: int = LARGEST) -> "TextFile":
        """Read the file at `path`.

        Raises:
            OSError: it cannot be read, is not a regular file, or is too large.
        """
        return cls(read_regular(path, limit))

    @cached_property
    def encoding(self) -> Encoding:
        """The encoding: "utf-8", "surrogates" for UTF-8 except surrogates written as bytes, or "broken"."""
        return _encoding(self.data)

    def text(self, start: int = 0, end: int | None = None) -> str:
        """Return a piece of the file as text. Never fails.

        Bytes that are not UTF-8 become U+FFFD. Surrogates written as bytes become lone surrogates.
        """
        errors = {"utf-8": "strict", "surrogates": "surrogatepass", "broken": "replace"}[self.encoding]
        return self.data[start:end].decode("utf-8", errors)

    def places(self, start: int, end: int) -> Places:
        """Return the lines and columns of the characters of `text(start, end)`."""
        return Places(self.text(start, end), *self.at(start))

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and column of the byte at `offset`, counted from 1, the column in characters."""
        # Faults are located from the top down, so counting continues where it stopped. Read once, because of threads.
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
        """The encoding that the file's byte-order mark names, if it is not UTF-8."""
        return next((name for mark, name in _OTHER_MARKS.items() if self.data.startswith(mark)), None)

    def undecodable(self) -> tuple[int, int, str] | None:
        """Return the line and column of the first byte that is not UTF-8, and what is wrong; None if all are UTF-8."""
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
    """Return the fault of a file that the system cannot read."""
    if isinstance(error, FileNotFoundError):
        return Fault(path, 0, 0, "", "the symbolic link is broken" if path.is_symlink() else "there is no such file")
    return Fault(path, 0, 0, "", f"the file cannot be read: {error.strerror or error}")


def file_faults(path: Path, file: TextFile) -> Iterator[Fault]:
    """Yield what is wrong with the bytes: not UTF-8, or a byte-order mark that ADK cannot read."""
    if file.has_bom:
        message = "the file begins with a byte-order mark: ADK cannot read it"
        yield Fault(path, 1, 1, "", message, "Save it as UTF-8 without BOM", "warning")
    undecodable = file.undecodable()
    if undecodable is not None:
        line, column, message = undecodable
        yield Fault(path, line, column, "", message, "Save it as UTF-8")
