"""Lines of a journal, with a message for each damaged or missing line.

Each line has a checksum, and each event has its line number. So changed, lost, repeated and moved lines are all
noticed. Journals of the first schema have no numbers: there, only changed lines are noticed.
"""

import itertools
import json
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from workbench.agents.worker.checked import HEAD, checked_line
from workbench.counting import counted
from workbench.history.checked import checked_content, read_checked, read_object
from workbench.history.state_dir import JOURNAL_FILE
from workbench.history.summary_files import recorded_line_count
from workbench.state_folder import reading

SCHEMA = "agent-workbench/journal/2"
"""Schema of new journals, whose lines are numbered.

Versions that know only schema 1 must not append to such a journal: their lines would have no numbers.
"""
_WITHOUT_NUMBERS = "agent-workbench/journal/1"
_NUMBER = "line"
STEPS = frozenset({"AgentActed", "CallsRecorded", "OutputCaptured", "SpansRecorded", "TurnStarted", "UserSimulated"})
"""Events of running cases that no verdict needs."""
_HEAD_OF_CASE = re.compile(rb'\{"line": (\d+), "event": "(\w+)", "case": (\{[^{}]*\})')
"""The beginning of a numbered event of a case, unless a name of the case has braces."""


def header(run_id: str) -> bytes:
    """Return the first line, in the form that every version reads."""
    return checked_line(json.dumps({"schema": SCHEMA, "run_id": run_id}))


def event_line(text: str, number: int | None) -> bytes:
    """Return the line of an event.

    `text` is the event's JSON object with at least one field. `number` is None for a journal without numbers.
    """
    return checked_line(text if number is None else f'{{"{_NUMBER}": {number}, {text[1:]}')


class JournalLines:
    """The lines of one journal, passed in one by one.

    `numbered` tells whether its events have numbers; None until that is known. Of the events with a name in `brief`,
    only their number, name and case are read, where that is possible without parsing the line.
    """

    def __init__(self, path: Path, brief: Collection[str] = ()) -> None:
        self.numbered: bool | None = None
        self._brief = brief
        self._cases: dict[bytes, Any] = {}
        """Cases of the events in `brief`, by their JSON text."""
        self._path = path
        self._place = 0
        self._last = 0
        """Number of the last readable line."""
        self._unread = 0
        """Count of unreadable lines after it."""

    @property
    def next_number(self) -> int | None:
        """Number of the next line, or None if lines are unnumbered."""
        return self._last + self._unread + 1 if self.numbered else None

    def take(self, line: bytes) -> tuple[dict[str, Any] | None, str]:
        """Return the event in the next line, or None, and a message about faults.

        The message names a damaged line, or lines missing before this one. It is "" if all is well.

        Raises:
            ValueError: another version wrote the journal.
        """
        self._place += 1
        try:
            content = checked_content(line)
            data = self._head(content) or read_object(content)
        except (ValueError, RecursionError) as error:
            self._unread += 1
            return None, self._left_out(str(error))
        if self.numbered is None and self._is_head(data):
            self._last = 1
            return None, ""
        return self._in_place(data) if self.numbered else (data, "")

    def end(self) -> str:
        """Return a message if lines are missing at the end of the journal, else "".

        The summary records how many lines the journal had.
        """
        lost = recorded_line_count(self._path.parent, self._last + self._unread) - self._last - self._unread
        if lost <= 0 or not self.numbered:
            return ""
        missing = counted(lost, "line is", "lines are")
        return f"{self._path}:{self._place + 1}: {missing} missing at the end of the journal"

    def _head(self, content: bytes) -> dict[str, Any] | None:
        """Return the number, name and case of an event in `brief`, or None if the whole line must be parsed."""
        found = _HEAD_OF_CASE.match(content) if self._brief else None
        if found is None or (name := found[2].decode("ascii")) not in self._brief:
            return None
        case = self._cases.get(found[3])
        try:
            if case is None:
                case = self._cases[found[3]] = read_object(found[3])
            return {_NUMBER: int(found[1]), "event": name, "case": case}
        except ValueError:
            return None

    def _is_head(self, data: dict[str, Any]) -> bool:
        schema = data.get("schema")
        if schema is None and "event" in data:
            self.numbered = _NUMBER in data  # The header is damaged or missing.
            return False
        if schema not in (SCHEMA, _WITHOUT_NUMBERS):
            raise ValueError(f"{self._path}: {of_another_version(schema)}")
        self.numbered = schema == SCHEMA
        return True

    def _in_place(self, data: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        number = data.get(_NUMBER)
        if type(number) is not int:
            return None, self._left_out("it has no line number")
        if number <= self._last:
            return None, self._left_out(f"line {number} is repeated or out of order")
        lost = number - self._last - 1 - self._unread
        self._last, self._unread = number, 0
        if lost <= 0:
            return data, ""
        missing = counted(lost, "journal line is", "journal lines are")
        return data, f"{self._path}:{self._place}: {missing} missing before this one"

    def _left_out(self, why: str) -> str:
        return f"{self._path}:{self._place}: skipped this journal line: {why}"


class LineRead(NamedTuple):
    """One line of a journal.

    `place` is its line number in the file, counted from 1. `offset` and `length` are bytes. `data` and `problem` are
    the results of `JournalLines.take` and `end`.
    """

    place: int
    offset: int
    length: int
    data: dict[str, Any] | None
    problem: str


def read_lines(path: Path, brief: Collection[str] = ()) -> Iterator[LineRead]:
    """Yield each line of a journal that has an event or a problem. `brief` is that of `JournalLines`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a journal, or a later version wrote it.
    """
    lines = JournalLines(path, brief)
    with reading(path) as file:
        begin = [line for line in (file.readline(), file.readline()) if line]
        _check_is_journal(path, begin)
        place, offset, line = 0, 0, b""
        for place, line in enumerate(itertools.chain(begin, file), 1):
            data, problem = lines.take(line)
            if data is not None or problem:
                yield LineRead(place, offset, len(line), data, problem)
            offset += len(line)
        # An incomplete last line was reported above.
        if line.endswith(b"\n") and (problem := lines.end()):
            yield LineRead(place + 1, offset, 0, None, problem)


def _check_is_journal(path: Path, begin: Sequence[bytes]) -> None:
    """Raise ValueError unless one of the first two lines is a journal line.

    The first line may be damaged in any way if the second one is intact.
    """
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
    raise ValueError(f"{path} is not a journal of agent-workbench: {why}")


def of_another_version(schema: Any) -> str:
    """Return why a journal of another schema is not read."""
    family, _, number = str(schema).rpartition("/")
    ours, _, own = SCHEMA.rpartition("/")
    if family == ours and number.isdigit() and int(number) > int(own):
        return f"a later version of agent-workbench wrote this run ({schema}); this version reads {SCHEMA}"
    return f"its schema is {schema!r}; this version reads {SCHEMA!r}"


def is_journal(path: Path) -> bool:
    """Return whether a file is a journal, by its name or its first bytes.

    Raises:
        OSError: the file cannot be read.
    """
    with reading(path) as file:
        return path.name == JOURNAL_FILE or file.read(len(HEAD)) == HEAD
