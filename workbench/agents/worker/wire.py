"""The way of one case to the workbench: a socket of its own, or a share in that of the process."""

from __future__ import annotations

import asyncio
import collections
from typing import Any, Callable, Deque, Dict

from .frames import Channel, encode


class SocketWire(Channel):
    """A socket that carries the messages of one case only."""

    def encode(self, message: Dict[str, Any]) -> bytes:
        """The frame of a message of this case.

        Raises:
            FrameTooLargeError: it is too large.
        """
        return encode(message)

    def is_crowded(self) -> bool:
        """Whether other cases send their messages the same way."""
        return False

    def refill(self) -> bool:
        """Reads what has come to `pending`, without waiting; False if nothing more can come."""
        return self.fill(wait=False)

    async def arrived(self) -> None:
        """Returns when there is something to read."""
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()
        loop.add_reader(self.fileno(), arrived.set)
        try:
            await arrived.wait()
        finally:
            loop.remove_reader(self.fileno())


class SharedWire:
    """The share of case `number` in the way of its process: each message bears the number. As a `SocketWire`; `write`
    takes its frames."""

    def __init__(self, write: Callable[[bytes], None], number: int, is_crowded: Callable[[], bool]) -> None:
        self.write = write
        self.is_crowded = is_crowded
        self._number = number
        self.pending: Deque[Dict[str, Any]] = collections.deque()
        self._arrived = asyncio.Event()

    def put(self, message: Dict[str, Any]) -> None:
        """Takes a message that came for the case."""
        self.pending.append(message)
        self._arrived.set()

    def encode(self, message: Dict[str, Any]) -> bytes:
        return encode({**message, "id": self._number})

    def refill(self) -> bool:
        self._arrived.clear()
        return True

    async def arrived(self) -> None:
        await self._arrived.wait()

    def close(self) -> None:
        """Leaves the socket to the others. Nothing can be written any more."""
        self.write = _closed


def _closed(data: bytes) -> None:
    raise BrokenPipeError
