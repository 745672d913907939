"""The actor beside a worker: it starts a process there, and carries bytes to and from it.

The text of this module is sent to workers and executed there, so it imports only the standard library. Nothing of it is
pickled, which would fail between different versions of Python. Both directions count bytes, so that each call can be
repeated.
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
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import IO, Any

_WAIT = 5.0
"""Maximum seconds of a call that waits."""
_ENDS_WITHIN = 5.0
"""Seconds that the process has to end after its connection was closed."""
_LAST_WORDS = 2000
_NANNYS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "PYTHONHASHSEED": "6640",
}
"""Variables that Dask's nanny sets for its worker by default. Agents would behave differently with them."""

End = tuple[int, str]
"""How a process ended: its exit code (negative: a signal), and the last line that it printed."""


class Seat:
    """What the actor's methods do. No bytes are kept but those of one call in each direction.

    The process ends when the other end of its standard input and output is closed, which the death of the worker's
    process does as well.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._taken = 0
        """Bytes taken from the client so far."""
        self._sending: asyncio.Task[None] | None = None
        self._confirmed = 0
        """Bytes that the client has confirmed. `_kept` are the following ones, if they were read already."""
        self._kept = b""
        self._receiving: asyncio.Task[bytes] | None = None
        self._ending: asyncio.Task[End] | None = None

    async def greet(self) -> tuple[str, str]:
        """Return the versions of Python and distributed here."""
        return platform.python_version(), str(getattr(sys.modules.get("distributed"), "__version__", ""))

    async def start(self, code: str) -> str:
        """Run code with the worker's Python in a process and a session of its own. Return why that failed, or ""."""
        if self._process is not None:
            return ""  # A call that was repeated.
        self._loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as opened:
            ours, its = map(opened.enter_context, socket.socketpair())
            try:
                self._printed = opened.enter_context(tempfile.TemporaryFile())
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", code],
                    stdin=its.fileno(),
                    stdout=its.fileno(),
                    stderr=self._printed,
                    env={name: value for name, value in os.environ.items() if _NANNYS.get(name) != value},
                    start_new_session=True,
                )
            except OSError as error:
                return f"no process can be started: {error}"
            opened.pop_all()
        its.close()
        ours.setblocking(False)
        self._socket = ours
        return ""

    async def write(self, at: int, data: bytes) -> int:
        """Take what is new of the bytes from position `at` on, or nothing if the process is slow.

        Return the next position.
        """
        while self._sending is not None and not self._sending.done():
            if not (await asyncio.wait([self._sending], timeout=_WAIT))[0]:
                return self._taken
        if at > self._taken:
            raise ValueError(f"bytes from {self._taken} to {at} are missing")
        new = data[self._taken - at :]
        self._taken += len(new)
        self._sending = asyncio.create_task(_send(self._socket, bytes(new)))
        return self._taken

    async def read(self, after: int, limit: int, wait: float) -> "tuple[bytes, End | None]":
        """Confirm the bytes before position `after`. Return the following ones, or how the process has ended."""
        if after == self._confirmed + len(self._kept):
            self._confirmed, self._kept = after, b""
            if self._receiving is None:
                self._receiving = asyncio.create_task(_receive(self._socket, limit))
            await asyncio.wait([self._receiving], timeout=min(wait, _WAIT))
        if after != self._confirmed:
            return b"", None  # A call that was repeated, and has been answered.
        if self._receiving is not None and self._receiving.done():
            self._kept = self._receiving.result()
            if not self._kept:
                return b"", await self.stop()
            self._receiving = None
        return self._kept, None

    async def stop(self) -> "End | None":
        """Close the connection, and wait until the process has ended, or kill it."""
        if self._process is None:
            return None
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return await asyncio.shield(self._ending)

    def __del__(self) -> None:
        # Dask forgets the actor when its client is gone.
        if self._process is not None and self._ending is None and not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)

    def _end(self) -> "Coroutine[Any, Any, End]":
        assert self._process is not None
        tasks = [task for task in (self._sending, self._receiving) if task is not None]
        return _end(self._process, self._printed, self._socket, tasks)


async def _send(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):  # The process has ended, which the other direction notices.
        await asyncio.get_running_loop().sock_sendall(sock, data)


async def _receive(sock: socket.socket, limit: int) -> bytes:
    try:
        return await asyncio.get_running_loop().sock_recv(sock, limit)
    except OSError:
        return b""


async def _end(
    process: "subprocess.Popen[bytes]", printed: IO[bytes], sock: socket.socket, tasks: "list[asyncio.Task[Any]]"
) -> End:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    if tasks:
        await asyncio.wait(tasks)
    sock.close()
    return await asyncio.to_thread(_wait, process, printed)


def _wait(process: "subprocess.Popen[bytes]", printed: IO[bytes]) -> End:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_ENDS_WITHIN)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - _LAST_WORDS))
    lines = printed.read().decode("utf-8", "replace").strip().splitlines()
    printed.close()
    return code, lines[-1] if lines else ""


def sit_down() -> Any:
    """Return the actor. Its class is one of the standard library's, so that Dask can pickle it by name."""
    seat = Seat()
    return SimpleNamespace(greet=seat.greet, start=seat.start, write=seat.write, read=seat.read, stop=seat.stop)
