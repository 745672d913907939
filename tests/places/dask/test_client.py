"""The client process with a scripted cluster: workers that come, go, and cannot be used."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from workbench.agents.channel import Frame
from workbench.agents.worker.frames import Channel
from workbench.places.dask import client as client_module
from workbench.places.dask.carrying import LostError
from workbench.places.dask.client import Client


class Actor:
    """An actor whose host ends when `end` is set."""

    waits = 5.0

    def __init__(self, python: str, *, free: bool) -> None:
        self.end = asyncio.Event()
        self.calls: list[str] = []
        self.released = False
        self._python = python
        self._free = free

    async def ready(self) -> Any:
        if not self._free:
            await asyncio.Event().wait()
        return self._python, "2"

    async def call(self, method: str, *arguments: Any) -> Any:
        self.calls.append(method)
        if method == "read":
            await self.end.wait()
            return (b"", (0, "")) if arguments[0] else (b"last bytes", None)
        return "no space left" if method == "start" and self._python == "3.11.0" else ""

    def release(self) -> None:
        self.released = True


class Cluster:
    """A scheduler with scripted workers: the Python version of each, or None for a worker without a free thread."""

    def __init__(self) -> None:
        self.workers: dict[str, str | None] = {}
        self.actors: dict[str, Actor] = {}
        self.lost = False

    async def now(self) -> dict[str, int]:
        if self.lost:
            raise LostError("the connection to the Dask scheduler was lost")
        return dict.fromkeys(self.workers, 2)

    def actor(self, worker: str) -> Actor:
        python = self.workers[worker]
        self.actors[worker] = Actor(python or "3.12.1", free=python is not None)
        return self.actors[worker]


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
        client = Client(cluster, Channel(clients), "2")
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
    cluster.workers["tcp://first"] = "3.12.1"
    async with running(cluster) as (workbench, _):
        assert await workbench.told() == {"op": "worker", "worker": "first", "threads": 2, "version": "2"}
        assert await workbench.told() == {"op": "settled"}
        cluster.workers["late"] = "3.13.0"
        assert (await workbench.told())["worker"] == "late"
        del cluster.workers["tcp://first"]
        assert await workbench.told() == {
            "op": "ended",
            "worker": "first",
            "why": "its worker left the cluster",
            "died": False,
        }
    assert cluster.actors["tcp://first"].released
    assert cluster.actors["late"].calls == ["start", "stop"]


async def test_link_carries_until_the_host_ends() -> None:
    cluster = Cluster()
    cluster.workers["one"] = "3.12.1"
    async with running(cluster) as (workbench, _):
        await workbench.told()
        await workbench.told()
        ours, theirs = socket.socketpair()
        with ours:
            workbench.client.link("one", theirs)
            cluster.actors["one"].end.set()
            assert await workbench.told() == {
                "op": "ended",
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
        assert await workbench.told() == {"op": "ended", "worker": "one", "why": why, "died": False}


async def test_busy_workers_hold_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_BUSY_AFTER", 0.05)
    cluster = Cluster()
    cluster.workers |= {"busy": None, "free": "3.12.1"}
    async with running(cluster) as (workbench, _):
        told = [await workbench.told() for _ in range(3)]
    assert [frame["op"] for frame in told] == ["worker", "notice", "settled"]
    assert told[1]["text"] == "busy is busy with other work; cases start there when a thread is free"


async def test_other_version_of_dask_is_told_once() -> None:
    async with running(Cluster()) as (workbench, _):
        for version in ("2", "1", "1"):
            workbench.client.compare(version, "the scheduler")
        workbench.client.notice("next")
        text = "the scheduler has distributed 1, and this machine 2"
        assert [(await workbench.told())["text"] for _ in range(2)] == [text, "next"]


async def test_lost_scheduler_ends_the_client() -> None:
    cluster = Cluster()
    async with running(cluster) as (_, task):
        cluster.lost = True
        with pytest.raises(LostError, match="the connection to the Dask scheduler was lost"):
            await task
