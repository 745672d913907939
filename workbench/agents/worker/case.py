"""One case: takes the user's messages from its socket, has the agent answer them, and tells what happens.

Messages and events are listed in `docs/worker-protocol.md`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
from typing import Any, AsyncIterator, Dict, List, Optional, Union

from . import faults, footprint
from .answer_file import KeptAnswers
from .conversation import FinishedTurn
from .driver import Loaded
from .drivers import NoAgentError
from .frames import FrameTooLargeError
from .opening import Opened, open_conversation
from .wire import SharedWire, SocketWire

_TEARDOWN_SECONDS = 5.0
_TOGETHER = 0.002
"""Seconds that a step may wait for the next one."""
Wire = Union[SocketWire, SharedWire]


class WorkbenchGoneError(Exception):
    """Nobody reads what we send any more."""


class Case:
    """One conversation with the agent, driven from the other end of `wire`."""

    def __init__(self, wire: Wire, spec: Dict[str, Any], loaded: Loaded, *, shared: bool) -> None:
        self._wire = wire
        self._spec = spec
        self._loaded = loaded
        self._shared = shared
        self._opened: Optional[Opened] = None
        self._finished_turns = 0
        self._sending = False
        self._held = b""
        """Frames that wait for the next one."""
        self._stopped = False
        self.told_end = False
        """Whether the workbench knows that nothing will come any more."""
        self._pid = os.getpid()

    async def run(self) -> None:
        """Returns when the conversation is over, for whatever reason; never raises what the agent raises."""
        if not self._shared:
            footprint.tell_written(self.wrote)
        try:
            ended = await self._converse()
        except WorkbenchGoneError:
            ended = False
        try:
            if ended:
                self._tell_touched()
            warnings = await self._tear_down()
            if ended:
                self._send({"event": "Ended", "warnings": warnings})
                self.told_end = True
        except WorkbenchGoneError:
            return
        finally:
            self._wire.close()

    def stopped(self, where: str) -> None:
        """Tells where the agent was when it was stopped, unless a message is just being sent or nobody listens."""
        self._stopped = True
        if not self._sending:
            with contextlib.suppress(WorkbenchGoneError):
                self._tell_touched()
                self._send({"event": "Stopped", "where": where})
                self._tell_spans()

    def printed(self, stream: str, text: str) -> bool:
        """Tells what a case that shares its process has printed, in whatever thread; False if nobody listens, or if a
        fork of the agent's has printed it."""
        return self._tell_aside({"event": "Printed", "stream": stream, "text": text})

    def wrote(self, path: str) -> None:
        """Tells of a file that is about to be written, in whatever thread."""
        self._tell_aside({"event": "Wrote", "files": [path]})

    def _tell_aside(self, message: Dict[str, Any]) -> bool:
        if os.getpid() != self._pid:
            return False
        data = self._wire.encode(message)
        try:
            self._wire.write(data)
        except OSError:
            return False
        return True

    def failed(self, fault: faults.Fault) -> None:
        """Ends the case with an error."""
        message: Dict[str, Any] = {"event": "Failed", "turn": self._finished_turns, "error": fault}
        if self._opened is not None:
            self._tell_spans()
            message["usage"] = self._opened.conversation.usage.wire()
        self._tell_touched()
        self._send(message)

    async def _converse(self) -> bool:
        """Did the conversation come to its end?"""
        try:
            given = self._spec.get("session_input")
            self._opened = await open_conversation(self._loaded, given, shared=self._shared)
            if self._spec.get("answers"):
                self._opened.conversation.keep_answers(KeptAnswers(self._spec["answers"]).keep)
            async for content in self._messages():
                if not await self._turn(content):
                    return False
        except WorkbenchGoneError:
            raise
        except FrameTooLargeError as error:
            self.failed(faults.fault("too_large", f"the agent's answer has {error}"))
        except NoAgentError as error:
            self.failed(faults.fault("agent_raised", str(error)))
        except BaseException as error:
            # Whatever an agent raises is its own affair, SystemExit included; being cancelled is not.
            if not self._stopped:
                self.failed(faults.of_agent(error))
        else:
            return True
        return False

    async def _turn(self, content: Dict[str, Any]) -> bool:
        """One message and the answer to it; False if that ended the case."""
        number = self._finished_turns
        assert self._opened is not None
        conversation = self._opened.conversation
        finished = await conversation.turn(content, functools.partial(self._tell_acted, number))
        if finished is None:
            self.failed(faults.fault("turn_count", f"turn {number + 1}: the agent did nothing, not a single event"))
            return False
        self._tell_spans()
        tell = self._hold if self._ends_here() else self._send
        tell(self._finished(finished))
        self._finished_turns += 1
        return True

    def _finished(self, turn: FinishedTurn) -> Dict[str, Any]:
        assert self._opened is not None
        spent = self._opened.conversation.usage.wire()
        actual, note = turn.actual, turn.note
        return {"event": "TurnFinished", "turn": self._finished_turns, "actual": actual, "note": note, "usage": spent}

    def _ends_here(self) -> bool:
        """Whether nothing stands between this turn and the end of the case: then both are told together."""
        assert self._opened is not None
        pending = self._wire.pending
        return bool(pending) and pending[0]["op"] == "end" and not self._opened.holds_something

    async def _messages(self) -> AsyncIterator[Dict[str, Any]]:
        """The user's messages, until `end` or the end of the socket."""
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
                # A `stop` of a chat that comes now is too late: the turn is over.
            # A socket of its own is only read between turns: what an agent does to the event loop cannot hurt.
            if not self._wire.refill():
                return
            if not self._wire.pending:
                await self._wire.arrived()

    async def _tear_down(self) -> List[str]:
        """Closes what the conversation holds; what went wrong with that, in words."""
        if self._opened is None or not self._opened.holds_something:
            return []
        if not self._shared:
            # For a close that blocks the whole process; one that waits is cut a little earlier, below.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, _TEARDOWN_SECONDS + 1)
        closing = asyncio.ensure_future(self._opened.close())
        done, _ = await asyncio.wait({closing}, timeout=_TEARDOWN_SECONDS)
        if not done:
            closing.cancel()
            return [f"closing the agent's tools took more than {_TEARDOWN_SECONDS:g} s and was given up"]
        error = closing.exception() if not closing.cancelled() else asyncio.CancelledError()
        return (
            [f"closing the agent's tools ended with {faults.sentence(error)}"]
            if error is not None
            else closing.result()
        )

    def _tell_touched(self) -> None:
        """Tell what the case has read and listed, together with the next message."""
        if footprint.is_complete():
            self._hold({"event": "Touched", "files": footprint.news(), "folders": footprint.folders()})

    def _tell_spans(self) -> None:
        """What took how long in the turn. That it cannot be told must not cost the turn."""
        try:
            told = self._opened.conversation.spans() if self._opened is not None else None
            if told is not None:
                self._hold({"event": "Spans", "turn": self._finished_turns, **told})
        except WorkbenchGoneError:
            raise
        except Exception:
            return

    def _tell_acted(self, number: int, acted: Dict[str, Any]) -> None:
        """Tells a step. Where cases share the process, one that nothing waits behind goes with what comes within a
        moment; a call of a tool, which may take its time, is told at once."""
        message = {"event": "AgentActed", "turn": number, "acted": acted}
        parts = (acted.get("content") or {}).get("parts") or ()
        if not self._wire.is_crowded() or any("function_call" in part for part in parts):
            self._send(message)
            return
        if not self._held:
            asyncio.get_running_loop().call_later(_TOGETHER, self._send_held)
        self._hold(message)

    def _send_held(self) -> None:
        if self._held:
            with contextlib.suppress(WorkbenchGoneError):  # The next message finds that out as well.
                self._write(b"")

    def _hold(self, message: Dict[str, Any]) -> None:
        """Sends the message together with the next one: each sending wakes the workbench."""
        self._held += self._wire.encode(message)

    def _send(self, message: Dict[str, Any]) -> None:
        if os.getpid() != self._pid:
            # A fork that the agent made and forgot to end came back to us: the case is its parent's.
            os._exit(0)
        self._sending = True
        try:
            self._write(self._wire.encode(message))
        finally:
            self._sending = False

    def _write(self, data: bytes) -> None:
        data, self._held = self._held + data, b""
        try:
            self._wire.write(data)
        except OSError as error:
            raise WorkbenchGoneError from error
