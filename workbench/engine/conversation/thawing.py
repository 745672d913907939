"""A live case compared with its recording, when it ends: how each answer drifted."""

import asyncio
from pathlib import Path
from typing import Any

from workbench.agents.walk import relative_to
from workbench.agents.worker.matching import shown_call, shown_value
from workbench.engine.conversation.context import RunContext
from workbench.events import CallsRecorded, CaseRef, Event, SpansRecorded, Thawed
from workbench.model.own_file import OwnFileError
from workbench.recordings.drift import MISSING, Drift, Thaw
from workbench.recordings.frozen_path import frozen_path
from workbench.recordings.recording import Origin

_LONGEST_ERROR = 300
"""Maximum length of an error in a change, in characters."""
_MOST = 200
"""Maximum number of changes of a case that are kept with its verdict."""


class ThawedCase:
    """The recorded calls of a live case. `take` gets its events."""

    def __init__(self, evalset: Path, ref: CaseRef, context: RunContext) -> None:
        self._evalset, self._ref, self._context = evalset, ref, context
        self._recorded: list[CallsRecorded | SpansRecorded] = []

    def begin(self) -> None:
        """Forget the events of the attempt before."""
        self._recorded.clear()

    def take(self, event: Event) -> None:
        """Note the recorded calls."""
        if isinstance(event, CallsRecorded | SpansRecorded):
            self._recorded.append(event)

    async def compared(self, *, complete: bool) -> Thawed:
        """Return how the calls differ from the recording. `complete` says whether the case made all of its calls."""
        return await asyncio.to_thread(self._compared, complete)

    def _compared(self, complete: bool) -> Thawed:
        from workbench.recordings.from_run import NotRecordedError, take_recording
        from workbench.recordings.frozen_file import read_frozen

        path = frozen_path(self._evalset, self._ref.eval_id)
        file = relative_to(path, self._context.root)
        if not (path.exists() or path.is_symlink()):
            return Thawed(file, why="the case has no recording")
        # The recording has no secrets either.
        events = [self._context.secrets.clean(event) for event in self._recorded]
        try:
            old = read_frozen(path)
            live = take_recording(self._ref, events, None, Origin()).recording
        except OwnFileError as error:
            return Thawed(file, why=error.faults[0].sentence(file))
        except NotRecordedError as error:
            return Thawed(file, old.origin.at, why=str(error))
        return thawed(file, Thaw(old, live, complete))


def thawed(file: str, thaw: Thaw) -> Thawed:
    """Return a comparison in the form that is kept with the verdict."""
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
    where = [{"path": path, "then": _side(path, then), "now": _side(path, now)} for path, then, now in drift.where]
    call = shown_call(drift.tool, drift.args) if drift.about == "call" else ""
    return {
        "kind": drift.kind,
        "about": drift.about,
        "agent": drift.agent,
        "tool": drift.tool,
        "call": call,
        "turn": drift.turn,
        "where": where,
    }


def _side(path: str, value: Any) -> str | None:
    if value is MISSING:
        return None
    if path == "error" and isinstance(value, dict) and value.get("types"):
        # A new or gone error is one value. Its base classes say no more than its own one.
        return f"{str(value['types'][0]).rpartition('.')[2]}: {value.get('message', '')}"[:_LONGEST_ERROR]
    return shown_value(value)
