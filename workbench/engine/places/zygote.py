"""The warm parent of agent processes: it has imported the framework and waits to be forked."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.agents.channel import Channel, Frame
from workbench.agents.child_process import ChildProcess, Command, how_it_ended
from workbench.engine.places.stalls import Pinged

_TOLD_WITHIN = 3.0
"""Seconds that the zygote is given to say how an agent process ended whose socket has closed."""


@dataclass(frozen=True)
class Ready:
    """What a worker says once it can be used: its Python's version, google-adk's (None: not installed), and why it
    cannot fork ("" if it can)."""

    python: str
    adk: str | None
    can_fork: bool
    why: str


class Zygote:
    """A running zygote. `ready` is done when it can be used, or with None if it ended before that: `failure` says how.
    `spare`: whenever it has nothing to do it forks an agent process ahead, for the next run.

    Raises:
        OSError: the interpreter cannot be started.
    """

    def __init__(self, command: Command, lifeline: int, *, spare: bool = False) -> None:
        self._spare = spare
        self.ready: asyncio.Future[Ready | None] = asyncio.get_running_loop().create_future()
        self._ids = itertools.count(1)
        self._forks: dict[int, ForkedProcess] = {}
        self.process = ChildProcess(command, lifeline, self._take)
        self._pinged = Pinged(lambda: self.process.channel.send({"op": "ping"}))
        self.process.ended.add_done_callback(lambda ended: self._ended(ended.result()))

    @property
    def idle(self) -> bool:
        """Whether no process that it has forked is alive."""
        return not self._forks

    @property
    def failure(self) -> str:
        """How it ended, with the last thing it printed."""
        how = self.process.ended.result() if self.process.ended.done() else "does not answer"
        return f"{how}: {self.process.last_line}" if self.process.last_line else how

    def fork(
        self, spec: dict[str, Any], on_frame: Callable[[Frame], None], stdout: int, stderr: int
    ) -> "ForkedProcess":
        """Starts an agent process that writes into the two pipes; the descriptors are taken over."""
        control, childs_control = socket.socketpair()
        number = next(self._ids)
        forked = ForkedProcess(control, on_frame, lambda signal_number: self._kill(number, signal_number))
        self._forks[number] = forked
        message = {"op": "agent", "id": number, "spec": spec}
        self.process.channel.send(message, descriptors=[childs_control.detach(), stdout, stderr])
        if self.process.ended.done():
            self._ended(self.process.ended.result())
        return forked

    def replace_if_stalled(self) -> str:
        """Ends the zygote with all that it has forked if it stands still; returns why, or "" where it does not."""
        if self.process.ended.done() or self.process.stalled or not self.ready.done():
            return ""
        why = self._pinged.look(self.process.pid)
        if why:
            self.process.stalled = True
            self.process.signal_group(signal.SIGKILL)
        return why

    def _kill(self, number: int, signal_number: int) -> None:
        self.process.channel.send({"op": "kill", "id": number, "signal": signal_number})

    def _take(self, frame: Frame) -> None:
        match frame:
            case {"op": "ready", "python": str(python), "can_fork": bool(can_fork)}:
                self.ready.set_result(Ready(python, frame.get("adk"), can_fork, str(frame.get("why", ""))))
                self._look_ahead(can_fork)
            case {"op": "pong"}:
                self._pinged.heard()
            case {"op": "started", "id": int(number), "pid": int(pid)} if number in self._forks:
                self._forks[number].pid = pid
            case {"op": "exited", "id": int(number), "status": int(status)} if number in self._forks:
                self._forks.pop(number).end(how_it_ended(os.waitstatus_to_exitcode(status)))
                self._look_ahead(self.idle)

    def _look_ahead(self, now: bool) -> None:
        if self._spare and now:
            self.process.channel.send({"op": "spare"})

    def _ended(self, how: str) -> None:
        if not self.ready.done():
            self.ready.set_result(None)
        forks, self._forks = self._forks, {}
        for forked in forks.values():
            forked.kill_directly()
            forked.end(f"ended with its parent, which {how}")


class ForkedProcess:
    """The parent's end of an agent process that a zygote forked. `ended` is done with how it ended, in words that
    follow a subject, after everything it said has been handed on."""

    def __init__(self, control: socket.socket, on_frame: Callable[[Frame], None], kill: Callable[[int], None]) -> None:
        self.pid: int | None = None
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.channel = Channel(control, on_frame, lambda reason: self._lost())
        self._kill = kill
        self._ending: asyncio.Task[None] | None = None
        self._told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def signal_group(self, number: int) -> None:
        """Sends a signal to the process and all that is in its group."""
        if not self.ended.done():
            self._kill(number)

    def kill_directly(self) -> None:
        """For when the zygote is gone: the process dies with it; should it have got away from that, it ends here."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # Gone already, as it should be.
                os.killpg(self.pid, signal.SIGKILL)

    def end(self, how: str) -> None:
        """The process has ended."""
        if not self._told.done():
            self._told.set_result(how)
        self._lost()

    async def close(self, *, grace: float = 2.0) -> None:
        """Asks the process to end, and kills it if it does not within `grace` seconds."""
        if not self.ended.done():
            self.channel.send({"op": "quit"})
            await asyncio.wait([self.ended], timeout=grace)
        if not self.ended.done():
            self._kill(signal.SIGKILL)
            self._lost()
        await self.ended

    def _lost(self) -> None:
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        await asyncio.wait([self._told], timeout=_TOLD_WITHIN)
        if not self._told.done():
            self._kill(signal.SIGKILL)
            await asyncio.wait([self._told], timeout=_TOLD_WITHIN)
        await self.channel.drain()
        self.channel.close()
        self.ended.set_result(self._told.result() if self._told.done() else "closed its connection and cannot be ended")
