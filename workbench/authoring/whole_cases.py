"""Whole cases duplicated, deleted, moved, added and renamed: what files become by it, as they are by now. Cases are
found again by their ids, so that what somebody else has changed in a file meanwhile stays as it is."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from workbench.authoring.evalset_file import EvalsetFile, moved
from workbench.authoring.saving import Contents
from workbench.authoring.value_edit import with_value
from workbench.model.spelling import key_for

Opened: TypeAlias = Mapping[Path, EvalsetFile]
"""Files as they are on the disk now."""


class GoneError(ValueError):
    """A case is not there any more, or there are two of its id, so that it is not clear which one is meant."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Cases of a file: `shown` are the ids of all its cases as the user saw them, `numbers` the positions chosen."""

    file: Path
    shown: Sequence[str]
    numbers: Sequence[int]

    @property
    def names(self) -> list[str]:
        """The ids of the cases chosen, raw."""
        return [self.shown[number] for number in self.numbers]

    def places(self, opened: Opened) -> list[int]:
        """Where they stand now.

        Raises:
            GoneError: one of them cannot be found.
        """
        ids = list(opened[self.file].ids)
        if ids == list(self.shown):
            return list(self.numbers)
        for name in self.names:
            if ids.count(name) != 1 or self.shown.count(name) != 1:
                what = "stands there twice" if ids.count(name) > 1 else "is not there any more"
                raise GoneError(f"{self.file.name} was changed meanwhile: {name} {what}")
        return [ids.index(name) for name in self.names]


def duplicated(opened: Opened, chosen: Sequence[Chosen]) -> tuple[Contents, list[str]]:
    """With each case once more after it, and the names of the new ones.

    Raises:
        GoneError: a case cannot be found.
        EditError: a file cannot be changed safely.
    """
    contents, names = {}, []
    for one in chosen:
        after, added = opened[one.file].with_copies(set(one.places(opened)))
        contents[one.file] = (opened[one.file].content, after)
        names += added
    return contents, names


def deleted(opened: Opened, chosen: Sequence[Chosen]) -> Contents:
    """Without those cases.

    Raises:
        GoneError, EditError: as `duplicated`.
    """
    return {one.file: (opened[one.file].content, opened[one.file].without(one.places(opened))) for one in chosen}


def moved_to(opened: Opened, chosen: Chosen, target: Path) -> Contents:
    """With those cases at the end of another file. That one is written first: a case may stand in both, never in none.

    Raises:
        RejectedError: one of them is in the other already.
        GoneError, EditError: as `duplicated`.
    """
    source, other = opened[chosen.file], opened[target]
    left, right = moved(source, chosen.places(opened), other)
    return {target: (other.content, right), chosen.file: (source.content, left)}


def added(opened: Opened, file: Path, case: dict[str, Any], *, after: Chosen | None) -> Contents:
    """With a new case after the one chosen, at the end where there is none, or not any more.

    Raises:
        RejectedError: its id is taken.
        EditError: as `duplicated`.
    """
    evalset = opened[file]
    place = len(evalset.ids)
    with contextlib.suppress(GoneError):
        place = after.places(opened)[0] + 1 if after is not None else place
    return {file: (evalset.content, evalset.added(place, [case]))}


def renamed(opened: Opened, chosen: Chosen, name: str) -> Contents:
    """With another id for the case chosen.

    Raises:
        RejectedError: the id is taken.
        GoneError, EditError: as `duplicated`.
    """
    evalset, (place,) = opened[chosen.file], chosen.places(opened)
    case = evalset.case(place)
    wanted = with_value(case, (key_for(case, "eval_id", camel=False),), name)
    return {chosen.file: (evalset.content, evalset.with_case(place, wanted))}
