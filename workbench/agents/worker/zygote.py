"""The process that has everything imported before anybody asks: agent processes are forks of it."""

from __future__ import annotations

import gc
import os
import socket
import sys
from typing import Any, Dict

from . import absent, processes
from .adk_version import installed_adk
from .agent_process import ready, run_agent
from .frames import Channel
from .nursery import Nursery, capture


class Zygote:
    """Imports, says that it is ready, and forks an agent process for each `agent` command."""

    def __init__(self, channel: Channel, lifeline: int) -> None:
        self._channel = channel
        self._lifeline = lifeline

    def run(self, warm: bool) -> None:
        """Returns when the workbench lets go of us, with everything below us killed."""
        if warm:
            warm_up()
        why = processes.cannot_fork() or processes.threads_left()
        if not why:
            processes.adopt_orphans()
        # What is there now will be there in every fork: the collector need not look at it, nor touch its pages.
        gc.collect()
        gc.freeze()
        nursery = Nursery(self._channel, self._lifeline)
        nursery.tell(ready(why))

        def fork_agent(command: Dict[str, Any]) -> bool:
            control, stdout, stderr = self._channel.take_fds(3)
            nursery.fork(command["id"], lambda: self._be_agent(command["spec"], control, stdout, stderr))
            for fd in (control, stdout, stderr):
                os.close(fd)
            return True

        nursery.serve(fork_agent)

    def _be_agent(self, spec: Dict[str, Any], control: int, stdout: int, stderr: int) -> None:
        capture(stdout, stderr)
        run_agent(Channel(socket.socket(fileno=control)), self._lifeline, spec)


def warm_up() -> None:
    """Imports google-adk, if it is there, and runs a turn, so that what it loads late is loaded too. Whatever goes
    wrong is left for the agent to find, in its own words."""
    if installed_adk() is None:
        return
    try:
        from .adk_warm import run_dummy_turn

        run_dummy_turn()
        absent.look()
    except Exception as error:
        print(f"warming up google-adk failed: {error!r}", file=sys.stderr)
