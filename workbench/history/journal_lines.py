"""The lines of a journal as they can be read, and what is to be said of those that cannot, or are not there.

Each line has a checksum, and each event the number of its line: so a line that is gone, doubled or moved is noticed as
one that was changed. Journals of the first schema have no numbers: of those, only changed lines are noticed.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.agents.worker.checked import HEAD, checked_line
from workbench.counting import counted
from workbench.history.checked import read_checked
from workbench.history.state_dir import JOURNAL_FILE
from workbench.history.summary_files import lines_then
from workbench.regular_file import open_regular

SCHEMA = "agent-workbench/journal/2"
"""2: lines are numbered. A version that knows only 1 must not go on with such a journal: its lines would have none."""
_WITHOUT_NUMBERS = "agent-workbench/journal/1"
_NUMBER = "line"


def header(run_id: str) -> bytes:
    """The first line, in the form that every version reads."""
    return checked_line(json.dumps({"schema": SCHEMA, "run_id": run_id}))


def event_line(text: str, number: int | None) -> bytes:
    """The line of an event, `text` its JSON form with at least one field; None for a journal without numbers."""
    return checked_line(text if number is None else f'{{"{_NUMBER}": {number}, {text[1:]}')


class JournalLines:
    """The lines of one journal, given one after the other. `numbered`: whether its events have numbers; None before
    that is known."""

    def __init__(self, path: Path) -> None:
        self.numbered: bool | None = None
        self._path = path
        self._place = 0
        self._last = 0
        """The number of the last line that could be read."""
        self._unread = 0
        """Lines behind it that could not."""

    @property
    def next_number(self) -> int | None:
        """That of the line that is to be written next; None where they have none."""
        return self._last + self._unread + 1 if self.numbered else None

    def take(self, line: bytes) -> tuple[dict[str, Any] | None, str]:
        """What the next line of the file holds, if it is an event that can be read; and what is to be said of it, or of
        lines that are gone before it ("" where all is well).

        Raises:
            ValueError: the journal is of another version.
        """
        self._place += 1
        try:
            data = read_checked(line)
        except (ValueError, RecursionError) as error:
            self._unread += 1
            return None, self._left_out(str(error))
        if self.numbered is None and self._is_head(data):
            self._last = 1
            return None, ""
        return self._in_place(data) if self.numbered else (data, "")

    def end(self) -> str:
        """What is to be said of the end of the journal: its summary knows how many lines it had."""
        gone = lines_then(self._path.parent, self._last + self._unread) - self._last - self._unread
        if gone <= 0 or not self.numbered:
            return ""
        told = counted(gone, "line is", "lines are")
        return f"{self._path}:{self._place + 1}: {told} gone at the end of the journal"

    def _is_head(self, data: dict[str, Any]) -> bool:
        schema = data.get("schema")
        if schema is None and "event" in data:
            self.numbered = _NUMBER in data  # The head itself cannot be read, or is gone.
            return False
        if schema not in (SCHEMA, _WITHOUT_NUMBERS):
            raise ValueError(f"{self._path}: {of_another_version(schema)}")
        self.numbered = schema == SCHEMA
        return True

    def _in_place(self, data: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        number = data.get(_NUMBER)
        if type(number) is not int:
            return None, self._left_out("it has no number")
        if number <= self._last:
            return None, self._left_out(f"it is line {number}, and stands here out of place or once more")
        gone = number - self._last - 1 - self._unread
        self._last, self._unread = number, 0
        if gone <= 0:
            return data, ""
        told = counted(gone, "line of the journal is gone", "lines of the journal are gone")
        return data, f"{self._path}:{self._place}: {told} before this one"

    def _left_out(self, why: str) -> str:
        return f"{self._path}:{self._place}: this line of the journal is left out: {why}"


class LineRead(NamedTuple):
    """A line of a journal: its number in the file, counted from 1, where it begins and how long it is; what it holds
    and what is to be said of it, as `JournalLines.take` and `end` give them."""

    place: int
    offset: int
    length: int
    data: dict[str, Any] | None
    said: str


def read_lines(path: Path) -> Iterator[LineRead]:
    """Read the lines of a journal about which there is anything to say.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no journal, or one of a later version.
    """
    lines = JournalLines(path)
    with open_regular(path) as file:
        begin = [line for line in (file.readline(), file.readline()) if line]
        _refuse_others(path, begin)
        place, offset, line = 0, 0, b""
        for place, line in enumerate(itertools.chain(begin, file), 1):
            data, said = lines.take(line)
            if data is not None or said:
                yield LineRead(place, offset, len(line), data, said)
            offset += len(line)
        # Where the last line is cut off, it has been said.
        if line.endswith(b"\n") and (said := lines.end()):
            yield LineRead(place + 1, offset, 0, None, said)


def _refuse_others(path: Path, begin: Sequence[bytes]) -> None:
    """Its first line may be damaged in any way, if there is a second one that is whole."""
    why = "it is empty"
    for line in begin:
        try:
            read_checked(line)
        except (ValueError, RecursionError) as error:
            why = str(error)
            if line is begin[0] and line.startswith(HEAD):
                return
        else:
            return
    raise ValueError(f"{path} is no journal of agent-workbench: {why}")


def of_another_version(schema: Any) -> str:
    """Why a journal of another schema is not read."""
    family, _, number = str(schema).rpartition("/")
    ours, _, own = SCHEMA.rpartition("/")
    if family == ours and number.isdigit() and int(number) > int(own):
        return f"a later version of agent-workbench wrote this run ({schema}), this one reads {SCHEMA}"
    return f"written as {schema!r}, this version reads {SCHEMA!r}"


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal, by its name or its first bytes.

    Raises:
        OSError: it cannot be read.
    """
    with open_regular(path) as file:
        return path.name == JOURNAL_FILE or file.read(len(HEAD)) == HEAD
