"""The child process with the Dask client: it creates an actor on each worker and carries the bytes of their links.

→ `{"op": "open", "address"}`, or `{"op": "open", "workers"}` for a cluster of worker processes on this machine
→ `{"op": "link", "worker"}` with the socket of a worker's link
→ `{"op": "quit"}`, or the end of the socket
← `{"op": "worker", "worker", "threads", "version"}`: a process that can become a host waits for its link there
← `{"op": "ended", "worker", "why", "died"}`: the link of this worker ends now, or it gets none; `died`: its host died
← `{"op": "settled"}`: all workers of the beginning were named
← `{"op": "notice", "text"}`: something that the user may want to know
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
from workbench.places.dask.carrying import Actor, LostError, carry
from workbench.places.dask.plain_pickles import read_pickles_as_data
from workbench.places.remote.link import End
from workbench.places.remote.program import BOOT

_LOOK_EVERY = 1.0
"""Seconds between two looks at the workers of the scheduler."""
_BUSY_AFTER = 10.0
_STOPPED_WITHIN = 1.5
"""Seconds that hosts get to end when we end. Afterwards Dask forgets their actors, which ends them as well."""


class Cluster(Protocol):
    """A connection to a scheduler (`workers.Workers`)."""

    async def now(self) -> dict[str, int]:
        """Return the number of threads of each worker, by address.

        Raises:
            LostError: the scheduler is gone.
        """
        ...

    def actor(self, worker: str) -> Actor:
        """Create an actor on a worker."""
        ...


class Client:
    """The links to the workers of a cluster. `channel` leads to the workbench, `version` is our one of distributed."""

    def __init__(self, cluster: Cluster, channel: Channel, version: str) -> None:
        self._cluster = cluster
        self._channel = channel
        self._versions = {version}
        """Versions of distributed that need no notice."""
        self._version = version
        self._sockets: dict[str, asyncio.Future[socket.socket]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: set[str] = set()
        """Workers of which the workbench knows nothing yet."""
        self._named = asyncio.Event()
        self._closing = False

    async def run(self) -> None:
        """Serve the workers that are there, and those that join, until the scheduler is gone.

        Raises:
            LostError: it is gone.
        """
        loop = asyncio.get_running_loop()
        began, settled = loop.time(), False
        while True:
            now = await self._cluster.now()
            for worker in now.keys() - self._tasks.keys():
                self._waiting.add(worker)
                self._tasks[worker] = loop.create_task(self._serve(worker, now[worker]))
            for worker in self._tasks.keys() - now.keys():
                self._tasks.pop(worker).cancel()
            self._waiting &= now.keys()
            if not settled and ((now and not self._waiting) or loop.time() - began > _BUSY_AFTER):
                settled = True
                for worker in sorted(self._waiting):
                    self.notice(f"{_name(worker)} is busy with other work; cases start there when a thread is free")
                self._tell("settled")
            self._named.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._named.wait(), _LOOK_EVERY)

    def link(self, name: str, sock: socket.socket) -> None:
        """Take the socket of a worker's link."""
        waiting = self._sockets.get(name)
        if waiting is None or waiting.done():
            sock.close()
        else:
            sock.setblocking(False)
            waiting.set_result(sock)

    def compare(self, version: str, whose: str) -> None:
        """Report a version of Dask that is not ours, once."""
        if version not in self._versions:
            self._versions.add(version)
            self.notice(f"{whose} has distributed {version}, and this machine {self._version}")

    def notice(self, text: str) -> None:
        """Tell the user something."""
        self._tell("notice", text=text)

    async def close(self) -> None:
        """End all hosts."""
        self._closing = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOPPED_WITHIN)

    async def _serve(self, worker: str, threads: int) -> None:
        """Start a process beside a worker, and carry the bytes of its link until one side ends."""
        actor, name = self._cluster.actor(worker), _name(worker)
        opened = self._sockets[name] = asyncio.get_running_loop().create_future()
        end = End("")
        try:
            version = await self._start(actor, name)
            self._tell("worker", worker=name, threads=threads, version=version)
            self._know(worker)
            with await opened as sock:
                end = await carry(actor, sock)
        except LostError as error:
            end = End(str(error))
        except (TypeError, ValueError, AttributeError):
            end = End("its worker sent something that is not an answer")
        except asyncio.CancelledError:
            end = End("was closed" if self._closing else "its worker left the cluster")
        finally:
            opened.cancel()
            self._tell("ended", worker=name, why=end.why, died=end.died)
            self._know(worker)
            with contextlib.suppress(LostError, TimeoutError):
                await asyncio.wait_for(actor.call("stop"), _STOPPED_WITHIN)
            actor.release()

    async def _start(self, actor: Actor, name: str) -> str:
        """Start the process beside a worker, and return the version of distributed there."""
        python, version = await actor.ready()
        self.compare(version, name)
        if tuple(map(int, python.split(".")[:2])) < (3, 11):
            raise LostError(f"its worker's Python is {python}, and 3.11 or newer is needed")
        if failure := await actor.call("start", BOOT):
            raise LostError(failure)
        return str(version)

    def _know(self, worker: str) -> None:
        self._waiting.discard(worker)
        self._named.set()

    def _tell(self, op: str, **fields: Any) -> None:
        with contextlib.suppress(OSError):
            self._channel.send({"op": op, **fields})


def _name(worker: str) -> str:
    """Return a worker's address without its protocol, which is how the workbench knows it."""
    return worker.partition("://")[2] or worker


async def serve(channel: Channel) -> None:
    """Do what the messages say, until the workbench closes the channel."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    opening = await loop.run_in_executor(None, channel.receive)
    if opening is None:
        return
    if "workers" not in opening:
        read_pickles_as_data()
    # Imported here, so that the messages about a missing or broken Dask reach the workbench.
    from workbench.places.dask.workers import NotConnectedError, Workers

    connecting = Workers.start(opening["workers"]) if "workers" in opening else Workers.connect(opening["address"])
    try:
        workers = await connecting
    except NotConnectedError as error:
        channel.send({"op": "failed", "why": str(error)})
        return
    ours, schedulers = await workers.versions()
    client = Client(workers, channel, ours)
    client.compare(schedulers, "the scheduler")

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
    asyncio.run(serve(Channel(socket.socket(fileno=options.control))))
    if sys.platform == "linux":
        processes.kill_descendants()
    os._exit(0)


if __name__ == "__main__":
    main()
