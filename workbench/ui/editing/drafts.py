"""Drafts of a case, or of an evalset's ID, name and description.

A draft holds the file's content from the time when the edit began. Saving compares it with the file on disk.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.editing.case_edit import with_value, without
from workbench.editing.case_rows import CaseRow, frame_rows, rows_of
from workbench.editing.evalset_file import EvalsetFile
from workbench.editing.saving import Contents
from workbench.editing.whole_cases import CarriedCase, CaseSelection, with_recordings
from workbench.files.evalset import EvalsetDocument
from workbench.files.file_access import read_regular
from workbench.text.json_values import case_id, value_at


@dataclass(frozen=True)
class CaseDraft:
    """A case of a file. `value` is its JSON, in a dataset in the form of an evalset's case."""

    file: Path
    evalset: EvalsetFile
    number: int
    value: Any

    @property
    def name(self) -> str:
        """The case's ID, raw."""
        return case_id(self.value)

    @property
    def stored(self) -> Any:
        """The case's JSON as the file has it, for a text editor."""
        return self.evalset.stored(self.number)

    def rows(self) -> list[CaseRow]:
        """Return the editable rows."""
        return rows_of(self.value)

    def after(self, value: Any) -> EvalsetFile:
        """Return the file with the case replaced by `value`. Raises the errors of `EvalsetFile.edited`."""
        return self.evalset.edited(self.number, value)

    def with_recordings(self, value: Any, contents: Contents) -> Contents:
        """Return the contents together with the case's recording if the case gets another ID. Reads files.

        Raises:
            EditError: the recording cannot be read.
        """
        name = case_id(value)
        after = contents[self.file][1]
        if name == self.name or after is None or name not in EvalsetFile(after).ids:
            return contents
        return with_recordings(contents, [CarriedCase(self.file, self.name, self.file, name)])

    def reopened(self, evalset: EvalsetFile) -> "CaseDraft | None":
        """Return the draft, updated to newer content of the file. Return None if the case is gone."""
        if self.name not in evalset.ids:
            return None
        same = self.number < len(evalset.ids) and evalset.ids[self.number] == self.name
        number = self.number if same else evalset.ids.index(self.name)
        return CaseDraft(self.file, evalset, number, evalset.case(number))


@dataclass(frozen=True)
class FrameDraft:
    """ID, name and description of an evalset. `value` is the file's JSON without its cases."""

    file: Path
    evalset: EvalsetFile
    value: Any

    @property
    def name(self) -> str:
        """The file's name, raw."""
        return self.file.name

    @property
    def stored(self) -> Any:
        """The file's JSON without its cases, for a text editor."""
        return self.value

    def rows(self) -> list[CaseRow]:
        """Return the editable rows."""
        return frame_rows(self.value)

    def after(self, value: Any) -> EvalsetFile:
        """Return the file with the keys of `value` beside its cases. Raises the errors of `EvalsetFile.with_frame`."""
        keys = [str(row.location[0]) for row in self.rows()]
        changed = {key: value.get(key) for key in keys if value.get(key) != self.value.get(key)}
        return EvalsetFile(self.evalset.with_frame(changed))

    def with_recordings(self, value: Any, contents: Contents) -> Contents:
        """Return the contents. No case changes."""
        return contents

    def reopened(self, evalset: EvalsetFile) -> "FrameDraft | None":
        """Return the draft, updated to newer content of the file."""
        return FrameDraft(self.file, evalset, evalset.frame())


class NotSavedError(Exception):
    """A draft that was not written. The message is safe text and says why."""


_WHOLES = {"args": "call", "call": "call", "response": "result", "rubric": "rubric", "session": "session"}
_OPTIONAL = frozenset({"type", "persona", "session id", "name", "description"})
Draft = CaseDraft | FrameDraft


def open_case(chosen: CaseSelection, document: EvalsetDocument | None = None) -> CaseDraft:
    """Read a file and return a draft of the chosen case, even if the case has moved. Call it in a thread.

    If the file is still the one that `document` was read from, its known case positions are used again.

    Raises:
        OSError: The file cannot be read.
        EditError: The file cannot be changed safely.
        GoneError: The case is no longer in the file.
    """
    content = read_regular(chosen.file)
    evalset = EvalsetFile(content, document.index_of(content) if document is not None else None)
    (number,) = chosen.places({chosen.file: evalset})
    return CaseDraft(chosen.file, evalset, number, evalset.case(number))


def open_frame(file: Path) -> FrameDraft:
    """Read a file and return a draft of its ID, name and description. Call it in a thread.

    Raises:
        OSError: The file cannot be read.
        EditError: The file cannot be changed safely.
    """
    evalset = EvalsetFile(read_regular(file))
    return FrameDraft(file, evalset, evalset.frame())


def label_of(draft: Draft, row: CaseRow, verb: str = "") -> str:
    """Return the label of an edit: `late_parcel: user of turn 2`, `late_parcel: delete call of turn 1`.

    With a verb, the edit concerns the whole part that the row belongs to.
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
    """Return the draft's value with a new value in a row. An empty text removes an optional key."""
    if value == "" and row.name.strip() in _OPTIONAL:
        return without(draft.value, row.location)
    return with_value(draft.value, row.location, value)


def unchanged(draft: Draft, row: CaseRow, value: Any) -> bool:
    """Return whether a row already has this value."""
    return not row.missing and type(value) is type(row.value) and value_at(draft.value, row.location) == value
