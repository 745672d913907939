"""A process beside the host that ends it if it does not run any more, and kills what it leaves behind.

The host gives up by itself when its lease is over. A host that was stopped by a signal, or whose loop hangs, cannot.
Its cases would then wait for it forever.
"""

import contextlib
import os
import select
import signal
import struct
import time
from typing import NoReturn

from workbench.agents.orphans import kill_stale
from workbench.places.lease import LEASE

MARGIN = 1.5
"""Seconds beyond the promised ones, because the host promises new ones once a second."""
_DONE = -1.0
_MOST_FILES = 65_536
_GONE_WITHIN = 5.0
_FORM = struct.Struct("d")


class Guard:
    """The guard of this process. Make it before there are threads.

    It kills this process if a promise was not renewed in time. Once this process is gone without `close`, the guard
    kills what is left of it.
    """

    def __init__(self) -> None:
        host = os.getpid()
        read, self._promises = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            _guard(read, host)
        os.close(read)
        os.set_blocking(self._promises, False)

    def promise(self, seconds: float) -> None:
        """Promise to call this again within some seconds, or to end."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # The guard does not run any more.
            os.write(self._promises, _FORM.pack(seconds))

    def close(self) -> None:
        """End the guard, because nothing is left to do for it."""
        self.promise(_DONE)
        os.close(self._promises)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _guard(promises: int, host: int) -> NoReturn:
    try:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _close_others(promises)
        if not _was_closed(promises):
            _end(host)
    finally:
        os._exit(0)


def _close_others(kept: int) -> None:
    """Close all other descriptors, because the host's connection ends only when nobody holds it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.closerange(3, kept)
    os.closerange(kept + 1, _MOST_FILES)


def _was_closed(promises: int) -> bool:
    """Wait until the host says that it is done, is gone, or breaks its promise. Return whether it is done."""
    seconds = LEASE
    while select.select([promises], [], [], seconds + MARGIN)[0]:
        data = os.read(promises, 512 * _FORM.size)
        if not data:
            return False
        (seconds,) = _FORM.unpack(data[-_FORM.size :])
        if seconds == _DONE:
            return True
    return False


def _end(host: int) -> None:
    """Kill the host. Its agents end with it, and what does not is killed, too."""
    until = time.monotonic() + _GONE_WITHIN
    while os.getppid() == host and time.monotonic() < until:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(host, signal.SIGKILL)
        time.sleep(0.01)
    kill_stale()
