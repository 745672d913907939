"""A child process with a control channel, its own process group, and its output, which is read as it arrives.

Processes can outlive the child that started them, even in their own sessions. Each child has a mark in its environment,
which all its descendants inherit. Processes normally clean up their descendants themselves. This module cleans up after
processes that were killed before they could do so. Without `/proc`, it cannot find their descendants.
"""

import asyncio
import codecs
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.agents.channel import Frame, LoopChannel
from workbench.worker.processes import MARK

_ROUNDS = 50
"""Maximum number of searches in a row, because a process may start others before it ends."""
_BETWEEN = 0.02
STOPPED = ("T", "t")
"""States of a process (`stat_fields`) that a signal or a debugger has stopped."""
_numbers = itertools.count(1)
_READ = 64 * 1024
_PIPE_READS = 17
"""Number of reads that empty the largest possible pipe (1 MiB), even while data is still written."""
_WAIT = 0.1
"""Maximum seconds that output is held back, to join several prints in one event."""
_LONGEST = 64 * 1024
_CUT_AFTER = ' \t",;'
"""Characters after which an overlong line may be cut.

Elsewhere, a cut could split a secret in two halves that escape redaction. Secrets hardly ever contain these.
"""
_OUTPUT_KEPT = 4000
_REAPED_WITHIN = 5.0
"""Maximum seconds in which a child must end after its socket was closed."""
_CHECK_EVERY = 1.0
"""Seconds between two checks whether a child was stopped."""


def new_mark() -> str:
    """Return the mark of a new child: the mark of this process, if any, followed by a unique one."""
    return f"{os.environ.get(MARK, '')} {_owner()}:{next(_numbers)}".strip()


def kill_marked(mark: str) -> int:
    """Kill all processes with this mark, or with a mark that begins with it. Return their number."""
    return _kill(lambda found: found == mark or found.startswith(f"{mark} "))


def kill_stale() -> int:
    """Kill processes whose workbench has ended without cleaning up. Return their number."""
    space = _owner().partition(":")[0]
    return _kill(lambda found: found.startswith(f"{space}:") and not _is_alive(found))


def _kill(wanted: Callable[[str], bool]) -> int:
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        found = [pid for pid, mark in _marked() if wanted(mark)]
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
            killed.add(pid)
        if not found:
            break
        time.sleep(_BETWEEN)
    return len(killed)


def _marked() -> Iterator[tuple[int, str]]:
    """Yield process ID and mark of every other visible process that has a mark."""
    name = f"{MARK}=".encode()
    try:
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return
    for pid in numbers:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue  # It has ended, or belongs to another user.
        if name in environment and pid != os.getpid():
            mark = next((item for item in environment.split(b"\0") if item.startswith(name)), name)
            yield pid, mark[len(name) :].decode("utf-8", "replace")


def _owner() -> str:
    """Return a unique name for this process: its PID namespace, its ID and its start time."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - no path, but a name
    except OSError:
        space = ""
    number = "".join(filter(str.isdigit, space))
    return f"{number}:{os.getpid()}:{_began(os.getpid())}"


def _is_alive(mark: str) -> bool:
    """Return whether the process that began a mark still exists. An unreadable mark counts as existing."""
    try:
        _, pid, began, _ = mark.split(" ")[0].split(":")
        return _began(int(pid)) == began
    except ValueError:
        return True


def _began(pid: int) -> str:
    """Return the clock tick at which a process started, or "" if it has ended or there is no `/proc`."""
    fields = stat_fields(pid)
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


def stat_fields(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat`, starting with the state, or [] if the file cannot be read."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The name is in parentheses and may contain anything.
    return text.rpartition(")")[2].split()


class Lines:
    """A buffer that passes printed text to `on_text`, in whole lines if possible."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Add the next printed text."""
        self._text += text
        if len(self._text) >= _LONGEST:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WAIT, self._flush)

    def flush_all(self) -> None:
        """Pass on all text, also an unfinished line."""
        self._stop_timer()
        self._hand_on(len(self._text))

    def _flush(self) -> None:
        """Pass on the finished lines, or a part of a line that has become too long."""
        self._stop_timer()
        end = self._text.rfind("\n") + 1
        if not end and len(self._text) >= _LONGEST:
            end = max(self._text.rfind(mark) for mark in _CUT_AFTER) + 1 or len(self._text)
        self._hand_on(end)

    def _hand_on(self, end: int) -> None:
        text, self._text = self._text[:end], self._text[end:]
        if text:
            self._on_text(text)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class OutputPipe:
    """A pipe that is read until it is closed.

    `on_text(text)` gets whole lines if possible. `on_bytes(count)` is called for every read. After `mute`, the text is
    dropped but the pipe is still read, because a full pipe blocks the child.
    """

    def __init__(
        self, descriptor: int, on_text: Callable[[str], None], on_bytes: Callable[[int], None] = lambda count: None
    ) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._lines = Lines(on_text)
        self._on_bytes = on_bytes
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._muted = False
        self._open = True
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read_once)

    def mute(self) -> None:
        """Read and drop all further output."""
        self._muted = True

    def flush_all(self) -> None:
        """Read all data in the pipe, and pass on all text."""
        for _ in range(_PIPE_READS):
            if not self._read_once():
                break
        self._lines.flush_all()

    def finish(self) -> None:
        """Flush and close. A process that outlives the child may keep the other end open for ever."""
        self.flush_all()
        self._close()

    def _read_once(self) -> bool:
        if not self._open:
            return False
        try:
            data = os.read(self._descriptor, _READ)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self._close()
            return False
        if not self._muted:
            self._lines.add(self._decode(data))
        self._on_bytes(len(data))
        return True

    def _close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._lines.add(self._decode(b"", True))
        self._lines.flush_all()


@dataclass(frozen=True)
class Command:
    """A command to run.

    `ChildProcess` adds `--control` and `--lifeline` to `arguments`, and a mark to `environment`, which is otherwise
    complete. `folder` is the working directory.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path


def own_python(module: str, environment: Mapping[str, str]) -> Command:
    """Return the command that runs a module of the workbench in the workbench's own interpreter.

    The folder above the package is added to PYTHONPATH, unless the package is installed. Python does not import from
    the working directory.
    """
    home = Path(__file__).parents[2]
    values = dict(environment)
    if home.name not in ("site-packages", "dist-packages"):
        values["PYTHONPATH"] = os.pathsep.join(filter(None, (values.get("PYTHONPATH"), str(home))))
    return Command([sys.executable, "-P", "-X", "utf8", "-m", module], values, home)


class ChildProcess:
    """A started child. `on_frame` gets its messages, `lifeline` is its end of a pipe that tells it when to end.

    `ended` is done when the child has ended and been reaped. Its result completes a sentence about the child: "was
    killed by SIGKILL".

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(self, command: Command, lifeline: int, on_frame: Callable[[Frame], None]) -> None:
        control, childs_control = socket.socketpair()
        output, childs_output = os.pipe()
        self._mark = new_mark()
        try:
            self._child = subprocess.Popen(
                [*command.arguments, "--control", str(childs_control.fileno()), "--lifeline", str(lifeline)],
                stdin=subprocess.DEVNULL,
                stdout=childs_output,
                stderr=childs_output,
                pass_fds=(childs_control.fileno(), lifeline),
                env={**command.environment, MARK: self._mark},
                cwd=command.folder,
                start_new_session=True,
            )
        except OSError:
            control.close()
            os.close(output)
            raise
        finally:
            childs_control.close()
            os.close(childs_output)
        loop = asyncio.get_running_loop()
        self.pid = self._child.pid
        self.ended: asyncio.Future[str] = loop.create_future()
        self._waits: Callable[[], bool] = lambda: False
        self._check: asyncio.TimerHandle | None = None
        self._was_stopped = False
        self._printed = ""
        self._output = OutputPipe(output, self._keep)
        self._reaper: asyncio.Task[None] | None = None
        self.channel = LoopChannel(control, on_frame, lambda reason: self._lost())

    @property
    def last_line(self) -> str:
        """The last line of the child's output, such as the reason why the interpreter did not start, or ""."""
        lines = self._printed.strip().splitlines()
        return lines[-1] if lines else ""

    def signal_group(self, number: int) -> None:
        """Send a signal to the child's process group. Do nothing once the child is reaped: its ID may be reused."""
        if self._child.returncode is None:
            # The group is empty, or (on macOS) holds only processes that wait to be reaped.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def kill_if_stopped(self, waits: Callable[[], bool]) -> None:
        """Check every second whether a signal has stopped the child, until `waits()` is false.

        If two checks in a row find it stopped, kill it. Without `/proc`, a stopped child is not noticed.
        """
        self._waits = waits
        if self._check is None:
            self._check_again(False)

    async def close(self, *, grace: float = 2.0) -> None:
        """Ask the child to end, kill it after `grace` seconds, and reap it."""
        if not self.ended.done():
            self.channel.send({"op": "quit"})
            await asyncio.wait([self.ended], timeout=grace)
        if not self.ended.done():
            self.signal_group(signal.SIGKILL)
            self._lost()
        await asyncio.shield(self.ended)

    def _check_again(self, stopped: bool) -> None:
        self._check = asyncio.get_running_loop().call_later(_CHECK_EVERY, self._check_stopped, stopped)

    def _check_stopped(self, before: bool) -> None:
        self._check = None
        if self.ended.done() or not self._waits():
            return
        fields = stat_fields(self.pid)
        stopped = bool(fields) and fields[0] in STOPPED
        # Only two checks in a row count, because it may be resumed together with this process.
        if stopped and before:
            self._was_stopped = True
            self.signal_group(signal.SIGKILL)
        else:
            self._check_again(stopped)

    def _keep(self, text: str) -> None:
        self._printed = (self._printed + text)[-_OUTPUT_KEPT:]

    def _lost(self) -> None:
        if self._reaper is None:
            self._reaper = asyncio.get_running_loop().create_task(self._reap())

    def _wait(self) -> None:
        """Wait until the child has ended, without reaping it if `os.waitid` exists (on macOS since Python 3.13).

        A child that is not reaped keeps its process ID, so its group can still be killed.
        """
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._child.wait()

    async def _reap(self) -> None:
        waiting = asyncio.create_task(asyncio.to_thread(self._wait))
        await asyncio.wait([waiting], timeout=_REAPED_WITHIN)
        # Kills the child if it still runs, and what it left behind.
        self.signal_group(signal.SIGKILL)
        await waiting
        code = self._child.wait()
        if code != 0:
            await asyncio.to_thread(kill_marked, self._mark)
        self.channel.close()
        self._output.finish()
        if self._check is not None:
            self._check.cancel()
        self.ended.set_result("was stopped by a signal" if self._was_stopped else how_it_ended(code))


def how_it_ended(code: int) -> str:
    """Return an exit code (negative: a signal number) as words: "was killed by SIGKILL"."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
