"""A child with a control channel, in a process group of its own, and how it ended."""

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
from workbench.agents.left_behind import kill_marked, new_mark
from workbench.agents.output import OutputPipe
from workbench.agents.worker.processes import MARK

_WORDS_KEPT = 4000
_REAPED_WITHIN = 5.0
"""Seconds that a child whose socket has closed is given to end."""


@dataclass(frozen=True)
class Command:
    """What is executed: `arguments` without those that name the control socket and the lifeline; `environment` is the
    whole one; `folder` the working directory."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path


def own_python(module: str, environment: Mapping[str, str]) -> Command:
    """Runs a module of ours in our own interpreter. The folder above the package is named only where Python would not
    find it by itself, and the working directory is kept off the path: it belongs to the user, and may hold modules of
    any name."""
    home = Path(__file__).parents[2]
    values = dict(environment)
    if home.name not in ("site-packages", "dist-packages"):
        values["PYTHONPATH"] = os.pathsep.join(filter(None, (values.get("PYTHONPATH"), str(home))))
    return Command([sys.executable, "-P", "-X", "utf8", "-m", module], values, home)


class ChildProcess:
    """A started child; `on_frame` gets what it says. `ended` is done when it is gone and reaped: how it ended, in
    words that follow a subject ("was killed by SIGKILL").

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
        """Whether it is replaced because it stood still."""
        self.ended: asyncio.Future[str] = loop.create_future()
        self._words = ""
        self._output = OutputPipe(output, self._keep, lambda count: None)
        self._reaper: asyncio.Task[None] | None = None
        self.channel = Channel(control, on_frame, lambda reason: self._lost())

    @property
    def last_words(self) -> str:
        """The last line of what it printed, such as why the interpreter did not start."""
        lines = self._words.strip().splitlines()
        return lines[-1] if lines else ""

    def signal_group(self, number: int) -> None:
        """Sends a signal to the child and all that is in its group; nothing if it is reaped, as its number may be
        another's then."""
        if self._child.returncode is None:
            # The group is empty, or (as macOS says it) holds only what waits to be reaped.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def close(self, *, grace: float = 2.0) -> None:
        """Asks the child to end, kills it if it does not within `grace` seconds, and reaps it."""
        if not self.ended.done():
            self.channel.send({"op": "quit"})
            await asyncio.wait([self.ended], timeout=grace)
        if not self.ended.done():
            self.signal_group(signal.SIGKILL)
            self._lost()
        await asyncio.shield(self.ended)

    def _keep(self, text: str) -> None:
        self._words = (self._words + text)[-_WORDS_KEPT:]

    def _lost(self) -> None:
        if self._reaper is None:
            self._reaper = asyncio.get_running_loop().create_task(self._reap())

    def _wait(self) -> None:
        """Until the child has ended. Its number stays its own, so that its group can still be killed by it; macOS has
        no such thing before Python 3.13."""
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._child.wait()

    async def _reap(self) -> None:
        waiting = asyncio.create_task(asyncio.to_thread(self._wait))
        await asyncio.wait([waiting], timeout=_REAPED_WITHIN)
        # It, if it still runs, or what it left behind.
        self.signal_group(signal.SIGKILL)
        await waiting
        code = self._child.wait()
        if code != 0:
            await asyncio.to_thread(kill_marked, self._mark)
        self.channel.close()
        self._output.finish()
        self.ended.set_result(how_it_ended(code))


def how_it_ended(code: int) -> str:
    """The exit code of a child (negative: the number of a signal) as words that follow a subject."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
