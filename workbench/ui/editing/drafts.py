"""What is being edited: a case, or what stands around the cases of a file. The file's content is that of the moment
when the edit began; saving compares it with what is on the disk by then."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.authoring.case_rows import CaseRow, frame_rows, rows_of
from workbench.authoring.evalset_file import EvalsetFile
from workbench.authoring.value_edit import value_at, with_value, without
from workbench.authoring.whole_cases import CaseSelection
from workbench.json_values import case_id
from workbench.model.evalset import EvalsetDocument
from workbench.regular_file import read_regular


@dataclass(frozen=True)
class CaseDraft:
    """A case of a file; `value` is its JSON."""

    file: Path
    evalset: EvalsetFile
    number: int
    value: Any

    @property
    def name(self) -> str:
        """What it is called, raw."""
        return case_id(self.value)

    def rows(self) -> list[CaseRow]:
        """What there is to edit."""
        return rows_of(self.value)

    def after(self, value: Any) -> EvalsetFile:
        """The file with the case saying `value`; raises what `EvalsetFile.changed` does."""
        return self.evalset.edited(self.number, value)

    def reopened(self, evalset: EvalsetFile) -> "CaseDraft | None":
        """The same case in a newer content of the file; None if it is not there any more."""
        if self.name not in evalset.ids:
            return None
        same = self.number < len(evalset.ids) and evalset.ids[self.number] == self.name
        number = self.number if same else evalset.ids.index(self.name)
        return CaseDraft(self.file, evalset, number, evalset.case(number))


@dataclass(frozen=True)
class FrameDraft:
    """Id, name and description of an evalset; `value` is the file's JSON without its cases."""

    file: Path
    evalset: EvalsetFile
    value: Any

    @property
    def name(self) -> str:
        """What it is called, raw."""
        return self.file.name

    def rows(self) -> list[CaseRow]:
        """What there is to edit."""
        return frame_rows(self.value)

    def after(self, value: Any) -> EvalsetFile:
        """The file with `value` around its cases; raises what `EvalsetFile.with_frame` does."""
        keys = [str(row.location[0]) for row in self.rows()]
        changed = {key: value.get(key) for key in keys if value.get(key) != self.value.get(key)}
        return EvalsetFile(self.evalset.with_frame(changed))

    def reopened(self, evalset: EvalsetFile) -> "FrameDraft | None":
        """The same in a newer content of the file."""
        return FrameDraft(self.file, evalset, evalset.frame())


class NotSavedError(Exception):
    """Nothing was written; the message is safe and says why."""


_WHOLES = {"args": "call", "call": "call", "response": "result", "rubric": "rubric", "session": "session"}
_NOUNS = {"said": "text"}
_OPTIONAL = frozenset({"type", "persona", "session id", "name", "description"})
Draft = CaseDraft | FrameDraft


def open_case(chosen: CaseSelection, document: EvalsetDocument | None = None) -> CaseDraft:
    """Reads a file and begins to edit the case chosen in it, wherever it stands by now; for a thread. Where the file
    still is what `document` was opened from, its cases need not be found again.

    Raises:
        OSError, EditError: it cannot be read, or changed safely.
        GoneError: the case is not there any more.
    """
    content = read_regular(chosen.file)
    evalset = EvalsetFile(content, document.index_of(content) if document is not None else None)
    (number,) = chosen.places({chosen.file: evalset})
    return CaseDraft(chosen.file, evalset, number, evalset.case(number))


def open_frame(file: Path) -> FrameDraft:
    """Reads a file and begins to edit what stands around its cases; for a thread.

    Raises:
        OSError, EditError: as `open_case`.
    """
    evalset = EvalsetFile(read_regular(file))
    return FrameDraft(file, evalset, evalset.frame())


def label_of(draft: Draft, row: CaseRow, verb: str = "") -> str:
    """What an edit is called when it is undone: `late_parcel: user of turn 2`, `late_parcel: delete call of turn 1`.
    With a verb it is about all that the row belongs to."""
    if not verb:
        return f"{draft.name}: {place_in_words(row)}"
    whole = row.unit != row.location and row.kind in _WHOLES
    return f"{draft.name}: {verb} {_in_turn(_WHOLES[row.kind] if whole else row.name.strip(), row)}"


def place_in_words(row: CaseRow) -> str:
    """Which value of a case it is: `args of turn 1`."""
    return _in_turn(row.name.strip(), row)


def _in_turn(name: str, row: CaseRow) -> str:
    name = _NOUNS.get(name, name)
    return f"{name} of turn {row.turn + 1}" if row.turn is not None and row.kind != "turn" else name


def said(draft: Draft, row: CaseRow, value: Any) -> Any:
    """The draft's value with a row saying `value`; an empty text takes out what may be missing."""
    if value == "" and row.name.strip() in _OPTIONAL:
        return without(draft.value, row.location)
    return with_value(draft.value, row.location, value)


def unchanged(draft: Draft, row: CaseRow, value: Any) -> bool:
    """Whether a row says that already."""
    return not row.missing and type(value) is type(row.value) and value_at(draft.value, row.location) == value
