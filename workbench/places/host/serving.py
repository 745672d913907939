"""The host's side of a link: it answers the client's messages until the client goes or the lease is over."""

import asyncio
import contextlib
import os
import platform
import socket
import sys
from collections.abc import Callable
from typing import Any

from workbench.agents.channel import Channel, Frame
from workbench.places.host.agents import HostedAgents, agent_start
from workbench.places.host.cache import Cache, cache_folder
from workbench.places.host.outbox import Outbox
from workbench.places.host.unpack import Preparing
from workbench.places.lease import ALIVE, LEASE, Lease
from workbench.places.local import LocalPlace

PROTOCOL = 1
_TICK = 1.0
"""Seconds between two looks at the lease, and between two beats while cases run."""
_CASES = 4096
"""Cases for which file descriptors are provided."""
_FLUSHED_WITHIN = 2.0


class Host:
    """One client's host on this machine, which speaks over `sock`. `lifeline` ends its processes if it is killed.

    `promise` is called about once a second with the seconds within which it is called again, or this process ends.
    """

    def __init__(
        self, sock: socket.socket, lifeline: int, promise: Callable[[float], None] = lambda seconds: None
    ) -> None:
        self._promise = promise
        self._left: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._channel = Channel(sock, self._take, lambda reason: self.leave(reason or "the client is gone"))
        self._place = LocalPlace(lifeline)
        self._outbox = Outbox(self._channel.send, self._place.pause)
        self._agents = HostedAgents(self._place, self._outbox, self._channel.send)
        self._loop = asyncio.get_running_loop()
        self._preparing = Preparing(self._send_from_thread, Cache(cache_folder()), in_use=self._agents.run_in)
        self._lease = Lease(LEASE)
        self._greeted = False
        self._beats_due = 0

    async def serve(self) -> str:
        """Serve the client. Then end everything, and return why."""
        self._place.open(_CASES)
        beating = asyncio.create_task(self._beat())
        try:
            why = await self._left
        finally:
            beating.cancel()
        self._promise(LEASE)
        self._channel.send({"op": "leaving", "why": why})
        await self._agents.close()
        await self._place.close()
        await asyncio.to_thread(self._preparing.close)
        for _ in range(int(_FLUSHED_WITHIN * 100)):
            if self._channel.is_flushed:
                break
            await asyncio.sleep(0.01)
        self._channel.close()
        return why

    def _send_from_thread(self, frame: Frame) -> None:
        with contextlib.suppress(RuntimeError):  # This process is ending.
            self._loop.call_soon_threadsafe(self._channel.send, frame)

    def leave(self, why: str) -> None:
        """End the host. Only the first reason counts."""
        if not self._left.done():
            self._left.set_result(why)

    def _take(self, frame: Frame) -> None:
        if self._left.done():
            return
        self._lease.renew()
        try:
            self._handle(frame)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.leave(f"the client sent an invalid message: {type(error).__name__}: {error}")

    def _handle(self, frame: Frame) -> None:
        op = frame["op"]
        if op == "hello":
            self._greet(frame)
        elif not self._greeted:
            raise ValueError(f"{op} before hello")
        elif (handler := self._handlers().get(op)) is not None:
            handler(frame)
        else:
            raise ValueError(f"unknown message {op}")

    def _handlers(self) -> dict[str, Callable[[Frame], None]]:
        agents = self._agents
        return {
            "alive": lambda frame: None,
            "ack": lambda frame: self._outbox.acknowledge(frame["n"]),
            "agent": self._start_agent,
            "to": lambda frame: agents.send(frame["agent"], frame["frames"]),
            "kill": lambda frame: agents.kill(frame["agent"]),
            "close": lambda frame: agents.end(frame["agent"]),
            "bundle": self._preparing.take,
            "file": self._preparing.take,
        }

    def _greet(self, frame: Frame) -> None:
        if frame["protocol"] != PROTOCOL:
            raise ValueError(f"protocol {frame['protocol']}, this host has {PROTOCOL}")
        self._greeted = True
        self._lease.seconds = float(frame["lease"])
        self._promise(self._lease.seconds)
        self._channel.send({"op": "welcome", "protocol": PROTOCOL, **_description()})

    def _start_agent(self, frame: Frame) -> None:
        drivers = {str(name): str(text) for name, text in frame["drivers"].items()}
        self._agents.start(int(frame["agent"]), agent_start(frame["start"]), drivers, int(frame["cases"]))

    async def _beat(self) -> None:
        """Send signs of life, more often while cases run, and look at the lease."""
        silent = 0.0
        while True:
            await asyncio.sleep(_TICK)
            silent += _TICK
            self._promise(self._lease.seconds)
            if self._greeted and (self._place.is_busy or silent >= ALIVE):
                silent = 0.0
                self._channel.send({"op": "beat", "t": self._loop.time(), "held": self._outbox.held})
            if self._lease.is_over:
                # This process may have been stopped while messages came.
                await self._channel.drain()
                if self._lease.is_over:
                    self.leave(f"nothing came from the client for {self._lease.seconds:g} s")


def _description() -> dict[str, Any]:
    """Return what the client wants to know about this machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        memory = 0
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity is not None else os.cpu_count()
    return {
        "name": platform.node(),
        "python": platform.python_version(),
        "platform": sys.platform,
        "cpus": cpus or 1,
        "memory": memory,
        "pid": os.getpid(),
    }
