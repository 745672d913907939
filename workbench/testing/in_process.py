"""The test's own process as a place: an agent object runs in the test's event loop.

The engine uses the same messages as for a child process, without a socket. So turns, timeouts, simulated users and
events work as in a run. Only the isolation is missing.
"""

import asyncio
import json
from typing import Any

from workbench.agents.channel import Frame
from workbench.run.place import OnFrame
from workbench.run.plan.plan import AgentSetting
from workbench.worker.case import Case
from workbench.worker.cases import case_of, stack_of_tasks
from workbench.worker.driver import Loaded
from workbench.worker.drivers import driver_of
from workbench.worker.frames import Decoder, SharedWire

_WHY = "the agent was given as an object"
_GIVE_UP = 5.0
"""Seconds that cancelled cases may take to end."""


class InProcessPlace:
    """The running event loop as a place for `loaded`, the only agent of the run."""

    def __init__(self, loaded: Loaded) -> None:
        driver_of(loaded).prepare(loaded)  # Imports what the first turn needs before its timeout runs.
        self._loaded = loaded

    def open(self, concurrency: int) -> None:
        """Do nothing, because there are no processes."""

    async def start(self, agent: AgentSetting, on_frame: OnFrame, *, cases: int) -> "InProcessLink":
        """Return a link to the agent, which is imported already."""
        return InProcessLink(self._loaded, on_frame)

    async def close(self) -> None:
        """Do nothing: cases end with their link."""


class InProcessLink:
    """Link that handles an agent process's messages in this process.

    The agent's output goes where the test's output goes.
    """

    serves_one_case = True

    def __init__(self, loaded: Loaded, on_frame: OnFrame) -> None:
        self._loop = asyncio.get_running_loop()
        self._loaded = loaded
        self._on_frame = on_frame
        self._running: dict[int, tuple[asyncio.Task[None], Case, SharedWire]] = {}
        self.ended: asyncio.Future[str] = self._loop.create_future()
        imported = {"op": "imported", "framework": loaded.framework, "can_fork": False, "why": _WHY}
        self._loop.call_soon(on_frame, imported, 0)

    def send(self, *frames: Frame) -> None:
        """Handle messages."""
        for frame in frames:
            number = frame["id"]
            if frame["op"] == "case" and not self.ended.done():
                self._start(number, frame["case"])
            elif frame["op"] == "case":
                self._loop.call_soon(self._on_frame, {"op": "exited", "id": number, "how": None}, 0)
            elif number in self._running:
                self._take(number, frame)

    def kill(self) -> None:
        """Cancel all cases. The process itself cannot be ended."""
        for number in tuple(self._running):
            self._cancel(number)

    async def close(self) -> None:
        """Cancel the cases that still run."""
        tasks = [task for task, _, _ in self._running.values()]
        self.kill()
        if tasks:
            await asyncio.wait(tasks, timeout=_GIVE_UP)
        if not self.ended.done():
            self.ended.set_result("was closed")
        for number in tuple(self._running):
            self._exited(number, None)

    def _start(self, number: int, spec: dict[str, Any]) -> None:
        wire = SharedWire(self._write, number, lambda: False)
        case = case_of(wire, spec, self._loaded, shared=True)
        task = self._loop.create_task(case.run())
        self._running[number] = task, case, wire
        task.add_done_callback(lambda _: self._exited(number, "ended"))

    def _take(self, number: int, frame: Frame) -> None:
        if frame["op"] == "forget":
            del self._running[number]
        elif frame["op"] == "kill":
            self._cancel(number)
        else:
            self._running[number][2].put(frame)

    def _write(self, data: bytes) -> None:
        """Pass on a case's message, from any thread.

        It is converted to JSON and back, so that the agent cannot change it afterwards.
        """
        for body in Decoder().feed(data):
            self._loop.call_soon_threadsafe(self._on_frame, json.loads(body), len(body))

    def _exited(self, number: int, how: str | None) -> None:
        if self._running.pop(number, None) is not None:
            self._on_frame({"op": "exited", "id": number, "how": how}, 0)

    def _cancel(self, number: int) -> None:
        task, case, _ = self._running[number]
        if not task.cancelling():
            case.stopped(stack_of_tasks([task]))
            task.cancel()
