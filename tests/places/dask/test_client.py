"""The client process with a scripted cluster: workers that come, go, and cannot be used."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.places.echo_host import echo_program
from workbench.agents.channel import Frame
from workbench.agents.worker.frames import Channel
from workbench.places.dask import client as client_module
from workbench.places.dask.carrying import LostError
from workbench.places.dask.client import Client


class Seat:
    """An actor whose host ends when `end` is set."""

    waits = 5.0

    def __init__(self, python: str, *, free: bool) -> None:
        self.end = asyncio.Event()
        self.calls: list[str] = []
        self.released = False
        self._python = python
        self._free = free

    async def ready(self, digest: str) -> Any:
        if not self._free:
            await asyncio.Event().wait()
        return {"here": False, "python": self._python, "distributed": "2"}

    async def call(self, method: str, *arguments: Any) -> Any:
        self.calls.append(method)
        if method == "read":
            await self.end.wait()
            return b"last bytes", (0, "")
        return "no space left" if method == "start" and self._python == "3.11.0" else ""

    def release(self) -> None:
        self.released = True


class Cluster:
    """A scheduler with scripted workers: the Python version of each, or None for a worker without a free thread."""

    def __init__(self) -> None:
        self.workers: dict[str, str | None] = {}
        self.seats: dict[str, Seat] = {}
        self.lost = False

    async def now(self) -> dict[str, int]:
        if self.lost:
            raise LostError("the connection to the Dask scheduler was lost")
        return dict.fromkeys(self.workers, 2)

    def seat(self, worker: str) -> Seat:
        python = self.workers[worker]
        self.seats[worker] = Seat(python or "3.12.1", free=python is not None)
        return self.seats[worker]


class Workbench:
    """The workbench's end of the channel."""

    def __init__(self, sock: socket.socket, client: Client) -> None:
        self._channel = Channel(sock)
        self.client = client

    async def told(self) -> Frame:
        while not self._channel.pending:
            assert await asyncio.to_thread(self._channel.fill)
        return self._channel.pending.popleft()


@asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[tuple[Workbench, "asyncio.Task[None]"]]:
    ours, clients = socket.socketpair()
    with ours, clients:
        client = Client(cluster, Channel(clients), echo_program())
        task = asyncio.create_task(client.run())
        yield Workbench(ours, client), task
        task.cancel()
        await client.close()


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(client_module, "_STOPPED_WITHIN", 0.1)


async def test_workers_that_come_and_go_are_told() -> None:
    cluster = Cluster()
    cluster.workers["first"] = "3.12.1"
    async with running(cluster) as (workbench, _):
        told = await workbench.told()
        assert told == {"op": "worker", "worker": "first", "threads": 2, "python": "3.12.1", "version": "2"}
        assert await workbench.told() == {"op": "settled"}
        cluster.workers["late"] = "3.13.0"
        assert (await workbench.told())["worker"] == "late"
        del cluster.workers["first"]
        assert await workbench.told() == {
            "op": "lost",
            "worker": "first",
            "why": "its worker left the cluster",
            "died": False,
        }
    assert cluster.seats["first"].released
    assert cluster.seats["late"].calls == ["start", "stop"]


async def test_link_carries_until_the_host_ends() -> None:
    cluster = Cluster()
    cluster.workers["one"] = "3.12.1"
    async with running(cluster) as (workbench, _):
        await workbench.told()
        await workbench.told()
        ours, theirs = socket.socketpair()
        with ours:
            workbench.client.link("one", theirs)
            cluster.seats["one"].end.set()
            assert await workbench.told() == {
                "op": "lost",
                "worker": "one",
                "why": "the host ended with exit code 0",
                "died": False,
            }
            assert ours.recv(100) == b"last bytes"
            assert ours.recv(100) == b""


@pytest.mark.parametrize(
    ("python", "why"),
    [
        ("3.10.13", "its worker's Python is 3.10.13, and 3.11 or newer is needed"),
        ("3.11.0", "no space left"),
    ],
)
async def test_worker_of_no_use_is_told(python: str, why: str) -> None:
    cluster = Cluster()
    cluster.workers["one"] = python
    async with running(cluster) as (workbench, _):
        assert await workbench.told() == {"op": "unusable", "worker": "one", "why": why}


async def test_busy_workers_hold_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_BUSY_AFTER", 0.05)
    cluster = Cluster()
    cluster.workers |= {"busy": None, "free": "3.12.1"}
    async with running(cluster) as (workbench, _):
        told = [await workbench.told() for _ in range(3)]
    assert [frame["op"] for frame in told] == ["worker", "busy", "settled"]


async def test_lost_scheduler_ends_the_client() -> None:
    cluster = Cluster()
    async with running(cluster) as (_, task):
        cluster.lost = True
        with pytest.raises(LostError, match="the connection to the Dask scheduler was lost"):
            await task
