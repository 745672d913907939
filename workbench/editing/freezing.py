"""Freezing as an edit: the calls of finished cases are written to files beside their evalset.

Large values are written to files of their own.
"""

import contextlib
import json
import re
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from workbench.editing.saving import Contents
from workbench.events.events import CaseName, CaseRef
from workbench.files.evalset import open_evalset
from workbench.files.frozen_path import (
    FILE_SUFFIX,
    frozen_folder,
    frozen_name,
    frozen_path,
    read_unlinked,
    refused_link,
)
from workbench.files.json_text.json_edit import revised
from workbench.files.json_text.scanner import is_scannable
from workbench.files.json_text.text_file import unreadable
from workbench.files.own_file import OwnFileError
from workbench.run.recordings.drift import merged, remarks
from workbench.run.recordings.from_run import NotRecordedError, Taken, take_recording
from workbench.run.recordings.frozen_file import LaterFrozenFileError, parse_frozen
from workbench.run.recordings.frozen_schema import frozen_contents
from workbench.run.recordings.recording import Origin, Recording
from workbench.store.database.database import is_stored, state_of
from workbench.store.history.run_names import started_at
from workbench.store.transcripts import StoredCase, StoredRun
from workbench.text.counting import counted

Change: TypeAlias = Literal["new", "changed", "unchanged", "not frozen"]
_ADK = "google-adk"
_SAME_AGAIN = frozenset({"agent_raised", "turn_count"})
"""Errors that follow from the answers of tools, so that a replay repeats them."""


@dataclass(frozen=True, slots=True)
class FrozenCase:
    """The change that freezing makes to one case.

    `file` is its frozen file. `recording` is None if it is not frozen, and `why` says why not. `remarks` are sentences
    that the user should read. All texts are raw.
    """

    ref: CaseRef
    file: Path
    change: Change
    recording: Recording | None = None
    why: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Freezing:
    """A prepared freezing: what happens to each case, the new contents of files, and recordings that are pruned."""

    cases: tuple[FrozenCase, ...]
    contents: Contents
    pruned: tuple[Path, ...] = ()

    @property
    def label(self) -> str:
        """The label of the edit."""
        names = [case.ref.eval_id for case in self.cases if case.change in ("new", "changed")]
        return f"freeze {names[0]}" if len(names) == 1 else f"freeze {counted(len(names), 'case')}"


def freezing_of(
    runs: Iterable[StoredRun], root: Path, *, cases: Sequence[str] = (), models: bool = False, prune: bool = False
) -> Freezing:
    """Prepare the freezing of the cases of runs, or only of those with these IDs. Reads files and writes none.

    From a case's repeats, the first complete one that passed is used, else the first complete one, else the first.
    `models` also keeps the answers of models. Without it, they are kept for a recording that has some already. `prune`
    drops recorded calls that a frozen run did not use, and without `cases` also the recordings of deleted cases.

    Raises:
        OSError: a file cannot be read.
    """
    work = _Work(root, models=models, prune=prune)
    found: list[FrozenCase] = []
    for run in runs:
        chosen: dict[CaseName, list[StoredCase]] = defaultdict(list)
        for ref, case in run.cases.items():
            if not cases or ref.eval_id in cases:
                chosen[ref.name].append(case)
        found += (work.freeze(_best(executions), run) for executions in chosen.values())
    pruned = work.prune() if prune and not cases else ()
    return Freezing(tuple(found), work.folders.contents(), pruned)


def ignoring(file: Path, tool: str, argument: str) -> Contents:
    """Return the edit after which a frozen file ignores an argument of a tool. Reads the file.

    Everything else keeps its bytes, unless the file is very large.

    Raises:
        OwnFileError: the file cannot be used.
        OSError: the file cannot be read.
    """
    content = read_unlinked(file)
    recording = parse_frozen(file, content)
    known = recording.ignore.get(tool, ())
    ignore = {**recording.ignore, tool: (*known, *(() if argument in known else (argument,)))}
    if frozen_contents(file, recording)[file] == content or not is_scannable(content):
        return {file: (content, frozen_contents(file, replace(recording, ignore=ignore))[file])}
    mark = BOM_UTF8 if content.startswith(BOM_UTF8) else b""
    text = content.removeprefix(mark).decode("utf-8", "surrogatepass")
    after = revised(text, {**json.loads(text), "ignore": {name: list(names) for name, names in ignore.items()}})
    return {file: (content, mark + after.encode("utf-8", "surrogatepass"))}


def _best(executions: Sequence[StoredCase]) -> StoredCase:
    own = [case for case in executions if not case.planned.is_apart]
    complete = [case for case in own if case.why_incomplete() is None]
    passed = (case for case in complete if case.finished is not None and case.finished.status == "passed")
    return next(passed, (complete or own or executions)[0])


def taken_from(case: StoredCase, run: StoredRun) -> Taken:
    """Return the recording of a case of a run. Reads files.

    Raises:
        NotRecordedError: the case cannot be frozen, for example because its transcript is incomplete.
    """
    if case.planned.is_apart:
        raise NotRecordedError("the run only tried a fault or a fork: freeze a run of the case itself")
    ended = case.why_incomplete()
    if ended is not None and ended.kind not in _SAME_AGAIN:
        advice = "; run it with --frozen --on-miss live first" if ended.kind == "frozen_miss" else ""
        raise NotRecordedError(f"its transcript is not complete: {ended.message}{advice}")
    state = state_of(run.file) if run.file is not None and is_stored(run.file) else None
    version = str(run.versions.get(_ADK, ""))
    run_id, started = (run.scored_from, "") if run.scored_from else (run.run_id, run.started)
    # An ID of several runs has no time.
    started = started or ("" if "," in run_id else started_at(run_id))
    origin = Origin(run_id, started, case.ref.repeat, _ADK if version else "", version)
    taken = take_recording(case.ref, case.steps, state, origin)
    if taken.why_not:
        raise NotRecordedError(taken.why_not)
    if ended is not None and not taken.recording.calls:
        raise NotRecordedError(f"it has no calls of tools, only an error: {ended.message}")
    return taken


class _Work:
    def __init__(self, root: Path, *, models: bool, prune: bool) -> None:
        self.folders = FrozenFolders()
        self._root, self._models, self._prune = root, models, prune
        self._ids: dict[Path, frozenset[str]] = {}
        """Evalset → the IDs of its cases."""
        self._broken: dict[Path, str] = {}
        """Evalsets whose cases are not all known → the first fault, with its place."""

    def freeze(self, case: StoredCase, run: StoredRun) -> FrozenCase:
        """Prepare the freezing of one case of a run. If it cannot be frozen, the result says why."""
        ref = case.ref
        evalset = self._evalset(ref)
        file = frozen_path(self._root / ref.evalset_file, ref.eval_id)
        refused = refused_link(file)
        if refused:
            return FrozenCase(ref, file, "not frozen", why=f"{file.name}: {refused}")
        if evalset is None:
            return FrozenCase(ref, file, "not frozen", why=f"there is no evalset {ref.evalset_file}")
        if ref.eval_id not in self._ids[evalset]:
            return FrozenCase(ref, file, "not frozen", why=self._why_not_there(ref, evalset))
        try:
            return self._frozen(case, file, taken_from(case, run))
        except (NotRecordedError, LaterFrozenFileError) as error:
            return FrozenCase(ref, file, "not frozen", why=str(error))

    def _frozen(self, case: StoredCase, file: Path, taken: Taken) -> FrozenCase:
        try:
            before = self.folders.content(file)
        except OSError as error:
            return FrozenCase(case.ref, file, "not frozen", why=unreadable(file, error).sentence(file.name))
        more = []
        old = None
        try:
            old = parse_frozen(file, before) if before is not None else None
        except LaterFrozenFileError:
            raise
        except OwnFileError as error:
            more.append(f"the recording there could not be read and is replaced: {error.faults[0].sentence(file.name)}")
        recording = merged(old, taken, models=self._models, prune=self._prune)
        if recording is old:
            return FrozenCase(case.ref, file, "unchanged", old)
        for path, content in frozen_contents(file, recording).items():
            self.folders.put(path, content)
        if case.why_incomplete() is not None:
            more.append("the case ended with an error, which a replay repeats; later calls are unknown")
        if self._models and not recording.models:
            more.append("the run recorded no answers of models")
        change: Change = "new" if before is None else "changed"
        return FrozenCase(case.ref, file, change, recording, remarks=(*more, *remarks(recording)))

    def prune(self) -> tuple[Path, ...]:
        """Remove and return the recordings of deleted cases, except of broken evalsets. Remove unused value files."""
        pruned: list[Path] = []
        for evalset, ids in self._ids.items():
            if evalset in self._broken:
                continue
            folder = frozen_folder(evalset)
            names = {frozen_name(eval_id) for eval_id in ids}
            gone = [path for path in self.folders.files(folder) if path.name not in names]
            for path in gone:
                with contextlib.suppress(OSError):  # What cannot be read could not be restored by an undo.
                    self.folders.put(path, None)
                    pruned.append(path)
            values = {path.name for path in _files_in(folder) if _BESIDE_NAME.fullmatch(path.name)}
            self.folders.remove_unused(folder, values)
        return tuple(pruned)

    def _evalset(self, ref: CaseRef) -> Path | None:
        """Return the evalset file of a case, or None if it does not exist or its path has `..`, as in a forged run."""
        file = self._root / ref.evalset_file
        if file in self._ids:
            return file
        try:
            if ".." in PurePosixPath(ref.evalset_file).parts or not file.is_file():
                return None
        except (OSError, ValueError):
            return None
        document = open_evalset(file)
        self._ids[file] = frozenset(case.eval_id for case in document.cases)
        if document.broken:
            faults = (fault for fault in document.faults if fault.severity == "error")
            self._broken[file] = next((fault.sentence(ref.evalset_file) for fault in faults), ref.evalset_file)
        return file

    def _why_not_there(self, ref: CaseRef, evalset: Path) -> str:
        """Return why a case of a run is missing from its evalset."""
        if evalset in self._broken:
            return f"its evalset is broken: {self._broken[evalset]}"
        if not ref.eval_id:
            return f"{evalset.name} was broken when the run read it: run it again"
        return f"{evalset.name} no longer has this case"


_BESIDE = re.compile(rb'"([0-9a-f]{20}\.json)"')
_BESIDE_NAME = re.compile(r"[0-9a-f]{20}\.json")


class FrozenFolders:
    """Frozen files as they are on disk, and as they will be after the edit. Files are read when they are needed.

    A value file beside frozen files is removed with the last file that refers to it.
    """

    def __init__(self) -> None:
        self._before: dict[Path, bytes | None] = {}
        self._after: dict[Path, bytes | None] = {}

    def content(self, path: Path) -> bytes | None:
        """Return the content of a file after the changes so far, or None if there is no file.

        Raises:
            OSError: the file cannot be read.
        """
        if path not in self._before:
            try:
                self._before[path] = read_unlinked(path)
            except (FileNotFoundError, NotADirectoryError):
                self._before[path] = None
            self._after[path] = self._before[path]
        return self._after[path]

    def put(self, path: Path, content: bytes | None) -> None:
        """Change the content of a file; None removes the file.

        Raises:
            OSError: its present content cannot be read.
        """
        self.content(path)
        self._after[path] = content

    def beside(self, content: bytes) -> list[str]:
        """Return the names of the value files that a frozen file with this content refers to."""
        return list(dict.fromkeys(name.decode("ascii") for name in _BESIDE.findall(content)))

    def files(self, folder: Path) -> list[Path]:
        """Return the frozen files in a folder after the changes so far, sorted by name."""
        found = {path for path in _files_in(folder) if path.name.endswith(FILE_SUFFIX)}
        found |= {path for path in self._after if path.parent == folder and path.name.endswith(FILE_SUFFIX)}
        return sorted(path for path in found if path not in self._after or self._after[path] is not None)

    def contents(self) -> Contents:
        """Return the changes, with new files first and removals last, so an interruption loses no recorded value.

        Value files that no changed file refers to any more are removed, too.
        """
        dropped: dict[Path, set[str]] = {}
        for path, before in self._before.items():
            if path.name.endswith(FILE_SUFFIX) and before is not None and before != self._after[path]:
                gone = {*self.beside(before)}.difference(self.beside(self._after[path] or b""))
                dropped.setdefault(path.parent, set()).update(gone)
        for folder, names in dropped.items():
            self.remove_unused(folder, names)
        pairs = {path: (before, self._after[path]) for path, before in self._before.items()}
        changed = {path: pair for path, pair in pairs.items() if pair[0] != pair[1]}
        return dict(sorted(changed.items(), key=lambda item: _order(item[0], item[1][1])))

    def remove_unused(self, folder: Path, names: Iterable[str]) -> None:
        """Remove those of these value files that no frozen file of a folder refers to.

        If a frozen file cannot be read, none is removed.
        """
        left = set(names)
        if not left:
            return
        try:
            for path in self.files(folder):
                left.difference_update(self.beside(self.content(path) or b""))
        except OSError:
            return  # It may name any of them.
        for name in sorted(left):
            with contextlib.suppress(OSError):
                self.put(folder / name, None)


def _order(path: Path, after: bytes | None) -> int:
    """Return the position of a change: values, frozen files that name them, removed frozen files, removed values."""
    is_frozen = path.name.endswith(FILE_SUFFIX)
    return (2 if is_frozen else 3) if after is None else (1 if is_frozen else 0)


def _files_in(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
