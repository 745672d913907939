"""The client of `tests.warm.server`, which forks scorers and programs."""

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

from workbench.agents import child_process
from workbench.agents.child_process import own_python
from workbench.run.scoring.client import MODULE

SERVER = Path(__file__).with_name("server.py")
_SCORERS = (MODULE, "tests.run.scripted_scorer")
_PROGRAMS = ("workbench", "pytest")
_SET_CHILD_SUBREAPER = 36


class Nursery:
    """The server that forks scorers and programs, started on first use.

    A forked program has a server of its own, and `sock` is the socket to it.
    """

    def __init__(self, sock: socket.socket | None = None) -> None:
        self._sock = sock
        self._server: subprocess.Popen[bytes] | None = None
        self._variables = {} if sock is None else _of_python(own_python(MODULE, os.environ).environment)
        self._libc = ctypes.CDLL(None)

    def popen(self, arguments: Sequence[str], **how: Any) -> "subprocess.Popen[bytes] | ForkedScorer":
        """Start a child as `ChildProcess` does: a scorer as a fork, and everything else as a program."""
        environment = how["env"]
        *start, module = arguments[:6]
        if start != [sys.executable, "-P", "-X", "utf8", "-m"] or module not in _SCORERS:
            return subprocess.Popen(arguments, **how)
        self._start(environment)
        if _of_python(environment) != self._variables:
            return subprocess.Popen(arguments, **how)
        task = {"module": module, "words": arguments[6:], "environment": dict(environment), "folder": str(how["cwd"])}
        with Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), how["stdout"], how["stderr"])
            return ForkedScorer(self.fork(task, streams, how["pass_fds"]))

    def program(self, arguments: Sequence[str], **how: Any) -> "subprocess.Popen[bytes]":
        """Start `python -m MODULE …` with `env` and `cwd` in a session of its own.

        It is a fork if its interpreter would be like the server's. Folders on the path may be added.
        """
        self._start(how["env"])
        if arguments[:2] != [sys.executable, "-m"] or arguments[2] not in _PROGRAMS or not self._could_be(how["env"]):
            return subprocess.Popen(arguments, **how)
        return _ForkedProgram(self, arguments, **how)

    def fork(self, task: dict[str, Any], streams: Sequence[int], others: Sequence[int] = ()) -> int:
        """Return the process ID of a new child that has these descriptors."""
        assert self._sock is not None
        message = json.dumps({"program": False, **task, "descriptors": others}).encode()
        # The server forks twice, so that its grandchild becomes the child of this process.
        with self._adopting():
            socket.send_fds(self._sock, [message], [*streams, *others])
            return int(self._sock.recv(100))

    def close(self) -> None:
        """End the server."""
        if self._sock is not None and self._server is not None:
            self._sock.close()
            self._server.wait()

    def _start(self, environment: Mapping[str, str]) -> None:
        if self._sock is not None:
            return
        usual = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        environment = own_python(MODULE, usual).environment
        self._variables = _of_python(environment)
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-X", "utf8", SERVER, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
            )
        self._sock.recv(1)

    def _could_be(self, environment: Mapping[str, str]) -> bool:
        """Return whether the server could become an interpreter with these variables."""
        if any(environment.get(name) != os.environ.get(name) for name in ("LANG", "LC_ALL", "LC_CTYPE", "TZ")):
            return False
        own, wanted = self._variables, _of_python(environment)
        return {**own, "PYTHONPATH": ""} == {**wanted, "PYTHONPATH": ""}

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


class _ForkedProgram(subprocess.Popen[bytes]):
    """A child that is adopted instead of started. All else is as in any `Popen`."""

    servers = 1
    """Number of its children that only serve it as a new interpreter would serve itself."""

    def __init__(self, nursery: Nursery, arguments: Sequence[str], **how: Any) -> None:
        self._nursery = nursery
        super().__init__(arguments, **how)

    def _execute_child(
        self,
        args: Sequence[str],
        executable: None,
        preexec_fn: None,
        close_fds: bool,
        pass_fds: tuple[int, ...],
        cwd: Path,
        env: Mapping[str, str],
        startupinfo: None,
        creationflags: int,
        shell: bool,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        *others: Any,
    ) -> None:
        task = {
            "program": True,
            "module": args[2],
            "words": args[3:],
            "environment": dict(env),
            "folder": str(cwd),
        }
        streams = (own if own != -1 else number for number, own in enumerate((p2cread, c2pwrite, errwrite)))
        self.pid = self._nursery.fork(task, tuple(streams))
        self._child_created = True
        self._close_pipe_fds(  # type: ignore[attr-defined]
            p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite
        )


def use(nursery: Nursery) -> SimpleNamespace:
    """Return what stands for `subprocess` in `child_process` while `nursery` starts its children."""
    return SimpleNamespace(Popen=nursery.popen, DEVNULL=subprocess.DEVNULL)


def use_in_program(sock: socket.socket) -> None:
    """Let the scorers of this process be forks of the server at the other end."""
    vars(child_process)["subprocess"] = use(Nursery(sock))


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter reads when it starts. A folder counts once on the path."""
    found = {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LD_", "VIRTUAL_ENV"))}
    path = dict.fromkeys(filter(None, found.pop("PYTHONPATH", "").split(os.pathsep)))
    return {**found, "PYTHONPATH": os.pathsep.join(path)}
