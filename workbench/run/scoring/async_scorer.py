"""The part of the scorer with an event loop: all requests to judges, services and the user's functions.

→ `{"op": "environment", "key", "values", "interpreter", "root", "folder", "cwd"}` before the first frame that names it
→ `{"op": "run", "in_flight", "max_calls", "use_cache", "since", "cache_dir"}` new limits
→ `{"op": "drop", "id"}` ends all work for this id at once
← `{"op": "scored", …}` as for computed criteria; `details["tally"]` counts the calls
← `{"op": "waits", "model", "seconds", "reason"}` a queue pauses, or (0) continues
← `{"op": "notice", "text"}` a notice about the whole run for the user
← `{"op": "failed", "id", "reason", "traceback"}` a simulated user raised
← `{"op": "alive"}` regularly while any request waits; without it, a calculation hangs

The frames of a simulated user, whose conversation ends with a `drop` of its id:

→ `{"op": "simulate", "id", "environment", "repeat", "scenario", "simulator"}`: `scenario` is ADK's
   ConversationScenario, `simulator` the config's `user_simulator_config` or null
→ `{"op": "heard", "id", "turn", "answer": bool}` a turn (an ADK invocation), and whether the next message is needed
← `{"op": "said", "id", "text", "question", "tally"}`, `{"op": "ended", "id", "how", "question", "tally"}` or
   `{"op": "silent", "id", "message", "hint", "limited", "question", "tally"}` for each turn with `answer`; `tally`
   counts the calls of the conversation so far, `question` is a `workbench.judges.base.record` or {}
"""

import asyncio
import dataclasses
import traceback
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from workbench.criteria import registry
from workbench.criteria.base import Scored
from workbench.criteria.secrets import Secrets
from workbench.events.events import MetricResult
from workbench.judges.base import NotAvailableError
from workbench.judges.judge_pool import JudgeEnvironment, JudgePool, RunLimits
from workbench.judges.scenario import read_scenario, read_simulator
from workbench.judges.simulated_user import Ended, Failed, SimulatedMessage, SimulatedUser, Step
from workbench.run.scoring.scored_case import Case, SyncScorer, crashed, reply
from workbench.run.scoring.verdict import only_limited
from workbench.worker.frames import Channel, FrameTooLargeError

Message: TypeAlias = dict[str, Any]
_ALIVE_EVERY = 2.0
_SETTLE_SECONDS = 1.0
"""Seconds in which pending answers may arrive after the workbench has ended. The scorer process may live for 2."""


async def serve_async(sync_part: SyncScorer) -> None:
    """Continue the scorer's loop in an event loop, until the other side closes or sends `quit`."""
    channel = sync_part.channel
    asker = AsyncScorer(channel)
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(channel.fileno(), arrived.set)
    alive = loop.create_task(asker.stay_alive())
    asked_to_end = False
    try:
        while True:
            while sync_part.async_messages:
                asker.take(sync_part.async_messages.pop(0))
            if channel.pending:
                message = channel.pending.popleft()
                if message["op"] == "quit":
                    asked_to_end = True
                    return
                sync_part.take(message)
                await asyncio.sleep(0)  # Handle answers of judges between two calculations.
                continue
            await arrived.wait()
            arrived.clear()
            if not channel.fill(wait=False):
                return
    except OSError:
        pass  # The other side ended while we were sending.
    finally:
        loop.remove_reader(channel.fileno())
        alive.cancel()
        if not asked_to_end:
            await asker.settle()
        await asker.close()


class AsyncScorer:
    """The tasks for requests to judges and services."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pool = JudgePool(
            lambda model, seconds, reason: channel.send(
                {"op": "waits", "model": model, "seconds": seconds, "reason": reason}
            ),
            lambda text: channel.send({"op": "notice", "text": text}),
        )
        self._environments: dict[str, JudgeEnvironment] = {}
        self._secrets = Secrets(())
        self._tasks: dict[int, set[asyncio.Task[None]]] = {}
        self._dropped: set[int] = set()
        """Ids of tasks whose results are not needed."""
        self._heard: dict[int, asyncio.Queue[Message]] = {}
        """Turns that the conversations of simulated users have not handled yet, by id."""
        self._closing = False

    def take(self, message: Message) -> None:
        """Do what a message says, in a task if it takes time."""
        match message["op"]:
            case "environment":
                fields = {name: value for name, value in message.items() if name != "op"}
                self._environments[message["key"]] = JudgeEnvironment(**fields)
                self._secrets = Secrets(item.values for item in self._environments.values())
            case "run":
                folder = message["cache_dir"]
                limits = RunLimits(
                    in_flight=message["in_flight"],
                    max_calls=message["max_calls"],
                    use_cache=message["use_cache"],
                    since=message["since"],
                    # An answer with a secret of any environment must not be written to disk.
                    may_cache=lambda text: self._secrets.clean_text(text) == text,
                    cache_dir=None if folder is None else Path(folder),
                )
                self._pool.begin_run(limits)
            case "drop":
                if message["id"] in self._tasks:
                    self._dropped.add(message["id"])
                    for task in self._tasks[message["id"]]:
                        task.cancel()
            case "ask":
                self._start(message["id"], self._ask(message["id"], message["case"], message["criterion"]))
            case "simulate":
                heard = self._heard[message["id"]] = asyncio.Queue()
                self._start(message["id"], self._reported(message["id"], self._simulate(message, heard)))
            case "heard" if message["id"] in self._heard:
                self._heard[message["id"]].put_nowait(message)

    async def stay_alive(self) -> None:
        """Report regularly that this loop runs, until it is cancelled."""
        while True:
            await asyncio.sleep(_ALIVE_EVERY)
            if self._tasks:
                self._channel.send({"op": "alive"})

    async def settle(self) -> None:
        """Make no new requests, and wait briefly for pending answers. A resumed run can then use them."""
        self._closing = True
        self._pool.stop_calls()
        tasks = [task for tasks in self._tasks.values() for task in tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=_SETTLE_SECONDS)

    async def close(self) -> None:
        """Cancel all tasks and close all clients of judges."""
        self._closing = True
        tasks = [task for tasks in self._tasks.values() for task in tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._pool.close()

    def _start(self, number: int, work: "Any") -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.setdefault(number, set()).add(task)
        task.add_done_callback(lambda done: self._ended(number, done))

    def _ended(self, number: int, task: "asyncio.Task[None]") -> None:
        tasks = self._tasks[number]
        tasks.discard(task)
        if not tasks:
            del self._tasks[number]
            self._dropped.discard(number)
            self._heard.pop(number, None)

    async def _ask(self, number: int, case: Case, criterion: Message) -> None:
        """Score one criterion of one case and send the result. A failure is sent as a result, too."""
        try:
            data = reply(number, criterion["index"], await self._scored(case, criterion))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and (number in self._dropped or self._closing):
                raise
            data = reply(number, criterion["index"], crashed(case.request(criterion).criterion, error))
        self._channel.sock.sendall(data)

    async def _scored(self, case: Case, criterion: Message) -> Scored:
        request = case.request(criterion)
        bench = self._pool.bench(self._environments[case.environment], case.repeat, case.all_votes)
        try:
            scored = only_limited(await registry.score_with_bench(request, bench))
        except NotAvailableError as error:
            reason = f"{error}: {error.hint}" if error.hint else str(error)
            name, threshold = request.criterion.name, request.criterion.threshold
            scored = Scored(MetricResult(name, "not_evaluated", None, threshold, reason))
        except (Exception, SystemExit) as error:
            scored = crashed(request.criterion, error)
        tally = bench.tally
        if tally.calls or tally.cached:
            details = {**scored.result.details, "tally": dataclasses.asdict(tally)}
            scored = dataclasses.replace(scored, result=dataclasses.replace(scored.result, details=details))
        return scored

    async def _simulate(self, message: Message, heard: "asyncio.Queue[Message]") -> None:
        """Play one simulated user until it is cancelled. The turns of the conversation arrive in `heard`."""
        number = message["id"]
        bench = self._pool.bench(self._environments[message["environment"]], message["repeat"], False)
        config = read_simulator(message["simulator"])
        try:
            judge = bench.judge(config.judge_options)
        except NotAvailableError as error:
            await heard.get()
            return self._answer(number, Failed(str(error), error.hint), {})
        user = SimulatedUser(read_scenario(message["scenario"]), config, judge)
        while True:
            turn = await heard.get()
            user.add_turn(turn["turn"])
            if turn["answer"]:
                self._answer(number, await user.next(), dataclasses.asdict(bench.tally))

    async def _reported(self, number: int, work: Awaitable[None]) -> None:
        """Await `work`, and send its exception as its answer."""
        try:
            await work
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            failed = {"op": "failed", "id": number, "reason": reason, "traceback": traceback.format_exc()}
            self._channel.send(failed)

    def _answer(self, number: int, step: Step, tally: Mapping[str, Any]) -> None:
        message: Message = {"id": number, "tally": tally, "question": step.question}
        match step:
            case SimulatedMessage():
                message |= {"op": "said", "text": step.text}
            case Ended():
                message |= {"op": "ended", "how": step.how}
            case Failed():
                message |= {"op": "silent", "message": step.message, "hint": step.hint, "limited": step.limited}
        try:
            self._channel.send(message)
        except FrameTooLargeError:
            # Keep the message without its question, which is too large to read.
            self._channel.send({**message, "question": {}})
