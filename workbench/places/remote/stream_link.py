"""A link over a connected socket, at whose other end a host process reads and writes frames."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from workbench.agents.channel import Channel, Frame
from workbench.places.place import OnFrame
from workbench.places.remote.link import End, HostLink


class StreamLink:
    """A `HostLink` over a socket, which it takes over.

    `explain` is awaited once when the stream has ended, and returns the reason. It gets what was wrong with the stream,
    or "" if the other side closed it.
    """

    host_died = False

    def __init__(
        self,
        name: str,
        sock: socket.socket,
        explain: Callable[[str], Awaitable[End]],
        slots: int | None = None,
        about: str = "",
    ) -> None:
        self.name = name
        self.slots = slots
        self.about = about
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.on_frame: OnFrame = _drop
        self._explain = explain
        self._channel = Channel(sock, self._take, self._over)
        self._explaining: asyncio.Task[None] | None = None

    def send(self, *frames: Frame) -> None:
        """Queue messages. After the end, they are dropped.

        Raises:
            FrameTooLargeError: a message is too large, so none was sent.
        """
        self._channel.send(*frames)

    async def close(self) -> None:
        """Close the socket, and wait until the other side is gone."""
        self._channel.close()
        self._over("was closed")
        await asyncio.shield(self.ended)

    def _take(self, frame: Frame) -> None:
        self.on_frame(frame, self._channel.frame_bytes)

    def _over(self, reason: str) -> None:
        if self._explaining is None:
            self._explaining = asyncio.get_running_loop().create_task(self._end(reason))

    async def _end(self, reason: str) -> None:
        end = await self._explain(reason)
        self.host_died = end.died and not reason
        self.ended.set_result(end.why)


class NoLink:
    """The link of a machine on which no host could be started. It has ended from the start."""

    slots: int | None = None
    about = ""
    host_died = False

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.ended.set_result(why)

    def send(self, *frames: Frame) -> None:
        """Drop messages."""

    async def close(self) -> None:
        """Do nothing."""


def connect(link: StreamLink, on_link: Callable[[HostLink], OnFrame]) -> StreamLink:
    """Announce a link, before its first message can arrive."""
    link.on_frame = on_link(link)
    return link


def _drop(frame: Frame, size: int) -> None:
    return
