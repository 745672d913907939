"""One case in an agent process: its turns driven one by one, what comes of them, and how it ends."""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.agents.channel import Channel, Frame
from workbench.agents.output import OutputPipe
from workbench.agents.worker.frames import FrameTooLargeError
from workbench.engine.agent_process import AgentProcess, Stream, read_error
from workbench.engine.answers import Answer, Keep, told
from workbench.engine.case_scoring import with_judges
from workbench.engine.messages import HangUp, MessageSource, Move, Say, Silence
from workbench.events import (
    AgentActed,
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

OUTPUT_LIMIT = 16 * 1024 * 1024
"""Bytes a case may print."""
FRAMES_LIMIT = 256 * 1024 * 1024
"""Bytes of events a case may make: sixteen of the largest answers."""
_TERMINATE_GRACE = 1.0
_KILL_GRACE = 5.0
_TEARDOWN_GRACE = 8.0
"""Seconds that closing toolsets and plugins may take after the last turn; the worker gives up after 5."""


@dataclass
class Transcript:
    """What an agent did in a case: one invocation a turn, complete unless `error` says why not. `undecided` means that
    a process shared with other cases ended under it, so that nobody knows which of them is to blame."""

    turns: list[dict[str, Any]] = field(default_factory=list)
    error: CaseError | None = None
    usage: Usage = field(default_factory=Usage)
    undecided: bool = False


class CaseRun:
    """One execution of one case. `run` gives the transcript as soon as it is settled, `finish` waits for the end of
    what it left behind; both are to be awaited, in this order.

    `source` gives the user's messages, one a turn; `emit` takes the events. `timeout` are the seconds that the agent
    may take over all turns: while a message of the user is waited for, that clock stands still."""

    def __init__(
        self,
        ref: CaseRef,
        source: MessageSource,
        timeout: float,
        emit: Callable[[Event], None],
        keep: Keep | None = None,
    ) -> None:
        self._ref = ref
        self._source = source
        self._timeout = timeout
        self._time_left = timeout
        self._clock: tuple[asyncio.TimerHandle, float] | None = None
        """Ends the case when its time is over; with the moment at which it began to run."""
        self._waiting: asyncio.Task[None] | None = None
        """For the user's next message."""
        self._last: int | None = None
        """The turn that is known to be the last one."""
        self._emit = emit
        self._keep = keep
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._transcript = Transcript()
        self._settled: asyncio.Future[None] = loop.create_future()
        """The transcript is complete, or it is known why it will not be."""
        self._exited: asyncio.Future[None] = loop.create_future()
        """The case has ended, and all that it wrote is taken in."""
        self._said_all: asyncio.Future[None] = loop.create_future()
        """The agent has closed what it had open, or the case has ended: nothing that counts will come."""
        self._stop_reason: CaseError | None = None
        self._where = ""
        self._printed = 0
        self._timers: list[asyncio.TimerHandle] = []
        self._closing = False
        self._ending: asyncio.Task[None] | None = None
        self._process: AgentProcess
        self._channel: Channel
        self._pipes: tuple[OutputPipe, ...] = ()
        self._share = False
        self._number = 0

    async def run(
        self,
        process: AgentProcess,
        case: dict[str, Any],
        answers: Sequence[Answer] = (),
        *,
        share: bool,
        here: bool = False,
    ) -> Transcript:
        """Runs the case (the wire's CaseSpec) in `process`, in a process of its own unless it is to `share`; with
        `here` that is `process` itself. `answers` are given again where models are asked the same."""
        self._process = process
        self._share = share
        own, childs = socket.socketpair()
        stdout, childs_stdout = os.pipe()
        stderr, childs_stderr = os.pipe()
        self._channel = Channel(own, self._take, self._lost)
        self._pipes = (
            OutputPipe(stdout, lambda text: self._show("stdout", text), self._count),
            OutputPipe(stderr, lambda text: self._show("stderr", text), self._count),
        )
        self._start_clock()
        descriptors = [childs.detach(), childs_stdout, childs_stderr]
        self._number = process.start_case(case, share, descriptors, self._ended, here=here)
        if answers:
            self._channel.send(*(answer.frame() for answer in answers))
        self._go_on()
        await self._settled
        return self._transcript

    async def said_all(self) -> None:
        """Waits until nothing more will come that belongs to the verdict: its process may need a while to end."""
        self._allow_teardown()
        await self._said_all
        for pipe in self._pipes:
            pipe.settle()

    async def finish(self) -> None:
        """Waits until nothing of the case is left, and makes sure of it."""
        self._allow_teardown()
        await self._exited
        for timer in self._timers:
            timer.cancel()
        self._stop_clock()
        self._channel.close()
        for pipe in self._pipes:
            pipe.finish()

    def _allow_teardown(self) -> None:
        if not self._exited.done() and not self._closing:
            self._closing = True
            self._timers.append(self._loop.call_later(_TEARDOWN_GRACE, self._kill_rest))

    def cancel(self, reason: CaseError, *, kill: bool = False) -> None:
        """Ends the case: asks it to, and kills it if it does not listen; with `kill` at once. `reason` becomes its
        error, unless it had one or was complete already."""
        if self._settled.done():
            return
        first = self._stop_reason is None
        if first:
            self._stop_reason = reason
            self._stop_waiting()
        if kill:
            self._kill_now()
        elif first:
            self._terminate()

    def _time_out(self) -> None:
        turn = len(self._transcript.turns) + 1
        self.cancel(
            CaseError(
                "timeout",
                f"took longer than {self._timeout:g} s and was stopped in turn {turn}",
                "--timeout SECONDS allows more",
            )
        )

    def _start_clock(self) -> None:
        self._clock = self._loop.call_later(self._time_left, self._time_out), self._loop.time()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            timer, since = self._clock
            timer.cancel()
            self._time_left = max(0.0, self._time_left - (self._loop.time() - since))
            self._clock = None

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _terminate(self) -> None:
        self._process.kill_case(self._number, signal.SIGTERM)
        self._timers.append(self._loop.call_later(_TERMINATE_GRACE, self._kill_now))

    def _kill_now(self) -> None:
        """Kills the case; where it shares a process and did not let itself be cancelled, that process. What cannot be
        killed (a process that waits for a dead disk) is left behind."""
        if self._exited.done():
            return
        self._process.kill_case(self._number, signal.SIGKILL)
        if self._share:
            self._timers.append(self._loop.call_later(_TERMINATE_GRACE, self._process.kill))
        self._timers.append(self._loop.call_later(_KILL_GRACE, self._settle, self._stop_reason))

    def _go_on(self) -> None:
        """The user's next move; where it has to be waited for, the agent's clock stands still."""
        move = self._source.next(self._transcript.turns)
        if isinstance(move, Say | HangUp | Silence):
            self._make(move)
        else:
            self._stop_clock()
            self._waiting = self._loop.create_task(self._wait_for(move))

    async def _wait_for(self, coming: Awaitable[Move]) -> None:
        try:
            move = await coming
        except Exception as fault:  # Nobody awaits this task: what goes wrong in it must end the case.
            move = Silence(CaseError("internal", f"the user's next message: {fault!r}"))
        self._waiting = None
        self._start_clock()
        self._make(move)

    def _make(self, move: Move) -> None:
        turn = len(self._transcript.turns)
        match move:
            case Say():
                if move.question is not None:
                    self._event(UserSimulated(self._ref, turn, "", move.question))
                self._send_turn(turn, move)
            case HangUp():
                self._event(UserSimulated(self._ref, turn, move.how, move.question))
                self._channel.send({"op": "end"})
                self._settle()
            case Silence():
                if move.question:
                    self._event(UserSimulated(self._ref, turn, "", move.question))
                self._channel.send({"op": "end"})
                self._settle(move.error)

    def _send_turn(self, turn: int, say: Say) -> None:
        """Behind the message that is known to be the last the worker finds at once that there are no more."""
        if say.last:
            self._last = turn
        try:
            self._channel.send({"op": "turn", "content": say.content}, *([{"op": "end"}] if say.last else []))
        except FrameTooLargeError as error:
            self.cancel(CaseError("too_large", f"the user's message of turn {turn + 1} cannot be sent: {error}"))

    def _take(self, frame: Frame) -> None:
        try:
            self._understand(frame)
        except (KeyError, TypeError, ValueError) as error:
            self.cancel(CaseError("internal", f"the agent's process sent what cannot be understood: {error!r}"))
        if self._channel.received_bytes > FRAMES_LIMIT:
            limit = FRAMES_LIMIT // 2**20
            self.cancel(CaseError("too_large", f"the agent made more than {limit} MiB of events in one case"))

    def _understand(self, frame: Frame) -> None:
        match frame["event"]:
            case "TurnStarted":
                self._event(TurnStarted(self._ref, _int(frame["turn"]), _dict(frame["user"])))
            case "AgentActed":
                self._event(AgentActed(self._ref, _int(frame["turn"]), _dict(frame["acted"])))
            case "TurnFinished":
                self._turn_finished(_int(frame["turn"]), _dict(frame["actual"]), str(frame.get("note") or ""))
            case "Answered":
                if self._keep is not None:
                    self._keep(told(self._ref, frame))
            case "Spans":
                self._spans_told(_int(frame["turn"]), str(frame["spans"]), _dict(frame["pieces"]))
            case "Usage":
                counts = (_int(frame.get(name) or 0) for name in ("model_calls", "input_tokens", "output_tokens"))
                self._transcript.usage = Usage(*counts)
            case "Failed":
                self._settle(read_error(_dict(frame["error"])))
            case _:
                self._understand_end(frame)

    def _understand_end(self, frame: Frame) -> None:
        match frame["event"]:
            case "Stopped":
                self._where = str(frame.get("where") or "")
            case "Touched":
                self._process.note_files(frame.get("files"))
            case "Ended":
                # Of the agent's own closing; it decides nothing, so it stands beside what the agent printed.
                for warning in frame.get("warnings") or ():
                    self._show("stderr", f"{warning}\n")
                _done(self._said_all)

    def _turn_finished(self, turn: int, actual: dict[str, Any], note: str) -> None:
        if self._settled.done() or turn != len(self._transcript.turns):
            return
        self._transcript.turns.append(actual)
        spent = with_judges(self._transcript.usage, self._source.usage)
        self._event(TurnFinished(self._ref, turn, actual, note, spent))
        if turn == self._last:
            self._settle()
        elif self._stop_reason is None:
            self._go_on()

    def _spans_told(self, turn: int, spans: str, pieces: dict[str, Any]) -> None:
        if turn == len(self._transcript.turns):
            self._event(SpansRecorded(self._ref, turn, spans, {str(name): str(text) for name, text in pieces.items()}))

    def _event(self, event: Event) -> None:
        if not self._settled.done():
            self._emit(event)

    def _show(self, stream: Stream, text: str) -> None:
        self._emit(OutputCaptured(self._ref, stream, text))

    def _count(self, size: int) -> None:
        before, self._printed = self._printed, self._printed + size
        if before <= OUTPUT_LIMIT < self._printed:
            for pipe in self._pipes:
                pipe.mute()
            limit = OUTPUT_LIMIT // 2**20
            self.cancel(CaseError("output_flood", f"the agent printed more than {limit} MiB"), kill=True)

    def _settle(self, error: CaseError | None = None) -> None:
        """The first word on how the case went holds."""
        if self._settled.done():
            return
        self._stop_waiting()
        self._source.close()
        self._transcript.usage = with_judges(self._transcript.usage, self._source.usage)
        if error is not None and self._where and not error.traceback:
            error = CaseError(error.kind, error.message, error.hint, self._where)
        self._transcript.error = error
        self._settled.set_result(None)

    def _lost(self, reason: str) -> None:
        """The socket closed. The end itself comes from the process's parent; only a socket that was spoilt needs a
        word."""
        if reason:
            self.cancel(CaseError("internal", f"what the agent's process sent cannot be read: {reason}"), kill=True)

    def _ended(self, how: str | None) -> None:
        """The case's process ended (`how`), or the one above it (None)."""
        if self._channel.drain_at_once():
            self._judge(how)
        else:
            self._ending = self._loop.create_task(self._take_rest(how))

    async def _take_rest(self, how: str | None) -> None:
        await self._channel.drain()
        self._judge(how)

    def _judge(self, how: str | None) -> None:
        """Nothing more will come: what there is decides."""
        for pipe in self._pipes:
            pipe.finish()
        if not self._settled.done() and self._stop_reason is None:
            turn = len(self._transcript.turns) + 1
            who = "the process"
            if how is None:
                self._transcript.undecided = self._share
                who, how = "the agent's process", self._process.gone.result()
            self._settle(CaseError("crashed", f"{who} {how} in turn {turn}", _hint(how)))
        elif not self._settled.done():
            self._transcript.undecided = (
                self._share and how is None and self._stop_reason is not None and self._stop_reason.kind == "timeout"
            )
            self._settle(self._stop_reason)
        self._set_exited()

    def _kill_rest(self) -> None:
        """What does not end after the last turn is killed; what cannot be killed is left behind."""
        self._process.kill_case(self._number, signal.SIGKILL)
        self._timers.append(self._loop.call_later(_KILL_GRACE, self._set_exited))

    def _set_exited(self) -> None:
        _done(self._said_all)
        _done(self._exited)


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _hint(how: str) -> str:
    if "SIGKILL" in how:
        return "killed from outside, or by the system because memory ran out"
    return "os._exit, or a crash in native code; what it printed last is in its output" if "code" in how else ""


def _int(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    return value


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:80]!r} is no object")
    return value
