"""The simulated user of one case, as the engine sees it: what needs no judge is known here, the rest is asked of the
scorer."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from workbench.agents.channel import Frame
from workbench.agents.worker.frames import FrameTooLargeError
from workbench.engine.conversation.messages import HangUp, Move, Say, Silence
from workbench.engine.scoring.client import Line, Scorer
from workbench.events import CaseError, CaseStatus, Usage
from workbench.simulation.config import read_simulator
from workbench.simulation.scenario import read_scenario
from workbench.simulation.simulated_user import Ended, Failed, Said, Step, without_asking

_ATTEMPTS = 2
"""How often a message is asked for when the scorer does not survive it."""


class _LineLostError(Exception):
    """The scorer died; the text says how."""


class ScenarioUser:
    """A `MessageSource`. `environment` is what judges of the case's agent are asked with
    (`workbench.engine.plan.judge_environment`), `scenario` and `simulator` are those of the case and of its config."""

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
        self._line: Line | None = None
        self._sent = 0
        """How many turns the scorer has been told on this line."""
        self._answer: asyncio.Future[Frame] | None = None
        self._before: Mapping[str, int] = {}
        """What was counted on lines that were lost."""
        self._tally: Mapping[str, int] = {}

    @property
    def usage(self) -> Usage:
        def sum_of(name: str) -> int:
            return self._before.get(name, 0) + self._tally.get(name, 0)

        return Usage(
            judge_calls=sum_of("calls"),
            judge_calls_cached=sum_of("cached"),
            judge_input_tokens=sum_of("input_tokens"),
            judge_output_tokens=sum_of("output_tokens"),
        )

    def next(self, turns: Sequence[dict[str, Any]]) -> Move | Awaitable[Move]:
        known = without_asking(self._scenario, self._config, len(turns))
        return self._ask(turns) if known is None else _move(known)

    def close(self) -> None:
        if self._line is not None:
            self._scorer.close_line(self._line)
            self._line = None

    async def _ask(self, turns: Sequence[dict[str, Any]]) -> Move:
        how = ""
        for _ in range(_ATTEMPTS):
            try:
                return _move_of(await self._answer_to(turns))
            except _LineLostError as lost:
                how = str(lost)
            except FrameTooLargeError as error:
                return _silence(f"the turn before it cannot be handed to the scorer: {error}")
        return _silence(f"the scorer {how}, twice")

    async def _answer_to(self, turns: Sequence[dict[str, Any]]) -> Frame:
        """What the scorer says to the turns, told as far as it does not know them."""
        self._answer = asyncio.get_running_loop().create_future()
        if self._line is None:
            self._sent = 0
            self._line = self._scorer.open_line(self._environment, self._take, self._lost)
            self._scorer.say(self._line, {**self._message, "environment": self._environment["key"]})
        for number in range(self._sent, len(turns)):
            answer = number == len(turns) - 1
            self._scorer.say(self._line, {"op": "heard", "turn": turns[number], "answer": answer})
        self._sent = len(turns)
        return await self._answer

    def _take(self, frame: Frame) -> None:
        self._tally = frame.get("tally") or self._tally
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(frame)

    def _lost(self, how: str) -> None:
        self._line = None
        names = self._before.keys() | self._tally.keys()
        self._before = {name: self._before.get(name, 0) + self._tally.get(name, 0) for name in names}
        self._tally = {}
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(_LineLostError(how))


def _move(step: Step) -> Move:
    match step:
        case Said():
            return Say({"role": "user", "parts": [{"text": step.text}]}, question=step.question)
        case Ended():
            return HangUp(step.how, step.question)
        case Failed():
            status: CaseStatus = "not_evaluated" if step.limited else "error"
            return Silence(CaseError("simulator", step.message, step.hint), step.question, status)


def _move_of(frame: Frame) -> Move:
    """The scorer's answer (`workbench.engine.scoring.simulated`)."""
    question = frame.get("question") or {}
    match frame["op"]:
        case "said":
            return _move(Said(frame["text"], question))
        case "ended":
            return _move(Ended(frame["how"], question))
        case "silent":
            return _move(Failed(frame["message"], frame["hint"], question, frame["limited"]))
    return Silence(
        CaseError("internal", f"the simulated user: {frame.get('reason')}", "", frame.get("traceback") or "")
    )


def _silence(why: str) -> Silence:
    return Silence(CaseError("simulator", f"the simulated user said nothing: {why}"))
