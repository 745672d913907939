"""A fork as the engine runs it: its case, its user and its recording."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from workbench.events.events import Usage
from workbench.files.evalset import EvalCase
from workbench.run.conversation.replaying import Replay
from workbench.run.conversation.scenario_user import FixedMessages, MessageSource, Move, NextMessage
from workbench.run.forking.fork import Fork


class ForkedCase:
    """The case of a fork as it was in the forked run, which may differ from its file."""

    def __init__(self, fork: Fork) -> None:
        self.fork = fork
        started = fork.original.started
        self.case = EvalCase(
            fork.original.ref.eval_id,
            started.expected,
            started.scenario,
            started.session or None,
            started.rubrics,
            started.final_session_state,
            None,
        )
        rest = fork.rest()
        self.replay = None if rest is None else Replay("tools", "error", "", (), rest)
        """The replay of tools after the point, or None if they are live."""

    def user(self, simulated: Callable[[], MessageSource]) -> MessageSource:
        """Return the user. `simulated` makes the simulated user of a scenario."""
        before = self.fork.messages()
        if self.case.scenario is not None:
            return _ForkedUser(before, simulated())
        later = [turn["user_content"] for turn in (self.case.turns or ())[len(before) :]]
        return FixedMessages([*before, *later])

    def settings(self) -> dict[str, Any]:
        """Return the settings of the case's calls."""
        return {"record": True, "fork": self.fork.settings()}

    def frames(self) -> Iterator[dict[str, Any]]:
        """Yield the messages that precede the first turn."""
        return self.fork.frames()


class _ForkedUser:
    """A simulated user that takes over after the messages of the recorded conversation."""

    def __init__(self, before: Sequence[dict[str, Any]], after: MessageSource) -> None:
        self._before, self._after = before, after

    @property
    def usage(self) -> Usage:
        return self._after.usage

    def next(self, turns: Sequence[dict[str, Any]]) -> Move | Awaitable[Move]:
        return NextMessage(self._before[len(turns)]) if len(turns) < len(self._before) else self._after.next(turns)

    def close(self) -> None:
        self._after.close()
