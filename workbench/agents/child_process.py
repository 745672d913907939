"""A child process with a control channel and its own process group."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.agents.channel import Channel, Frame
from workbench.agents.orphans import STOPPED, kill_marked, new_mark, stat_fields
from workbench.agents.output import OutputPipe
from workbench.worker.processes import MARK

_OUTPUT_KEPT = 4000
_REAPED_WITHIN = 5.0
"""Maximum seconds in which a child must end after its socket was closed."""
_CHECK_EVERY = 1.0
"""Seconds between two checks whether a child was stopped."""


@dataclass(frozen=True)
class Command:
    """A command to run.

    `arguments` lacks those that name the control socket and the lifeline. `environment` is complete. `folder` is the
    working directory.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path


def own_python(module: str, environment: Mapping[str, str]) -> Command:
    """Return the command that runs one of our modules in our own interpreter.

    PYTHONPATH names the folder above the package only if Python would not find it. The working directory stays off the
    path, because the user's folder may hold modules of any name.
    """
    home = Path(__file__).parents[2]
    values = dict(environment)
    if home.name not in ("site-packages", "dist-packages"):
        values["PYTHONPATH"] = os.pathsep.join(filter(None, (values.get("PYTHONPATH"), str(home))))
    return Command([sys.executable, "-P", "-X", "utf8", "-m", module], values, home)


class ChildProcess:
    """A started child. `on_frame` gets its messages.

    `ended` is done when the child is gone and reaped. Its result completes a sentence about the child: "was killed by
    SIGKILL".

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
        self.stalled = False
        """Whether it is being replaced because it stopped responding."""
        self.ended: asyncio.Future[str] = loop.create_future()
        self._waits: Callable[[], bool] = lambda: False
        self._check: asyncio.TimerHandle | None = None
        self._was_stopped = False
        self._printed = ""
        self._output = OutputPipe(output, self._keep, lambda count: None)
        self._reaper: asyncio.Task[None] | None = None
        self.channel = Channel(control, on_frame, lambda reason: self._lost())

    @property
    def last_line(self) -> str:
        """The last line of its output, such as the reason why the interpreter did not start."""
        lines = self._printed.strip().splitlines()
        return lines[-1] if lines else ""

    def signal_group(self, number: int) -> None:
        """Send a signal to the child and its process group, unless it is reaped and its number may be reused."""
        if self._child.returncode is None:
            # The group is empty, or (on macOS) holds only processes that wait to be reaped.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def kill_if_stopped(self, waits: Callable[[], bool]) -> None:
        """Kill the child if a signal stops it, as long as `waits` returns true. Without `/proc`, nothing is noticed."""
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
        """Wait until the child has ended, without reaping it.

        It keeps its process ID, so its group can still be killed. macOS cannot do this before Python 3.13.
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
