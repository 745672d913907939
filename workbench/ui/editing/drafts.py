"""Drafts of a case, or of an evalset's ID, name and description, and their values as text in a field.

A draft holds the file's content from the start of the edit. Saving compares it with the file on disk.

Values are converted to text and back without loss, and no value can control the terminal. Text with characters that a
field cannot show (escape codes, direction marks, other line endings) is edited as JSON, with these characters escaped.
"""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.editing.case_edit import with_value, without
from workbench.editing.case_rows import CaseRow, frame_rows, rows_of
from workbench.editing.evalset_file import EvalsetFile, RejectedError
from workbench.editing.saving import Contents
from workbench.editing.whole_cases import CarriedCase, CaseSelection, with_recordings
from workbench.files.breaches import resolve
from workbench.files.evalset import EvalsetDocument
from workbench.files.faults import Breach, Location, Places
from workbench.files.file_access import read_regular
from workbench.files.json_text.scanner import scan
from workbench.text.json_values import case_id, value_at
from workbench.text.safe_text import one_line, plain

LONGEST = 30_000
"""Maximum length of a value in a field, in characters."""


class UnreadableError(ValueError):
    """An error in typed text that is not valid JSON. `line` and `column` count from 1."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def as_json(row: CaseRow) -> bool:
    """Return whether a row's value is edited as JSON."""
    return row.form == "json" or (isinstance(row.value, str) and not showable(row.value))


def field_text(row: CaseRow) -> str:
    """Return a row's value as text for the field, or "" if it has none."""
    if row.missing or row.value is None:
        return ""
    return json_text(row.value) if as_json(row) else str(row.value)


def json_text(value: Any) -> str:
    """Return a value as indented JSON. Non-ASCII characters stay, unless they could control the terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return re.sub(r"[^\n]+", lambda line: _escaped(line.group()), text)


def json_head(value: Any, most: int, *, indent: int | None = None) -> str:
    """Return a value's JSON, or a start of it with at least `most` characters. The rest is not encoded."""
    pieces: list[str] = []
    length = 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=indent).iterencode(value):
        pieces.append(piece[:most])
        length += len(piece)
        if length >= most:
            break
    return "".join(pieces)


def read_value(text: str, row: CaseRow) -> Any:
    """Convert typed text to the value for a row. A persona that begins with `{` is read as JSON, too.

    Raises:
        UnreadableError: the text is read as JSON, but is not valid JSON.
    """
    own_persona = row.name == "persona" and text.lstrip().startswith("{")
    return read_json_text(text) if as_json(row) or own_persona else text


def read_json_text(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        UnreadableError: The text is empty or not valid JSON, or a number would become Infinity. Names the first fault.
    """
    if not text.strip():
        raise UnreadableError(1, 1, "no value: type {} for an empty object")
    places = Places(text)
    found = scan(text, places=places)
    for flaw in found.flaws:
        if flaw.severity == "error":
            raise UnreadableError(*places.at(flaw.offset), f"{flaw.message}. {flaw.hint}".rstrip(". "))
    for node in () if found.root is None else found.root.walk():
        if isinstance(node.scalar, float) and math.isinf(node.scalar) and text[node.end - 1].isdigit():
            number = text[node.start : node.end][:40]
            raise UnreadableError(*places.at(node.start), f"{number} is too large. Write a smaller number, or a text")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(1, 1, str(error)) from None


def showable(text: str) -> bool:
    """Return whether a field can show the text as it is."""
    return all(plain(piece, limit=len(piece) + 1) == piece for piece in text.split("\t"))


def place_of(text: str, location: Location) -> tuple[int, int] | None:
    """Return line and column of a location in a JSON text, or None if the text is not valid JSON.

    If the location does not exist, its nearest parent is used.
    """
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
"""Maximum number of characters of a value that are rendered for its row."""


def in_short(value: object) -> str:
    """Return a value as safe text on one line, cut if it is long, or "(empty)" for a blank text."""
    if isinstance(value, str):
        return one_line(value) if value[:_MOST].strip() else "(empty)"
    return one_line(json_head(value, _MOST))


@dataclass(frozen=True)
class Draft:
    """A case being edited, or an evalset's ID, name and description if its position `number` is None.

    `value` is JSON: the case, which for a dataset has an evalset's form, or the file without its cases.
    """

    file: Path
    evalset: EvalsetFile
    number: int | None
    value: Any

    @property
    def name(self) -> str:
        """The case's ID or the file's name, raw."""
        return self.file.name if self.number is None else case_id(self.value)

    @property
    def stored(self) -> Any:
        """The value as stored in the file, for a text editor."""
        return self.value if self.number is None else self.evalset.stored(self.number)

    def rows(self) -> list[CaseRow]:
        """Return the editable rows, including the headings of turns."""
        return frame_rows(self.value) if self.number is None else rows_of(self.value)

    def after(self, value: Any) -> EvalsetFile:
        """Return the file with the new value. Raises the errors of `EvalsetFile.edited` and `with_frame`."""
        if self.number is not None:
            return self.evalset.edited(self.number, value)
        if not isinstance(value, dict):
            raise RejectedError([Breach((), "the evalset must be an object: { … }")])
        changed = {key: value.get(key) for key in {**self.value, **value} if value.get(key) != self.value.get(key)}
        for key in changed.keys() - {str(row.location[0]) for row in self.rows()}:
            raise RejectedError([Breach((key,), "only the ID, name and description can be changed here")])
        return EvalsetFile(self.evalset.with_frame(changed))

    def with_recordings(self, value: Any, contents: Contents) -> Contents:
        """Return the contents of an edit. If it changes the case's ID, add the renaming of its recording. Reads files.

        Raises:
            EditError: The recording cannot be read.
        """
        after = contents[self.file][1]
        if self.number is None or case_id(value) == self.name or after is None:
            return contents
        name = case_id(value)
        if name not in EvalsetFile(after).ids:
            return contents
        return with_recordings(contents, [CarriedCase(self.file, self.name, self.file, name)])

    def reopened(self, evalset: EvalsetFile) -> "Draft | None":
        """Return a draft for the file's current content, or None if the case is no longer in it.

        If all other cases stayed, the case at this position is the same one, even with another ID.
        """
        if self.number is None:
            return Draft(self.file, evalset, None, evalset.frame())
        ids, before, number = [*evalset.ids], [*self.evalset.ids], self.number
        if len(ids) != len(before) or [*ids[:number], self.name, *ids[number + 1 :]] != before:
            if self.name not in ids:
                return None
            number = ids.index(self.name)
        return Draft(self.file, evalset, number, evalset.case(number))


class NotSavedError(Exception):
    """A draft could not be saved. The message is safe text and says why."""


_WHOLES = {"args": "call", "call": "call", "response": "result", "rubric": "rubric", "session": "session"}
_OPTIONAL = frozenset({"type", "persona", "session id", "name", "description"})


def open_case(chosen: CaseSelection, document: EvalsetDocument | None = None) -> Draft:
    """Read a file and return a draft of the chosen case, wherever it is in the file now. Call it in a thread.

    `document` saves time: if its file is unchanged, its index of cases is used.

    Raises:
        OSError: The file cannot be read.
        EditError: The file cannot be changed safely.
        GoneError: The case is no longer in the file.
    """
    content = read_regular(chosen.file)
    evalset = EvalsetFile(content, document.index_of(content) if document is not None else None)
    (number,) = chosen.places({chosen.file: evalset})
    return Draft(chosen.file, evalset, number, evalset.case(number))


def open_frame(file: Path) -> Draft:
    """Read a file and return a draft of its ID, name and description. Call it in a thread.

    Raises:
        OSError: The file cannot be read.
        EditError: The file cannot be changed safely.
    """
    evalset = EvalsetFile(read_regular(file))
    return Draft(file, evalset, None, evalset.frame())


def label_of(draft: Draft, row: CaseRow, verb: str = "") -> str:
    """Return the label of an edit: `late_parcel: user of turn 2`, `late_parcel: delete call of turn 1`.

    With a verb, the edit is about the whole part that the row belongs to.
    """
    if not verb:
        return f"{draft.name}: {place_in_words(row)}"
    whole = row.unit != row.location and row.kind in _WHOLES
    return f"{draft.name}: {verb} {_in_turn(_WHOLES[row.kind] if whole else row.name.strip(), row)}"


def place_in_words(row: CaseRow) -> str:
    """Return a row's place in its case: `args of turn 1`."""
    return _in_turn(row.name.strip(), row)


def _in_turn(name: str, row: CaseRow) -> str:
    return f"{name} of turn {row.turn + 1}" if row.turn is not None and row.kind != "turn" else name


def with_row(draft: Draft, row: CaseRow, value: Any) -> Any:
    """Return the draft's value with a new value in one row. An empty text removes an optional key."""
    if value == "" and row.name.strip() in _OPTIONAL:
        return without(draft.value, row.location)
    return with_value(draft.value, row.location, value)


def unchanged(draft: Draft, row: CaseRow, value: Any) -> bool:
    """Return whether a row already has this value."""
    return not row.missing and type(value) is type(row.value) and value_at(draft.value, row.location) == value
