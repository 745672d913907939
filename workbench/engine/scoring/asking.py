"""What the scorer does in its event loop: everything that asks somebody and waits for the answer.

→ `{"op": "environment", "key", "values", "interpreter", "root", "folder", "cwd"}` before the first frame that names it
→ `{"op": "run", "in_flight", "max_calls", "use_cache", "since", "cache_dir"}` the limits from here on
→ `{"op": "drop", "id"}` ends at once whatever is done for this number
→ what `workbench.engine.scoring.simulated` knows
← `{"op": "scored", …}` as for computed criteria; `details["tally"]` counts what was asked
← `{"op": "waits", "model", "seconds", "reason"}` a queue pauses, or (0) goes on
← `{"op": "notice", "text"}` something about the whole run that the user should know
← `{"op": "failed", "id", "reason", "traceback"}` a handler of another room raised
← `{"op": "alive"}` now and then, as long as anything waits: no sign of it means that a calculation hangs
"""

import asyncio
import dataclasses
import traceback
from pathlib import Path
from typing import Any, Protocol

from workbench.agents.worker.frames import Channel
from workbench.engine.plan.secrets import Secrets
from workbench.engine.scoring import simulated
from workbench.engine.scoring.scored_case import Case, crashed, reply
from workbench.engine.scoring.simulated import Message
from workbench.engine.scoring.verdict import only_limited
from workbench.events import MetricResult
from workbench.judge.base import NotAvailableError
from workbench.judge.judge_pool import JudgeEnvironment, JudgePool, RunLimits
from workbench.metrics import registry
from workbench.metrics.base import Scored

_ALIVE_EVERY = 20.0
_ON_THEIR_WAY = 1.0
"""Seconds that are left to answers when the workbench is gone; the scorer itself has 2."""

HANDLERS = simulated.HANDLERS


class Counting(Protocol):
    """The part of the scorer that needs no event loop (`workbench.engine.scoring.scorer.Counter`)."""

    channel: Channel
    for_others: list[Message]

    def take(self, message: Message) -> None: ...


def serve_asking(counting: Counting) -> None:
    """Goes on where the scorer's plain loop ends, until the other side closes."""
    asyncio.run(_serve(counting))


async def _serve(counting: Counting) -> None:
    channel = counting.channel
    asker = Asker(channel)
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(channel.fileno(), arrived.set)
    alive = loop.create_task(asker.stay_alive())
    asked_to_end = False
    try:
        while True:
            while counting.for_others:
                asker.take(counting.for_others.pop(0))
            if channel.pending:
                message = channel.pending.popleft()
                if message["op"] == "quit":
                    asked_to_end = True
                    return
                counting.take(message)
                await asyncio.sleep(0)  # Between two calculations, what judges have answered is dealt with.
                continue
            await arrived.wait()
            arrived.clear()
            if not channel.fill(wait=False):
                return
    except OSError:
        pass  # The other side is gone, in the middle of what we told it.
    finally:
        loop.remove_reader(channel.fileno())
        alive.cancel()
        if not asked_to_end:
            await asker.settle()
        await asker.close()


class Asker:
    """Does what is asked of it in tasks, all through one pool."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pool = JudgePool(self._waits, self._notice)
        self._environments: dict[str, JudgeEnvironment] = {}
        self._secrets = Secrets(())
        self._tasks: dict[int, set[asyncio.Task[None]]] = {}
        self._dropped: set[int] = set()
        """Those of the numbers above that nobody waits for any more."""
        self._closing = False

    def take(self, message: Message) -> None:
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
        """Tells the other side that this loop turns, until it is cancelled."""
        while True:
            await asyncio.sleep(_ALIVE_EVERY)
            if self._tasks:
                self._channel.send({"op": "alive"})

    async def settle(self) -> None:
        """Waits a moment for answers that are on their way, without asking anything more: they are kept for a run that
        is resumed."""
        self._closing = True
        self._pool.stop_calls()
        tasks = [task for tasks in self._tasks.values() for task in tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=_ON_THEIR_WAY)

    async def close(self) -> None:
        """Ends what is under way, and all that the pool has opened."""
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
            keep=self._may_be_kept,
            cache_dir=None if folder is None else Path(folder),
        )

    def _may_be_kept(self, text: str) -> bool:
        """Whether an answer holds no secret of any environment, so that it can be written to disk."""
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
        """One criterion of one case, to its result: whatever happens, there is one, unless nobody waits for it."""
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
            scored = only_limited(await registry.score_asking(request, bench))
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
