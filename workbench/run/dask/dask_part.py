"""One execution on a cluster: its tasks and attempts, and the report that a worker returns.

A report is lines of JSON. The first is about the execution, each other line is an event. A worker may be broken or
hostile, so a report is checked before its events count.
"""

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from workbench.events.event_json import fields_as_json, from_json, read_fields, to_json
from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    CaseError,
    CaseRef,
    Event,
    LostAttempt,
    OutputCaptured,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
)
from workbench.run.conversation.case_run import Execution
from workbench.run.conversation.scenario_user import (
    ConversationEnd,
    FixedMessages,
    MessageSource,
    Move,
    NextMessage,
    UserFailure,
)
from workbench.run.conversation.transcript import CallCounts, Transcript
from workbench.run.processes.agent_clock import AgentClock
from workbench.run.processes.agent_process import Reads
from workbench.text.counting import counted
from workbench.worker.frames import FrameTooLargeError
from workbench.worker.project_files import UNSEEN

_OF_TURN = (AgentActed, CallsRecorded, SpansRecorded, TurnFinished, TurnStarted)
_ALLOWED = (*_OF_TURN, OutputCaptured, UserSimulated)
"""Events that a worker may report."""
LARGEST_REPORT = 256 * 1024 * 1024
"""Maximum size of a report, in bytes."""
_LONGEST = 2000
"""Maximum length of a name or a reason, in characters."""
_MOST_PATHS = 100_000
_MOVES: dict[str, type[Any]] = {kind.__name__: kind for kind in (NextMessage, ConversationEnd, UserFailure)}
_MOST_ATTEMPTS = 3
_MOST_TASKS = 10
"""Maximum number of tasks of one execution, including those that no worker started."""
_START_SECONDS = 120.0
"""Seconds that a worker may take to start the agent's interpreter."""
_GRACE = 30.0
"""Seconds that an execution may take beyond the limits of its case and of the import."""
_PAUSE = 2.0
"""Seconds before a second task if Dask could not run the first. Each further one waits longer."""
_READ_IN_THREAD = 512 * 1024


class InvalidReportError(ValueError):
    """An invalid report. The message says why."""


@dataclass
class Report:
    """The report of a task.

    `written` are the project's files that the agent wrote on the worker. `refused` says why the worker can run no
    execution of this run. `failed` says why this execution failed without the agent's fault. Both are "" otherwise.
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
        "reads": reads
        and {
            "files": sorted(map(str, reads.files))[:_MOST_PATHS],
            "folders": sorted(map(str, reads.folders))[:_MOST_PATHS],
            "unseen": sorted(reads.unseen),
        },
        "calls": list(transcript.calls),
        "declared": [[*key, *value] for key, value in transcript.declared.items()],
        "differs": transcript.differs,
        "written": list(map(str, written[:_MOST_PATHS])),
    }
    return b"\n".join(json.dumps(line).encode("ascii") for line in (head, *map(to_json, events)))


def read_report(data: bytes, ref: CaseRef, root: Path) -> Report:
    """Return the report of the execution `ref`. `root` is the project's root.

    Raises:
        InvalidReportError: the text is not a report, or is about another case.
    """
    try:
        first, *rest = (json.loads(line) for line in data.split(b"\n"))
        worker = str(first["worker"])[:_LONGEST]
        if why := first.get("refused"):
            return Report(worker, Transcript(), refused=str(why)[:_LONGEST])
        if why := first.get("failed"):
            return Report(worker, Transcript(), failed=str(why)[:_LONGEST])
        transcript = _transcript(first, root)
        events = [from_json(line) for line in rest]
        begun = 0
        for event in events:
            if not isinstance(event, _ALLOWED):
                raise ValueError(f"{type(event).__name__} is not an event that a worker may report")
            if event.case != ref:
                raise ValueError(f"the report has a {type(event).__name__} of another case")
            begun += isinstance(event, TurnStarted)
            if isinstance(event, _OF_TURN) and event.turn not in range(begun):
                raise ValueError(f"the report has a {type(event).__name__} of a turn that has not begun")
        finished = [event for event in events if isinstance(event, TurnFinished)]
        if [event.turn for event in finished] != list(range(len(finished))):
            raise ValueError("its turns are not in order")
        transcript.turns = [event.actual for event in finished]
        transcript.state = finished[-1].state if finished else None
        transcript.machine = worker
        return Report(worker, transcript, events, _inside(first["written"], root))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidReportError(f"{error!r}"[:500]) from None


def move_as_json(move: Move, usage: Usage) -> dict[str, Any]:
    """Return a simulated user's move, with the usage of the simulator so far."""
    return {"move": type(move).__name__, **fields_as_json(move), "usage": fields_as_json(usage)}


def move_from_json(data: dict[str, Any]) -> tuple[Move, Usage]:
    """Return the move and the usage from the JSON data of `move_as_json`."""
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


def _inside(names: Sequence[str], root: Path) -> frozenset[Path]:
    """Return the paths inside the project. Other paths are files of the worker's machine and are left out."""
    base = f"{root}/"
    return frozenset(Path(name) for name in names if name.startswith(base) and _is_path(name))


def _is_path(name: str) -> bool:
    try:
        return ".." not in name.split("/") and b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


class Cluster(Protocol):
    """The part of a place that an execution needs (`DaskPlace`)."""

    def submit(self, part: "DaskPart", order: str, *, again: bool, without: str = "", only: str = "") -> str:
        """Submit an execution, and return the key of its task. Details are in `DaskPlace.submit`."""
        ...

    def forget(self, key: str) -> None:
        """Cancel a task, and ignore what it reports."""
        ...

    def answer(self, key: str, talk: str, text: str) -> None:
        """Send a simulated user's move."""
        ...

    def refuse(self, worker: str, why: str) -> None:
        """Record that a worker refused a task."""
        ...

    def counted(self, worker: str, *, lost: bool = False) -> None:
        """Count an execution as done on a worker, or as lost with it."""
        ...


class DaskPart:
    """The agent's part of `execution` on `cluster`.

    `order` is the data for the worker, `timeout` the time limit of the case.

    An attempt begins when a worker says that it has started. Its events come with the report at its end, so attempts
    cannot mix. If a worker does not report in time, the attempt is lost, and the execution starts again elsewhere.
    `on_report` is called with the report of the last attempt. `only` is the address of the only worker that may run it,
    or "" for any worker.
    """

    def __init__(
        self,
        cluster: Cluster,
        execution: Execution,
        order: dict[str, Any],
        timeout: float,
        on_report: Callable[[Report], None] = lambda report: None,
        *,
        only: str = "",
    ) -> None:
        self._cluster = cluster
        self._on_report = on_report
        self._only = only
        self._execution = execution
        self.label = execution.ref.label
        self._root = order["root"]
        self._order = json.dumps(order)
        self._timeout = timeout
        self._done: asyncio.Future[Transcript] = asyncio.get_running_loop().create_future()
        self._key = ""
        self._tasks = 0
        self._attempts = 0
        self._has_begun = False
        """Whether an attempt of the current task has begun."""
        self._worker = ""
        self.address = ""
        """The address of the worker that runs the task, once that is known."""
        self.turn = 0
        self.restricted_to: frozenset[str] = frozenset()
        """The workers that may run the task. If it is empty, all may."""
        self._pending: LostAttempt | None = None
        """The last lost attempt, until the next one begins."""
        self._clock: AgentClock | None = None
        self._user: MessageSource | None = None
        self._talk = ""
        """ID of the conversation with the simulated user. Each attempt has its own."""
        self._heard: list[dict[str, Any]] = []
        """The turns of that conversation so far."""
        self._asking: asyncio.Task[None] | None = None

    async def transcript(self) -> Transcript:
        """Run the execution, and return its transcript."""
        self._submit()
        try:
            return await self._done
        finally:
            self._leave()

    def cancel(self, reason: CaseError, *, kill: bool) -> None:
        """End the execution with `reason` as its error. The worker kills the agent within a second or two."""
        self._settle(Transcript(error=reason))

    async def closed(self) -> None:
        """Do nothing: when the report comes, the agent has ended."""

    async def finish(self) -> None:
        """Do nothing, because the worker has ended the process."""

    # What the place reports:

    def progressed(self, message: dict[str, str]) -> None:
        """Note that a worker received the task, started an attempt, or began a turn. Other messages are ignored."""
        worker, op = message["worker"], message["op"]
        match op:
            case "assigned":
                if self._has_begun:  # Dask runs the task again.
                    self._lose("the worker was lost")
                self._worker, self.address = worker, message["address"]
                self._start_clock(self._timeout + _START_SECONDS + _GRACE)
            case "started":
                self._worker, self.address = worker, message["address"]
                self._start_clock(self._timeout + _GRACE)
                self._begin()
            case "turn" if message["turn"].isdecimal():
                self.turn = int(message["turn"][:6])

    def asked(self, question: dict[str, Any]) -> None:
        """Send the simulated user's next message. The time for this does not count towards the time limit."""
        if self._asking is not None and not self._asking.done():
            if question["talk"] == self._talk:
                return
            self._asking.cancel()  # The attempt that asked before is lost.
        self._asking = asyncio.create_task(self._answer(self._key, question))

    def reported(self, data: bytes) -> None:
        """Read the report of the task, then end the execution or submit it again."""
        if len(data) < _READ_IN_THREAD:
            self._take(_read(data, self._execution, self._root))
        else:
            self._asking = asyncio.create_task(self._read_in_thread(data))

    def died(self, why: str) -> None:
        """End the execution, because Dask stopped retrying its task after too many workers died."""
        self._settle(Transcript(error=CaseError("attempt_lost", f"each worker that ran the case died: {why}")))

    def broke(self, why: str) -> None:
        """Submit a task again that Dask could not run, for example because the files were lost with their workers."""
        # Its workers may have died together. New ones need some seconds.
        self._again(f"Dask could not run it: {why}", without=self.address, pause=_PAUSE * self._tasks)

    def lost_place(self, why: str, hint: str) -> None:
        """End the execution because the connection to the cluster was lost."""
        self._key = ""
        self._settle(Transcript(error=CaseError("cancelled", f"the connection to the cluster was lost: {why}", hint)))

    def stop_waiting(self) -> None:
        """End the execution if no worker has started it."""
        if not self.address:
            self._settle(Transcript(error=CaseError("cancelled", "cancelled before it started")))

    def look(self, live: set[str], *, silent: bool) -> None:
        """Submit the task again if no worker has received it, and perhaps none will.

        That is so if all workers that may run it are missing in `live`, or if any worker may run it and some do not
        answer (`silent`). If only one worker may run it, the execution ends instead.
        """
        if self.address or not self._key:
            return
        if self._only and self._only not in live:
            self._settle(Transcript(error=CaseError("attempt_lost", "the worker left the cluster or does not answer")))
        elif (self.restricted_to and not self.restricted_to & live) or (silent and not self.restricted_to):
            self._cluster.forget(self._key)
            self._submit()

    # The attempts:

    def _submit(self, without: str = "") -> None:
        if self._done.done():
            return
        self._tasks += 1
        self._has_begun, self._worker, self.address, self.turn = False, "", "", 0
        again = self._tasks > 1
        try:
            self._key = self._cluster.submit(self, self._order, again=again, without=without, only=self._only)
        except FrameTooLargeError as error:
            self._settle(Transcript(error=CaseError("too_large", f"the case cannot be sent to a worker: {error}")))

    def _begin(self, worker: str = "") -> None:
        self._attempts += 1
        self._has_begun = True
        lost, self._pending = self._pending, None
        self._execution.begin(worker or self._worker, lost)

    def _lose(self, why: str) -> None:
        self._pending = LostAttempt(self._attempts, self._worker, why)
        self._has_begun = False
        self._cluster.counted(self._worker, lost=True)

    def _again(self, why: str, *, without: str, pause: float = 0.0) -> None:
        """Submit the execution again after `pause` seconds, but not to `without`. End it after its last attempt."""
        if self._has_begun:
            self._lose(why)
        if self._attempts >= _MOST_ATTEMPTS or self._tasks >= _MOST_TASKS:
            where = f" on {self._worker}" if self._worker else ""
            tried = counted(max(self._tasks, self._attempts), "attempt")
            message = f"each of {tried} was lost, the last{where}: {why}"
            self._settle(Transcript(error=CaseError("attempt_lost", message)))
            return
        self._stop_clock()
        self._cluster.forget(self._key)
        if pause:
            self._key = ""
            asyncio.get_running_loop().call_later(pause, self._submit, without)
        else:
            self._submit(without)

    def _take(self, report: Report | CaseError) -> None:
        if self._done.done():
            return
        if isinstance(report, CaseError):
            self._settle(Transcript(error=report))
        elif report.refused:
            self._cluster.refuse(report.worker, report.refused)
            self._again(f"{report.worker} cannot run it: {report.refused}", without=self.address)
        elif report.failed:
            self._again(f"{report.worker}: {report.failed}", without=self.address, pause=_PAUSE * self._tasks)
        else:
            if not self._has_begun:  # What the worker said got lost.
                self._begin(report.worker)
            for event in report.events:
                self._execution.emit(event)
            self._cluster.counted(report.worker)
            self._on_report(report)
            self._settle(report.transcript)

    async def _read_in_thread(self, data: bytes) -> None:
        self._take(await asyncio.to_thread(_read, data, self._execution, self._root))

    async def _answer(self, key: str, question: dict[str, Any]) -> None:
        if question["talk"] != self._talk:
            self._close_user()
            self._user, self._talk, self._heard = self._execution.user(), question["talk"], []
        user = self._user
        assert user is not None
        if self._clock is not None:
            self._clock.stop()
        try:
            self._heard += question["turns"]
            move = user.next(self._heard)
            move = move if isinstance(move, NextMessage | ConversationEnd | UserFailure) else await move
        except Exception as fault:  # It would end nothing: a task that asks would wait for ever.
            move = UserFailure(CaseError("internal", f"could not get the user's next message: {fault!r}"))
        if self._clock is not None:
            self._clock.start()
        self._cluster.answer(key, self._talk, json.dumps(move_as_json(move, user.usage)))

    def _start_clock(self, seconds: float) -> None:
        self._stop_clock()
        late = f"it did not report for {seconds:g} s"
        self._clock = AgentClock(seconds, lambda: self._again(late, without=self.address))
        self._clock.start()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.stop()
            self._clock = None

    def _close_user(self) -> None:
        if self._user is not None:
            self._user.close()
            self._user = None

    def _settle(self, transcript: Transcript) -> None:
        if not self._done.done():
            self._done.set_result(transcript)
            self._leave()

    def _leave(self) -> None:
        self._stop_clock()
        if self._asking is not None and self._asking is not asyncio.current_task():
            self._asking.cancel()
        self._close_user()
        if self._key:
            self._cluster.forget(self._key)
            self._key = ""


def messages_of(execution: Execution) -> list[dict[str, Any]] | None:
    """Return all messages of the user, or None if they are simulated."""
    user = execution.user()
    user.close()
    return list(user.contents) if isinstance(user, FixedMessages) else None


def _read(data: bytes, execution: Execution, root: str) -> Report | CaseError:
    try:
        return read_report(data, execution.ref, Path(root))
    except InvalidReportError as error:
        return CaseError("internal", f"the worker's report cannot be read: {error}")
