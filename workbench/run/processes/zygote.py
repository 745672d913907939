"""The warm parent of agent processes, which has imported the framework and is forked for each agent."""

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
from workbench.run.processes.agent_clock import PingCheck

_REPORT_WITHIN = 3.0
"""Seconds in which the zygote must report the end of an agent process whose socket has closed."""


@dataclass(frozen=True)
class Ready:
    """The report of a worker that is ready.

    `python` and `adk` are versions (None: google-adk is not installed). `why` says why it cannot fork, or is "".
    """

    python: str
    adk: str | None
    can_fork: bool
    why: str


class Zygote:
    """A running zygote.

    `ready` is done when it can be used, or with None if it ended before that; then `failure` says how. With `spare`, an
    idle zygote forks an agent process in advance for the next run.

    Raises:
        OSError: the interpreter cannot be started.
    """

    def __init__(self, command: Command, lifeline: int, *, spare: bool = False) -> None:
        self._spare = spare
        self.ready: asyncio.Future[Ready | None] = asyncio.get_running_loop().create_future()
        self._ids = itertools.count(1)
        self._forks: dict[int, ForkedProcess] = {}
        self.process = ChildProcess(command, lifeline, self._take)
        self._ping_check = PingCheck(lambda: self.process.channel.send({"op": "ping"}))
        self.process.ended.add_done_callback(lambda ended: self._ended(ended.result()))
        self.process.kill_if_stopped(lambda: not self.ready.done())

    @property
    def idle(self) -> bool:
        """Whether all its forks have ended."""
        return not self._forks

    @property
    def failure(self) -> str:
        """The reason why it ended, with its last output."""
        how = self.process.ended.result() if self.process.ended.done() else "does not answer"
        return f"{how}: {self.process.last_line}" if self.process.last_line else how

    def fork(
        self, spec: dict[str, Any], on_frame: Callable[[Frame], None], stdout: int, stderr: int
    ) -> "ForkedProcess":
        """Fork an agent process, which takes over the two pipes for its output."""
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
        """Kill the zygote with all its forks if it hangs, and return why, or "" if it does not hang."""
        if self.process.ended.done() or self.process.stalled or not self.ready.done():
            return ""
        why = self._ping_check.check(self.process.pid)
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
                self._request_spare(can_fork)
            case {"op": "pong"}:
                self._ping_check.answered()
            case {"op": "started", "id": int(number), "pid": int(pid)} if number in self._forks:
                self._forks[number].pid = pid
            case {"op": "exited", "id": int(number), "status": int(status)} if number in self._forks:
                self._forks.pop(number).end(how_it_ended(os.waitstatus_to_exitcode(status)))
                self._request_spare(self.idle)

    def _request_spare(self, now: bool) -> None:
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
    """The connection to an agent process that a zygote forked.

    `ended` is done after its last message was forwarded, with a phrase such as "ended with exit code 1".
    """

    def __init__(self, control: socket.socket, on_frame: Callable[[Frame], None], kill: Callable[[int], None]) -> None:
        self.pid: int | None = None
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.channel = Channel(control, on_frame, lambda reason: self._lost())
        self._kill = kill
        self._ending: asyncio.Task[None] | None = None
        self._exit_reported: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def signal_group(self, number: int) -> None:
        """Send a signal to the process group."""
        if not self.ended.done():
            self._kill(number)

    def kill_directly(self) -> None:
        """Kill the process group without the zygote, which is gone. Normally the process died with it."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def end(self, how: str) -> None:
        """Record the end of the process."""
        if not self._exit_reported.done():
            self._exit_reported.set_result(how)
        self._lost()

    async def close(self, *, grace: float = 2.0) -> None:
        """Ask the process to end, and kill it if it does not within `grace` seconds."""
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
        await asyncio.wait([self._exit_reported], timeout=_REPORT_WITHIN)
        if not self._exit_reported.done():
            self._kill(signal.SIGKILL)
            await asyncio.wait([self._exit_reported], timeout=_REPORT_WITHIN)
        await self.channel.drain()
        self.channel.close()
        self.ended.set_result(
            self._exit_reported.result() if self._exit_reported.done() else "closed its connection and cannot be ended"
        )
