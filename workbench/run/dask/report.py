"""The report of a task: the transcript and the events of one execution, as lines of JSON.

The first line is about the execution, each other line is an event. A worker may be broken or hostile, so a report is
checked before its events count.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.events.event_json import fields_as_json, from_json, read_fields, to_json
from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    CaseError,
    CaseRef,
    Event,
    OutputCaptured,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
)
from workbench.run.conversation.scenario_user import ConversationEnd, Move, NextMessage, UserFailure
from workbench.run.conversation.transcript import CallCounts, Transcript
from workbench.run.processes.agent_process import Reads
from workbench.worker.project_files import UNSEEN

_OF_TURN = (AgentActed, CallsRecorded, SpansRecorded, TurnFinished, TurnStarted)
_ALLOWED = (*_OF_TURN, OutputCaptured, UserSimulated)
"""Events that a worker may report."""
LARGEST_REPORT = 256 * 1024 * 1024
"""Bytes of a report."""
_LONGEST = 2000
"""Characters of a name or a reason."""
_MOST_PATHS = 100_000
_MOVES: dict[str, type[Any]] = {kind.__name__: kind for kind in (NextMessage, ConversationEnd, UserFailure)}


class InvalidReportError(ValueError):
    """A report that is not one. The text says why."""


@dataclass
class Report:
    """The report of a task.

    `refused` is why the worker can run none of the run's executions, or "". `failed` is why this one failed there
    without an agent's fault, or "".
    """

    worker: str
    transcript: Transcript
    events: Sequence[Event] = ()
    written: frozenset[Path] = frozenset()
    refused: str = ""
    failed: str = ""


def encode_report(worker: str, transcript: Transcript, events: Sequence[Event], written: Sequence[Path]) -> bytes:
    """Return the report of an execution on `worker`. `written` are the files that the agent wrote there so far."""
    reads = transcript.reads
    head = {
        "worker": worker,
        "error": None if transcript.error is None else fields_as_json(transcript.error),
        "status": transcript.status,
        "usage": fields_as_json(transcript.usage),
        "reads": None if reads is None else _reads_as_json(reads),
        "calls": list(transcript.calls),
        "declared": [[*key, *value] for key, value in transcript.declared.items()],
        "differs": transcript.differs,
        "written": list(map(str, written[:_MOST_PATHS])),
    }
    lines = [head, *map(to_json, events)]
    return b"\n".join(json.dumps(line).encode("ascii") for line in lines)


def read_report(data: bytes, ref: CaseRef | None, root: Path) -> Report:
    """Return the report of the execution `ref` (None: of an import) of the project in `root`.

    Raises:
        InvalidReportError: the text is not a report, or is about another case.
    """
    try:
        first, *rest = (json.loads(line) for line in data.split(b"\n"))
        if why := first.get("refused"):
            return Report(str(first["worker"])[:_LONGEST], Transcript(), refused=str(why)[:_LONGEST])
        if why := first.get("failed"):
            return Report(str(first["worker"])[:_LONGEST], Transcript(), failed=str(why)[:_LONGEST])
        transcript = _transcript(first, root)
        events = [from_json(line) for line in rest]
        begun = 0
        for event in events:
            if not isinstance(event, _ALLOWED) or event.case != ref:
                raise ValueError(f"it has a {type(event).__name__} of another case")
            begun += isinstance(event, TurnStarted)
            if isinstance(event, _OF_TURN) and event.turn not in range(begun):
                raise ValueError(f"it has a {type(event).__name__} of a turn that has not begun")
        finished = [event for event in events if isinstance(event, TurnFinished)]
        if [event.turn for event in finished] != list(range(len(finished))):
            raise ValueError("its turns are not in order")
        transcript.turns = [event.actual for event in finished]
        transcript.state = finished[-1].state if finished else None
        transcript.machine = str(first["worker"])[:_LONGEST]
        return Report(transcript.machine, transcript, events, _inside(first["written"], root))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidReportError(f"{error!r}"[:500]) from None


def move_as_json(move: Move, usage: Usage) -> dict[str, Any]:
    """Return a simulated user's move, with the usage of the simulator so far."""
    return {"move": type(move).__name__, **fields_as_json(move), "usage": fields_as_json(usage)}


def move_from_json(data: dict[str, Any]) -> tuple[Move, Usage]:
    """Return what `move_as_json` wrote."""
    return read_fields(_MOVES[data["move"]], data), read_fields(Usage, data["usage"])


def _transcript(first: dict[str, Any], root: Path) -> Transcript:
    tools, models, live, misses, reordered = first["calls"]
    reads = None
    if (data := first["reads"]) is not None:
        unseen = frozenset(map(str, data["unseen"]))
        reads = Reads(_inside(data["files"], root), _inside(data["folders"], root), unseen)
    usage = read_fields(Usage, first["usage"])
    calls = CallCounts(int(tools), int(models), int(live), int(misses), tuple(map(str, reordered)))
    if min(calls.tools, calls.models, calls.live, calls.misses, *fields_as_json(usage).values()) < 0:
        raise ValueError("it has negative counts")
    transcript = Transcript(
        error=None if first["error"] is None else read_fields(CaseError, first["error"]),
        usage=usage,
        reads=reads,
        unseen=() if reads is None else tuple(name for name in UNSEEN if name in reads.unseen),
        calls=calls,
        declared={(str(agent), str(tool)): (one, str(other)) for agent, tool, one, other in first["declared"]},
        differs=str(first["differs"]),
    )
    if first["status"] in ("error", "not_evaluated"):
        transcript.status = first["status"]
    return transcript


def _reads_as_json(reads: Reads) -> dict[str, list[str]]:
    return {
        "files": sorted(map(str, reads.files))[:_MOST_PATHS],
        "folders": sorted(map(str, reads.folders))[:_MOST_PATHS],
        "unseen": sorted(reads.unseen),
    }


def _inside(names: Sequence[str], root: Path) -> frozenset[Path]:
    """Return the paths in the project. Others are files of the worker."""
    base = f"{root}/"
    return frozenset(Path(name) for name in names if name.startswith(base) and _is_path(name))


def _is_path(name: str) -> bool:
    try:
        return ".." not in name.split("/") and b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False
