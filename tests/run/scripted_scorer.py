"""The scorer with a scripted pool: what a criterion does is its option `do`. Started by tests as a process."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.criteria import registry
from workbench.criteria.base import Scored, ScoreRequest
from workbench.events.events import MetricResult
from workbench.judges.base import NotAvailableError
from workbench.judges.judge_pool import JudgeEnvironment, RunLimits, Tally
from workbench.run.scoring import async_scorer, scorer

_RELEASED = asyncio.Event()
_CANCELLED: list[str] = []


class ScriptedPool:
    def __init__(self, on_wait: Callable[[str, float, str], None], on_notice: Callable[[str], None]) -> None:
        self.on_wait = on_wait
        self.on_notice = on_notice
        self.limits = RunLimits()

    def begin_run(self, limits: RunLimits) -> None:
        self.limits = limits

    def bench(self, environment: JudgeEnvironment, repeat: int, all_votes: bool) -> "ScriptedBench":
        if environment.values["WHO"] == "nobody":
            raise LookupError("no such office")
        return ScriptedBench(self, environment, repeat, all_votes)

    async def close(self) -> None:
        pass


class ScriptedBench:
    def __init__(self, pool: ScriptedPool, environment: JudgeEnvironment, repeat: int, all_votes: bool) -> None:
        self.pool, self.environment, self.repeat, self.all_votes = pool, environment, repeat, all_votes
        self.tally = Tally()


async def hold(request: ScoreRequest, bench: ScriptedBench) -> None:
    try:
        await _RELEASED.wait()
    except asyncio.CancelledError:
        _CANCELLED.append(request.criterion.name)
        raise


async def act(request: ScoreRequest, bench: ScriptedBench) -> None:
    match request.criterion.options.get("do"):
        case "release":
            _RELEASED.set()
        case "wait":
            bench.pool.on_wait("gemini", 12.5, "quota")
            bench.pool.on_notice("answers cannot be kept")
        case "count":
            bench.tally = Tally(3, 2, 40, 4)


async def fall(request: ScoreRequest, bench: ScriptedBench) -> None:
    match request.criterion.options["do"]:
        case "raise":
            raise LookupError("no such sentence")
        case "exit":
            raise SystemExit("enough")
        case "cancelled":
            raise asyncio.CancelledError
        case "unavailable":
            raise NotAvailableError("gemini needs a key", "set GOOGLE_API_KEY")


async def end(request: ScoreRequest, bench: ScriptedBench) -> None:
    match request.criterion.options["do"]:
        case "die":
            os._exit(3)
        case "die once":
            marker = Path(request.criterion.options["marker"])
            if not marker.exists():
                marker.touch()
                os._exit(3)
        case "hang":
            while True:
                pass


SCRIPT = {
    "hold": hold,
    **dict.fromkeys(("raise", "exit", "cancelled", "unavailable"), fall),
    **dict.fromkeys(("die", "die once", "hang"), end),
}


async def score_with_bench(request: ScoreRequest, bench: Any) -> Scored:
    await SCRIPT.get(request.criterion.options["do"], act)(request, bench)
    if request.criterion.options["do"] == "nothing":
        return None  # type: ignore[return-value]
    if request.criterion.options["do"] == "flood":
        bench.tally = Tally(3)
        text = "word " * 4_000_000
        turn = MetricResult(request.criterion.name, "passed", 1.0, 0.5, "", {"text": text})
        return Scored(replace(turn, details={"judge": {"model": "gemini"}, "text": text}), (turn,))
    limits = bench.pool.limits
    seen = {
        "cancelled": sorted(_CANCELLED),
        "who": bench.environment.values.get("WHO"),
        "cwd": bench.environment.cwd,
        "repeat": bench.repeat,
        "all_votes": bench.all_votes,
        "limits": [limits.in_flight, limits.max_calls, limits.use_cache, limits.cache_dir and str(limits.cache_dir)],
        "keeps": [limits.may_cache("a word"), limits.may_cache(f"it is {bench.environment.values.get('DESK_KEY')}")],
        "custom": request.custom_config,
    }
    return Scored(MetricResult(request.criterion.name, "passed", 1.0, 0.5, "", seen))


async def echo(frame: dict[str, Any], send: Callable[[Any], None], pool: Any, environments: Any) -> None:
    send({"op": "echoed", "id": frame["id"], "text": frame["text"], "environments": sorted(environments)})


async def stay(frame: dict[str, Any], send: Callable[[Any], None], pool: Any, environments: Any) -> None:
    send({"op": "stays", "id": frame["id"]})
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        _CANCELLED.append("stay")
        raise


async def fail(frame: dict[str, Any], send: Callable[[Any], None], pool: Any, environments: Any) -> None:
    raise LookupError("no such persona")


HANDLERS: dict[str, Callable[..., Awaitable[None]]] = {"echo": echo, "stay": stay, "fail": fail}
_take = async_scorer.AsyncScorer.take


def take(self: async_scorer.AsyncScorer, message: dict[str, Any]) -> None:
    if message["op"] not in HANDLERS:
        return _take(self, message)
    work = HANDLERS[message["op"]](message, self._channel.send, self._pool, self._environments)
    return self._start(message["id"], self._reported(message["id"], work))


if __name__ == "__main__":
    vars(async_scorer)["JudgePool"] = ScriptedPool
    async_scorer.AsyncScorer.take = take  # type: ignore[method-assign]
    async_scorer._ALIVE_EVERY = 0.02
    registry.score_with_bench = score_with_bench
    scorer.main()
