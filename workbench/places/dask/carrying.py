"""The bytes of one link, between its socket here and the actor beside its worker."""

import asyncio
import contextlib
import socket
from typing import Any, Protocol

from workbench.agents.child_process import how_it_ended
from workbench.places.remote.link import End

_AT_ONCE = 1024 * 1024
"""Maximum bytes of one call, in either direction."""


class LostError(Exception):
    """The actor cannot be reached any more. The text says why."""


class Actor(Protocol):
    """An actor on a worker, whose methods are those of `actor.Seat`."""

    waits: float
    """Seconds that a call may wait for bytes."""

    async def ready(self) -> Any:
        """Wait until the actor is there, and return its greeting.

        Raises:
            LostError: it cannot be created or reached.
        """
        ...

    async def call(self, method: str, *arguments: Any) -> Any:
        """Return what a method returns. It is called again if its answer is lost.

        Raises:
            LostError: the actor is gone, or failed.
        """
        ...

    def release(self) -> None:
        """Let Dask forget the actor."""
        ...


async def carry(actor: Actor, sock: socket.socket) -> End:
    """Carry bytes both ways until one side ends. Return why ("": our side was closed)."""
    ways = [asyncio.create_task(_to_process(actor, sock)), asyncio.create_task(_from_process(actor, sock))]
    try:
        done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    except LostError as error:
        return End(str(error))
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _to_process(actor: Actor, sock: socket.socket) -> End:
    position = 0
    with contextlib.suppress(OSError):
        while data := await asyncio.get_running_loop().sock_recv(sock, _AT_ONCE):
            end = position + len(data)
            while position < end:
                position = await actor.call("write", position, data[position - end :])
    return End("")


async def _from_process(actor: Actor, sock: socket.socket) -> End:
    position = 0
    with contextlib.suppress(OSError):
        while True:
            data, ended = await actor.call("read", position, _AT_ONCE, actor.waits)
            await asyncio.get_running_loop().sock_sendall(sock, data)
            position += len(data)
            if ended is not None:
                code, last = ended
                return End(f"the host {how_it_ended(code)}" + (f": {last}" if last else ""), code != 0)
    return End("")
