"""Scorer processes that start as forks of one that has imported what they need.

A scorer takes 0.2 s of processor time to start, and half a second more to import the client of a judge. Most tests of
runs start one or two. What they get is still a process of its own: with its own environment, descriptors and session,
it runs the scorer's module, and this process is its parent.
"""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.warm import server
from workbench.agents import child_process
from workbench.agents.child_process import own_python
from workbench.engine.scoring.client import MODULE

_SERVER = Path(server.__file__)
_SCORERS = (MODULE, "tests.engine.scripted_scorer")
_SET_CHILD_SUBREAPER = 36


class Nursery:
    """The server that forks scorers, started on first use."""

    def __init__(self) -> None:
        self._sock: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._variables: dict[str, str] = {}
        self._libc = ctypes.CDLL(None)

    def popen(self, arguments: Sequence[str], **how: Any) -> "subprocess.Popen[bytes] | ForkedScorer":
        """Start a child as `ChildProcess` does: a scorer as a fork, and everything else as a program."""
        environment = how["env"]
        *start, module = arguments[:6]
        if start != [sys.executable, "-P", "-X", "utf8", "-m"] or module not in _SCORERS:
            return subprocess.Popen(arguments, **how)
        if self._sock is None:
            self._start(environment)
        if _of_python(environment) != self._variables:
            return subprocess.Popen(arguments, **how)
        return ForkedScorer(self._fork(module, arguments[6:], environment, **how))

    def close(self) -> None:
        """End the server."""
        if self._sock is not None and self._server is not None:
            self._sock.close()
            self._server.wait()

    def _start(self, environment: Mapping[str, str]) -> None:
        usual = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        environment = own_python(MODULE, usual).environment
        self._variables = _of_python(environment)
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-X", "utf8", _SERVER, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
            )
        self._sock.recv(1)

    def _fork(
        self,
        module: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        stdout: int,
        pass_fds: Sequence[int],
        cwd: Path,
        **rest: Any,
    ) -> int:
        """Return the process ID of a new scorer."""
        assert self._sock is not None
        task = {
            "module": module,
            "words": words,
            "environment": dict(environment),
            "folder": str(cwd),
            "descriptors": pass_fds,
        }
        # The server forks twice, so that its grandchild becomes the child of this process.
        with self._adopting():
            socket.send_fds(self._sock, [json.dumps(task).encode()], [stdout, *pass_fds])
            return int(self._sock.recv(100))

    @contextlib.contextmanager
    def _adopting(self) -> Iterator[None]:
        self._libc.prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
        try:
            yield
        finally:
            self._libc.prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(0), 0, 0, 0)


class ForkedScorer:
    """What `ChildProcess` uses of a `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def wait(self) -> int:
        """Wait until the process has ended, and return its exit code. It is negative for a signal."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter reads when it starts. A folder counts once on the path."""
    found = {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LD_", "VIRTUAL_ENV"))}
    path = dict.fromkeys(filter(None, found.pop("PYTHONPATH", "").split(os.pathsep)))
    return {**found, "PYTHONPATH": os.pathsep.join(path)}


@contextlib.contextmanager
def warm_scorers(nursery: Nursery) -> Iterator[None]:
    """Let the scorers that are started in the block be forks, where that is possible."""
    if sys.platform != "linux":
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_process, "subprocess", SimpleNamespace(Popen=nursery.popen, DEVNULL=subprocess.DEVNULL))
        yield
