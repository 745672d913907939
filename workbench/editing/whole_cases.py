"""Edits of whole cases: duplicate, delete, move, add, rename, and changes proposed for many of them.

The edits apply to the current content of the files. Cases are found by ID, so changes by others in the meantime are
kept. Two newer versions of a file are merged case by case. Recordings are read from the disk and follow their cases: an
edit that renames, moves, copies or deletes a case includes its frozen file. All changes of one action are one edit.
"""

import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from workbench.editing.case_edit import with_value
from workbench.editing.evalset_file import EvalsetFile, moved, new_evalset
from workbench.editing.freezing import FrozenFolders
from workbench.editing.saving import Contents
from workbench.files.evalset_edit import EvalsetText, NewCase
from workbench.files.frozen_path import frozen_folder, frozen_path
from workbench.files.json_text.json_edit import EditError, revised, same
from workbench.files.json_text.scanner import is_scannable
from workbench.files.opening import name_of
from workbench.files.spelling import get, key_for
from workbench.run.recordings.frozen_schema import frozen_contents, one_line
from workbench.run.recordings.recording import Recording
from workbench.text.json_values import case_id, string

OpenedFiles: TypeAlias = Mapping[Path, EvalsetFile]
"""Evalsets with their current content, by path."""


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
        """Return the current positions of the selected cases.

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

    Recordings are copied, too. Reads files.

    Raises:
        GoneError: a case cannot be found.
        RejectedError: the position of a dataset's case without an ID would change.
        EditError: a file cannot be changed safely, or a recording cannot be read.
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
    """Return the contents without the selected cases and their recordings. Reads files.

    Raises:
        GoneError: as in `duplicated`.
        RejectedError: a dataset would be empty, or the position of a case without an ID would change.
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

    The target is written first, so an interruption may leave a case in both files, but never loses it.

    Raises:
        RejectedError: as in `workbench.editing.evalset_file.moved`.
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
    """Return the content with a new case after the case `after`, or at the end if `after` is None or no longer exists.

    Raises:
        RejectedError: ADK would reject the case, or its ID is empty or already used.
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
        RejectedError: the ID is empty or already used.
        GoneError: as in `duplicated`.
        EditError: as in `duplicated`.
    """
    evalset, (place,) = opened[chosen.file], chosen.places(opened)
    case = evalset.case(place)
    wanted = with_value(case, (key_for(case, "eval_id", camel=False),), name)
    contents = {chosen.file: (evalset.content, evalset.with_case(place, wanted))}
    return with_recordings(contents, [CarriedCase(chosen.file, chosen.names[0], chosen.file, name)])


_HEAD_LINE = r'^  "{}": ("(?:[^"\\]|\\.)*")'
_HEAD = 4096
"""Number of bytes at the start of a frozen file that contain its lines about the case."""


@dataclass(frozen=True, slots=True)
class CarriedCase:
    """A moved, renamed, copied or deleted case: its evalset and ID before and after.

    `target` is None if the case is deleted. With `is_copy`, the old case stays. `eval_set_id` is that of the target, or
    "" if it is not known.
    """

    source: Path
    eval_id: str
    target: Path | None
    new_id: str = ""
    is_copy: bool = False
    eval_set_id: str = ""


def with_recordings(contents: Contents, carried: Iterable[CarriedCase]) -> Contents:
    """Return the contents of an edit together with those of the frozen files of its cases. Reads files.

    New recordings come first and removed ones last, so an interruption loses none.

    Raises:
        EditError: a recording cannot be read, so nothing should be changed.
    """
    cases = [case for case in carried if frozen_folder(case.source).is_dir()]
    if not cases:
        return contents
    folders = FrozenFolders()
    try:
        for case in cases:
            _carry(folders, case)
        changes = folders.contents()
    except OSError as error:
        raise EditError(f"the recording {error.filename} cannot be read: {error.strerror}") from None
    written = {path: pair for path, pair in changes.items() if pair[1] is not None}
    removed = {path: pair for path, pair in changes.items() if pair[1] is None}
    return {**written, **contents, **removed}


def _carry(folders: FrozenFolders, case: CarriedCase) -> None:
    path = frozen_path(case.source, case.eval_id)
    content = folders.content(path)
    if content is None:
        return
    if not case.is_copy:
        folders.put(path, None)
    if case.target is None:
        return
    changes = {"eval_id": case.new_id or case.eval_id}
    if case.eval_set_id:
        changes["eval_set_id"] = case.eval_set_id
    folders.put(frozen_path(case.target, changes["eval_id"]), renamed_content(content, changes))
    if case.target != case.source:
        for name in folders.beside(content):
            beside = folders.content(path.with_name(name))
            if beside is not None:
                folders.put(frozen_folder(case.target) / name, beside)


def renamed_content(content: bytes, changes: Mapping[str, str]) -> bytes:
    """Return a frozen file with other IDs. All other bytes stay the same, even in a file with mistakes."""
    try:
        text = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content
    after = text
    for key, value in changes.items():
        match = re.search(_HEAD_LINE.format(key), after[:_HEAD], re.MULTILINE)
        if match is None:
            after = _revised(text, changes) if is_scannable(content) else text
            break
        after = after[: match.start(1)] + one_line(value) + after[match.end(1) :]
    return after.encode("utf-8", "surrogatepass")


def _revised(text: str, changes: Mapping[str, str]) -> str:
    """Return a hand-formatted frozen file with other IDs, or unchanged if it is not valid JSON or has no such keys."""
    try:
        value: Any = json.loads(text)
        known = {key: item for key, item in changes.items() if key in value} if isinstance(value, dict) else {}
        return revised(text, {**value, **known}) if known else text
    except (ValueError, RecursionError):
        return text


def kept_contents(file: Path, before: bytes | None, cases: list[tuple[dict[str, Any], Recording | None]]) -> Contents:
    """Return the edit that appends cases to an evalset, each with its frozen file if it has a recording. Reads files.

    `before` is the evalset's content, or None for a new file.

    Raises:
        RejectedError: ADK would reject a case, or its ID is used.
        EditError: the evalset cannot be changed safely, or a case is nested too deeply.
        OSError: a frozen file there cannot be read.
        RecursionError: a recorded value is nested too deeply.
    """
    evalset = EvalsetFile(new_evalset(name_of(file)) if before is None else before)
    content = evalset.added(len(evalset.ids), [case for case, _ in cases])
    folders = FrozenFolders()
    for case, recording in cases:
        if recording is not None:
            name = string(evalset.frame().get("eval_set_id")) or name_of(file)
            own = replace(recording, eval_set_id=name, eval_id=case_id(case))
            for path, frozen in frozen_contents(frozen_path(file, case_id(case)), own).items():
                folders.put(path, frozen)
    return {**folders.contents(), file: (before, content)}


class Part(Protocol):
    """One change in a case: a difference to accept (`Hunk`), or a replaced value (`Replacement`)."""

    @property
    def turn(self) -> int | None:
        """The turn, counted from 0, or None outside of turns."""

    @property
    def what(self) -> str:
        """The name of the changed value, as raw text."""

    @property
    def old(self) -> Any:
        """The value before, or `ABSENT`."""

    @property
    def new(self) -> Any:
        """The value after, or `ABSENT`."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """Possible changes of one case.

    `case` selects it, `before` is its JSON, and `after` returns its JSON with some of the `parts`. Proposals are
    compared by identity.
    """

    case: CaseSelection
    before: Any
    parts: Sequence[Any]
    """Each is a `Part` and can be hashed."""
    after: Callable[[Collection[Any]], Any] = field(repr=False)

    @property
    def file(self) -> Path:
        """The file of the case."""
        return self.case.file

    @property
    def name(self) -> str:
        """The ID of the case, raw."""
        return self.case.names[0]


Choice = Mapping[Proposal, Collection[Any]]
"""The chosen parts of each proposal."""


def written(opened: OpenedFiles, choice: Choice) -> Contents:
    """Return the contents of the files with the chosen parts.

    Raises:
        GoneError: a case is gone or has changed since it was proposed.
        RejectedError: ADK would reject a changed case.
        EditError: a file cannot be changed safely.
    """
    after: dict[Path, EvalsetFile] = {}
    for proposal, parts in choice.items():
        if not parts:
            continue
        (place,) = proposal.case.places(opened)
        evalset = after.get(proposal.file, opened[proposal.file])
        if evalset.case(place) != proposal.before:
            raise GoneError(f"{proposal.file.name} was changed by another program: {proposal.name} is different now")
        after[proposal.file] = evalset.edited(place, proposal.after(parts))
    return {file: (opened[file].content, evalset.content) for file, evalset in after.items()}


Side: TypeAlias = Literal["theirs", "mine"]
"""A version of a file or case: the one on disk, or the user's edit."""
FRAME = ""
"""Key for the parts of the file around the cases. No case can have this ID."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A case that differs between the version on disk (`theirs`) and the user's edit (`mine`).

    `base` is the case before both. Each is the case's JSON, or None if the version lacks it.
    """

    eval_id: str
    base: Any
    theirs: Any
    mine: Any

    @property
    def who(self) -> Literal["theirs", "mine", "both"]:
        """The side that changed the case, or "both" if both changed it, differently."""
        if same(self.theirs, self.base):
            return "mine"
        return "theirs" if same(self.mine, self.base) else "both"

    @property
    def proposed(self) -> Side:
        """The default side: the one that changed the case, or `mine` if both did."""
        return "theirs" if self.who == "theirs" else "mine"


def differences(base: bytes, theirs: bytes, mine: bytes) -> list[Difference]:
    """Return the differences between `theirs` and `mine`: the frame, then cases in the order of `theirs`, then others.

    Raises:
        EditError: a version is not an evalset that can be edited.
        ValueError: a version has two cases with the same ID, or a case without an ID.
    """
    versions = [EvalsetText(content) for content in (base, theirs, mine)]
    numbers = [_numbers(version) for version in versions]
    found = [Difference(FRAME, *(version.frame() for version in versions))]
    for eval_id in dict.fromkeys([*versions[1].ids, *versions[2].ids, *versions[0].ids]):
        places = [known.get(eval_id) for known in numbers]
        raw = [None if place is None else version.raw(place) for version, place in zip(versions, places, strict=True)]
        if len(set(raw)) > 1:
            found.append(Difference(eval_id, *(None if one is None else json.loads(one) for one in raw)))
    return [one for one in found if not same(one.theirs, one.mine)]


def merged(theirs: bytes, found: list[Difference], chosen: Mapping[str, Side], mine: bytes) -> bytes:
    """Return `theirs` with the differences for which `mine` is chosen or proposed. All other bytes stay as they are.

    Raises:
        EditError: the file cannot be changed safely.
    """
    content = theirs
    for one in found:
        if chosen.get(one.eval_id, one.proposed) == "mine" and not same(one.mine, one.theirs):
            content = _take(content, one, mine)
    return content


def _take(content: bytes, one: Difference, mine: bytes) -> bytes:
    text = EvalsetText(content)
    if one.eval_id == FRAME:
        keys = [key for key in {**one.theirs, **one.mine} if key != "eval_cases"]
        differing = [key for key in keys if not same(one.mine.get(key), one.theirs.get(key))]
        return text.with_frame({key: one.mine.get(key) for key in differing})
    if one.theirs is None:
        order: list[int | NewCase] = list(range(len(text.ids)))
        own = EvalsetText(mine)
        order.insert(_place(text, one.eval_id, own), own.copied(list(own.ids).index(one.eval_id)))
        return text.with_order(order)
    number = list(text.ids).index(one.eval_id)
    if one.mine is None:
        return EvalsetFile(content).without([number])
    return text.with_case(number, one.mine)


def _place(text: EvalsetText, eval_id: str, mine: EvalsetText) -> int:
    """Return the place after the nearest case that precedes it in `mine` and exists in `text`, or 0."""
    ids = list(mine.ids)
    for before in reversed(ids[: ids.index(eval_id)]):
        if before in text.ids:
            return list(text.ids).index(before) + 1
    return 0


def _numbers(text: EvalsetText) -> dict[str, int]:
    numbers = {eval_id: number for number, eval_id in enumerate(text.ids)}
    if FRAME in numbers:
        raise ValueError("a case has no ID")
    if len(numbers) < len(text.ids):
        repeated = next(eval_id for number, eval_id in enumerate(text.ids) if numbers[eval_id] != number)
        raise ValueError(f"two cases have the ID {repeated}")
    return numbers
