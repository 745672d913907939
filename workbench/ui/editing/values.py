"""Conversion of a case's values to text in a field, and back.

Nothing is lost, and no value can control the terminal. Text with characters that a field cannot show (escape codes,
marks of direction, line ends of another system) is edited as JSON, with those characters escaped.
"""

import json
import re
from typing import Any

from workbench.editing.case_rows import CaseRow
from workbench.files.breaches import resolve
from workbench.files.faults import Location, Places
from workbench.files.json_text.scanner import scan
from workbench.text.safe_text import one_line, plain

LONGEST = 30_000
"""Maximum length of a value in a field, in characters."""


class UnreadableError(ValueError):
    """A typed text that is not valid JSON. `line` and `column` count from 1."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def as_json(row: CaseRow) -> bool:
    """Return whether a row's value is edited as JSON."""
    return row.form == "json" or (isinstance(row.value, str) and not showable(row.value))


def field_text(row: CaseRow) -> str:
    """Return a row's value as the initial text of the field."""
    if row.missing or row.value is None:
        return ""
    return json_text(row.value) if as_json(row) else str(row.value)


def json_text(value: Any) -> str:
    """Return indented JSON. Only characters that could control the terminal are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return re.sub(r"[^\n]+", lambda line: _escaped(line.group()), text)


def json_head(value: Any, most: int, *, indent: int | None = None) -> str:
    """Return at least the first `most` characters of a value's JSON, without encoding all of a large value."""
    pieces: list[str] = []
    length = 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=indent).iterencode(value):
        pieces.append(piece[:most])
        length += len(piece)
        if length >= most:
            break
    return "".join(pieces)


def read_value(text: str, row: CaseRow) -> Any:
    """Return the value that was typed for a row.

    Raises:
        UnreadableError: The row is edited as JSON, and the text is not valid JSON.
    """
    own_persona = row.name == "persona" and text.lstrip().startswith("{")
    return read_json_text(text) if as_json(row) or own_persona else text


def read_json_text(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        UnreadableError: The text is not valid JSON. It describes the first fault.
    """
    if not text.strip():
        raise UnreadableError(1, 1, "no value: type {} for an empty object")
    places = Places(text)
    for flaw in scan(text, places=places).flaws:
        if flaw.severity == "error":
            raise UnreadableError(*places.at(flaw.offset), f"{flaw.message}. {flaw.hint}".rstrip(". "))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(1, 1, str(error)) from None


def showable(text: str) -> bool:
    """Return whether a field can show the text as it is."""
    return all(plain(piece, limit=len(piece) + 1) == piece for piece in text.split("\t"))


def place_of(text: str, location: Location) -> tuple[int, int] | None:
    """Return line and column of a location in a JSON text, or of its nearest parent. Return None for invalid JSON."""
    root = scan(text).root
    if root is None:
        return None
    _, child = resolve(root, location)
    return Places(text).at(root.start if child is None else child.node.start)


def _escaped(line: str) -> str:
    if showable(line):
        return line
    return "".join(letter if showable(letter) else json.dumps(letter)[1:-1] for letter in line)


_MOST = 2_000
"""Characters of a value that are rendered for its row."""


def in_short(value: object) -> str:
    """Return a value as safe text on one line."""
    if isinstance(value, str):
        return one_line(value) if value[:_MOST].strip() else "(empty)"
    return one_line(json_head(value, _MOST))
