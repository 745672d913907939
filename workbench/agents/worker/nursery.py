"""A process that forks others on command, and sees to it that none outlives it.

The zygote does this with agent processes, an agent process with case processes. While it waits it runs nothing but
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


class Nursery:
    """Children by the number that the workbench gave them. Make it when the process will run no more foreign code."""

    def __init__(self, channel: Channel, lifeline: int) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._children: Dict[int, int] = {}
        """Process id → number."""
        self._older = set(processes.children())
        """What was started before, by an import: it is there for all children, and stays as long as we do."""
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
        self._handlers = {number: signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGTERM)}
        self._wakeup_fd = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def serve(self, handle: Callable[[Command], bool]) -> bool:
        """Hands commands to `handle` (`kill`, `ping` and `quit` are done here) until it returns False: then False. At
        the end of the channel, on `quit` and when the workbench is gone: True, with all children killed."""
        poll = select.poll()
        for fd in (self._channel.fileno(), self._lifeline, self._wake_read):
            poll.register(fd, select.POLLIN)
        while True:
            while self._channel.pending:
                command = self._channel.pending.popleft()
                if command["op"] == "quit":
                    return self._end()
                if command["op"] == "ping":
                    self.tell({"op": "pong"})
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
        """Runs `body` in a child that leads a session of its own and dies with us; gives its process id."""
        parent = os.getpid()
        pid = _fork()
        if pid == 0:
            self._be_child(parent, body)
        self._children[pid] = number
        self.tell({"op": "started", "id": number, "pid": pid})
        return pid

    def rename(self, pid: int, number: int) -> bool:
        """Gives a child that waited without a task its number; False if it has ended."""
        if pid not in self._children:
            return False
        self._children[pid] = number
        self.tell({"op": "started", "id": number, "pid": pid})
        return True

    def tell(self, message: Command) -> None:
        """Sends a report; one that nobody is there to read any more is dropped, as `serve` is about to notice."""
        try:
            self._channel.send(message)
        except (BrokenPipeError, ConnectionResetError):
            return

    def release(self) -> None:
        """Gives signals and descriptors back, for a process that goes on by itself."""
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
            # A fault of the worker itself: what belongs to the agent has been caught further down.
            traceback.print_exc()
        finally:
            leave(status)

    def _kill(self, number: int, signum: int) -> None:
        for pid, known in self._children.items():
            if known == number:
                processes.kill_group(pid, signum)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):  # an earlier round has read what this signal wrote
            os.read(self._wake_read, 4096)
        ended = list(self._ended())
        if ended:
            self._kill_orphans()
        for number, status in ended:
            if number is not None:
                self.tell({"op": "exited", "id": number, "status": status})

    def _ended(self) -> Iterator[Tuple[Optional[int], int]]:
        """Number and wait status of each child that has ended, its group killed; no number: an orphan that we adopted,
        which may have left some itself."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            # Before its number can be given to another process.
            processes.kill_group(ended.si_pid)
            yield self._children.pop(ended.si_pid, None), os.waitpid(ended.si_pid, 0)[1]

    def _kill_orphans(self) -> None:
        """Kills what a child that has ended left behind, in whatever session: it has become ours. (Children adopt the
        orphans below them, so what is ours without being known belongs to none that is still running.)"""
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
        # Python warns of threads, and the agent may have made errors of warnings. Its threads were looked at.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def leave(status: int) -> None:
    """Ends this process at once: no exit handlers, no waiting for threads, no freeing of what was imported."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # closed or replaced by the agent: there is nobody left to tell
    os._exit(status)


def capture(stdout: int, stderr: int) -> None:
    """Makes these two the process's output, and gives it an input at its end."""
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for fd in {stdout, stderr, null} - {0, 1, 2}:
        os.close(fd)


def _nothing(number: int, frame: Optional[Any]) -> None:
    """A handler, so that the signal wakes `select` through the wakeup descriptor."""
