"""The clients of the servers that fork scorers, programs and workers."""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from workbench.agents import child_process
from workbench.agents.child_process import own_python
from workbench.run.scoring.client import MODULE
from workbench.worker import WORKER_DIR
from workbench.worker.processes import MARK

SERVER = Path(__file__).with_name("server.py")
WORKER_SERVER = Path(__file__).with_name("worker_server.py")
_SCORERS = (MODULE, "tests.run.scripted_scorer")
_PROGRAMS = ("workbench", "pytest")
_WORKER = ("-X", "utf8", "-u", WORKER_DIR)
_MODES = ("zygote", "solo", "functions")
_SET_CHILD_SUBREAPER = 36
_forking = threading.Lock()
"""Held from a question to its answer, because threads would take the answers, or end the adoption, of each other."""


class Server:
    """A server that is forked for each task (`tests.warm.forks`).

    It is started with these words and variables, unless `sock` leads to one that runs already.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], sock: socket.socket | None = None) -> None:
        self.variables = _of_python(environment)
        self._libc = ctypes.CDLL(None)
        self._process: subprocess.Popen[bytes] | None = None
        if sock is not None:
            self._sock = sock
            return
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [word.format(fd=theirs.fileno()) for word in (sys.executable, *words)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, env=environment, pass_fds=[theirs.fileno()]
            )
        self._sock.recv(1)

    def fork(self, task: dict[str, Any], streams: Sequence[int], others: Sequence[int] = ()) -> int:
        """Return the process ID of a new child that has these descriptors."""
        message = json.dumps({"program": False, **task, "descriptors": others}).encode()
        # The server forks twice, so that its grandchild becomes the child of this process.
        with _forking, self._adopting():
            socket.send_fds(self._sock, [message], [*streams, *others])
            return int(self._sock.recv(100))

    def close(self) -> None:
        """End the server."""
        if self._process is not None:
            self._sock.close()
            self._process.wait()

    @contextlib.contextmanager
    def _adopting(self) -> Iterator[None]:
        self._libc.prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
        try:
            yield
        finally:
            self._libc.prctl(_SET_CHILD_SUBREAPER, ctypes.c_ulong(0), 0, 0, 0)


class Nursery:
    """The servers that fork scorers, programs and workers, each started on first use, once for all threads.

    A forked program has a server of scorers of its own, and `sock` is the socket to it.
    """

    def __init__(self, sock: socket.socket | None = None) -> None:
        self._in_program = sock is not None
        self._servers: dict[str, Server] = {}
        self._starts = threading.Lock()
        if sock is not None:
            self._servers["scorers"] = Server((), own_python(MODULE, os.environ).environment, sock)

    def popen(self, arguments: Sequence[str], **how: Any) -> "subprocess.Popen[bytes] | Fork":
        """Start a child as `ChildProcess` does: scorers and workers as forks, and everything else as a program."""
        environment = how["env"]
        task = {"environment": dict(environment), "folder": str(how["cwd"])}
        if arguments[:5] == [sys.executable, "-P", "-X", "utf8", "-m"] and arguments[5] in _SCORERS:
            server = self._scorers(environment)
            task |= {"module": arguments[5], "words": arguments[6:]}
            fits = _of_python(environment) == server.variables
        elif arguments[:5] == [sys.executable, *_WORKER] and arguments[5] in _MODES and not self._in_program:
            server = self._workers(environment, adk="adk" in arguments)
            task["words"] = arguments[5:]
            fits = {**_of_python(environment), "PYTHONPATH": ""} == server.variables
        else:
            fits = False
        if not fits:
            return subprocess.Popen(arguments, **how)
        with Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), how["stdout"], how["stderr"])
            return Fork(server.fork(task, streams, how["pass_fds"]))

    def program(self, arguments: Sequence[str], **how: Any) -> "subprocess.Popen[bytes]":
        """Start `python -m MODULE …` with `env` and `cwd` in a session of its own.

        It is a fork if its interpreter would be like the server's. Folders on the path may be added.
        """
        if arguments[:2] != [sys.executable, "-m"] or arguments[2] not in _PROGRAMS:
            return subprocess.Popen(arguments, **how)
        server = self._scorers(how["env"])
        if not _could_be(server, how["env"]):
            return subprocess.Popen(arguments, **how)
        return _ForkedProgram(server, arguments, **how)

    def close(self) -> None:
        """End the servers."""
        for server in self._servers.values():
            server.close()

    def _scorers(self, environment: Mapping[str, str]) -> Server:
        with self._starts:
            if "scorers" not in self._servers:
                environment = own_python(MODULE, _for_all(environment)).environment
                self._servers["scorers"] = Server(["-P", "-X", "utf8", str(SERVER), "{fd}"], environment)
            return self._servers["scorers"]

    def _workers(self, environment: Mapping[str, str], *, adk: bool) -> Server:
        name = "adk" if adk else "workers"
        with self._starts:
            if name not in self._servers:
                words = ["-X", "utf8", "-u", str(WORKER_SERVER), "{fd}", WORKER_DIR, *(["adk"] if adk else [])]
                self._servers[name] = Server(words, _for_all(environment))
            return self._servers[name]


def _could_be(server: Server, environment: Mapping[str, str]) -> bool:
    """Return whether the server could become an interpreter with these variables."""
    if any(environment.get(name) != os.environ.get(name) for name in ("LANG", "LC_ALL", "LC_CTYPE", "TZ")):
        return False
    return {**server.variables, "PYTHONPATH": ""} == {**_of_python(environment), "PYTHONPATH": ""}


class Fork:
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

    def __init__(self, server: Server, arguments: Sequence[str], **how: Any) -> None:
        self._server = server
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
        self.pid = self._server.fork(task, tuple(streams))
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


def _for_all(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a server: without the mark of the first child, with which it would be killed."""
    return {name: value for name, value in environment.items() if name not in ("PYTHONPATH", MARK)}


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter reads when it starts. A folder counts once on the path."""
    found = {name: value for name, value in environment.items() if name.startswith(("PYTHON", "LD_", "VIRTUAL_ENV"))}
    path = dict.fromkeys(filter(None, found.pop("PYTHONPATH", "").split(os.pathsep)))
    return {**found, "PYTHONPATH": os.pathsep.join(path)}
