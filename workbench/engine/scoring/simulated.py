"""Simulated users in the scorer: a conversation is a task there, and asks through the pool as the criteria do.

→ `{"op": "simulate", "id", "environment", "repeat", "scenario", "simulator"}`: `scenario` is ADK's
   ConversationScenario, `simulator` the config's `user_simulator_config` or null
→ `{"op": "heard", "id", "turn", "answer": bool}` a turn (an ADK invocation), and whether the next message is wanted
← `{"op": "said", "id", "text", "question", "tally"}`, `{"op": "ended", "id", "how", "question", "tally"}` or
   `{"op": "silent", "id", "message", "hint", "limited", "question", "tally"}`
   for each turn with `answer`; `tally` counts what the
   conversation has asked so far, `question` is a `workbench.judge.base.record` or {}

The conversation ends with a `drop` of its number.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from workbench.agents.worker.frames import FrameTooLargeError
from workbench.judge.base import NotAvailableError
from workbench.judge.judge_pool import JudgeEnvironment, JudgePool
from workbench.simulation.config import read_simulator
from workbench.simulation.scenario import read_scenario
from workbench.simulation.simulated_user import Ended, Failed, Said, SimulatedUser, Step

Message: TypeAlias = dict[str, Any]
Send: TypeAlias = Callable[[Message], None]
Handler: TypeAlias = Callable[[Message, Send, JudgePool, Mapping[str, JudgeEnvironment]], Awaitable[None]]
"""Deals with one frame, as a task: `send` takes what it answers. It is cancelled by a `drop` with the same id."""

_heard: dict[int, "asyncio.Queue[Message]"] = {}
"""What the conversations under way have not taken in yet, by number."""


async def simulate(message: Message, send: Send, pool: JudgePool, environments: Mapping[str, JudgeEnvironment]) -> None:
    """One simulated user, until it is cancelled."""
    number = message["id"]
    heard = _heard[number] = asyncio.Queue()
    try:
        bench = pool.bench(environments[message["environment"]], message["repeat"], False)
        config = read_simulator(message["simulator"])
        try:
            judge = bench.judge(config.judge_options)
        except NotAvailableError as error:
            unavailable = Failed(str(error), error.hint)
            await heard.get()
            return _answer(send, number, unavailable, {})
        user = SimulatedUser(read_scenario(message["scenario"]), config, judge)
        while True:
            turn = await heard.get()
            user.hear(turn["turn"])
            if turn["answer"]:
                step = await user.next()
                _answer(send, number, step, dataclasses.asdict(bench.tally))
    finally:
        del _heard[number]


async def hear(message: Message, send: Send, pool: JudgePool, environments: Mapping[str, JudgeEnvironment]) -> None:
    """Hands a turn to its conversation; one that is over needs it no more."""
    if message["id"] in _heard:
        _heard[message["id"]].put_nowait(message)


HANDLERS: Mapping[str, Handler] = {"simulate": simulate, "heard": hear}
"""Operation → what deals with its frame."""


def _answer(send: Send, number: int, step: Step, tally: Mapping[str, Any]) -> None:
    message = {"id": number, "tally": tally, "question": step.question, **_words(step)}
    try:
        send(message)
    except FrameTooLargeError:
        # The message counts; the question that led to it is too large for anybody to read.
        send({**message, "question": {}})


def _words(step: Step) -> Message:
    match step:
        case Said():
            return {"op": "said", "text": step.text}
        case Ended():
            return {"op": "ended", "how": step.how}
        case Failed():
            return {"op": "silent", "message": step.message, "hint": step.hint, "limited": step.limited}
