"""The process that has everything imported before anybody asks: agent processes are forks of it.

On request it forks one ahead, the spare, which runs a dummy case of its own: the memory that a case writes to is its
own then, and the agent that it becomes need not wait for a fork nor for thousands of pages to be copied.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from typing import Any, Dict, Optional, Sequence, Tuple

from . import absent, processes
from .adk_version import installed_adk
from .agent_process import ready, run_agent
from .frames import Channel
from .frames import send as send_frame
from .nursery import Nursery, capture

_NOBODY = 0
"""The number of a process that waits for a task."""
_CASES = 4
"""How many dummy cases are run ahead. The first one loads what is loaded late. The others are for functions that are
called a few times a case: Python rewrites them at about the eighth call, and what was not rewritten by then each fork
runs the slow way, which also writes to more of its memory. More of them would cost a short run more than they save."""


class Zygote:
    """Imports, says that it is ready, and forks an agent process for each `agent` command."""

    def __init__(self, channel: Channel, lifeline: int) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._nursery: Nursery
        self._spare: Optional[Tuple[int, socket.socket]] = None
        """Its process, and the way to it."""

    def run(self, warm: bool) -> None:
        """Returns when the workbench lets go of us, with everything below us killed."""
        # What is there when this is done will be there in every fork: the collector need not look at it, nor touch its
        # pages. It does not look before either: of all that there is, it would find some three hundred objects.
        gc.disable()
        if warm:
            warm_up(_CASES)
        why = processes.cannot_fork() or processes.threads_left()
        if not why:
            processes.adopt_orphans()
        gc.freeze()
        gc.enable()
        self._nursery = Nursery(self._channel, self._lifeline)
        self._nursery.tell(ready(why))

        def handle(command: Dict[str, Any]) -> bool:
            if command["op"] == "spare":
                self._make_spare(warm)
            else:
                self._start_agent(command)
            return True

        self._nursery.serve(handle)

    def _start_agent(self, command: Dict[str, Any]) -> None:
        fds = self._channel.take_fds(3)
        if not self._give_to_spare(command, fds):
            control, stdout, stderr = fds
            self._nursery.fork(command["id"], lambda: self._be_agent(command["spec"], control, stdout, stderr))
        for fd in fds:
            os.close(fd)

    def _make_spare(self, warm: bool) -> None:
        if self._spare is not None:
            return
        own, theirs = socket.socketpair()

        def wait_for_task() -> None:
            own.close()
            if warm:
                warm_up(1)
            channel = Channel(theirs)
            command = channel.receive()
            if command is not None:
                fds = channel.take_fds(3)
                channel.close()
                self._be_agent(command["spec"], *fds)

        self._spare = self._nursery.fork(_NOBODY, wait_for_task), own
        theirs.close()

    def _give_to_spare(self, command: Dict[str, Any], fds: Sequence[int]) -> bool:
        """Has the spare do it; False if there is none, or none any more."""
        if self._spare is None:
            return False
        (pid, sock), self._spare = self._spare, None
        with sock:
            try:
                send_frame(sock, command, fds)
            except OSError:
                return False
        return self._nursery.rename(pid, command["id"])

    def _be_agent(self, spec: Dict[str, Any], control: int, stdout: int, stderr: int) -> None:
        if self._spare is not None:
            self._spare[1].close()
        capture(stdout, stderr)
        run_agent(Channel(socket.socket(fileno=control)), self._lifeline, spec)


def warm_up(cases: int) -> None:
    """Imports google-adk, if it is there, and runs so many cases of a dummy agent, so that what it loads late is loaded
    too. Whatever goes wrong is left for the agent to find, in its own words."""
    if installed_adk() is None:
        return
    try:
        from .adk_warm import run_dummy_cases

        run_dummy_cases(cases)
        absent.look()
    except Exception as error:
        print(f"warming up google-adk failed: {error!r}", file=sys.stderr)
