"""The host processes beside the workers of a Dask cluster, seen from the workbench."""

import asyncio
import os
import re
import socket
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, own_python
from workbench.agents.interpreter import install_extra
from workbench.places.foreign_text import beginning
from workbench.places.place import NotStartedError, OnFrame
from workbench.places.remote.link import End, HostLink
from workbench.places.remote.program import HostProgram, land
from workbench.places.remote.stream_link import NoLink, StreamLink, connect

_MODULE: Final = "workbench.places.dask.client"
_WORKER_WITHIN: Final = 30.0
"""Seconds in which a first worker must join a scheduler that has none."""
_EXPLAINED_WITHIN: Final = 2.0
_ENDS_WITHIN: Final = 6.0
_PASSED_ON: Final = re.compile(
    r"DASK_(?:CONFIG|DISTRIBUTED__.*|LOGGING__.*|ROOT_CONFIG|TEMPORARY_DIRECTORY)|"
    r"HOME|LANG|LC_.*|LOGNAME|PATH|PYTHONPATH|SSL_CERT_.*|TMPDIR|TZ|USER|VIRTUAL_ENV|XDG_.*"
)
"""The environment of the client. It has no secrets, because it talks to machines of others."""
_LOOPBACK: Final = re.compile(r"localhost|127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[::1\]", re.I | re.A)
_ADDRESS: Final = re.compile(
    r"(?P<protocol>dask|tls)://(?P<host>[\w.-]+|\[[0-9A-Fa-f:.%]+\]):(?P<port>\d{1,5})", re.ASCII
)
_LOCAL: Final = re.compile(r"dask-local:([1-9]\d{0,2})")


class DaskPlaceError(Exception):
    """A place that cannot be used as it is named. `hint` says how to continue."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def target(word: str, *, insecure: bool) -> Frame:
    """Return what a place's name means to the client process.

    Raises:
        DaskPlaceError: the name is wrong, Dask is not installed, or the connection would be neither encrypted nor to
            this machine, and `insecure` does not allow that.
    """
    local, address = _LOCAL.fullmatch(word), _ADDRESS.fullmatch(word)
    if local is None and address is None:
        example = "`dask-local:2`" if word.startswith("dask-local:") else "`dask://HOST:8786`"
        raise DaskPlaceError(f"{word} is not a Dask place", f"write it like {example}")
    if find_spec("distributed") is None:
        raise DaskPlaceError("Dask is not installed", install_extra("dask"))
    if local is not None:
        return {"workers": int(local[1])}
    assert address is not None
    protocol, host, port = address.groups()
    if protocol == "tls":
        return {"address": f"tls://{host}:{port}"}
    if not insecure and not _LOOPBACK.fullmatch(host):
        raise DaskPlaceError(
            f"{word} is not encrypted, and whoever can reach that network can run code in its workers as you",
            f"use tls://{host}:{port} with Dask's certificates, or an ssh tunnel to localhost, or --insecure-place",
        )
    return {"address": f"tcp://{host}:{port}"}


class DaskHosts:
    """The workers of one scheduler. `opening` is a `target`. `on_notice` is told what may concern the user.

    A worker that joins late gets its link then. All links end if the scheduler is gone.
    """

    def __init__(
        self, opening: Frame, program: HostProgram, on_notice: Callable[[str], None] = lambda text: None
    ) -> None:
        self._opening = opening
        self._program = program
        self._on_notice = on_notice
        self._child: ChildProcess | None = None
        self._lifeline = -1
        self._links: list[StreamLink] = []
        self._joining: set[asyncio.Task[None]] = set()
        self._ends: dict[str, asyncio.Future[End]] = {}
        """Why the link of each worker ended, once that is known."""
        self._failures: list[str] = []
        self._over = ""
        """Why the cluster cannot be used any more."""
        self._changed = asyncio.Event()
        self._settled = False

    async def open(self, on_link: Callable[[HostLink], OnFrame]) -> None:
        """Connect to the scheduler, and call `on_link` for each worker beside which a host was started.

        Raises:
            NotStartedError: the scheduler cannot be reached, or has no worker that can be used.
        """
        self._on_link = on_link
        environment = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
        childs_lifeline, self._lifeline = os.pipe()
        try:
            child = self._child = ChildProcess(own_python(_MODULE, environment), childs_lifeline, self._take)
        except OSError as error:
            raise NotStartedError(f"Dask's client cannot be started: {error.strerror or error}") from None
        finally:
            os.close(childs_lifeline)
        child.ended.add_done_callback(lambda ended: self._finish(_how(child, ended.result())))
        child.channel.send({"op": "open", **self._opening})
        try:
            await self._until(lambda: self._settled and not self._joining)
            async with asyncio.timeout(_WORKER_WITHIN):
                await self._until(lambda: bool(self._links or self._failures))
            if not self._links:
                raise NotStartedError("\n".join(self._failures))
        except TimeoutError:
            await self.close()
            why = f"no worker has joined the Dask scheduler in {_WORKER_WITHIN:g} s"
            raise NotStartedError(f"{why}; start some with `dask worker ADDRESS`") from None
        except NotStartedError:
            await self.close()
            raise

    async def close(self) -> None:
        """End all hosts and the client process."""
        child, self._child = self._child, None
        if child is not None:
            await child.close(grace=_ENDS_WITHIN)
            await asyncio.gather(*(link.close() for link in self._links), *self._joining)
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self._over:
                raise NotStartedError(self._over)
            self._changed.clear()
            await self._changed.wait()

    def _take(self, frame: Frame) -> None:
        # The client process only passes on what others say.
        match frame:
            case {"op": "worker", "worker": str(worker), "threads": int(threads)} if not self._is_linked(worker):
                self._join(worker, max(1, threads), str(frame.get("version", "")))
            case {"op": "ended", "worker": str(worker), "why": str(why), "died": bool(died)}:
                self._explain(worker, End(beginning(why), died))
            case {"op": "settled"}:
                self._settled = True
            case {"op": "notice", "text": str(text)}:
                self._on_notice(beginning(text))
            case {"op": "failed", "why": str(why)}:
                self._finish(beginning(why))
        self._changed.set()

    def _join(self, worker: str, threads: int, version: str) -> None:
        """Connect a socket to the process beside a worker."""
        assert self._child is not None
        ours, childs = socket.socketpair()
        ours.setblocking(False)
        self._child.channel.send({"op": "link", "worker": worker}, descriptors=[childs.detach()])
        loop = asyncio.get_running_loop()
        self._ends[worker] = loop.create_future()
        # Threads of our own worker processes say nothing about how many cases may wait for models.
        slots = None if "workers" in self._opening else threads
        about = f"Dask {beginning(version, 40)}" if version else ""
        joining = loop.create_task(self._make_host(worker, ours, self._ends[worker], slots, about))
        self._joining.add(joining)
        joining.add_done_callback(self._joined)

    async def _make_host(
        self, worker: str, sock: socket.socket, end: "asyncio.Future[End]", slots: int | None, about: str
    ) -> None:
        """Make the process beside a worker the host, and announce its link."""

        async def explain(reason: str) -> End:
            if not reason:
                await asyncio.wait([end], timeout=_EXPLAINED_WITHIN)
            known = end.result() if end.done() and not reason else End(reason or "its link was closed")
            return End(f"{worker}: {known.why}", known.died)

        wrong = await land(sock, self._program)
        if wrong is None:
            self._links.append(connect(StreamLink(worker, sock, explain, slots, about), self._on_link))
        else:
            sock.close()
            self._fail(worker, (await explain(wrong)).why)

    def _joined(self, joining: "asyncio.Task[None]") -> None:
        self._joining.discard(joining)
        self._changed.set()

    def _is_linked(self, worker: str) -> bool:
        return worker in self._ends and not self._ends[worker].done()

    def _explain(self, worker: str, why: End) -> None:
        if self._is_linked(worker):
            self._ends[worker].set_result(why)
        elif not self._over:
            self._fail(worker, f"{worker}: {why.why}")

    def _fail(self, worker: str, why: str) -> None:
        if self._child is not None:
            self._failures.append(why)
            self._on_link(NoLink(worker, why))

    def _finish(self, why: str) -> None:
        self._over = self._over or why
        for worker in self._ends:
            self._explain(worker, End(self._over))
        self._changed.set()


def _how(child: ChildProcess, ended: str) -> str:
    return f"the process of Dask's client {ended}" + (f": {child.last_line}" if child.last_line else "")
