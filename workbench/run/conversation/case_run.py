"""The agent's part of a case on this machine: its attempts in agent processes, with their turns and events."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from workbench.agents.channel import Frame
from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    CaseError,
    CaseRef,
    CaseStatus,
    Event,
    LostAttempt,
    OutputCaptured,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
)
from workbench.files.run_options import RunOptions
from workbench.run.conversation.scenario_user import ConversationEnd, MessageSource, Move, NextMessage, UserFailure
from workbench.run.conversation.transcript import CallCounts, Transcript
from workbench.run.place import Stream
from workbench.run.plan.source import Answer, AnswerStorage, read_answer
from workbench.run.processes.agent_clock import AgentClock
from workbench.run.processes.agent_host import AgentHost, NoAgentProcessError, ProcessSlot
from workbench.run.processes.agent_process import AgentProcess, CaseProcess, Reads, read_error
from workbench.run.scoring.verdict import with_judges
from workbench.worker.frames import FrameTooLargeError
from workbench.worker.project_files import UNSEEN

_LONGEST_FAULT = 500
_LARGEST = 2**53
"""Counts from this number on are invalid."""
FRAMES_LIMIT = 256 * 1024 * 1024
"""Maximum size of a case's events in bytes, which is 16 times that of the largest answer."""
_WORD = 200
"""Maximum number of characters that are dropped to cut a text between words. Keys are shorter."""
_STOPPED_TWICE = (
    "the agent's process was stopped by a signal in both attempts at this case and replaced",
    "One of the cases may stop this process. To find it, run the cases one by one (--concurrency 1)",
)


def declarations(calls: str) -> Iterator[tuple[tuple[str, str], tuple[str | None, str]]]:
    """Yield (agent, tool) and the digests of declaration (or None) and source (or "") from `CallsRecorded.calls`.

    Toolsets, and declarations that were too large to be stored, are left out.

    Raises:
        ValueError, KeyError or TypeError: the text has another shape.
    """
    if '"tools"' not in calls:
        return  # Most turns report no tools, and parsing takes longer than this search.
    for item in json.loads(calls):
        for tool in item["tools"] if item["kind"] == "tools" else ():
            if tool["name"] and not tool.get("lost"):
                yield (item["agent"], tool["name"]), (tool["declaration"], tool.get("source") or "")


class CaseRun:
    """One execution of one case.

    Await `run`, which returns the transcript, and then `finish`, which waits for the end of the case's process.

    `source` provides the user's messages, one for each turn. `emit` is called with each event. `timeout` is the time
    limit in seconds for all turns together, without the time of waiting for the user. `keep_answer` is called with each
    model answer that the case sends.
    """

    def __init__(
        self,
        ref: CaseRef,
        source: MessageSource,
        timeout: float,
        emit: Callable[[Event], None],
        keep_answer: Callable[[Answer], None] = lambda answer: None,
    ) -> None:
        self._ref = ref
        self._source = source
        self._timeout = timeout
        self._clock = AgentClock(timeout, self._time_out)
        self._waiting: asyncio.Task[None] | None = None
        """The task that waits for the user's next message."""
        self._last: int | None = None
        """The last turn, once it is known."""
        self._emit = emit
        self._keep_answer = keep_answer
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._transcript = Transcript()
        self._settled: asyncio.Future[None] = loop.create_future()
        """Done when the transcript is complete or has an error."""
        self._stop_reason: CaseError | None = None
        self._where = ""
        self._ending: asyncio.Task[None] | None = None
        self._process: CaseProcess
        self._frames_bytes = 0

    async def run(
        self,
        process: AgentProcess,
        case: dict[str, Any],
        before: Sequence[Frame] = (),
        *,
        share: bool,
        here: bool = False,
        attempt: int = 1,
    ) -> Transcript:
        """Run the case (the protocol's CaseSpec) in `process` and return its transcript.

        With `share`, the case runs together with others in `process`. With `here`, `process` becomes the case's own.
        Otherwise the case gets a fork. `before` are messages that precede the first turn: stored answers of models and
        recorded calls.
        """
        self._process = CaseProcess(
            process,
            share=share,
            on_frame=self._take,
            on_exit=self._process_exited,
            give_up=lambda: self._settle(self._stop_reason),
        )
        self._clock.start()
        self._process.start(case, attempt=attempt, here=here)
        try:
            if before:
                self._process.send(*before)
        except FrameTooLargeError as error:
            self.cancel(CaseError("frozen_file", f"a recorded call cannot be sent: {error}"))
        else:
            self._next_move()
        await self._settled
        return self._transcript

    async def closed(self) -> None:
        """Wait until the agent has closed its resources. No relevant output follows, but the process may still run."""
        self._process.allow_teardown()
        await self._process.closed.wait()

    async def finish(self) -> None:
        """Wait until the case's process has ended, and kill it if necessary."""
        self._process.allow_teardown()
        await self._process.exited.wait()
        self._process.close()
        self._clock.stop()

    def cancel(self, reason: CaseError, *, kill: bool = False) -> None:
        """Terminate the case, and kill it if it does not end, or at once with `kill`.

        `reason` becomes its error, unless it has an error or is complete.
        """
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

    def _break_off(self, error: CaseError) -> None:
        """Kill the case, and ignore further messages: the verdict must not depend on how long killing takes."""
        self.cancel(error, kill=True)
        self._settle(self._stop_reason)

    def _time_out(self) -> None:
        turn = len(self._transcript.turns) + 1
        message = f"took longer than {self._timeout:g} s and was stopped in turn {turn}"
        self.cancel(CaseError("timeout", message, "Allow more time with --timeout SECONDS"))

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _next_move(self) -> None:
        """Apply the user's next move. The agent's clock stops while the move is awaited."""
        move = self._source.next(self._transcript.turns)
        if isinstance(move, NextMessage | ConversationEnd | UserFailure):
            self._apply(move)
        else:
            self._clock.stop()
            self._waiting = self._loop.create_task(self._wait_for(move))

    async def _wait_for(self, coming: Awaitable[Move]) -> None:
        try:
            move = await coming
        except Exception as fault:  # Nobody awaits this task, so an exception must end the case.
            move = UserFailure(CaseError("internal", f"could not get the user's next message: {fault!r}"))
        self._waiting = None
        self._clock.start()
        self._apply(move)

    def _apply(self, move: Move) -> None:
        turn = len(self._transcript.turns)
        match move:
            case NextMessage():
                if move.question is not None:
                    self._event(UserSimulated(self._ref, turn, "", move.question))
                self._send_turn(turn, move)
            case ConversationEnd():
                self._event(UserSimulated(self._ref, turn, move.how, move.question))
                self._process.send({"op": "end"})
                self._settle()
            case UserFailure():
                if move.question:
                    self._event(UserSimulated(self._ref, turn, "", move.question))
                self._process.send({"op": "end"})
                self._settle(move.error, move.status)

    def _send_turn(self, turn: int, say: NextMessage) -> None:
        """Send a message, or cancel the case if it is too large.

        After the last message, also send `end`, so that the worker does not wait for another.
        """
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
                spent, names = _dict(frame["usage"]), ("model_calls", "input_tokens", "output_tokens")
                self._transcript.usage = Usage(*(_int(spent.get(name) or 0) for name in names))
            self._handle_frame(frame)
        except Exception as error:  # Whatever it is, it comes from the message, and must end only this case.
            what = beginning(f"{error!r}", _LONGEST_FAULT)
            invalid = CaseError("internal", f"the agent's process sent an invalid message: {what}")
            self.cancel(invalid, kill=True)
            self._settle(invalid)  # A valid end that follows does not make the rest true.
        if self._frames_bytes > FRAMES_LIMIT:
            limit = FRAMES_LIMIT // 2**20
            self.cancel(CaseError("too_large", f"the agent made more than {limit} MiB of events in one case"))

    def _handle_frame(self, frame: Frame) -> None:
        match frame["event"]:
            case "AgentActed":
                self._record(AgentActed(self._ref, _int(frame["turn"]), _dict(frame["acted"])))
            case "TurnFinished":
                self._turn_finished(frame)
            case "Spans":
                self._record(SpansRecorded(self._ref, _int(frame["turn"]), str(frame["spans"]), _pieces(frame)))
            case "Calls":
                self._record_calls(frame)
            case "Answered":
                self._keep_answer(read_answer(self._ref, frame["answer"]))
            case "Printed":
                self._emit(OutputCaptured(self._ref, _stream(frame["stream"]), str(frame["text"])))
            case "Failed":
                error = dict(frame["error"])
                self._transcript.differs = str(error.get("differs") or "")
                self._settle(read_error(error))
            case _:
                self._handle_end_frame(frame)

    def _handle_end_frame(self, frame: Frame) -> None:
        match frame["event"]:
            case "Stopped":
                self._where = str(frame.get("where") or "")
            case "Touched":
                own = Reads.from_frame(frame)
                self._process.agent.note_reads(own, own=self._process.share)
                reads = self._transcript.reads = self._process.agent.reads | own
                self._transcript.unseen = tuple(name for name in UNSEEN if name in reads.unseen)
            case "Wrote":
                self._process.agent.note_written(frame.get("files"))
            case "Ended":
                # Warnings of the agent's own cleanup do not affect the verdict, so they go to its output.
                for warning in frame.get("warnings") or ():
                    self._emit(OutputCaptured(self._ref, "stderr", f"{warning}\n"))
                self._process.closed.set()
            case "Flooded":
                self._break_off(CaseError("output_flood", str(frame["why"])))
            case "Spoilt":
                why = f"the output of the agent's process cannot be read: {frame['why']}"
                self._break_off(CaseError("internal", why))

    def _turn_finished(self, frame: Frame) -> None:
        note, why = str(frame.get("note") or ""), str(frame.get("why") or "")
        state, inner = frame.get("state"), frame.get("inner_calls")
        if why:
            note = "; ".join(filter(None, (note, f"the session state is not known: {why}")))
        finished = TurnFinished(
            self._ref,
            _int(frame["turn"]),
            _dict(frame["actual"]),
            note,
            state=None if state is None else _dict(state),
            inner_calls=None if inner is None else tuple(map(_dict, inner)),
        )
        if self._settled.done() or finished.turn != len(self._transcript.turns):
            return
        self._transcript.turns.append(finished.actual)
        self._transcript.inner_calls.append(finished.inner_calls)
        self._transcript.state = finished.state
        self._event(replace(finished, usage=with_judges(self._transcript.usage, self._source.usage)))
        if finished.turn == self._last:
            self._settle()
        elif self._stop_reason is None:
            self._next_move()

    def _record_calls(self, frame: Frame) -> None:
        counts = frame.get("frozen")
        if counts is not None and not self._settled.done():
            numbers = {name: _int(_dict(counts)[name]) for name in ("tools", "models", "live", "misses")}
            self._transcript.calls = CallCounts(**numbers, reordered=tuple(map(str, counts.get("reordered") or ())))
            self._transcript.declared.update(declarations(str(frame["calls"])))
        self._record(CallsRecorded(self._ref, _int(frame["turn"]), str(frame["calls"]), _pieces(frame)))

    def _record(self, event: AgentActed | SpansRecorded | CallsRecorded) -> None:
        if event.turn == len(self._transcript.turns):
            self._event(event)

    def _event(self, event: Event) -> None:
        if not self._settled.done():
            self._emit(event)

    def _settle(self, error: CaseError | None = None, status: CaseStatus = "error") -> None:
        """Complete the transcript. Only the first call counts."""
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

    def _process_exited(self, how: str | None) -> None:
        """Settle the case after its process ended. `how` says how it ended, or is None if its parent process died."""
        if not self._settled.done():
            agent, turn = self._process.agent, len(self._transcript.turns) + 1
            # A timeout may be due to the parent process, too.
            may_blame_parent = self._stop_reason is None or self._stop_reason.kind == "timeout"
            if agent.was_stopped and may_blame_parent:
                self._transcript.parent_stopped = True
                self._settle(CaseError("crashed", f"the agent's process was stopped by a signal in turn {turn}"))
            else:
                self._transcript.shared_process_died = self._process.share and how is None and may_blame_parent
                died = f"the agent's process {agent.how_it_ended}" if how is None else f"the process {how}"
                self._settle(self._stop_reason or CaseError("crashed", f"{died} in turn {turn}", _hint(died)))
        self._process.note_exited()


def _hint(how: str) -> str:
    if "SIGKILL" in how:
        return "It was killed from outside, or by the system because memory ran out"
    return "It called os._exit, or native code crashed. Its last output may say more" if "code" in how else ""


# A frame that breaks the worker protocol raises KeyError, TypeError or ValueError.


def _pieces(frame: Frame) -> dict[str, str]:
    return {str(name): str(text) for name, text in _dict(frame["pieces"]).items()}


def _int(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST:
        raise TypeError(f"{str(value)[:80]!r} is not a count")
    return value


def _stream(value: Any) -> Stream:
    if value not in ("stdout", "stderr"):
        raise ValueError(f"{str(value)[:80]!r} is neither stdout nor stderr")
    stream: Stream = value
    return stream


def _dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:80]!r} is not an object")
    return value


def beginning(text: str, most: int) -> str:
    """Return the first `most` characters of a text or fewer, with `…` if it was cut.

    It is cut between words, because half a key would not be recognised as a secret.
    """
    if len(text) <= most:
        return text
    kept = text[:most]
    at = max(kept.rfind(blank) for blank in " \t\n")
    # Without any blank nearby, the text is no sentence. Then so much is dropped that half a key is dropped as well.
    return f"{kept[:at] if at >= most - _WORD else kept[: most - _WORD]}…"


@dataclass(frozen=True)
class Execution:
    """The inputs and the callbacks of the agent's part of one execution.

    `spec` is the protocol's CaseSpec without `answers`. `before` are messages that precede the first turn. `answers`
    are stored answers of models. `user` is called at the start of the conversation and returns the user. `begin` is
    called at the start of each attempt, with the name of the machine ("" for this one) and the attempt that was lost
    before, if any. Events of earlier attempts are void.
    """

    ref: CaseRef
    spec: dict[str, Any]
    before: Sequence[Frame]
    answers: Sequence[Answer]
    user: Callable[[], MessageSource]
    begin: Callable[[str, LostAttempt | None], None]
    emit: Callable[[Event], None]


class AgentPart(Protocol):
    """The agent's part of one execution. Await `transcript`, then `closed`, then `finish`."""

    async def transcript(self) -> Transcript:
        """Run the agent, and return the transcript. Repeat an attempt that is lost without the agent's fault."""
        ...

    def cancel(self, reason: CaseError, *, kill: bool) -> None:
        """End the execution with `reason` as its error. With `kill`, kill it at once."""
        ...

    async def closed(self) -> None:
        """Wait until no relevant output follows."""
        ...

    async def finish(self) -> None:
        """Wait until the process of the case has ended."""
        ...


class LocalPart:
    """The agent's part of `execution` in a process of `host`. `storage` stores answers of models, or is None."""

    def __init__(
        self, execution: Execution, host: AgentHost, options: RunOptions, storage: AnswerStorage | None = None
    ) -> None:
        self._execution = execution
        self._host = host
        self._options = options
        self._storage = storage
        self._cancelled: CaseError | None = None
        self._waiting: asyncio.Future[ProcessSlot] | None = None
        self._slot: ProcessSlot | None = None
        self._case_run: CaseRun | None = None
        self._attempts = 0

    async def transcript(self) -> Transcript:
        """Run the agent and return the transcript.

        If a shared process died, the case runs once more alone, to find the case that is to blame. If a signal stopped
        the parent process, the case runs once more, too.
        """
        transcript = await self._attempt(alone=False)
        was_alone = self._slot is not None and self._slot.alone
        shared_died = transcript.shared_process_died and not was_alone
        if self._cancelled is None and (transcript.parent_stopped or shared_died):
            await self.finish()
            transcript = await self._attempt(alone=transcript.shared_process_died)
            if transcript.parent_stopped:
                transcript.error = CaseError("crashed", *_STOPPED_TWICE)
        return transcript

    def cancel(self, reason: CaseError, *, kill: bool) -> None:
        """End the execution with `reason` as its error. With `kill`, kill it at once."""
        self._cancelled = self._cancelled or reason
        if self._case_run is not None:
            self._case_run.cancel(reason, kill=kill)
        if self._waiting is not None:
            self._waiting.cancel()

    async def closed(self) -> None:
        """Wait until the agent has closed its resources."""
        if self._case_run is not None:
            await self._case_run.closed()

    async def finish(self) -> None:
        """Wait for the end of the case's process, and close an agent process that served only this case."""
        if self._case_run is not None:
            await self._case_run.finish()
        if self._slot is not None and self._slot.alone:
            await self._slot.process.link.close()

    async def _attempt(self, *, alone: bool) -> Transcript:
        execution = self._execution
        self._attempts += 1
        try:
            self._waiting = asyncio.ensure_future(self._host.slot(alone=alone))
            slot = self._slot = await self._waiting
        except NoAgentProcessError as unusable:
            execution.begin("", None)
            self._show_import()
            return Transcript(error=unusable.error)
        except asyncio.CancelledError:
            if self._cancelled is None:
                raise
        execution.begin("", None)
        if self._cancelled is not None:
            return Transcript(error=self._cancelled)
        self._show_import()
        storage = self._storage
        keep = {} if storage is None else {"keep_answer": storage.append}
        run = self._case_run = CaseRun(execution.ref, execution.user(), self._options.timeout, execution.emit, **keep)
        return await run.run(
            slot.process,
            {**execution.spec, "answers": storage is not None},
            [*(answer.frame() for answer in execution.answers), *execution.before],
            share=slot.share,
            here=slot.here,
            attempt=self._attempts,
        )

    def _show_import(self) -> None:
        for stream, text in self._host.take_output():
            self._execution.emit(OutputCaptured(self._execution.ref, stream, text))
