"""The connection to a host process on another machine, whatever carries it: ssh, Dask, or a socket pair."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from workbench.agents.channel import Frame
from workbench.places.place import OnFrame


@dataclass(frozen=True)
class End:
    """Why a link ended. `died`: its host process is known to have died, so that a case there may be the cause."""

    why: str
    died: bool = False


class HostLink(Protocol):
    """An ordered, reliable, two-way stream of messages to one host process."""

    name: str
    """The machine, as shown: a host name or a worker's address."""
    slots: int | None
    """The number of cases that it may run at a time, or None if whoever made the link does not know."""
    about: str
    """What carries it, with its version: `Dask 2026.8.0`. "" if there is nothing to say."""
    ended: asyncio.Future[str]
    """Done once, when no more messages can arrive, with the reason: "the ssh connection closed: …"."""

    host_died: bool
    """Once it has ended: whether the host process is known to have died, so that a case there may be the cause."""

    def send(self, *frames: Frame) -> None:
        """Queue messages. It never blocks. After the end, they are dropped.

        Raises:
            FrameTooLargeError: a message is too large, so none was sent.
        """
        ...

    async def close(self) -> None:
        """End the host process and everything in it."""
        ...


class Hosts(Protocol):
    """The host processes that one transport can start or reach."""

    async def open(self, on_link: Callable[[HostLink], OnFrame]) -> None:
        """Connect, and call `on_link` for each link. It returns the function that takes the link's messages.

        It returns once all machines that exist now have a link. A host that cannot be reached is a link that ends with
        the reason. `on_link` is called later for a worker that joins later.

        Raises:
            NotStartedError: nothing can be reached, such as a scheduler.
        """
        ...

    async def close(self) -> None:
        """Close all links, and what was started for them."""
        ...
