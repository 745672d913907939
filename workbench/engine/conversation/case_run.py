"""One case in an agent process: its turns driven one by one, what comes of them, and how it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from workbench.agents.channel import Frame
from workbench.agents.worker.frames import FrameTooLargeError
from workbench.engine.conversation.messages import HangUp, MessageSource, Move, Say, Silence
from workbench.engine.conversation.transcript import Transcript
from workbench.engine.places.agent_clock import AgentClock
from workbench.engine.places.place import Stream
from workbench.engine.plan.answers import Answer
from workbench.engine.plan.usage import with_judges
from workbench.engine.processes.agent_process import AgentProcess, CaseProcess, Reads, read_error
from workbench.events import (
    AgentActed,
    CaseError,
    CaseRef,
    CaseStatus,
    Event,
    OutputCaptured,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
)

FRAMES_LIMIT = 256 * 1024 * 1024
"""Bytes of events a case may make: sixteen of the largest answers."""


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
    ) -> None:
        self._ref = ref
        self._source = source
        self._timeout = timeout
        self._clock = AgentClock(timeout, self._time_out)
        self._waiting: asyncio.Task[None] | None = None
        """For the user's next message."""
        self._last: int | None = None
        """The turn that is known to be the last one."""
        self._emit = emit
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._transcript = Transcript()
        self._settled: asyncio.Future[None] = loop.create_future()
        """The transcript is complete, or it is known why it will not be."""
        self._stop_reason: CaseError | None = None
        self._where = ""
        self._ending: asyncio.Task[None] | None = None
        self._process: CaseProcess
        self._frames_bytes = 0

    async def run(
        self,
        process: AgentProcess,
        case: dict[str, Any],
        answers: Sequence[Answer] = (),
        *,
        share: bool,
        here: bool = False,
        attempt: int = 1,
    ) -> Transcript:
        """Runs the case (the wire's CaseSpec) in `process`, in a process of its own unless it is to `share`; with
        `here` that is `process` itself. `answers` are given again where models are asked the same."""
        self._process = CaseProcess(
            process,
            share=share,
            on_frame=self._take,
            on_exit=self._judge,
            give_up=lambda: self._settle(self._stop_reason),
        )
        self._clock.go_on()
        self._process.start(case, attempt=attempt, here=here)
        if answers:
            self._process.send(*(answer.frame() for answer in answers))
        self._go_on()
        await self._settled
        return self._transcript

    async def said_all(self) -> None:
        """Waits until nothing more will come that belongs to the verdict: its process may need a while to end."""
        self._process.allow_teardown()
        await self._process.said_all

    async def finish(self) -> None:
        """Waits until nothing of the case is left, and makes sure of it."""
        self._process.allow_teardown()
        await self._process.exited
        self._process.close()
        self._clock.stop()

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
            self._process.kill()
        elif first:
            self._process.terminate()

    def _time_out(self) -> None:
        turn = len(self._transcript.turns) + 1
        self.cancel(
            CaseError(
                "timeout",
                f"took longer than {self._timeout:g} s and was stopped in turn {turn}",
                "--timeout SECONDS allows more",
            )
        )

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _go_on(self) -> None:
        """The user's next move; where it has to be waited for, the agent's clock stands still."""
        move = self._source.next(self._transcript.turns)
        if isinstance(move, Say | HangUp | Silence):
            self._make(move)
        else:
            self._clock.stop()
            self._waiting = self._loop.create_task(self._wait_for(move))

    async def _wait_for(self, coming: Awaitable[Move]) -> None:
        try:
            move = await coming
        except Exception as fault:  # Nobody awaits this task: what goes wrong in it must end the case.
            move = Silence(CaseError("internal", f"the user's next message: {fault!r}"))
        self._waiting = None
        self._clock.go_on()
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
                self._process.send({"op": "end"})
                self._settle()
            case Silence():
                if move.question:
                    self._event(UserSimulated(self._ref, turn, "", move.question))
                self._process.send({"op": "end"})
                self._settle(move.error, move.status)

    def _send_turn(self, turn: int, say: Say) -> None:
        """Behind the message that is known to be the last the worker finds at once that there are no more."""
        if say.last:
            self._last = turn
        try:
            self._process.send({"op": "turn", "content": say.content}, *([{"op": "end"}] if say.last else []))
        except FrameTooLargeError as error:
            self.cancel(CaseError("too_large", f"the user's message of turn {turn + 1} cannot be sent: {error}"))
        else:
            self._event(TurnStarted(self._ref, turn, say.content))

    def _take(self, frame: Frame, size: int) -> None:
        self._frames_bytes += size
        try:
            if "usage" in frame:
                self._transcript.usage = _usage(frame["usage"])
            self._understand(frame)
        except (KeyError, TypeError, ValueError) as error:
            self.cancel(CaseError("internal", f"the agent's process sent what cannot be understood: {error!r}"))
        if self._frames_bytes > FRAMES_LIMIT:
            limit = FRAMES_LIMIT // 2**20
            self.cancel(CaseError("too_large", f"the agent made more than {limit} MiB of events in one case"))

    def _understand(self, frame: Frame) -> None:
        match frame["event"]:
            case "AgentActed":
                self._event(_agent_acted(self._ref, frame))
            case "TurnFinished":
                self._turn_finished(*_turn_finished(frame))
            case "Spans":
                self._spans_told(_spans(self._ref, frame))
            case "Printed":
                self._show(frame["stream"], str(frame["text"]))
            case "Failed":
                self._settle(read_error(dict(frame["error"])))
            case _:
                self._understand_end(frame)

    def _understand_end(self, frame: Frame) -> None:
        match frame["event"]:
            case "Stopped":
                self._where = str(frame.get("where") or "")
            case "Touched":
                own = Reads.told(frame)
                self._process.agent.note_reads(own, own=self._process.share)
                self._transcript.reads = self._process.agent.reads | own
            case "Wrote":
                self._process.agent.note_written(frame.get("files"))
            case "Ended":
                # Of the agent's own closing; it decides nothing, so it stands beside what the agent printed.
                for warning in frame.get("warnings") or ():
                    self._show("stderr", f"{warning}\n")
                self._process.note_said_all()
            case "Flooded":
                self.cancel(CaseError("output_flood", str(frame["why"])), kill=True)
            case "Spoilt":
                why = f"what the agent's process sent cannot be read: {frame['why']}"
                self.cancel(CaseError("internal", why), kill=True)

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

    def _spans_told(self, told: SpansRecorded) -> None:
        if told.turn == len(self._transcript.turns):
            self._event(told)

    def _event(self, event: Event) -> None:
        if not self._settled.done():
            self._emit(event)

    def _show(self, stream: Stream, text: str) -> None:
        self._emit(OutputCaptured(self._ref, stream, text))

    def _settle(self, error: CaseError | None = None, status: CaseStatus = "error") -> None:
        """The first word on how the case went holds."""
        if self._settled.done():
            return
        self._stop_waiting()
        self._source.close()
        self._transcript.usage = with_judges(self._transcript.usage, self._source.usage)
        if error is not None and self._where and not error.traceback:
            error = CaseError(error.kind, error.message, error.hint, self._where)
        self._transcript.error = error
        self._transcript.status = status
        self._settled.set_result(None)

    def _judge(self, how: str | None) -> None:
        """The case's process ended (`how`), or the one above it (None). Nothing more will come: what there is
        decides."""
        turn = len(self._transcript.turns) + 1
        if not self._settled.done() and self._process.agent.stalled and self._is_running_or_overdue():
            self._transcript.stalled = True
            self._settle(CaseError("crashed", f"the agent's process stood still in turn {turn} and was replaced"))
        elif not self._settled.done() and self._stop_reason is None:
            who = "the process"
            if how is None:
                self._transcript.undecided = self._process.share
                who, how = "the agent's process", self._process.agent.gone.result()
            self._settle(CaseError("crashed", f"{who} {how} in turn {turn}", _hint(how)))
        elif not self._settled.done():
            self._transcript.undecided = self._process.share and how is None and self._is_running_or_overdue()
            self._settle(self._stop_reason)
        self._process.note_exited()

    def _is_running_or_overdue(self) -> bool:
        """Whether nobody wanted the case to end but the clock."""
        return self._stop_reason is None or self._stop_reason.kind == "timeout"


def _hint(how: str) -> str:
    if "SIGKILL" in how:
        return "killed from outside, or by the system because memory ran out"
    return "os._exit, or a crash in native code; what it printed last is in its output" if "code" in how else ""


# A frame that says something else than the worker protocol has it raises KeyError, TypeError or ValueError.


def _agent_acted(ref: CaseRef, frame: Frame) -> AgentActed:
    return AgentActed(ref, _int(frame["turn"]), _dict(frame["acted"]))


def _turn_finished(frame: Frame) -> tuple[int, dict[str, Any], str]:
    """The turn's number, the invocation, and what is to be noted of it."""
    return _int(frame["turn"]), _dict(frame["actual"]), str(frame.get("note") or "")


def _spans(ref: CaseRef, frame: Frame) -> SpansRecorded:
    pieces = {str(name): str(text) for name, text in _dict(frame["pieces"]).items()}
    return SpansRecorded(ref, _int(frame["turn"]), str(frame["spans"]), pieces)


def _usage(spent: Any) -> Usage:
    """The totals so far."""
    return Usage(*(_int(_dict(spent).get(name) or 0) for name in ("model_calls", "input_tokens", "output_tokens")))


def _int(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    return value


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:80]!r} is no object")
    return value
