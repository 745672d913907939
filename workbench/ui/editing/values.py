"""A value of a case as text in a field, and back: nothing is lost on the way, and nothing in it can steer the terminal.

Text that holds characters which a field cannot show as they are (escape codes, marks of direction, line ends of
another system) is edited as JSON, with those characters escaped.
"""

import json
import re
from typing import Any

from workbench.authoring.case_rows import CaseRow
from workbench.model.locating import resolve
from workbench.model.places import Location, Places
from workbench.model.scanner import scan
from workbench.text import plain

LONGEST = 30_000
"""Characters up to which a value is edited in a field."""


class UnreadableError(ValueError):
    """What was typed is no JSON; `line` and `column` count from 1."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def as_json(row: CaseRow) -> bool:
    """Whether a row's value is edited as JSON."""
    return row.form == "json" or (isinstance(row.value, str) and not showable(row.value))


def field_text(row: CaseRow) -> str:
    """The value as it stands in the field at first."""
    if row.missing or row.value is None:
        return ""
    return json_text(row.value) if as_json(row) else str(row.value)


def json_text(value: Any) -> str:
    """JSON over lines, for people: letters as they are, what a terminal must not get as escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return re.sub(r"[^\n]+", lambda line: _escaped(line.group()), text)


def json_head(value: Any, most: int, *, indent: int | None = None) -> str:
    """The first characters of a value's JSON, at least so many where there are; no more of a large value is written."""
    pieces: list[str] = []
    length = 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=indent).iterencode(value):
        pieces.append(piece[:most])
        length += len(piece)
        if length >= most:
            break
    return "".join(pieces)


def read_value(text: str, row: CaseRow) -> Any:
    """The value that was typed.

    Raises:
        UnreadableError: it is no JSON where it should be.
    """
    own_persona = row.name == "persona" and text.lstrip().startswith("{")
    return read_json_text(text) if as_json(row) or own_persona else text


def read_json_text(text: str) -> Any:
    """The JSON value that a text is.

    Raises:
        UnreadableError: it is none; the first fault in it.
    """
    if not text.strip():
        raise UnreadableError(1, 1, "there is no value: {} is an empty object")
    places = Places(text)
    for flaw in scan(text, places=places).flaws:
        if flaw.severity == "error":
            raise UnreadableError(*places.at(flaw.offset), f"{flaw.message}. {flaw.hint}".rstrip(". "))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(1, 1, str(error)) from None


def showable(text: str) -> bool:
    """Whether a field can show the text as it is."""
    return all(plain(piece, limit=len(piece) + 1) == piece for piece in text.split("\t"))


def place_of(text: str, location: Location) -> tuple[int, int] | None:
    """Line and column of what stands at a location of some JSON text, or of its nearest parent; None if it is none."""
    root = scan(text).root
    if root is None:
        return None
    _, child = resolve(root, location)
    return Places(text).at(root.start if child is None else child.node.start)


def _escaped(line: str) -> str:
    if showable(line):
        return line
    return "".join(letter if showable(letter) else json.dumps(letter)[1:-1] for letter in line)
