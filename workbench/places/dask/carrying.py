"""The bytes of one link, between its socket here and the actor beside its host."""

import asyncio
import socket
from dataclasses import dataclass
from typing import Any, Protocol

from workbench.agents.child_process import how_it_ended

_WRITTEN = 1024 * 1024
"""Maximum bytes of one call to the host, and of one call from it."""
_READ = 4 * 1024 * 1024


class LostError(Exception):
    """The actor cannot be reached any more. The text says why."""


@dataclass(frozen=True)
class End:
    """Why a link ended ("": our side was closed), and whether its host has died."""

    why: str
    died: bool = False


class Calls(Protocol):
    """The methods of an actor (`actor.Seat`)."""

    @property
    def waits(self) -> float:
        """Seconds that a call may wait for bytes from the host."""
        ...

    async def call(self, method: str, *arguments: Any) -> Any:
        """Return what a method returns. It is called again if its answer is lost.

        Raises:
            LostError: the actor is gone, or failed.
        """
        ...


async def carry(actor: Calls, sock: socket.socket) -> End:
    """Carry bytes both ways until one side ends."""
    ways = [asyncio.create_task(_to_host(actor, sock)), asyncio.create_task(_from_host(actor, sock))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        ended = await asyncio.gather(*ways, return_exceptions=True)
    for end in ended:
        if isinstance(end, LostError):
            return End(str(end))
    return next((end for end in ended if isinstance(end, End)), End(""))


async def _to_host(actor: Calls, sock: socket.socket) -> None:
    position = 0
    try:
        while data := await asyncio.get_running_loop().sock_recv(sock, _WRITTEN):
            end = position + len(data)
            while position < end:
                position = await actor.call("write", position, data[len(data) - (end - position) :])
    except OSError:
        return


async def _from_host(actor: Calls, sock: socket.socket) -> End | None:
    """Return how the host ended, or None if our side was closed."""
    position = 0
    try:
        while True:
            data, end = await actor.call("read", position, _READ, actor.waits)
            await asyncio.get_running_loop().sock_sendall(sock, data)
            position += len(data)
            if end is not None:
                code, last = end
                return End(f"the host {how_it_ended(code)}" + (f": {last}" if last else ""), code != 0)
    except OSError:
        return None
