"""A process that forks others on command and makes sure that none outlives it.

The zygote does this with agent processes, an agent process with case processes. While it waits, it runs nothing but
this loop, so it always notices the end of a child, of its parent and of the workbench.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
import traceback
import warnings
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from . import processes
from .frames import Channel

Command = Dict[str, Any]


class ForkServer:
    """Children by the number that the workbench assigned. Create it when the process will run no more foreign code."""

    def __init__(self, channel: Channel, lifeline: int) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._children: Dict[int, int] = {}
        """Process ID → number."""
        self._older = set(processes.children())
        """Processes that an import started earlier. They serve all children and stay as long as we do."""
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
        self._handlers = {number: signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGTERM)}
        self._wakeup_fd = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def serve(self, handle: Callable[[Command], bool]) -> bool:
        """Pass commands to `handle` until it returns False, then return False.

        `kill`, `ping` and `quit` are handled here. At the end of the channel, on `quit` and when the workbench is gone,
        return True with all children killed.
        """
        poll = select.poll()
        for fd in (self._channel.fileno(), self._lifeline, self._wake_read):
            poll.register(fd, select.POLLIN)
        while True:
            while self._channel.pending:
                command = self._channel.pending.popleft()
                if command["op"] == "quit":
                    return self._end()
                if command["op"] == "ping":
                    self.report({"op": "pong"})
                elif command["op"] == "kill":
                    self._kill(command["id"], command["signal"])
                elif not handle(command):
                    return False
            ready = [fd for fd, _ in poll.poll()]
            if self._wake_read in ready:
                self._reap()
            if self._lifeline in ready or (self._channel.fileno() in ready and not self._channel.fill()):
                return self._end()

    def fork(self, number: int, body: Callable[[], None]) -> int:
        """Run `body` in a child with its own session that dies with us. Return its process ID."""
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
        """Send a report. If the reader is gone, drop it, because `serve` will notice soon."""
        try:
            self._channel.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return

    def release(self) -> None:
        """Restore signals and descriptors, for a process that continues without the loop."""
        signal.set_wakeup_fd(self._wakeup_fd if self._wakeup_fd >= 0 else -1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _be_child(self, parent: int, body: Callable[[], None]) -> None:
        status = 70
        try:
            os.setsid()
            processes.die_with(parent)
            processes.adopt_orphans()
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
                processes.kill_group(pid, signum)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a previous round has read the byte of this signal
            os.read(self._wake_read, 4096)
        ended = list(self._ended())
        if ended:
            self._kill_orphans()
        for number, status in ended:
            if number is not None:
                self.report({"op": "exited", "id": number, "status": status})

    def _ended(self) -> Iterator[Tuple[Optional[int], int]]:
        """Yield number and wait status of each ended child, after killing its group.

        The number is None for an adopted orphan, which may have left orphans itself.
        """
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            # Its process ID cannot be reused before `waitpid`.
            processes.kill_group(ended.si_pid)
            yield self._children.pop(ended.si_pid, None), os.waitpid(ended.si_pid, 0)[1]

    def _kill_orphans(self) -> None:
        """Kill the processes that an ended child left behind, in any session.

        Such processes are now children of this process. Running children adopt their own orphans, so unknown children
        come from ended ones.
        """
        for pid in processes.children():
            if pid not in self._children and pid not in self._older:
                processes.kill_group(pid)
                processes.kill(pid)

    def _end(self) -> bool:
        for pid in self._children:
            processes.kill_group(pid)
        processes.kill_descendants()
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


def _nothing(number: int, frame: Optional[Any]) -> None:
    """Do nothing: the signal only wakes `select` through the wakeup descriptor."""
