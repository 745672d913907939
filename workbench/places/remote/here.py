"""Hosts on this machine, as child processes. Tests use them in place of other machines."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from workbench.agents.child_process import how_it_ended, own_python
from workbench.places.place import OnFrame
from workbench.places.remote.link import End, HostLink
from workbench.places.remote.stream_link import StreamLink, connect

_ENDS_WITHIN = 5.0


class HereHosts:
    """A host for each of `names`. `environment` is added to theirs, `command` replaces how they are started."""

    def __init__(
        self, names: Sequence[str], environment: Mapping[str, str] | None = None, command: Sequence[str] = ()
    ) -> None:
        self._names = names
        self._environment = {**os.environ, **(environment or {})}
        self._command = command
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._on_link: Callable[[HostLink], OnFrame] | None = None
        self._links: list[StreamLink] = []

    async def open(self, on_link: Callable[[HostLink], OnFrame]) -> None:
        """Start the hosts."""
        self._on_link = on_link
        for name in self._names:
            self.add(name)

    def add(self, name: str) -> None:
        """Start one more host, which joins late."""
        assert self._on_link is not None
        command = own_python("workbench.places.host", self._environment)
        own, its = socket.socketpair()
        try:
            process = subprocess.Popen(
                [*(self._command or command.arguments), "--control", str(its.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(),),
                env=command.environment,
                cwd=Path("/"),
                start_new_session=True,
            )
        finally:
            its.close()
        self.processes[name] = process
        self._links.append(connect(StreamLink(name, own, lambda reason: _why(process, reason)), self._on_link))

    async def close(self) -> None:
        """End all hosts."""
        await asyncio.gather(*(link.close() for link in self._links))


async def _why(process: "subprocess.Popen[bytes]", reason: str) -> End:
    try:
        code = await asyncio.to_thread(process.wait, _ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        code = await asyncio.to_thread(process.wait)
    return End(reason or f"the host {how_it_ended(code)}", code != 0)
