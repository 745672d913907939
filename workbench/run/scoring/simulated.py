"""Simulated users in the scorer: a conversation is a task there, and asks through the pool as the criteria do.

→ `{"op": "simulate", "id", "environment", "repeat", "scenario", "simulator"}`: `scenario` is ADK's
   ConversationScenario, `simulator` the config's `user_simulator_config` or null
→ `{"op": "heard", "id", "turn", "answer": bool}` a turn (an ADK invocation), and whether the next message is needed
← `{"op": "said", "id", "text", "question", "tally"}`, `{"op": "ended", "id", "how", "question", "tally"}` or
   `{"op": "silent", "id", "message", "hint", "limited", "question", "tally"}` for each turn with `answer`; `tally`
   counts the calls of the conversation so far, `question` is a `workbench.judges.base.record` or {}

The conversation ends with a `drop` of its id.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from workbench.judges.base import NotAvailableError
from workbench.judges.judge_pool import JudgeEnvironment, JudgePool
from workbench.judges.scenario import read_scenario, read_simulator
from workbench.judges.simulated_user import Ended, Failed, SimulatedMessage, SimulatedUser, Step
from workbench.worker.frames import FrameTooLargeError

Message: TypeAlias = dict[str, Any]
Send: TypeAlias = Callable[[Message], None]
Handler: TypeAlias = Callable[[Message, Send, JudgePool, Mapping[str, JudgeEnvironment]], Awaitable[None]]
"""A task that handles one frame and answers with `send`. A `drop` with the same id cancels it."""

_queues: dict[int, "asyncio.Queue[Message]"] = {}
"""Messages that conversations have not handled yet, by id."""


async def simulate(message: Message, send: Send, pool: JudgePool, environments: Mapping[str, JudgeEnvironment]) -> None:
    """Play one simulated user until it is cancelled."""
    number = message["id"]
    queue = _queues[number] = asyncio.Queue()
    try:
        bench = pool.bench(environments[message["environment"]], message["repeat"], False)
        config = read_simulator(message["simulator"])
        try:
            judge = bench.judge(config.judge_options)
        except NotAvailableError as error:
            unavailable = Failed(str(error), error.hint)
            await queue.get()
            return _answer(send, number, unavailable, {})
        user = SimulatedUser(read_scenario(message["scenario"]), config, judge)
        while True:
            turn = await queue.get()
            user.add_turn(turn["turn"])
            if turn["answer"]:
                step = await user.next()
                _answer(send, number, step, dataclasses.asdict(bench.tally))
    finally:
        del _queues[number]


async def add_turn(message: Message, send: Send, pool: JudgePool, environments: Mapping[str, JudgeEnvironment]) -> None:
    """Add a turn to its conversation, unless the conversation is over."""
    if message["id"] in _queues:
        _queues[message["id"]].put_nowait(message)


HANDLERS: Mapping[str, Handler] = {"simulate": simulate, "heard": add_turn}
"""Operation → handler of its frame."""


def _answer(send: Send, number: int, step: Step, tally: Mapping[str, Any]) -> None:
    message = {"id": number, "tally": tally, "question": step.question, **_words(step)}
    try:
        send(message)
    except FrameTooLargeError:
        # Keep the message without its question, which is too large to read.
        send({**message, "question": {}})


def _words(step: Step) -> Message:
    match step:
        case SimulatedMessage():
            return {"op": "said", "text": step.text}
        case Ended():
            return {"op": "ended", "how": step.how}
        case Failed():
            return {"op": "silent", "message": step.message, "hint": step.hint, "limited": step.limited}
