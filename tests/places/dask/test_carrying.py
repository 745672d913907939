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

from tests.places.echo_host import ECHO
from workbench.places.dask import actor
from workbench.places.dask.carrying import LostError, carry
from workbench.places.remote.link import End


class Calls:
    """Calls of an actor in this process. Every third call is made twice, as if its first answer had been lost."""

    waits = 5.0

    def __init__(self) -> None:
        self.actor = actor.sit_down()
        self._count = 0

    async def ready(self) -> Any: ...

    def release(self) -> None: ...

    async def call(self, method: str, *arguments: Any) -> Any:
        self._count += 1
        if self._count % 3 == 0:
            await getattr(self.actor, method)(*arguments)
        return await getattr(self.actor, method)(*arguments)


@asynccontextmanager
async def carried(calls: Calls) -> AsyncIterator[tuple[socket.socket, "asyncio.Task[End]"]]:
    assert await calls.actor.start(ECHO) == ""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for sock in (ours, theirs):
            sock.setblocking(False)
        carrying = asyncio.create_task(carry(calls, theirs))
        yield ours, carrying
        ours.close()
        await asyncio.wait([carrying])
        await calls.actor.stop()


async def sent_until_full(sock: socket.socket, data: bytes) -> int:
    """Send until nothing has been taken for a while. Return the number of bytes that are left."""
    rest, waited = memoryview(data), 0
    while rest and waited < 20:
        try:
            rest, waited = rest[sock.send(rest) :], 0
        except BlockingIOError:
            waited += 1
            await asyncio.sleep(0.01)
    return len(rest)


async def received(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        data += await asyncio.get_running_loop().sock_recv(sock, 1 << 20)
    return bytes(data)


async def test_bytes_arrive_once_and_in_order_though_calls_are_repeated() -> None:
    sent = b"".join(b"%08d" % number for number in range(400_000))
    async with carried(Calls()) as (ours, _):
        sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(ours, sent))
        assert await received(ours, len(sent)) == sent
        await sending


async def test_client_that_reads_nothing_stops_the_host() -> None:
    calls = Calls()
    async with carried(calls) as (ours, _):
        left = await sent_until_full(ours, bytes(64 << 20))
        assert left > 56 << 20


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


async def test_forgotten_actor_ends_its_process() -> None:
    calls = Calls()
    await calls.actor.start(ECHO)
    process = calls.actor.read.__self__._process
    assert await calls.actor.read(0, 100, 0.0) == (b"", None)
    del calls.actor
    assert await asyncio.to_thread(process.wait, 5.0) == 0


async def test_late_repetition_of_an_answered_call_does_nothing() -> None:
    one = Calls().actor
    await one.start(ECHO)
    assert await one.write(0, b"one") == 3
    assert await one.write(0, b"one, two") == 8
    with pytest.raises(ValueError, match="bytes from 8 to 9 are missing"):
        await one.write(9, b"x")
    assert await one.read(0, 4, 5.0) in [(b"one", None), (b"one,", None)]
    again, _ = await one.read(0, 4, 5.0)
    following, _ = await one.read(len(again), 4, 5.0)
    assert b"one, two".startswith(again + following)
    assert await one.read(0, 4, 5.0) == (b"", None)
    assert await one.stop() == (0, "this host prints")


async def test_process_does_not_get_what_dask_sets_for_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PYTHONHASHSEED": "6640", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"}.items():
        monkeypatch.setenv(name, value)
    one = Calls().actor
    await one.start("import os; print(*(os.environ.get(name + '_NUM_THREADS') for name in ('OMP', 'MKL')))")
    assert await one.read(0, 100, 5.0) == (b"None 2\n", None)
    await one.stop()


async def test_process_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert "No such file or directory: '/nowhere/python'" in await Calls().actor.start(ECHO)


def test_actor_needs_nothing_but_the_standard_library() -> None:
    names: dict[str, Any] = {}
    exec(compile(Path(str(actor.__file__)).read_text(encoding="utf-8"), "<shipped>", "exec"), names)
    foreign = {value.__name__ for value in names.values() if isinstance(value, type(sys))}
    assert foreign <= sys.stdlib_module_names
    # Dask pickles the type of the actor, which each Python has by the same name.
    assert type(names["sit_down"]()) is SimpleNamespace
