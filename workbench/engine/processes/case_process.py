"""The process of one case: how it begins, and how it is made to end."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import Any

from workbench.engine.processes.agent_process import AgentProcess

_TERMINATE_GRACE = 1.0
_KILL_GRACE = 5.0
_TEARDOWN_GRACE = 8.0
"""Seconds that closing toolsets and plugins may take after the last turn; the worker gives up after 5."""


class CaseProcess:
    """A case in `agent`, in a process of its own unless it is to `share`. `give_up` is called when it could not be
    killed: a process that waits for a dead disk is left behind."""

    def __init__(self, agent: AgentProcess, *, share: bool, give_up: Callable[[], None]) -> None:
        self.agent = agent
        self.share = share
        self._give_up = give_up
        self._loop = asyncio.get_running_loop()
        self.said_all: asyncio.Future[None] = self._loop.create_future()
        """The agent has closed what it had open, or the case has ended: nothing that counts will come."""
        self.exited: asyncio.Future[None] = self._loop.create_future()
        """The case has ended, and all that it wrote is taken in."""
        self._timers: list[asyncio.TimerHandle] = []
        self._closing = False
        self._number = 0

    def start(
        self,
        case: dict[str, Any],
        descriptors: Sequence[int],
        on_exit: Callable[[str | None], None],
        *,
        here: bool,
    ) -> None:
        """As `AgentProcess.start_case`."""
        self._number = self.agent.start_case(case, self.share, descriptors, on_exit, here=here)

    def terminate(self) -> None:
        """Asks the case to end, and kills it if it does not listen."""
        self.agent.kill_case(self._number, signal.SIGTERM)
        self._later(_TERMINATE_GRACE, self.kill)

    def kill(self) -> None:
        """Kills the case; where it shares a process and did not let itself be cancelled, that process."""
        if self.exited.done():
            return
        self.agent.kill_case(self._number, signal.SIGKILL)
        if self.share:
            self._later(_TERMINATE_GRACE, self.agent.kill)
        self._later(_KILL_GRACE, self._give_up)

    def allow_teardown(self) -> None:
        """Gives the case a while to close what it holds, once: then what is left is killed, or left behind."""
        if not self.exited.done() and not self._closing:
            self._closing = True
            self._later(_TEARDOWN_GRACE, self._kill_rest)

    def note_said_all(self) -> None:
        """Nothing that counts will come any more."""
        _done(self.said_all)

    def forget(self) -> None:
        """The case has ended with its last word: one that shares a process leaves nothing behind."""
        self.agent.forget_case(self._number)

    def note_exited(self) -> None:
        _done(self.said_all)
        _done(self.exited)

    def close(self) -> None:
        """Nothing more will be done to it."""
        for timer in self._timers:
            timer.cancel()

    def _kill_rest(self) -> None:
        self.agent.kill_case(self._number, signal.SIGKILL)
        self._later(_KILL_GRACE, self.note_exited)

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(seconds, what))


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
