"""The bundle of a run, made once for all machines, and its way to each of them."""

import asyncio
import hashlib
import os
import platform
import re
from collections.abc import Callable, Collection
from pathlib import Path

from workbench.agents.channel import Frame
from workbench.places.bundle.contents import BundleError, read_contents
from workbench.places.bundle.recipe import recipes_of
from workbench.places.bundle.sending import (
    Bundle,
    ChangedError,
    InvalidAnswerError,
    NotPreparedError,
    Sending,
    Unpacked,
)

_TRIES = 2
"""Times that the files are read if they change while they are sent."""


class ProjectBundle:
    """The bundle of the project at `root`.

    `agents` are pairs of an agent's folder and its interpreter. `state` is the project's state folder, or None.
    `remote_python` is an interpreter of the machines, or "".
    """

    def __init__(
        self,
        root: Path,
        agents: Collection[tuple[Path, Path]],
        *,
        state: Path | None = None,
        remote_python: str = "",
    ) -> None:
        self._root, self._agents, self._state, self._remote_python = root, tuple(agents), state, remote_python
        self._bundle: Bundle | None = None
        self._reading = asyncio.Lock()
        self.missing: dict[str, str] = {}
        """Packages that no machine will have, with the reasons. It is known once the bundle was read."""

    async def current(self, outdated: Bundle | None = None) -> Bundle:
        """Return the bundle. It is read at the first call, and again once it is `outdated`.

        Raises:
            BundleError: the project cannot travel.
        """
        async with self._reading:
            if self._bundle is None or self._bundle is outdated:
                self._bundle = await asyncio.to_thread(self._read)
            return self._bundle

    def _read(self) -> Bundle:
        contents = read_contents(self._root, self._state)
        made = recipes_of(self._agents, self._root, self._remote_python)
        self.missing = {name: why for one in made for name, why in one.missing.items()}
        return Bundle(contents, tuple(one.recipe for one in made), project_name(self._root))


class Transfer:
    """The way of a bundle to one machine. `send` queues a message to it, and `take` gets its answers."""

    def __init__(self, project: ProjectBundle, send: Callable[[Frame], None]) -> None:
        self._project, self._send = project, send
        self._sending: Sending | None = None
        self._answered = asyncio.Event()
        self._failure: Exception | None = None
        self._sent_before = 0

    @property
    def sent(self) -> int:
        """Bytes that were sent so far."""
        return self._sent_before + (0 if self._sending is None else self._sending.sent)

    @property
    def needed(self) -> int:
        """Bytes of the files that the machine lacked."""
        return 0 if self._sending is None else self._sending.needed

    def take(self, frame: Frame) -> None:
        """Take a message `need`, `got`, `ready` or `unready`. `prepare` raises what is wrong with it."""
        if self._sending is not None and self._failure is None:
            try:
                self._sending.take(frame)
            except (InvalidAnswerError, NotPreparedError) as error:
                self._failure = error
        self._answered.set()

    async def prepare(self) -> Unpacked:
        """Send what the machine lacks, wait until it is ready, and return where the project is there.

        Cancel it when the connection ends.

        Raises:
            BundleError: the project cannot travel, to no machine.
            NotPreparedError: this machine cannot use it.
            InvalidAnswerError: the machine broke the protocol.
        """
        bundle = await self._project.current()
        for tried in range(1, _TRIES + 1):
            self._sent_before, self._sending = self.sent, Sending(bundle)
            try:
                return await self._send_all(self._sending)
            except ChangedError as error:
                if tried == _TRIES:
                    raise NotPreparedError(f"{error} changes again and again while it is sent") from None
                bundle = await self._project.current(bundle)
            finally:
                self._sending.close()
        raise AssertionError("unreachable")

    async def _send_all(self, sending: Sending) -> Unpacked:
        for frame in await asyncio.to_thread(lambda: list(sending.begin())):
            self._send(frame)
        while True:
            self._answered.clear()
            if self._failure is not None:
                raise self._failure
            if sending.unpacked is not None:
                return sending.unpacked
            frame_or_none = await asyncio.to_thread(sending.next_message)
            if frame_or_none is not None:
                self._send(frame_or_none)
            else:
                await self._answered.wait()


def project_name(root: Path) -> str:
    """Return the name of a project on other machines: that of its folder, and a digest of where it is."""
    own = f"{platform.node()}\0{os.getuid()}\0".encode() + os.fsencode(os.path.realpath(root))
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", root.name).strip("-_")[:40] or "project"
    return f"{readable}-{hashlib.sha256(own).hexdigest()[:16]}"


__all__ = ["BundleError", "InvalidAnswerError", "NotPreparedError", "ProjectBundle", "Transfer", "Unpacked"]
