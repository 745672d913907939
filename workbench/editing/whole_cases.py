"""Edits of whole cases: duplicate, delete, move, add and rename.

They apply to the current content of the files. Cases are found by ID, so changes by others in the meantime are kept.
The recordings of cases are read from the disk and change with them.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from workbench.editing.carried_recordings import CarriedCase, with_recordings
from workbench.editing.evalset_file import EvalsetFile, moved
from workbench.editing.saving import Contents
from workbench.editing.value_edit import with_value
from workbench.files.spelling import get, key_for
from workbench.text.json_values import string

OpenedFiles: TypeAlias = Mapping[Path, EvalsetFile]
"""Current content of files."""


class GoneError(ValueError):
    """A case no longer exists, or its ID is no longer unique."""


@dataclass(frozen=True, slots=True)
class CaseSelection:
    """Selected cases of a file.

    `shown` are the IDs of all its cases as the user saw them. `numbers` are the selected positions.
    """

    file: Path
    shown: Sequence[str]
    numbers: Sequence[int]

    @property
    def names(self) -> list[str]:
        """The IDs of the selected cases, raw."""
        return [self.shown[number] for number in self.numbers]

    def places(self, opened: OpenedFiles) -> list[int]:
        """Return their current positions.

        Raises:
            GoneError: one of them cannot be found.
        """
        ids = list(opened[self.file].ids)
        if ids == list(self.shown):
            return list(self.numbers)
        for name in self.names:
            if ids.count(name) != 1 or self.shown.count(name) != 1:
                what = "is no longer unique" if ids.count(name) > 1 else "no longer exists"
                raise GoneError(f"{self.file.name} was changed by another program: {name} {what}")
        return [ids.index(name) for name in self.names]


def duplicated(opened: OpenedFiles, chosen: Sequence[CaseSelection]) -> tuple[Contents, list[str]]:
    """Return the contents with a copy after each selected case, and the copies' IDs.

    Raises:
        GoneError: a case cannot be found.
        EditError: a file cannot be changed safely.
    """
    contents, names, carried = {}, [], []
    for one in chosen:
        places = sorted(set(one.places(opened)))
        after, added = opened[one.file].with_copies(places)
        contents[one.file] = (opened[one.file].content, after)
        names += added
        pairs = zip(places, added, strict=True)
        old = opened[one.file].ids
        carried += [CarriedCase(one.file, old[place], one.file, name, is_copy=True) for place, name in pairs]
    return with_recordings(contents, carried), names


def deleted(opened: OpenedFiles, chosen: Sequence[CaseSelection]) -> Contents:
    """Return the contents without the selected cases.

    Raises:
        GoneError: as in `duplicated`.
        EditError: as in `duplicated`.
    """
    contents, carried = {}, []
    for one in chosen:
        evalset, places = opened[one.file], one.places(opened)
        contents[one.file] = (evalset.content, evalset.without(places))
        left = {eval_id for place, eval_id in enumerate(evalset.ids) if place not in places}
        carried += [CarriedCase(one.file, name, None) for name in one.names if name not in left]
    return with_recordings(contents, carried)


def moved_to(opened: OpenedFiles, chosen: CaseSelection, target: Path) -> Contents:
    """Return the contents with the selected cases at the end of another file.

    The target is written first, so that an interruption may leave a case in both files, but never loses it.

    Raises:
        RejectedError: the target already has one of them.
        GoneError: as in `duplicated`.
        EditError: as in `duplicated`.
    """
    source, other = opened[chosen.file], opened[target]
    left, right = moved(source, chosen.places(opened), other)
    contents = {target: (other.content, right), chosen.file: (source.content, left)}
    eval_set_id = string(get(other.frame(), "eval_set_id"))
    carried = (CarriedCase(chosen.file, name, target, eval_set_id=eval_set_id) for name in chosen.names)
    return with_recordings(contents, carried)


def added(opened: OpenedFiles, file: Path, case: dict[str, Any], *, after: CaseSelection | None) -> Contents:
    """Return the content with a new case after the selected one, else at the end.

    Raises:
        RejectedError: the case's ID is already used.
        EditError: as in `duplicated`.
    """
    evalset = opened[file]
    place = len(evalset.ids)
    with contextlib.suppress(GoneError):
        place = after.places(opened)[0] + 1 if after is not None else place
    return {file: (evalset.content, evalset.added(place, [case]))}


def renamed(opened: OpenedFiles, chosen: CaseSelection, name: str) -> Contents:
    """Return the content with another ID for the selected case.

    Raises:
        RejectedError: the ID is already used.
        GoneError: as in `duplicated`.
        EditError: as in `duplicated`.
    """
    evalset, (place,) = opened[chosen.file], chosen.places(opened)
    case = evalset.case(place)
    wanted = with_value(case, (key_for(case, "eval_id", camel=False),), name)
    contents = {chosen.file: (evalset.content, evalset.with_case(place, wanted))}
    return with_recordings(contents, [CarriedCase(chosen.file, chosen.names[0], chosen.file, name)])
