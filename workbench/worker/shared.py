"""Cases as tasks of one event loop, for where forking is unsafe, impossible or unwanted.

They share the agent's modules. A case that blocks the loop stops them all.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import socket
from typing import Any, Dict, Set

from .case import Case
from .cases import case_of, descriptors_of, refuse
from .driver import Loaded
from .frames import Channel
from .output import use_output
from .stacks import stack_of_tasks
from .wire import SharedWire, SocketWire

_THREADS = 64
"""Maximum number of concurrent cases of a synchronous agent."""
_CANCEL_SECONDS = 5.0
"""Seconds that a cancelled case has to end."""


class SharedCases:
    """The cases that `channel` requests until it ends."""

    def __init__(self, channel: Channel, lifeline: int, loaded: Loaded) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._loaded = loaded
        self._running: Dict[int, asyncio.Task[None]] = {}
        self._cases: Dict[int, Case] = {}
        self._wires: Dict[int, SharedWire] = {}
        self._stopping: Set[asyncio.Task[None]] = set()

    def run(self) -> None:
        """Run until the workbench disconnects. Cases still running are dropped."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="agent"))
        task = loop.create_task(self._serve())
        while not task.done():
            try:
                loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt):
                # These leave the loop if an agent's task raises them. The loop can continue, and the case
                # that awaits the task gets the exception.
                continue

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._channel.fileno(), self._read, over)
        loop.add_reader(self._lifeline, _finish, over)
        # Commands that came together with the first one.
        self._take(over)
        await over

    def _read(self, over: asyncio.Future[None]) -> None:
        # Never waits: after a SystemExit the loop may call this again for data already read.
        if self._channel.fill(wait=False):
            self._take(over)
        else:
            _finish(over)

    def _take(self, over: asyncio.Future[None]) -> None:
        while self._channel.pending:
            command = self._channel.pending.popleft()
            if command["op"] == "quit":
                _finish(over)
            else:
                self._handle(command)

    def _handle(self, command: Dict[str, Any]) -> None:
        number = command["id"]
        if command["op"] == "case":
            self._start(number, command)
        elif command["op"] == "kill":
            self._cancel(number)
        elif number in self._wires:
            self._wires[number].put(command)

    def _start(self, number: int, command: Dict[str, Any]) -> None:
        if not command.get("share"):
            control, *output = self._channel.take_fds(descriptors_of(command))
            refuse(SocketWire(socket.socket(fileno=control)))
            for descriptor in output:
                os.close(descriptor)
            self._send_exited(number)
            return
        wire = self._wires[number] = SharedWire(self._channel.write, number, lambda: len(self._running) > 1)
        case = case_of(wire, command["case"], self._loaded, shared=True)
        task = asyncio.get_running_loop().create_task(self._run(number, case))
        self._running[number], self._cases[number] = task, case
        # For a task that is cancelled before it begins.
        task.add_done_callback(lambda _: self._ended(number))

    async def _run(self, number: int, case: Case) -> None:
        """Run a case with its own output."""
        use_output(case.printed)
        try:
            await case.run()
        finally:
            self._ended(number)

    def _cancel(self, number: int) -> None:
        task = self._running.get(number)
        if task is None or task in self._stopping:
            return
        self._stopping.add(task)
        self._cases[number].stopped(stack_of_tasks([task]))
        task.cancel()
        # A case that ignores the cancellation is abandoned: its task stays, its number is free.
        asyncio.get_running_loop().call_later(_CANCEL_SECONDS, self._ended, number)

    def _ended(self, number: int) -> None:
        task = self._running.pop(number, None)
        case = self._cases.pop(number, None)
        self._wires.pop(number, None)
        if task is not None and case is not None:
            self._stopping.discard(task)
            if not case.end_sent:
                self._send_exited(number)

    def _send_exited(self, number: int) -> None:
        self._channel.send({"op": "exited", "id": number, "status": 0})


def _finish(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
