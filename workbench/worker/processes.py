"""Processes of the operating system: forks, signals at the death of a parent, descendants, and threads.

The zygote forks agent processes and an agent process forks case processes, both with a `ForkServer`. This needs Linux,
and so does everything that reads /proc (`threads_left`, `children`, `kill_descendants`). On other systems, agents and
cases are not forked (`cannot_fork`).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .frames import Channel

Command = dict[str, Any]
MARK = "AGENT_WORKBENCH_STARTED_BY"
"""Environment variable of everything that a workbench starts; `agents/child_process.py` finds processes by it."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Numeric libraries whose thread pools survive a fork.
_FORK_SAFE_POOLS = ("openblas", "mkl", "libblis", "libgomp", "libomp", "libiomp")
_KILL_WITHIN = 2.0
_libc: dict[str, ctypes.CDLL] = {}


class ForkServer:
    """The forked children of this process, by the workbench's numbers.

    Create it when no more foreign code will run in this process.
    """

    def __init__(self, channel: Channel, lifeline: int) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._children: dict[int, int] = {}
        """Process ID → number."""
        self._older = set(children())
        """Processes that an import started earlier. They serve all children and live as long as this process."""
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
        self._handlers = {number: signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGTERM)}
        self._wakeup_fd = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # The signal only wakes `poll`, by the descriptor.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def serve(self, handle: Callable[[Command], bool]) -> bool:
        """Pass commands to `handle` until it returns False, then return False.

        `kill` and `quit` are handled here. At the end of the channel, on `quit` and when the workbench has
        ended, kill all children and return True.
        """
        poll = select.poll()
        for fd in (self._channel.fileno(), self._lifeline, self._wake_read):
            poll.register(fd, select.POLLIN)
        while True:
            while self._channel.pending:
                command = self._channel.pending.popleft()
                if command["op"] == "quit":
                    return self._end()
                if command["op"] == "kill":
                    self._kill(command["id"], command["signal"])
                elif not handle(command):
                    return False
            ready = [fd for fd, _ in poll.poll()]
            if self._wake_read in ready:
                self._reap()
            if self._lifeline in ready or (self._channel.fileno() in ready and not self._channel.fill()):
                return self._end()

    def fork(self, number: int, body: Callable[[], None]) -> int:
        """Run `body` in a child with its own session, killed when this process ends. Report and return its ID."""
        parent = os.getpid()
        pid = _fork()
        if pid == 0:
            self._be_child(parent, body)
        self._children[pid] = number
        self.report({"op": "started", "id": number, "pid": pid})
        return pid

    def rename(self, pid: int, number: int) -> bool:
        """Assign a number to a child that waited without a task. Return False if it has ended."""
        if pid not in self._children:
            return False
        self._children[pid] = number
        self.report({"op": "started", "id": number, "pid": pid})
        return True

    def report(self, message: Command) -> None:
        """Send a report. If the channel is closed, drop it: `serve` will notice soon."""
        try:
            self._channel.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return

    def release(self) -> None:
        """Restore the signal handlers and close the descriptors, in a process that does not call `serve` any more."""
        signal.set_wakeup_fd(self._wakeup_fd)
        for number, handler in self._handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _be_child(self, parent: int, body: Callable[[], None]) -> None:
        status = 70
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)  # The parent ended before the call, so the system will not kill this process.
            adopt_orphans()
            self.release()
            self._channel.close()
            body()
            status = 0
        except BaseException:
            # An error of the worker itself; the agent's errors are caught deeper.
            traceback.print_exc()
        finally:
            leave(status)

    def _kill(self, number: int, signum: int) -> None:
        for pid, known in self._children.items():
            if known == number:
                kill_group(pid, signum)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a previous round has read the byte of this signal
            os.read(self._wake_read, 4096)
        ended = list(self._ended())
        if ended:
            self._kill_orphans()
        for number, status in ended:
            if number is not None:
                self.report({"op": "exited", "id": number, "status": status})

    def _ended(self) -> Iterator[tuple[int | None, int]]:
        """Yield number and wait status of each ended child, after killing its group. Adopted orphans have no number."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            # Its process ID cannot be reused before `waitpid`.
            kill_group(ended.si_pid)
            yield self._children.pop(ended.si_pid, None), os.waitpid(ended.si_pid, 0)[1]

    def _kill_orphans(self) -> None:
        """Kill the processes that an ended child left behind, in any session.

        Such processes are now children of this process. Running children adopt their own orphans, so unknown children
        come from ended ones.
        """
        for pid in children():
            if pid not in self._children and pid not in self._older:
                kill_group(pid)
                kill(pid)

    def _end(self) -> bool:
        for pid in self._children:
            kill_group(pid)
        kill_descendants()
        return True


def _fork() -> int:
    if sys.version_info < (3, 12):
        return os.fork()
    with warnings.catch_warnings():
        # Python warns about threads, and the agent may turn warnings into errors. Its threads were checked.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def leave(status: int) -> None:
    """End this process at once: no exit handlers, no waiting for threads, no freeing of memory."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # closed or replaced by the agent
    os._exit(status)


def capture(stdout: int, stderr: int) -> None:
    """Use these two descriptors as the process's output, and an empty input."""
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for fd in {stdout, stderr, null} - {0, 1, 2}:
        os.close(fd)


def cannot_fork() -> str:
    """Return a clause that says why this platform cannot fork safely, or "" if it can."""
    if not hasattr(os, "fork"):
        return "this system has no fork"
    if sys.platform != "linux":
        return f"forking a process that has imported a framework is not safe on {sys.platform}"
    if not os.path.isdir("/proc/self/task"):
        return "there is no /proc, so threads left by imports cannot be seen"
    return ""


def threads_left() -> str:
    """Return a text about the threads that a fork would lose, or "" if none matters. The calling thread does not count.

    The pool of a BLAS library does not matter: such libraries stop and restart it around a fork.
    """
    running = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    if running:
        return f"the import left threads running ({', '.join(running[:5])})"
    own = threading.get_native_id()
    names = {tid: _text(f"/proc/self/task/{tid}/comm").strip() for tid in map(int, os.listdir("/proc/self/task"))}
    others = [name for tid, name in names.items() if tid != own]
    foreign = [name for name in others if name and name != names.get(own)]
    if foreign:
        return f"the import left threads running ({', '.join(foreign[:5])})"
    maps = _text("/proc/self/maps").lower() if others else ""
    if others and not any(library in maps for library in _FORK_SAFE_POOLS):
        return f"the import left {len(others)} native {'thread' if len(others) == 1 else 'threads'} running"
    return ""


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def shield_parent(control: int) -> None:
    """Fork and continue in the child, while this process only waits and then ends as the child did.

    An agent that stops or kills its parent hits this process, and not the workbench. Only the child keeps the socket
    `control`.
    """
    child = os.fork()
    if not child:
        return
    for descriptor in (control, 0, 1, 2):
        os.close(descriptor)
    if sys.platform == "linux":
        adopt_orphans()
    _, status = os.waitpid(child, 0)
    if sys.platform == "linux":
        kill_descendants()
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


def wake_parent() -> None:
    """Resume the process between this one and the workbench (`shield_parent`), in case the agent has stopped it."""
    if os.getppid() == os.getpgrp():
        kill(os.getppid(), signal.SIGCONT)


def children() -> list[int]:
    """Return the IDs of this process's children."""
    files = [f"/proc/self/task/{tid}/children" for tid in os.listdir("/proc/self/task")]
    if os.path.exists(files[0]):
        return [int(pid) for file in files for pid in _text(file).split()]
    # A kernel without that file: check every process.
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    # In /proc/PID/stat the name is in parentheses and may contain anything, even blanks and parentheses.
    fields = {pid: _text(f"/proc/{pid}/stat").rpartition(")")[2].split() for pid in pids}
    return [pid for pid in pids if fields[pid][1:2] == [str(os.getpid())]]


def kill_group(leader: int, number: int = signal.SIGKILL) -> None:
    """Signal the process group of `leader`, or only `leader` if it has none yet."""
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):  # The latter is macOS's for a group that has only zombies.
        kill(leader, number)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal one process. Do nothing if it has ended or belongs to another user."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def kill_descendants() -> None:
    """Kill all children, the groups they lead, and the orphans that this leaves, for at most `_KILL_WITHIN` seconds."""
    deadline = time.monotonic() + _KILL_WITHIN
    seen: set[int] = set()
    while time.monotonic() < deadline:
        for pid in children():
            if pid not in seen:
                seen.add(pid)
                kill_group(pid)
            kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(0.005)


def die_at_end_of(lifeline: int) -> None:
    """Wait until the lifeline's other end is closed, then end this process, its group and (on Linux) its descendants.

    Run this in its own thread.
    """
    os.read(lifeline, 1)
    if sys.platform == "linux":
        # Some may have their own sessions, so killing the group of this process does not reach them.
        kill_descendants()
    if os.getpgrp() in (os.getpid(), os.getppid()):
        kill_group(os.getpgrp())
    os._exit(1)


def _prctl(option: int, value: int) -> None:
    if "libc" not in _libc:
        # Loaded once and not in each fork, because it creates a class and so touches many memory pages.
        _libc["libc"] = ctypes.CDLL(None, use_errno=True)
    # If the kernel refuses, the lifeline remains. That is enough unless a parent gets kill -9.
    _libc["libc"].prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _text(path: str) -> str:
    """Return the text of a file in /proc, or "". Uses the fastest way, because this runs after each case."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    pieces: list[bytes] = []
    try:
        while not pieces or pieces[-1]:
            pieces.append(os.read(file, 1 << 16))
    except OSError:
        return ""
    finally:
        os.close(file)
    return b"".join(pieces).decode("utf-8", "replace")
