"""The actor beside which a host process runs, and which carries bytes to and from it.

The text of this module is sent to workers and executed there, so it imports only the standard library. Nothing of it is
pickled, which would fail between different versions of Python. The positions that both directions carry make each call
repeatable.
"""

import asyncio
import contextlib
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
from types import SimpleNamespace
from typing import IO, Any

_KEPT = 4 * 1024 * 1024
"""Bytes that wait in one direction before the writer has to wait."""
_READ = 256 * 1024
_WAIT = 5.0
"""Maximum seconds of a call that waits."""
_ENDS_WITHIN = 5.0
"""Seconds that the host has to end after its connection was closed."""
_LAST_WORDS = 2000

End = tuple[int, str]
"""How a host ended: its exit code (negative: a signal), and the last line that it printed."""


class Host:
    """A running host process, and the bytes that wait in both directions.

    It ends when its end of the socket pair is closed, which the death of the worker's process does as well.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", sock: socket.socket, printed: IO[bytes]) -> None:
        self._process = process
        self._socket = sock
        self._printed = printed
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Condition()
        self._inward = bytearray()
        self._taken = 0
        """Bytes taken from the client so far."""
        self._outward = bytearray()
        self._confirmed = 0
        """Bytes that the client has confirmed. `_outward` begins there."""
        self._end: End | None = None
        self._tasks = [self._loop.create_task(self._pump_in()), self._loop.create_task(self._pump_out())]
        self._tasks[1].add_done_callback(self._over)

    async def write(self, at: int, data: bytes) -> int:
        """Take what is new of the bytes from position `at` on, as far as there is room. Return the next position."""
        async with self._changed:
            await self._until(lambda: len(self._inward) < _KEPT or self._end is not None)
            if at > self._taken:
                raise ValueError(f"bytes from {self._taken} to {at} are missing")
            new = data[self._taken - at :][: max(0, _KEPT - len(self._inward))]
            if self._end is None:
                self._inward += new
            else:
                new = data[self._taken - at :]
            self._taken += len(new)
            self._changed.notify_all()
            return self._taken

    async def read(self, after: int, limit: int, wait: float) -> "tuple[bytes, End | None]":
        """Confirm the bytes before position `after`. Return the following ones, and why there will be no more."""
        async with self._changed:
            if after > self._confirmed:
                del self._outward[: after - self._confirmed]
                self._confirmed = after
                self._changed.notify_all()
            await self._until(lambda: bool(self._outward) or self._end is not None, wait)
            if after < self._confirmed:
                return b"", None  # A call that was repeated, and has been answered.
            data = bytes(self._outward[:limit])
            return data, self._end if len(data) == len(self._outward) else None

    def close(self) -> None:
        """Close the host's connection. It ends, or is killed soon."""
        for task in self._tasks:
            task.cancel()

    async def stop(self) -> None:
        """Close the connection and wait until the host has ended."""
        self.close()
        async with self._changed:
            await self._until(lambda: self._end is not None, _WAIT + _ENDS_WITHIN)

    async def _until(self, condition: Any, wait: float = _WAIT) -> None:
        try:
            async with asyncio.timeout(min(wait, _WAIT + _ENDS_WITHIN)):
                await self._changed.wait_for(condition)
        except TimeoutError:
            return

    async def _pump_in(self) -> None:
        try:
            while True:
                async with self._changed:
                    await self._changed.wait_for(lambda: self._inward)
                    data = bytes(self._inward[:_READ])
                await self._loop.sock_sendall(self._socket, data)
                async with self._changed:
                    del self._inward[: len(data)]
                    self._changed.notify_all()
        except OSError:
            return  # The host has ended, which the other direction notices.

    async def _pump_out(self) -> None:
        try:
            while data := await self._loop.sock_recv(self._socket, _READ):
                async with self._changed:
                    self._outward += data
                    self._changed.notify_all()
                    await self._changed.wait_for(lambda: len(self._outward) < _KEPT)
        except OSError:
            return

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._socket.close()
        self._ending = self._loop.create_task(self._reap())

    async def _reap(self) -> None:
        end = await self._loop.run_in_executor(None, self._wait)
        async with self._changed:
            self._end = end
            self._changed.notify_all()

    def _wait(self) -> "End":
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_WITHIN)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        size = self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, size - _LAST_WORDS))
        lines = self._printed.read().decode("utf-8", "replace").strip().splitlines()
        self._printed.close()
        return code, lines[-1] if lines else ""


class Seat:
    """What the actor's methods do. `landing` has the functions of the landing module."""

    def __init__(self, landing: Any) -> None:
        self._landing = landing
        self._host: Host | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def greet(self, digest: str) -> dict[str, Any]:
        """Return whether the host program is on this machine, and the versions here."""
        return {
            "here": self._landing.landed(digest) is not None,
            "python": platform.python_version(),
            "distributed": getattr(sys.modules.get("distributed"), "__version__", ""),
        }

    async def start(self, digest: str, archive: bytes) -> str:
        """Start the host process, from `archive` if the program is not here. Return why it failed, or ""."""
        if self._host is not None:
            return ""  # A call that was repeated.
        self._loop = asyncio.get_running_loop()
        ours, hosts = socket.socketpair()
        try:
            process, printed = await self._loop.run_in_executor(None, self._start, digest, archive, hosts.fileno())
        except Exception as error:
            ours.close()
            return f"the host program {error}" if type(error).__name__ == "NotLandedError" else f"{error}"
        finally:
            hosts.close()
        ours.setblocking(False)
        self._host = Host(process, ours, printed)
        return ""

    async def write(self, at: int, data: bytes) -> int:
        """See `Host.write`."""
        assert self._host is not None
        return await self._host.write(at, bytes(data))

    async def read(self, after: int, limit: int, wait: float) -> "tuple[bytes, End | None]":
        """See `Host.read`."""
        assert self._host is not None
        return await self._host.read(after, limit, wait)

    async def stop(self) -> None:
        """End the host and wait for it."""
        if self._host is not None:
            await self._host.stop()

    def __del__(self) -> None:
        # Dask forgets the actor when its client is gone.
        if self._host is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._host.close)

    def _start(self, digest: str, archive: bytes, control: int) -> tuple["subprocess.Popen[bytes]", IO[bytes]]:
        folder = self._landing.landed(digest) or self._landing.land(digest, bytes(archive))
        printed = tempfile.TemporaryFile()  # noqa: SIM115 - the host outlives this call
        process = subprocess.Popen(
            self._landing.host_arguments(folder, "--control", str(control)),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            pass_fds=(control,),
            start_new_session=True,
        )
        return process, printed


def sit_down(landing: dict[str, Any]) -> SimpleNamespace:
    """Return the actor. Its class is one of the standard library's, so that Dask can pickle it by name."""
    seat = Seat(SimpleNamespace(**landing))
    return SimpleNamespace(greet=seat.greet, start=seat.start, write=seat.write, read=seat.read, stop=seat.stop)
