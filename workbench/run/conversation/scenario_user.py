"""The user of one case: a fixed list of messages, or a simulated user that decides after each answer."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from workbench.agents.channel import Frame
from workbench.events.events import CaseError, CaseStatus, Usage
from workbench.judges.scenario import read_scenario, read_simulator
from workbench.judges.simulated_user import Ended, Failed, SimulatedMessage, Step, step_without_judge
from workbench.run.scoring.client import Scorer, ScorerChannel
from workbench.worker.frames import FrameTooLargeError

_ATTEMPTS = 2
"""Number of attempts at a message if the scorer dies."""


@dataclass(frozen=True, slots=True)
class NextMessage:
    """The user's next message, an ADK content.

    `last` means that certainly no further message follows. `question` is the simulator's question
    (`UserSimulated.question`), {} if no model was asked, or None if the user is not simulated.
    """

    content: dict[str, Any]
    last: bool = False
    question: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ConversationEnd:
    """The end of the conversation, by the simulated user's decision or at the turn limit."""

    how: Literal["stop_signal", "turn_limit"]
    question: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserFailure:
    """The end of a conversation because the user's next message could not be made.

    `question` is the question to the user's model and its unusable reply, or {} if no model was asked. `status` is the
    status that the case gets.
    """

    error: CaseError
    question: dict[str, Any] = field(default_factory=dict)
    status: CaseStatus = "error"


Move: TypeAlias = NextMessage | ConversationEnd | UserFailure


class MessageSource(Protocol):
    """The user of one execution of a case."""

    @property
    def usage(self) -> Usage:
        """The usage of the simulator's calls so far, in the fields for judges."""
        ...

    def next(self, turns: Sequence[dict[str, Any]]) -> Move | Awaitable[Move]:
        """Return the user's move after `turns` (ADK invocations), or an awaitable of the move that can be cancelled.

        Implementations must not raise.
        """
        ...

    def close(self) -> None:
        """Release all resources, because the conversation is over."""
        ...


class FixedMessages:
    """The messages (at least one) of a case without a simulated user."""

    usage = Usage()

    def __init__(self, contents: Sequence[dict[str, Any]]) -> None:
        self.contents = contents

    def next(self, turns: Sequence[dict[str, Any]]) -> NextMessage:
        """Return the message after `turns`."""
        turn = len(turns)
        return NextMessage(self.contents[turn], last=turn == len(self.contents) - 1)

    def close(self) -> None:
        """Do nothing, because there are no resources."""


class _ChannelLostError(Exception):
    """The end of the scorer's process. The text says how it ended."""


class ScenarioUser:
    """A `MessageSource` that simulates the user of a scenario.

    `environment` is the environment of the agent's judges (`AgentSetting.judge_environment`). `scenario` comes from the
    case, and `simulator` from the config.
    """

    def __init__(
        self,
        scorer: Scorer,
        environment: Mapping[str, Any],
        scenario: Mapping[str, Any],
        simulator: Mapping[str, Any] | None,
        repeat: int,
    ) -> None:
        self._scorer = scorer
        self._environment = environment
        self._message = {"op": "simulate", "scenario": scenario, "simulator": simulator, "repeat": repeat}
        self._scenario = read_scenario(scenario)
        self._config = read_simulator(simulator)
        self._channel: ScorerChannel | None = None
        self._sent = 0
        """Number of turns that were sent on the current channel."""
        self._answer: asyncio.Future[Frame] | None = None
        self._before: Mapping[str, int] = {}
        """The summed tallies of lost channels."""
        self._tally: Mapping[str, int] = {}

    @property
    def usage(self) -> Usage:
        """The usage of the simulator's model."""

        def sum_of(name: str) -> int:
            return self._before.get(name, 0) + self._tally.get(name, 0)

        return Usage(
            judge_calls=sum_of("calls"),
            judge_calls_cached=sum_of("cached"),
            judge_input_tokens=sum_of("input_tokens"),
            judge_output_tokens=sum_of("output_tokens"),
        )

    def next(self, turns: Sequence[dict[str, Any]]) -> Move | Awaitable[Move]:
        """Return the next move, or an awaitable of it if a model decides."""
        known = step_without_judge(self._scenario, self._config, len(turns))
        return self._ask(turns) if known is None else _move(known)

    def close(self) -> None:
        """Close the channel to the scorer."""
        if self._channel is not None:
            self._scorer.close_channel(self._channel)
            self._channel = None

    async def _ask(self, turns: Sequence[dict[str, Any]]) -> Move:
        how = ""
        for _ in range(_ATTEMPTS):
            try:
                return _move_of(await self._answer_to(turns))
            except _ChannelLostError as lost:
                how = str(lost)
            except FrameTooLargeError as error:
                return _failure(f"the previous turn cannot be sent to the scorer: {error}")
        return _failure(f"the scorer {how}, twice")

    async def _answer_to(self, turns: Sequence[dict[str, Any]]) -> Frame:
        """Send the turns that the scorer does not have, and return its answer."""
        self._answer = asyncio.get_running_loop().create_future()
        if self._channel is None:
            self._sent = 0
            self._channel = self._scorer.open_channel(self._environment, self._take, self._lost)
            self._scorer.send(self._channel, {**self._message, "environment": self._environment["key"]})
        for number in range(self._sent, len(turns)):
            answer = number == len(turns) - 1
            self._scorer.send(self._channel, {"op": "heard", "turn": turns[number], "answer": answer})
        self._sent = len(turns)
        return await self._answer

    def _take(self, frame: Frame) -> None:
        self._tally = frame.get("tally") or self._tally
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(frame)

    def _lost(self, how: str) -> None:
        self._channel = None
        names = self._before.keys() | self._tally.keys()
        self._before = {name: self._before.get(name, 0) + self._tally.get(name, 0) for name in names}
        self._tally = {}
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(_ChannelLostError(how))


def _move(step: Step) -> Move:
    match step:
        case SimulatedMessage():
            return NextMessage({"role": "user", "parts": [{"text": step.text}]}, question=step.question)
        case Ended():
            return ConversationEnd(step.how, step.question)
        case Failed():
            status: CaseStatus = "not_evaluated" if step.limited else "error"
            return UserFailure(CaseError("simulator", step.message, step.hint), step.question, status)


def _move_of(frame: Frame) -> Move:
    """Return the move in an answer of the scorer (`workbench.run.scoring.async_scorer`)."""
    question = frame.get("question") or {}
    match frame["op"]:
        case "said":
            return _move(SimulatedMessage(frame["text"], question))
        case "ended":
            return _move(Ended(frame["how"], question))
        case "silent":
            return _move(Failed(frame["message"], frame["hint"], question, frame["limited"]))
    failed = f"the simulated user failed: {frame.get('reason')}"
    return UserFailure(CaseError("internal", failed, "", frame.get("traceback") or ""))


def _failure(why: str) -> UserFailure:
    return UserFailure(CaseError("simulator", f"no message from the simulated user: {why}"))
