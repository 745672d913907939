"""The child process with the Dask client: it starts a host beside each worker and carries the bytes of their links.

→ `{"op": "open", "address"}`, or `{"op": "open", "workers"}` for a cluster of worker processes on this machine
→ `{"op": "link", "worker"}` with the socket of a link to the worker's host
→ `{"op": "quit"}`, or the end of the socket
← `{"op": "connected", "ours", "scheduler"}`: our version of distributed, and the scheduler's
← `{"op": "worker", "worker", "threads", "python", "version"}`: a host runs there and waits for its link
← `{"op": "unusable", "worker", "why"}`; `{"op": "busy", "worker"}`: no thread of it was free so far
← `{"op": "settled"}`: all workers of the beginning were named
← `{"op": "lost", "worker", "why", "died"}`: the link of this worker ends now; `died`: because its host died
← `{"op": "failed", "why"}`: the scheduler cannot be reached, or is gone
"""

import argparse
import asyncio
import contextlib
import os
import resource
import socket
import sys
import threading
import warnings
from typing import Any, Protocol

from workbench.agents.worker import processes
from workbench.agents.worker.frames import Channel
from workbench.places.dask.carrying import Calls, End, LostError, carry
from workbench.places.remote.program import HostProgram

_LOOK_EVERY = 1.0
"""Seconds between two looks at the workers of the scheduler."""
_BUSY_AFTER = 10.0
_STOPPED_WITHIN = 1.5
"""Seconds that hosts get to end when we end. Afterwards Dask forgets their actors, which ends them as well."""


class Seat(Calls, Protocol):
    """An actor on a worker (`workers.ActorOn`)."""

    async def ready(self, digest: str) -> Any:
        """Wait until the actor is there, and return its greeting."""
        ...

    def release(self) -> None:
        """Let Dask forget the actor."""
        ...


class Cluster(Protocol):
    """A connection to a scheduler (`workers.Workers`)."""

    async def now(self) -> dict[str, int]:
        """Return the number of threads of each worker, by address."""
        ...

    def seat(self, worker: str) -> Seat:
        """Create an actor on a worker."""
        ...


class Client:
    """The links to the workers of a cluster. `channel` leads to the workbench."""

    def __init__(self, cluster: Cluster, channel: Channel, program: HostProgram) -> None:
        self._cluster = cluster
        self._channel = channel
        self._program = program
        self._sockets: dict[str, asyncio.Future[socket.socket]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing = False
        self._waiting: set[str] = set()
        """Workers of which the workbench knows nothing yet."""

    async def run(self) -> None:
        """Serve the workers that are there, and those that join, until the scheduler is gone.

        Raises:
            LostError: it is gone.
        """
        began, settled = asyncio.get_running_loop().time(), False
        while True:
            now = await self._cluster.now()
            for worker in now.keys() - self._tasks.keys():
                self._waiting.add(worker)
                self._tasks[worker] = asyncio.create_task(self._serve(worker, now[worker]))
            for worker in self._tasks.keys() - now.keys():
                self._tasks.pop(worker).cancel()
            late = asyncio.get_running_loop().time() - began > _BUSY_AFTER
            if not settled and ((now and not self._waiting) or late):
                settled = True
                for worker in sorted(self._waiting):
                    self._tell("busy", worker=worker)
                self._tell("settled")
            await asyncio.sleep(_LOOK_EVERY if settled else _LOOK_EVERY / 10)

    def link(self, worker: str, sock: socket.socket) -> None:
        """Take the socket of a worker's link."""
        waiting = self._sockets.get(worker)
        if waiting is None or waiting.done():
            sock.close()
        else:
            sock.setblocking(False)
            waiting.set_result(sock)

    async def close(self) -> None:
        """End all hosts."""
        self._closing = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOPPED_WITHIN)

    async def _serve(self, worker: str, threads: int) -> None:
        """Start the host beside a worker, and carry the bytes of its link until one side ends."""
        seat = self._cluster.seat(worker)
        end, linked, sock = End(""), False, None
        try:
            greeting = await seat.ready(self._program.digest)
            await self._start(seat, greeting)
            opened = self._sockets[worker] = asyncio.get_running_loop().create_future()
            self._tell(
                "worker",
                worker=worker,
                threads=threads,
                python=greeting["python"],
                version=greeting["distributed"],
            )
            linked = True
            self._waiting.discard(worker)
            sock = await opened
            end = await carry(seat, sock)
        except LostError as error:
            end = End(str(error))
        except asyncio.CancelledError:
            end = End("was closed" if self._closing else "its worker left the cluster")
        finally:
            self._waiting.discard(worker)
            if linked:
                self._tell("lost", worker=worker, why=end.why, died=end.died)
            else:
                self._tell("unusable", worker=worker, why=end.why)
            self._sockets.pop(worker, None)
            if sock is not None:
                sock.close()
            with contextlib.suppress(LostError, TimeoutError):
                async with asyncio.timeout(_STOPPED_WITHIN):
                    await seat.call("stop")
            seat.release()

    async def _start(self, seat: Seat, greeting: Any) -> None:
        major, minor, *_ = map(int, str(greeting["python"]).split(".")[:2])
        if (major, minor) < (3, 11):
            raise LostError(f"its worker's Python is {greeting['python']}, and 3.11 or newer is needed")
        archive = b"" if greeting["here"] else self._program.archive
        failure = await seat.call("start", self._program.digest, archive)
        if failure:
            raise LostError(str(failure))

    def _tell(self, op: str, **fields: Any) -> None:
        with contextlib.suppress(OSError):
            self._channel.send({"op": op, **fields})


async def serve(channel: Channel, program: HostProgram) -> None:
    """Do what the messages say, until the workbench closes the channel."""
    # Imported here, so that the messages about a missing or broken Dask reach the workbench.
    from workbench.places.dask.workers import NotConnectedError, Workers

    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    opening = await loop.run_in_executor(None, channel.receive)
    if opening is None:
        return
    connecting = Workers.start(opening["workers"]) if "workers" in opening else Workers.connect(opening["address"])
    try:
        workers = await connecting
    except NotConnectedError as error:
        channel.send({"op": "failed", "why": str(error)})
        return
    client = Client(workers, channel, program)

    def read() -> None:
        if not channel.fill(wait=False):
            loop.remove_reader(channel.fileno())
            over.set()
        while channel.pending:
            message = channel.pending.popleft()
            if message["op"] == "link":
                (descriptor,) = channel.take_fds(1)
                client.link(message["worker"], socket.socket(fileno=descriptor))
            elif message["op"] == "quit":
                over.set()

    loop.add_reader(channel.fileno(), read)
    ours, schedulers = await workers.versions()
    channel.send({"op": "connected", "ours": ours, "scheduler": schedulers})
    running, ending = asyncio.create_task(client.run()), asyncio.create_task(over.wait())
    await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        channel.send({"op": "failed", "why": str(running.exception())})
    running.cancel()
    await client.close()
    await workers.close()


def main() -> None:
    """Serve the workbench that started this process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--lifeline", type=int, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Different versions are reported by us.
    for descriptor in (options.control, options.lifeline):
        os.set_inheritable(descriptor, False)
    if sys.platform == "linux":
        processes.adopt_orphans()
    threading.Thread(target=processes.die_at_end_of, args=(options.lifeline,), daemon=True).start()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # Each worker needs three.
    from workbench.places.shipping import host_sources

    channel = Channel(socket.socket(fileno=options.control))
    asyncio.run(serve(channel, HostProgram.of(host_sources())))
    if sys.platform == "linux":
        processes.kill_descendants()
    os._exit(0)


if __name__ == "__main__":
    main()
