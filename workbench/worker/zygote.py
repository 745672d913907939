"""The worker's command line, which only the workbench uses, and the process that imports everything in advance.

Agent processes are forks of the zygote. On request it forks a spare process in advance, which runs a dummy case. The
memory that a case writes to is then already copied, so the agent need not wait for a fork and thousands of page copies.
"""

from __future__ import annotations

import argparse
import gc
import os
import socket
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import adk_driver, collect_rarely, frames, processes
from .agent_process import ready, run_agent, run_solo
from .frames import Channel
from .functions import serve_functions
from .missing import installed_adk
from .processes import ForkServer, capture

_NOBODY = 0
"""The number of a process that waits for a task."""
_CASES = 4
"""Number of dummy cases run in advance.

The first one triggers lazy imports. The others are for functions called a few times in each case: Python specialises
them at about the eighth call. Without that, each fork would run the slower code and write to more of its memory. More
dummy cases would cost a short run more than they save.
"""


def main(arguments: Optional[List[str]] = None) -> int:
    """Run the zygote, a solo worker or the user's functions until the parent disconnects. Return the exit status."""
    parser = argparse.ArgumentParser(prog="worker", description=__doc__)
    parser.add_argument("mode", choices=("zygote", "solo", "functions"))
    parser.add_argument("--control", type=int, required=True, help="the worker's end of a socket pair")
    parser.add_argument("--lifeline", type=int, required=True, help="a pipe that ends when the workbench does")
    parser.add_argument(
        "--warm", choices=("adk",), help="import this framework before the agent; zygote: also run a turn"
    )
    parser.add_argument("--folder", help="functions: the agent's folder")
    parser.add_argument("--root", help="functions: the project's folder")
    options = parser.parse_args(arguments)
    collect_rarely()
    os.set_inheritable(options.control, False)
    os.set_inheritable(options.lifeline, False)
    if options.mode == "functions":
        serve_functions(options.control, options.lifeline, options.folder, options.root)
    channel = Channel(socket.socket(fileno=options.control))
    if options.mode == "zygote":
        Zygote(channel, options.lifeline).run(options.warm == "adk")
    else:
        if hasattr(os, "fork"):
            processes.shield_parent(options.control)
        run_solo(channel, options.lifeline, options.warm == "adk")
    return 0


class Zygote:
    """The process that imports the framework and forks an agent process for each `agent` command."""

    def __init__(self, channel: Channel, lifeline: int) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._forks: ForkServer
        self._spare: Optional[Tuple[int, socket.socket]] = None
        """Its process ID, and the socket to it."""

    def run(self, warm: bool) -> None:
        """Run until the workbench disconnects; everything below us is then killed."""
        # All objects created here stay in every fork, so the collector should neither visit them nor touch their
        # memory pages. It is off until then, because it would free only about three hundred objects.
        gc.disable()
        if warm:
            warm_up(_CASES)
        why = processes.cannot_fork() or processes.threads_left()
        if not why:
            processes.adopt_orphans()
        gc.freeze()
        gc.enable()
        self._forks = ForkServer(self._channel, self._lifeline)
        self._forks.report(ready(why))

        def handle(command: Dict[str, Any]) -> bool:
            if command["op"] == "spare":
                self._make_spare(warm)
            else:
                self._start_agent(command)
            return True

        self._forks.serve(handle)

    def _start_agent(self, command: Dict[str, Any]) -> None:
        fds = self._channel.take_fds(3)
        if not self._give_to_spare(command, fds):
            control, stdout, stderr = fds
            self._forks.fork(command["id"], lambda: self._be_agent(command["spec"], control, stdout, stderr))
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

        self._spare = self._forks.fork(_NOBODY, wait_for_task), own
        theirs.close()

    def _give_to_spare(self, command: Dict[str, Any], fds: Sequence[int]) -> bool:
        """Give the command to the spare process. Return False if there is none, or it is gone."""
        if self._spare is None:
            return False
        (pid, sock), self._spare = self._spare, None
        with sock:
            try:
                frames.send(sock, command, fds)
            except OSError:
                return False
        return self._forks.rename(pid, command["id"])

    def _be_agent(self, spec: Dict[str, Any], control: int, stdout: int, stderr: int) -> None:
        if self._spare is not None:
            self._spare[1].close()
        capture(stdout, stderr)
        run_agent(Channel(socket.socket(fileno=control)), self._lifeline, spec)


def warm_up(cases: int) -> None:
    """Import google-adk, if installed, and run `cases` dummy cases, so that its lazy imports are done.

    Errors are only printed; the agent will hit them itself.
    """
    if installed_adk() is None:
        return
    try:
        from .adk_warm import run_dummy_cases

        run_dummy_cases(cases)
        adk_driver.probe()
    except Exception as error:
        print(f"warming up google-adk failed: {error!r}", file=sys.stderr)
