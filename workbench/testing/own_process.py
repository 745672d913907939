"""An agent that a test gives as an object, run in the test's own process and event loop.

The engine talks to it as to a child: the same messages, over a socket whose other end is a task here. So everything
but the isolation is as in a run: turns, time-outs, simulated users, events.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any

from workbench.agents.channel import Frame
from workbench.agents.worker.case import Case, case_of
from workbench.agents.worker.driver import Loaded
from workbench.agents.worker.drivers import driver_of
from workbench.agents.worker.whereabouts import stack_of_tasks
from workbench.engine.processes.agent_host import AgentHost
from workbench.engine.processes.agent_process import AgentProcess

_WHY = "the agent was given as an object"
_GIVE_UP = 5.0
"""Seconds that cancelled cases may take to end."""


class OwnHost(AgentHost):
    """Gives the seats of an agent that lives in this process: one, shared by all its cases."""

    def __init__(self, loaded: Loaded, *arguments: Any) -> None:
        super().__init__(*arguments, single=True)  # One process only, and no word about cases sharing it.
        self._loaded = loaded

    async def _process(self) -> AgentProcess:
        return AgentProcess(lambda on_frame, stdout, stderr: OwnLink(self._loaded, on_frame, (stdout, stderr)))


class OwnLink:
    """Takes the commands that an agent process gets, and carries them out in this one. What the agent prints goes where
    the test's output goes."""

    pid = None
    stalled = False

    def __init__(self, loaded: Loaded, on_frame: Callable[[Frame], None], pipes: Sequence[int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._loaded = loaded
        self._on_frame = on_frame
        self._running: dict[int, tuple[asyncio.Task[None], Case]] = {}
        self.ended: asyncio.Future[str] = self._loop.create_future()
        _close(pipes)
        imported = {"op": "imported", "framework": loaded.framework, "can_fork": False, "why": _WHY}
        self._loop.call_soon(on_frame, imported)

    @property
    def channel(self) -> "OwnLink":
        return self

    def send(self, *messages: Frame, descriptors: Sequence[int] = ()) -> None:
        """Takes commands in, the first with its descriptors."""
        for message in messages:
            if message["op"] == "case" and not self.ended.done():
                self._start(message["id"], message["case"], descriptors)
                descriptors = ()
            elif message["op"] == "kill":
                self._cancel(message["id"])
        _close(descriptors)

    def signal_group(self, number: int) -> None:
        """A signal for the process ends its cases: it cannot go to the process itself."""
        if number in (signal.SIGKILL, signal.SIGTERM):
            for case in tuple(self._running):
                self._cancel(case)

    async def close(self, *, grace: float = _GIVE_UP) -> None:
        """Cancels what still runs."""
        tasks = [task for task, _ in self._running.values()]
        self.signal_group(signal.SIGTERM)
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        if not self.ended.done():
            self.ended.set_result("was closed")

    def _start(self, number: int, spec: dict[str, Any], descriptors: Sequence[int]) -> None:
        sock = PatientSocket(self._loop, descriptors[0])
        _close(descriptors[1:])
        case = case_of(sock, spec, self._loaded, shared=True)
        task = self._loop.create_task(self._run(number, case, sock))
        self._running[number] = task, case

    async def _run(self, number: int, case: Case, sock: "PatientSocket") -> None:
        try:
            await case.run()
        finally:
            sock.close()
            await sock.drained
            del self._running[number]
            self._on_frame({"op": "exited", "id": number, "status": 0})

    def _cancel(self, number: int) -> None:
        if number not in self._running:
            return
        task, case = self._running[number]
        if not task.cancelling():
            case.stopped(stack_of_tasks([task]))
            task.cancel()


class PatientSocket(socket.socket):
    """A socket whose `sendall` never waits: the reader may be in the same event loop. What does not fit yet is sent
    when there is room, also after `close`; `drained` is done when all of it is, and the socket closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        super().__init__(fileno=descriptor)
        self._loop = loop
        self._unsent = bytearray()
        self._closing = False
        self._broken: OSError | None = None
        self.drained: asyncio.Future[None] = loop.create_future()

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        """Raises OSError if the other side is gone."""
        if self._broken is not None:
            raise self._broken
        waiting = bool(self._unsent)
        self._unsent += data
        if not waiting:
            self._flush()
            if self._unsent:
                self._loop.add_writer(self.fileno(), self._go_on)

    def close(self) -> None:
        self._closing = True
        self._close_if_done()

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self.send(self._unsent[: 1 << 18], socket.MSG_DONTWAIT)]
        except BlockingIOError:
            return
        except OSError as error:
            self._broken = error
            self._unsent.clear()

    def _go_on(self) -> None:
        self._flush()
        if not self._unsent:
            self._loop.remove_writer(self.fileno())
            self._close_if_done()

    def _close_if_done(self) -> None:
        if self._closing and not self._unsent:
            super().close()
            if not self.drained.done():
                self.drained.set_result(None)


def own_host(loaded: Loaded) -> Callable[..., AgentHost]:
    """What makes the hosts of a run whose only agent is `loaded`."""
    driver_of(loaded).prepare(loaded)  # Imports what the first turn needs before its time-out runs.

    def make(*arguments: Any, single: bool = False, only: bool = False) -> AgentHost:
        return OwnHost(loaded, *arguments)

    return make


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
