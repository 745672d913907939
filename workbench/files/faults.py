"""Faults of a file: what is wrong, where, and how to fix it. A breach is a fault before its place is known."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

Location = tuple[str | int, ...]
"""Keys and list positions that lead from a JSON value to another one inside it."""

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


class Places:
    """Lines and columns of offsets into `text`, both counted from 1, columns in characters.

    `text` may be a piece of a file; `line` and `column` are then the place of its first character.
    """

    def __init__(self, text: str, line: int = 1, column: int = 1) -> None:
        self._text = text
        self._line = line
        self._column = column

    def line(self, offset: int) -> int:
        """Return the line of the character at `offset`."""
        # Counting runs at gigabytes a second and is needed for faults only. A table of all lines would cost more.
        breaks = self._text.count("\n", 0, offset)
        if returns := self._text.count("\r", 0, offset):
            pairs = self._text.count("\r\n", 0, offset)
            at_pair = self._text[offset - 1 : offset + 1] == "\r\n"
            breaks += returns - pairs - at_pair
        return self._line + breaks

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and column of the character at `offset`."""
        line = self.line(offset)
        newline = self._text.rfind("\n", 0, offset)
        lone_return = self._text.rfind("\r", newline + 1, offset)
        if lone_return >= 0 and self._text[lone_return + 1 : lone_return + 2] == "\n":
            lone_return = self._text.rfind("\r", newline + 1, lone_return)
        start = max(newline, lone_return) + 1
        return line, offset - start + (self._column if start == 0 else 1)


def json_path(location: Iterable[str | int]) -> str:
    """Return a location in readable form: `eval_cases[2].session_input.state["first name"]`."""
    written = ""
    for step in location:
        if isinstance(step, int):
            written += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            written += f".{step}" if written else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            written += f'["{escaped}"]'
    return written


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a file.

    An `error` is a value that ADK rejects or that no run can use. A `warning` is probably a mistake, such as a key that
    ADK drops. A `note` is good to know. `line` and `column` count from 1, in characters. Both are 0 if the fault
    concerns the whole file or its place is unknown. `json_path` looks like
    `eval_cases[2].conversation[0].user_content`; "" is the document itself. `message` says what is there and what was
    expected. `hint` says how to fix it, for example with the nearest known key.
    """

    file: Path
    line: int
    column: int
    json_path: str
    message: str
    hint: str = ""
    severity: Literal["error", "warning", "note"] = "error"

    def where(self, file: str | None = None) -> str:
        """Return `file:line:column (json path)` without the parts that are unknown."""
        place = file if file is not None else str(self.file)
        if self.line:
            place += f":{self.line}:{self.column}"
        return f"{place} ({self.json_path})" if self.json_path else place

    def sentence(self, file: str | None = None) -> str:
        """Return the whole fault on one line, not yet escaped for a terminal."""
        text = f"{self.where(file)}: {self.message}"
        return f"{text}. {self.hint}" if self.hint else text


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken rule: what is wrong with the value (or the key) at `location`. The other fields are as in `Fault`."""

    location: Location
    message: str
    hint: str = ""
    severity: Literal["error", "warning", "note"] = "error"
    on_key: bool = False
    """Whether the key is wrong, not its value."""

    def at(self, file: Path, place: tuple[int, int], path: str) -> Fault:
        """Return the fault at this line and column, and at this JSON path."""
        return Fault(file, *place, path, self.message, self.hint, self.severity)


def unexpected(file: Path, error: Exception) -> Fault:
    """Return the fault for an unexpected error in a reader of the workbench. Other files can still be opened."""
    if isinstance(error, MemoryError | RecursionError):
        return Fault(file, 0, 0, "", "the file is too large or nested too deeply", "Split it, or nest it less deeply")
    message = f"the file cannot be opened: {type(error).__name__}: {error}"[:500]
    return Fault(file, 0, 0, "", message, "This is a bug in agent-workbench: report it. A simpler file may open")


def below(location: Location, breaches: Iterable[Breach]) -> Iterator[Breach]:
    """Convert breaches of an inner value, which is at `location` in an outer value, to breaches of the outer value."""
    for breach in breaches:
        yield replace(breach, location=(*location, *breach.location))


def nearest(key: str, known: Collection[str]) -> str | None:
    """Return the known key that is closest to `key` in snake_case, or None if none is close."""
    spelled = snake(key)
    if spelled in known:
        return spelled
    found = difflib.get_close_matches(spelled, list(known), n=1, cutoff=0.72)
    return found[0] if found else None


def nearest_hint(key: str, known: Collection[str], otherwise: str = "") -> str:
    """Return a hint that names the known key closest to `key`, or `otherwise` if none is close."""
    meant = nearest(key, known)
    return f"Did you mean `{meant}`?" if meant else otherwise


def snake(key: str) -> str:
    """Return a key in snake_case: `evalSetId`, `EvalSetId`, `eval-set-id` and `eval set id` become `eval_set_id`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    return re.sub(r"[\s-]+", "_", parted.strip()).lower()
