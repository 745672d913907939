"""The bytes of links, through the real actor in this process, with calls whose answers are lost."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.places.echo_host import echo_program
from workbench.places import landing
from workbench.places.dask import actor
from workbench.places.dask.carrying import End, LostError, carry

PROGRAM = echo_program()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


class Calls:
    """Calls of an actor in this process. Every third call is made twice, as if its first answer had been lost."""

    waits = 5.0

    def __init__(self) -> None:
        self.actor = actor.sit_down(vars(landing))
        self._count = 0

    async def call(self, method: str, *arguments: Any) -> Any:
        self._count += 1
        if self._count % 3 == 0:
            await getattr(self.actor, method)(*arguments)
        return await getattr(self.actor, method)(*arguments)


@asynccontextmanager
async def carried(calls: Calls) -> AsyncIterator[tuple[socket.socket, "asyncio.Task[End]"]]:
    assert await calls.actor.start(PROGRAM.digest, PROGRAM.archive) == ""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for sock in (ours, theirs):
            sock.setblocking(False)
        carrying = asyncio.create_task(carry(calls, theirs))
        yield ours, carrying
        ours.close()
        await asyncio.wait([carrying])
        await calls.actor.stop()


async def received(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        data += await asyncio.get_running_loop().sock_recv(sock, 1 << 20)
    return bytes(data)


async def test_bytes_arrive_once_and_in_order_though_calls_are_repeated() -> None:
    sent = b"".join(b"%08d" % number for number in range(1_100_000))
    async with carried(Calls()) as (ours, _):
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(ours, sent))
        assert await received(ours, len(sent)) == sent
        await sending


async def test_client_that_reads_nothing_stops_the_host() -> None:
    calls = Calls()
    async with carried(calls) as (ours, _):
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(ours, bytes(64 << 20)))
        await asyncio.wait([sending], timeout=0.3)
        assert not sending.done()
        host = calls.actor.read.__self__._host
        assert len(host._outward) < 5 << 20
        assert len(host._inward) <= 4 << 20
        sending.cancel()


async def test_end_of_the_host_is_told_with_its_last_words() -> None:
    async with carried(Calls()) as (ours, carrying):
        await asyncio.get_running_loop().sock_sendall(ours, b'"die"')
        assert await carrying == End("the host ended with exit code 1: the host died on request", died=True)


async def test_closed_link_needs_no_reason() -> None:
    async with carried(Calls()) as (ours, carrying):
        ours.close()
        assert await carrying == End("")


async def test_lost_actor_ends_the_link() -> None:
    calls = Calls()

    async def lost(method: str, *arguments: Any) -> Any:
        raise LostError("Dask lost its worker")

    async with carried(calls) as (_, carrying):
        calls.call = lost  # type: ignore[method-assign]
        assert await carrying == End("Dask lost its worker")


async def test_forgotten_actor_ends_its_host() -> None:
    calls = Calls()
    await calls.actor.start(PROGRAM.digest, PROGRAM.archive)
    host = calls.actor.read.__self__._host
    del calls.actor
    end = await asyncio.wait_for(host.read(0, 100, 5.0), 5.0)
    assert end == (b"", (0, "this host prints"))


async def test_program_that_cannot_be_stored_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    (tmp_path / "nowhere").touch()
    (tmp_path / "agent-workbench").touch()
    why = await Calls().actor.start(PROGRAM.digest, PROGRAM.archive)
    assert why.startswith("the host program cannot be stored here (")


def test_actor_needs_nothing_but_the_standard_library() -> None:
    names: dict[str, Any] = {}
    for module in (landing, actor):
        exec(compile(Path(str(module.__file__)).read_text(encoding="utf-8"), "<shipped>", "exec"), names)
        foreign = {value.__name__ for value in names.values() if isinstance(value, type(sys))}
        assert foreign <= sys.stdlib_module_names
    # Dask pickles the type of the actor, which each Python has by the same name.
    assert type(names["sit_down"]({})) is SimpleNamespace
