"""One case: it receives user messages from its socket, runs the agent on them, and reports events.

`docs/worker-protocol.md` lists the messages and events.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar, Union

from . import faults, project_files
from .driver import FinishedTurn, Loaded
from .drivers import NoAgentError, Opened, open_conversation
from .frames import FrameTooLargeError, SharedWire, SocketWire
from .gate import Gate, broken_recording
from .jsonable import dumps
from .matching import BrokenRecordingError
from .processes import leave

STATE_LIMIT = 256 * 1024
"""Maximum size of a session's state, in characters of JSON."""
_TEARDOWN_SECONDS = 5.0
_ABANDON_SECONDS = 1.0
"""Seconds that a turn has to end after it was cancelled because of a call without a recording."""
_QUESTION = "adk_request_"
"""The beginning of the names of ADK's questions to the user, which have the form of calls."""
Wire = Union[SocketWire, SharedWire]
_T = TypeVar("_T")


class WorkbenchGoneError(Exception):
    """A lost connection to the workbench."""


class MissedError(Exception):
    """A turn that made a call without a recording."""

    def __init__(self, fault: faults.Fault) -> None:
        super().__init__(fault["message"])
        self.fault = fault


class Case:
    """One conversation with the agent, driven from the other end of `wire`."""

    def __init__(self, wire: Wire, spec: dict[str, Any], loaded: Loaded, *, shared: bool) -> None:
        self._wire = wire
        self._spec = spec
        self._loaded = loaded
        self._shared = shared
        self._opened: Opened | None = None
        self._gate: Gate | None = None
        self._miss: asyncio.Future[faults.Fault] | None = None
        """The first call without a recording, in a shared process or in this turn of a chat."""
        self._finished_turns = 0
        self._sending = False
        self._queued = b""
        """Frames that wait for the next one."""
        self._stopped = False
        self.end_sent = False
        """Whether `Ended` was sent to the workbench."""
        self._pid = os.getpid()

    async def run(self) -> None:
        """Run until the conversation is over. Exceptions of the agent are reported, not raised."""
        if not self._shared:
            project_files.on_written(self.wrote)
        try:
            ended = await self._converse()
        except WorkbenchGoneError:
            ended = False
        try:
            if ended:
                self._send_touched()
            warnings = await self._tear_down()
            if ended:
                self._send({"event": "Ended", "warnings": warnings})
                self.end_sent = True
        except WorkbenchGoneError:
            return
        finally:
            self._wire.close()

    def stopped(self, where: str) -> None:
        """Report where the agent was stopped. Do nothing while a message is being sent, or if the workbench is gone."""
        self._stopped = True
        if not self._sending:
            with contextlib.suppress(WorkbenchGoneError):
                self._send_touched()
                self._send({"event": "Stopped", "where": where})
                self._send_spans()

    def printed(self, stream: str, text: str) -> bool:
        """Report output of a case that shares its process, from any thread.

        Return False without reporting it if the workbench no longer reads, or if a fork of the agent printed it.
        """
        return self._send_from_thread({"event": "Printed", "stream": stream, "text": text})

    def wrote(self, path: str) -> None:
        """Report a file that is about to be written, from any thread."""
        self._send_from_thread({"event": "Wrote", "files": [path]})

    def _send_from_thread(self, message: dict[str, Any]) -> bool:
        if os.getpid() != self._pid:
            return False
        data = self._wire.encode(message)
        try:
            self._wire.write(data)
        except OSError:
            return False
        return True

    def failed(self, fault: faults.Fault) -> None:
        """Report the error that ends the case, with the spans and usage so far."""
        message: dict[str, Any] = {"event": "Failed", "turn": self._finished_turns, "error": fault}
        if self._opened is not None:
            self._send_spans()
            message["usage"] = self._opened.conversation.usage._asdict()
        self._send_touched()
        self._send(message)

    async def _converse(self) -> bool:
        """Run the conversation. Return whether all its turns finished."""
        try:
            given = self._spec.get("session_input")
            self._opened = await open_conversation(self._loaded, given, shared=self._shared)
            if self._spec.get("answers"):
                self._opened.conversation.store_answers(self._send_answer)
            if self._spec.get("calls"):
                self._gate = Gate(self._spec["calls"], self._on_miss)
                if (self._shared or self._spec.get("chat")) and self._gate.has_recording:
                    self._miss = asyncio.get_running_loop().create_future()
                self._opened.conversation.use(self._gate)
            async for content in self._messages():
                if not await self._turn(content):
                    return False
        except WorkbenchGoneError:
            raise
        except BaseException as error:
            fault = self._fault_of(error)
            if fault is not None:
                self.failed(fault)
        else:
            return True
        return False

    def _send_answer(self, answer: dict[str, Any]) -> None:
        """Send an answer of a model before it is used. A resumed run requests again what is too large to be sent."""
        with contextlib.suppress(FrameTooLargeError):
            self._send_from_thread({"event": "Answered", "answer": answer})

    def _fault_of(self, error: BaseException) -> faults.Fault | None:
        """Return the fault of an exception that ended the conversation, or None if the workbench stopped the case."""
        if isinstance(error, FrameTooLargeError):
            return faults.fault("too_large", f"the agent's answer has {error}")
        if isinstance(error, NoAgentError):
            return faults.fault("agent_raised", str(error))
        if isinstance(error, BrokenRecordingError):
            return broken_recording(error)
        if isinstance(error, MissedError):
            return error.fault
        # Anything that an agent raises is its error, even SystemExit. A cancellation by the workbench is not.
        return None if self._stopped else faults.agent_fault(error)

    async def _turn(self, content: dict[str, Any]) -> bool:
        """Run one turn. Return False if it ended the case."""
        number = self._finished_turns
        assert self._opened is not None
        conversation = self._opened.conversation
        fork = None if self._gate is None else self._gate.fork
        diverged = None if fork is None else fork.begin_turn(number)
        if diverged is not None:
            self.failed(diverged)
            return False
        finished = await self._unless_missed(conversation.turn(content, functools.partial(self._send_acted, number)))
        diverged = None if fork is None else fork.end_turn(number)
        if diverged is not None:
            self.failed(diverged)
            return False
        if finished is None:
            self.failed(faults.fault("turn_count", f"turn {number + 1}: the agent produced no event"))
            return False
        escaped = None if self._gate is None else self._gate.end_turn()
        if escaped is not None:
            self.failed(escaped)
            return False
        self._send_spans()
        message = self._finished(finished)
        if self._spec.get("state"):
            message.update(await self._state())
        pending = self._wire.pending
        ends_here = bool(pending) and pending[0]["op"] == "end" and not self._opened.needs_closing
        (self._queue if ends_here else self._send)(message)  # Then both are reported together.
        self._finished_turns += 1
        return True

    def _on_miss(self, fault: faults.Fault) -> None:
        """End the case at a call without a recording, from any thread. No code of the agent runs after that.

        In a shared process, only the case's task ends, in a chat only its turn. The call itself waits forever.
        """
        if os.getpid() != self._pid:
            # A fork that the agent made. The case would not notice its end.
            with contextlib.suppress(OSError):
                failed = {"event": "Failed", "turn": self._finished_turns, "error": fault}
                self._wire.write(self._wire.encode(failed))
            os._exit(1)
        if self._miss is not None:
            self._miss.get_loop().call_soon_threadsafe(_settle, self._miss, fault)
            return
        with contextlib.suppress(WorkbenchGoneError):
            self.failed(fault)
        leave(0)

    async def _unless_missed(self, turn: Coroutine[Any, Any, _T]) -> _T:
        """Return the result of a turn. Raise MissedError if the turn made a call without a recording."""
        if self._miss is None:
            return await turn
        running = asyncio.ensure_future(turn)
        # asyncio prints the exception of an abandoned turn unless somebody takes it.
        running.add_done_callback(lambda turn: None if turn.cancelled() else turn.exception())
        try:
            both: set[asyncio.Future[Any]] = {running, self._miss}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait({running}, timeout=_ABANDON_SECONDS)
        if self._miss.done():
            raise MissedError(self._miss.result())
        return running.result()

    def _finished(self, turn: FinishedTurn) -> dict[str, Any]:
        assert self._opened is not None
        usage = self._opened.conversation.usage._asdict()
        fields = {"actual": turn.actual, "note": turn.note, "usage": usage, "inner_calls": list(turn.inner_calls)}
        return {"event": "TurnFinished", "turn": self._finished_turns, **fields}

    async def _state(self) -> dict[str, Any]:
        """Return `{"state", "why"}`: the session's state, or None and the reason. An error does not fail the turn."""
        assert self._opened is not None
        try:
            text = dumps(await self._opened.conversation.state())
        except Exception as error:
            return {"state": None, "why": faults.sentence(error)}
        if len(text) > STATE_LIMIT:
            return {"state": None, "why": f"the state is {len(text):,} characters of JSON, too large to keep"}
        return {"state": json.loads(text), "why": ""}

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the user's messages until `end` or the end of the socket. Pass on what was recorded before."""
        while True:
            while self._wire.pending:
                message = self._wire.pending.popleft()
                if message["op"] == "turn":
                    yield message["content"]
                elif message["op"] == "end":
                    return
                elif message["op"] == "answered":
                    assert self._opened is not None
                    self._opened.conversation.recall(message)
                elif message["op"] == "recorded" and self._gate is not None:
                    self._gate.load(message["call"], before_fork=message.get("before_fork", False))
                elif message["op"] == "expected" and self._gate is not None and self._gate.fork is not None:
                    self._gate.fork.expect(message["turn"], message["acted"])
                # A chat's `stop` is too late here, because the turn is over.
            # A case's own socket is read only between turns, so an agent that blocks the event loop does no harm.
            if not self._wire.refill():
                return
            if not self._wire.pending:
                await self._wire.wait_for_data()

    async def _tear_down(self) -> list[str]:
        """Close the conversation's resources. Return problems as texts."""
        if self._opened is None or not self._opened.needs_closing:
            return []
        if not self._shared:
            # The timer is for a close that blocks the whole process. One that waits is cancelled earlier, below.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, _TEARDOWN_SECONDS + 1)
        closing = asyncio.ensure_future(self._opened.close())
        done, _ = await asyncio.wait({closing}, timeout=_TEARDOWN_SECONDS)
        if not done:
            closing.cancel()
            return [f"closing the agent's tools took more than {_TEARDOWN_SECONDS:g} s and was abandoned"]
        error = closing.exception() if not closing.cancelled() else asyncio.CancelledError()
        if error is None:
            return closing.result()
        return [f"closing the agent's tools ended with {faults.sentence(error)}"]

    def _send_touched(self) -> None:
        """Report the files that the case read, the folders that it listed and its unseen inputs, with the next message.

        Do nothing if not all of the files are known.
        """
        if project_files.is_complete():
            # The files first: they tell which databases have changed.
            files, folders = project_files.new_files(), project_files.folders()
            self._queue({"event": "Touched", "files": files, "folders": folders, "unseen": project_files.unseen()})

    def _send_spans(self) -> None:
        """Report the spans and calls of the turn. Errors are ignored, because they must not fail the turn."""
        try:
            spans = self._opened.conversation.spans() if self._opened is not None else None
            if spans is not None:
                self._queue({"event": "Spans", "turn": self._finished_turns, **spans})
            for calls in self._gate.take_messages() if self._gate is not None else ():
                self._queue({"event": "Calls", "turn": self._finished_turns, **calls})
        except WorkbenchGoneError:
            raise
        except Exception:
            return

    def _send_acted(self, number: int, acted: dict[str, Any]) -> None:
        """Report a step."""
        if self._gate is not None and self._gate.fork is not None:
            self._gate.fork.note(number, acted)
        message = {"event": "AgentActed", "turn": number, "acted": acted}
        parts = (acted.get("content") or {}).get("parts") or ()
        called = [part["function_call"].get("name") or "" for part in parts if part.get("function_call")]
        assert self._opened is not None
        shows_own = not self._opened.conversation.makes_calls_of(acted.get("author") or "")
        if called and self._gate is not None and shows_own:
            self._gate.note_shown(tool for tool in called if not tool.startswith(_QUESTION))
        self._send(message)

    def _queue(self, message: dict[str, Any]) -> None:
        """Send the message together with the next one, because each send wakes the workbench."""
        self._queued += self._wire.encode(message)

    def _send(self, message: dict[str, Any]) -> None:
        if os.getpid() != self._pid:
            # This is a fork that the agent made and did not end. The case belongs to its parent.
            os._exit(0)
        self._sending = True
        try:
            self._write(self._wire.encode(message))
        finally:
            self._sending = False

    def _write(self, data: bytes) -> None:
        data, self._queued = self._queued + data, b""
        try:
            self._wire.write(data)
        except OSError as error:
            raise WorkbenchGoneError from error


def _settle(future: asyncio.Future[faults.Fault], fault: faults.Fault) -> None:
    if not future.done():
        future.set_result(fault)
