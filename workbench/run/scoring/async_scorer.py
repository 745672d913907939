"""The part of the scorer with an event loop: all requests to judges, services and the user's functions.

→ `{"op": "environment", "key", "values", "interpreter", "root", "folder", "cwd"}` before the first frame that names it
→ `{"op": "run", "in_flight", "max_calls", "use_cache", "since", "cache_dir"}` new limits
→ `{"op": "drop", "id"}` ends all work for this id at once
→ the frames of `workbench.run.scoring.simulated`
← `{"op": "scored", …}` as for computed criteria; `details["tally"]` counts the calls
← `{"op": "waits", "model", "seconds", "reason"}` a queue pauses, or (0) continues
← `{"op": "notice", "text"}` a notice about the whole run for the user
← `{"op": "failed", "id", "reason", "traceback"}` a handler raised
← `{"op": "alive"}` regularly while any request waits; without it, a calculation hangs
"""

import asyncio
import dataclasses
import traceback
from pathlib import Path
from typing import Any, Protocol

from workbench.criteria import registry
from workbench.criteria.base import Scored
from workbench.criteria.secrets import Secrets
from workbench.events.events import MetricResult
from workbench.judges.base import NotAvailableError
from workbench.judges.judge_pool import JudgeEnvironment, JudgePool, RunLimits
from workbench.run.scoring import simulated
from workbench.run.scoring.scored_case import Case, crashed, reply
from workbench.run.scoring.simulated import Message
from workbench.run.scoring.verdict import only_limited
from workbench.worker.frames import Channel

_ALIVE_EVERY = 2.0
_SETTLE_SECONDS = 1.0
"""Seconds in which pending answers may arrive after the workbench has ended. The scorer itself has 2."""

HANDLERS = simulated.HANDLERS


class SyncPart(Protocol):
    """The scorer without an event loop (`workbench.run.scoring.scorer.SyncScorer`)."""

    channel: Channel
    async_messages: list[Message]

    def take(self, message: Message) -> None:
        """Handle a message."""
        ...


def serve_async(sync_part: SyncPart) -> None:
    """Continue the scorer's loop with an event loop, until the other side closes."""
    asyncio.run(_serve(sync_part))


async def _serve(sync_part: SyncPart) -> None:
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
        self._pool = JudgePool(self._waits, self._notice)
        self._environments: dict[str, JudgeEnvironment] = {}
        self._secrets = Secrets(())
        self._tasks: dict[int, set[asyncio.Task[None]]] = {}
        self._dropped: set[int] = set()
        """Ids of tasks whose results are not needed."""
        self._closing = False

    def take(self, message: Message) -> None:
        """Handle a message, in a task if it takes time."""
        match message["op"]:
            case "environment":
                fields = {name: value for name, value in message.items() if name != "op"}
                self._environments[message["key"]] = JudgeEnvironment(**fields)
                self._secrets = Secrets(item.values for item in self._environments.values())
            case "run":
                self._pool.begin_run(self._limits(message))
            case "drop":
                if message["id"] in self._tasks:
                    self._dropped.add(message["id"])
                    for task in self._tasks[message["id"]]:
                        task.cancel()
            case "ask":
                self._start(message["id"], self._ask(**{key: message[key] for key in ("id", "case", "criterion")}))
            case _:
                self._start(message["id"], self._handle(message))

    async def stay_alive(self) -> None:
        """Report regularly that this loop runs, until it is cancelled."""
        while True:
            await asyncio.sleep(_ALIVE_EVERY)
            if self._tasks:
                self._channel.send({"op": "alive"})

    async def settle(self) -> None:
        """Wait briefly for pending answers without new requests, so that a resumed run can use them."""
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

    def _limits(self, message: Message) -> RunLimits:
        folder = message["cache_dir"]
        return RunLimits(
            in_flight=message["in_flight"],
            max_calls=message["max_calls"],
            use_cache=message["use_cache"],
            since=message["since"],
            may_cache=self._may_be_kept,
            cache_dir=None if folder is None else Path(folder),
        )

    def _may_be_kept(self, text: str) -> bool:
        """Return whether an answer has no secret of any environment, so that it can be written to disk."""
        return self._secrets.clean_text(text) == text

    def _waits(self, model: str, seconds: float, reason: str) -> None:
        self._channel.send({"op": "waits", "model": model, "seconds": seconds, "reason": reason})

    def _notice(self, text: str) -> None:
        self._channel.send({"op": "notice", "text": text})

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

    async def _ask(self, id: int, case: Case, criterion: Message) -> None:  # noqa: A002
        """Score one criterion of one case and send the result, which also reports any failure."""
        try:
            data = reply(id, {criterion["index"]: await self._scored(case, criterion)}, self._secrets.clean_text)
        except asyncio.CancelledError as error:
            if id in self._dropped or self._closing:
                raise
            data = self._crashed(id, case, criterion, error)
        except (Exception, SystemExit) as error:
            data = self._crashed(id, case, criterion, error)
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

    def _crashed(self, number: int, case: Case, criterion: Message, error: BaseException) -> bytes:
        return reply(number, {criterion["index"]: crashed(case.request(criterion).criterion, error)})

    async def _handle(self, message: Message) -> None:
        try:
            await HANDLERS[message["op"]](message, self._channel.send, self._pool, self._environments)
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
            failed = {"op": "failed", "id": message["id"], "reason": reason, "traceback": traceback.format_exc()}
            self._channel.send(failed)
