"""A case's connection to the workbench: its own socket, or a share of the process's socket."""

from __future__ import annotations

import asyncio
import collections
from typing import Any, Callable, Deque, Dict

from .frames import Channel, encode


class SocketWire(Channel):
    """A socket that carries the messages of one case only."""

    def encode(self, message: Dict[str, Any]) -> bytes:
        """Return the frame of a message of this case.

        Raises:
            FrameTooLargeError: it is too large.
        """
        return encode(message)

    def is_crowded(self) -> bool:
        """Return whether other cases use the same socket."""
        return False

    def refill(self) -> bool:
        """Read available data into `pending` without waiting. Return False if no more data can arrive."""
        return self.fill(wait=False)

    async def wait_for_data(self) -> None:
        """Wait until there is something to read."""
        loop = asyncio.get_running_loop()
        has_data = asyncio.Event()
        loop.add_reader(self.fileno(), has_data.set)
        try:
            await has_data.wait()
        finally:
            loop.remove_reader(self.fileno())


class SharedWire:
    """The share of case `number` in its process's socket. Each message carries the number.

    It has the interface of a `SocketWire`; `write` takes its frames.
    """

    def __init__(self, write: Callable[[bytes], None], number: int, is_crowded: Callable[[], bool]) -> None:
        self.write = write
        self.is_crowded = is_crowded
        self._number = number
        self.pending: Deque[Dict[str, Any]] = collections.deque()
        self._has_data = asyncio.Event()

    def put(self, message: Dict[str, Any]) -> None:
        """Add a message for the case."""
        self.pending.append(message)
        self._has_data.set()

    def encode(self, message: Dict[str, Any]) -> bytes:
        """Return the frame of a message, with the case's number."""
        return encode({**message, "id": self._number})

    def refill(self) -> bool:
        """Note that the available data was read. Return True."""
        self._has_data.clear()
        return True

    async def wait_for_data(self) -> None:
        """Wait until there is a message."""
        await self._has_data.wait()

    def close(self) -> None:
        """Leave the socket to the other cases. Writing fails afterwards."""
        self.write = _closed


def _closed(data: bytes) -> None:
    raise BrokenPipeError
