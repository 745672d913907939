"""Updates of recordings from live runs: the user chooses which changed answers to accept."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.criteria.json_difference import ABSENT
from workbench.editing.freezing import FrozenFolders, taken_from
from workbench.editing.saving import ChangedOnDiskError, Contents
from workbench.editing.whole_cases import CaseSelection, Proposal
from workbench.files.file_access import read_regular
from workbench.files.frozen_path import frozen_path
from workbench.files.json_text.text_file import unreadable
from workbench.files.own_file import OwnFileError
from workbench.run.recordings.drift import MISSING, Drift, Thaw
from workbench.run.recordings.frozen_file import parse_frozen
from workbench.run.recordings.frozen_schema import frozen_contents
from workbench.run.recordings.recording import Recording
from workbench.store.transcripts import StoredCase, StoredRun
from workbench.worker.matching import shown_call

_VERBS = {"changed": "", "gone": "remove ", "new": "add "}


@dataclass(frozen=True, eq=False, slots=True)
class DriftPart:
    """A change that can be accepted into a recording (`workbench.editing.whole_cases.Part`)."""

    drift: Drift

    @property
    def turn(self) -> int | None:
        """The turn, counted from 0, or None outside of turns."""
        return None if self.drift.turn is None else self.drift.turn - 1

    @property
    def what(self) -> str:
        """The call, declaration or answers that differ, and the first place of the difference, as raw text."""
        drift = self.drift
        name = "answers of models" if drift.about == "models" else f"declaration of {drift.tool or 'a toolset'}"
        call = shown_call(drift.tool, drift.args) if drift.about == "call" else name
        place = drift.where[0][0] if drift.where else ""
        return f"{_VERBS.get(drift.kind, '')}{call}{f': {place}' if place else ''}"

    @property
    def old(self) -> Any:
        """The recorded value at the first place of the difference, or `ABSENT`."""
        return self._side(0)

    @property
    def new(self) -> Any:
        """The live value at the first place of the difference, or `ABSENT`."""
        return self._side(1)

    def _side(self, side: int) -> Any:
        where = self.drift.where
        value = where[0][1 + side] if where else self.drift.values[side]
        return ABSENT if value is MISSING else value


@dataclass(frozen=True, eq=False, slots=True)
class ThawedFile:
    """A recording with the drift of a live case. `proposal` has the changes to choose from."""

    path: Path
    before: bytes
    thaw: Thaw
    proposal: Proposal


def thawed_file(case: StoredCase, run: StoredRun, root: Path) -> ThawedFile:
    """Compare a live case with its recording as it is on disk now. Reads files.

    Raises:
        NotRecordedError: as in `taken_from`.
        OwnFileError: the recording cannot be read.
    """
    ref = case.ref
    evalset = root / ref.evalset_file
    path = frozen_path(evalset, ref.eval_id)
    try:
        before = read_regular(path)
    except OSError as error:
        raise OwnFileError([unreadable(path, error)]) from None
    thaw = Thaw(parse_frozen(path, before), taken_from(case, run).recording, case.why_incomplete() is None)
    parts = [DriftPart(drift) for drift in thaw.changes]

    def after(chosen: Collection[DriftPart]) -> Any:
        return _as_json(path, thaw.accepted([part.drift for part in chosen]))

    chosen_case = CaseSelection(evalset, (ref.eval_id,), (0,))
    return ThawedFile(path, before, thaw, Proposal(chosen_case, _as_json(path, thaw.old), parts, after))


def accepted_contents(choice: Mapping[ThawedFile, Iterable[DriftPart]]) -> Contents:
    """Return the new contents of recordings with the chosen changes. Reads files.

    Raises:
        ChangedOnDiskError: another program has changed a recording since it was compared.
        OSError: a file cannot be read.
    """
    folders = FrozenFolders()
    for file, parts in choice.items():
        if (now := folders.content(file.path)) != file.before:
            raise ChangedOnDiskError(file.path, now)
        recording = file.thaw.accepted([part.drift for part in parts])
        for path, content in frozen_contents(file.path, recording).items():
            folders.put(path, content)
    return folders.contents()


def _as_json(path: Path, recording: Recording) -> Any:
    return json.loads(frozen_contents(path, recording)[path])
