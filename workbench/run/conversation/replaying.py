"""Replays of a case from its recording, comparisons of a live case with its recording, and forked cases."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.agents.workspace import EvalsetEntry
from workbench.events.events import CallsRecorded, CaseError, CaseRef, Frozen, SpansRecorded, Thawed, Usage
from workbench.files.frozen_path import frozen_path
from workbench.files.own_file import OwnFileError
from workbench.files.run_options import OnMiss
from workbench.files.walk import relative_to
from workbench.freshness.current import files_beside
from workbench.run.conversation.scenario_user import MessageSource, Move, NextMessage
from workbench.run.conversation.transcript import RunContext, Transcript
from workbench.run.plan.plan import first_fault
from workbench.run.recordings.drift import MISSING, Drift, Thaw
from workbench.run.recordings.from_run import NotRecordedError, take_recording
from workbench.run.recordings.recording import Declaration, Mode, Origin, Recording, digest
from workbench.run.recordings.requests import request_difference
from workbench.worker.matching import shown_call, shown_value

_LONGEST_ERROR = 300
"""Maximum length of an error in a change, in characters."""
_MOST = 200
"""Maximum number of changes of a case that are kept with its verdict."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The replay of one case.

    `files` are the frozen file and those that it names. `recording` is None if there is none, or if it cannot be
    read. `error` is why the case cannot run, or None.
    """

    mode: Mode
    on_miss: OnMiss
    file: str
    """The frozen file, relative to the root."""
    files: tuple[Path, ...]
    recording: Recording | None = None
    error: CaseError | None = None

    @property
    def settings(self) -> dict[str, Any] | None:
        """The setting `replay` of the case (`docs/worker-protocol.md`), or None if it runs live."""
        return None if self.recording is None else self.recording.settings(self.mode, self.on_miss)

    def frames(self) -> Iterator[dict[str, Any]]:
        """Yield the messages with the recorded calls."""
        if self.recording is not None:
            yield from self.recording.frames(self.mode)

    def note(self, transcript: Transcript) -> Transcript:
        """Add the replay's counts and the changed tools to a transcript, and return the transcript.

        If a request differed from the recorded one, the transcript's error then says how. A case that runs live,
        because it has no recording, gets no counts.
        """
        transcript.recording = self.files
        if self.recording is not None or self.error is not None:
            recorded = "" if self.recording is None else self.recording.origin.at
            transcript.frozen = Frozen(self.mode, self.file, recorded, *transcript.calls)
        if self.recording is not None and transcript.frozen is not None:
            drifted, redeclared = _changed(self.recording, transcript.declared)
            transcript.frozen = replace(transcript.frozen, drifted=drifted, redeclared=redeclared)
            if transcript.error is not None and transcript.differs:
                text = request_difference(self.recording, transcript.differs)
                message = transcript.error.message
                transcript.error = replace(transcript.error, message=f"{message}: {text}" if text else message)
        return transcript


async def read_replay(
    evalset: EvalsetEntry, ref: CaseRef, context: RunContext, *, required: bool = True
) -> Replay | None:
    """Return the replay of a case, or None if the run is live.

    A case without a recording runs live if `required` is false, or with `--on-miss live`. Otherwise it ends with an
    error. A recording that cannot be read is always an error.
    """
    options = context.options
    if not options.frozen:
        return None
    required = required and options.on_miss != "live"
    return await asyncio.to_thread(_read, evalset.file, ref, context, options.frozen, options.on_miss, required)


def _read(
    evalset: Path,
    ref: CaseRef,
    context: RunContext,
    mode: Mode,
    on_miss: OnMiss,
    required: bool,
) -> Replay:
    """Return the replay of a case."""
    # The schema takes 20 ms, which runs without frozen cases save.
    from workbench.run.recordings.frozen_file import frozen_content, parse_frozen

    file = frozen_path(evalset, ref.eval_id)
    replay = Replay(mode, on_miss, relative_to(file, context.root), (file,))
    context.note_inputs(replay.files)  # Before it is read, so that a change after that is noticed.
    if not os.path.lexists(file):
        if not required:
            return replay
        again = shlex.join(["agent-workbench", "freeze", "last", "--case", ref.eval_id])
        hint = f"Run it once without --frozen, then freeze it: {again}"
        message = f"the case has no recording: {replay.file} does not exist"
        return replace(replay, error=CaseError("frozen_miss", message, hint))
    try:
        content = frozen_content(file)
        beside = files_beside(file, content)
        replay = replace(replay, files=(file, *beside))
        context.note_inputs(replay.files)
        return replace(replay, recording=parse_frozen(file, content))
    except OwnFileError as error:
        return replace(replay, error=first_fault("frozen_file", error.faults, context.root))


def _changed(
    recording: Recording, declared: Mapping[tuple[str, str], tuple[str | None, str]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sorted tools that differ from the recording, and those of which only the declaration seems to differ.

    The source counts only for tools with recorded calls.
    """
    recorded = {(agent, tool.name): tool for agent, tools in recording.tools.items() for tool in tools}
    called = {(call.agent, call.tool) for call in recording.calls}
    both = [(key, recorded[key], *declared[key]) for key in declared.keys() & recorded.keys()]
    names = {key[1] for key, tool, declaration, _ in both if _digest(tool) != declaration}
    code = {key[1] for key, tool, _, source in both if key in called and tool.source and tool.source != source}
    return tuple(sorted(names | code)), tuple(sorted(names - code))


def _digest(tool: Declaration) -> str | None:
    return None if tool.declaration is None else digest(tool.declaration)


def compare_with_recording(
    evalset: Path, ref: CaseRef, recorded: Sequence[CallsRecorded | SpansRecorded], context: RunContext, complete: bool
) -> Thawed:
    """Return how the calls of a live case differ from its recording. Call it in a thread.

    `complete` says whether the case made all of its calls.
    """
    from workbench.run.recordings.frozen_file import read_frozen  # As above.

    path = frozen_path(evalset, ref.eval_id)
    file = relative_to(path, context.root)
    if not os.path.lexists(path):
        return Thawed(file, why="the case has no recording")
    events = [context.secrets.clean(event) for event in recorded]  # The recording has no secrets either.
    try:
        old = read_frozen(path)
        live = take_recording(ref, events, None, Origin()).recording
    except OwnFileError as error:
        return Thawed(file, why=error.faults[0].sentence(file))
    except NotRecordedError as error:
        return Thawed(file, old.origin.at, why=str(error))
    return thawed(file, Thaw(old, live, complete))


def thawed(file: str, thaw: Thaw) -> Thawed:
    """Return a comparison in the form that is stored with the verdict."""
    changes = [drift for drift in thaw.drifts if drift.kind != "same"]
    return Thawed(
        file,
        thaw.old.origin.at,
        thaw.count("same"),
        thaw.count("changed"),
        thaw.count("gone"),
        thaw.count("new"),
        thaw.count("unknown"),
        tuple(map(_as_json, changes[:_MOST])),
    )


def _as_json(drift: Drift) -> dict[str, Any]:
    return {
        "kind": drift.kind,
        "about": drift.about,
        "agent": drift.agent,
        "tool": drift.tool,
        "call": shown_call(drift.tool, drift.args) if drift.about == "call" else "",
        "turn": drift.turn,
        "where": [
            {"path": path, "then": _side(path, then), "now": _side(path, now)} for path, then, now in drift.where
        ],
    }


def _side(path: str, value: Any) -> str | None:
    if value is MISSING:
        return None
    if path == "error" and isinstance(value, dict) and value.get("types"):
        # A new or gone error is one value. Its base classes say no more than its own one.
        return f"{str(value['types'][0]).rpartition('.')[2]}: {value.get('message', '')}"[:_LONGEST_ERROR]
    return shown_value(value)


class ForkedUser:
    """A simulated user that takes over after the messages of the recorded conversation."""

    def __init__(self, before: Sequence[dict[str, Any]], after: MessageSource) -> None:
        self._before, self._after = before, after

    @property
    def usage(self) -> Usage:
        """The usage of the simulated user."""
        return self._after.usage

    def next(self, turns: Sequence[dict[str, Any]]) -> Move | Awaitable[Move]:
        """Return the recorded message after `turns`, or the move of the simulated user."""
        return NextMessage(self._before[len(turns)]) if len(turns) < len(self._before) else self._after.next(turns)

    def close(self) -> None:
        """Close the simulated user."""
        self._after.close()
