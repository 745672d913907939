"""The pool of judges of a scorer process: one limit, one cache and one budget for a run, and clients for each agent."""

import asyncio
import dataclasses
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.agents.answering_child import Functions
from workbench.files.plugins import resolve
from workbench.judges.attempts import CallLimits, ModelQueue, RetryPolicy, ask_until_answered, retry_policy_of
from workbench.judges.base import (
    Answer,
    Answerer,
    JudgeEnvironment,
    JudgeFault,
    JudgeIdentity,
    JudgeOptions,
    Question,
    Reply,
)
from workbench.judges.cache import Cache, RunLimits, RunState, Tally, question_key, rating_key
from workbench.judges.clients import SERVICE_NAME, Vertex, vertex_access
from workbench.judges.google_access import GoogleAccess
from workbench.judges.kinds import Connection, identify_judge, is_own, kind_of
from workbench.judges.plugin_child import PluginJudge
from workbench.judges.secret_forms import Scrubber

__all__ = ["CaseBench", "JudgeEnvironment", "JudgePool", "PooledJudge", "PooledService", "RunLimits", "Tally"]

_NO_RATING: Mapping[str, Any] = {"score": None, "explanation": "", "rubrics": []}
_HALF = re.compile("[\ud800-\udfff]")
_TOKENS = ("input_tokens", "output_tokens")


class EnvironmentClients:
    """Clients, child processes and queues of one environment."""

    def __init__(
        self, environment: JudgeEnvironment, retry_policy: RetryPolicy, on_wait: Callable[[str, float, str], None]
    ) -> None:
        self.environment = environment
        self.scrub = Scrubber(environment.values)
        self.retry_policy = retry_policy_of(environment.values, retry_policy)
        self._on_wait = on_wait
        self._answerers: dict[str, Answerer] = {}
        self._queues: dict[str, ModelQueue] = {}
        self._functions: Functions | None = None
        self._rater: Vertex | None = None

    def queue(self, model: str) -> ModelQueue:
        """Return the queue of `model`."""
        if model not in self._queues:
            self._queues[model] = ModelQueue(model, self.retry_policy, self._on_wait)
        return self._queues[model]

    def answerer(self, model: str) -> Answerer:
        """Return the client that answers for `model`.

        Raises:
            NotAvailableError: No client can be made for the model.
        """
        kind = kind_of(model)
        if kind.name not in self._answerers and is_own(kind):
            to = Connection(model, self.environment, self.scrub, self.functions)
            self._answerers[kind.name] = resolve(kind.connect)(to)
        elif kind.name not in self._answerers:
            self._answerers[kind.name] = PluginJudge(kind.name, self.environment, self.scrub)
        return self._answerers[kind.name]

    def functions(self) -> Functions:
        """Return the caller of the agent's Python functions."""
        if self._functions is None:
            self._functions = Functions(self.environment)
        return self._functions

    def rater(self) -> Vertex:
        """Return the client of the evaluation service.

        Raises:
            NotAvailableError: The service cannot be used with this environment.
        """
        if self._rater is None:
            self._rater = Vertex(self.environment, self.scrub)
        return self._rater

    def start_over(self) -> None:
        """Reset all queues for another run."""
        for queue in self._queues.values():
            queue.start_over()

    async def close(self) -> None:
        """Close all queues, clients and child processes."""
        for queue in self._queues.values():
            queue.close()
        clients: list[Any] = [*self._answerers.values(), self._functions, self._rater]
        for client in clients:
            if client is not None:
                await client.close()


class JudgePool:
    """All judges and services of a scorer process. Its connections outlive a run.

    `on_wait(model, seconds, reason)` is called when the queue of a model pauses, and with 0 seconds when it continues.
    `on_notice(text)` is called when answers cannot be stored.
    """

    def __init__(
        self,
        on_wait: Callable[[str, float, str], None],
        on_notice: Callable[[str], None] = lambda text: None,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        self._on_wait = on_wait
        self._on_notice = on_notice
        self._retry_policy = retry_policy or RetryPolicy()
        self._clients: dict[str, EnvironmentClients] = {}
        self._caches: dict[Path | None, Cache] = {}
        self._runs: list[RunState] = []
        self.begin_run(RunLimits())

    def begin_run(self, limits: RunLimits) -> None:
        """Apply these limits from now on and count calls from 0. Calls of an earlier run keep that run's limits."""
        cache = self._caches.get(limits.cache_dir)
        if cache is None:
            cache = self._caches[limits.cache_dir] = Cache(limits.cache_dir, self._on_notice)
        self._runs = [*(run for run in self._runs if run.calls.busy), RunState(limits, cache)]
        for clients in self._clients.values():
            clients.start_over()

    def bench(self, environment: JudgeEnvironment, repeat: int, all_votes: bool) -> "CaseBench":
        """Return the bench for the criteria of one case, in its `repeat`-th execution."""
        clients = self._clients.get(environment.key)
        if clients is None:
            clients = EnvironmentClients(environment, self._retry_policy, self._on_wait)
            self._clients[environment.key] = clients
        return CaseBench(self._runs[-1], clients, repeat, all_votes)

    def stop_calls(self) -> None:
        """Refuse all further calls. Calls in progress continue."""
        for run in self._runs:
            run.open = False

    async def close(self) -> None:
        """Cancel calls in progress, write the cache, and close all connections and child processes."""
        for run in self._runs:
            await run.calls.close()
        for cache in self._caches.values():
            await cache.close()
        for clients in self._clients.values():
            await clients.close()


class CaseBench:
    """Implementation of `workbench.criteria.base.Bench` for one case. `tally` counts its usage."""

    def __init__(self, run: RunState, clients: EnvironmentClients, repeat: int, all_votes: bool) -> None:
        self.tally = Tally()
        self.run = run
        self.clients = clients
        self.repeat = repeat
        self.all_votes = all_votes

    def judge(self, options: JudgeOptions) -> "PooledJudge":
        """Return a judge with these options.

        Raises:
            NotAvailableError: The judge cannot be used here.
        """
        return PooledJudge(self, options, identify_judge(options, self.clients.environment))

    def service(self) -> "PooledService":
        """Return Google's evaluation service.

        Raises:
            NotAvailableError: The project, the credentials or the package is missing.
        """
        return PooledService(self, vertex_access(self.clients.environment.values))

    def functions(self) -> Functions:
        """Return the functions of this case's agent."""
        return self.clients.functions()

    def call_limits(self, model: str, cap: asyncio.Semaphore | None) -> CallLimits:
        """Return the limits that a call to `model` waits for."""
        return CallLimits(self.clients.queue(model), self.run.slots, cap, self.clients.retry_policy, self.clients.scrub)

    async def reply(
        self,
        key: str | None,
        ready: Callable[[], Awaitable[None]],
        attempt: Callable[[], Awaitable[Answer]],
        limits: CallLimits,
    ) -> Reply:
        """Return the reply cached under `key`, or make attempts and cache their reply. Without a key, cache nothing.

        If another call for `key` is in progress, its reply is returned and counted as cached.
        """

        async def fresh() -> Reply:
            await ready()
            reply = await ask_until_answered(attempt, limits, self.start_call)
            self.tally.seconds += reply.seconds
            self.tally.input_tokens += reply.input_tokens or 0
            self.tally.output_tokens += reply.output_tokens or 0
            return reply

        if key is None:
            return await fresh()
        cached = _cached_reply(self.run.cached(key))
        if cached is None:
            reply, first = await self.run.calls.share(key, fresh)
            if reply.text is None or reply.fault is not None:
                return reply
            if first:
                self.run.store(key, {name: getattr(reply, name) for name in ("text", "model_version", *_TOKENS)})
                return reply
            cached = dataclasses.replace(reply, seconds=0.0, attempts=0, cached=True)
        self.tally.cached += 1
        return cached

    def start_call(self) -> JudgeFault | None:
        """Count a call right before it is made, and return None. Return a fault if it must not be made."""
        if not self.run.take_call():
            return JudgeFault("limit", f"not sent: --max-judge-calls {self.run.limits.max_calls} is reached")
        self.tally.calls += 1
        return None


class PooledJudge:
    """Implementation of `workbench.judges.base.Judge`: a judge with its options, for one criterion of one case."""

    def __init__(self, bench: CaseBench, options: JudgeOptions, identity: JudgeIdentity) -> None:
        self._bench = bench
        self.options = options
        self.identity = identity
        self._answerer = bench.clients.answerer(options.model)
        cap = None if options.parallel is None else asyncio.Semaphore(options.parallel)
        self._limits = bench.call_limits(options.model, cap)

    async def ask(self, question: Question, sample: int = 1) -> Reply:
        """Return the reply to a question, from the cache or from a call. Only cancellation raises."""
        question = _sendable(question)
        return await self._bench.reply(
            self._key(question, sample),
            self._answerer.ready,
            lambda: self._answerer.answer(question, self.options, sample),
            self._limits,
        )

    def forget(self, question: Question, sample: int = 1) -> None:
        """Remove the reply from the cache, in memory and on disk."""
        key = self._key(_sendable(question), sample)
        if key is not None:
            self._bench.run.forget(key)

    def _key(self, question: Question, sample: int) -> str | None:
        bench = self._bench
        return question_key(question, self.identity, self.options, bench.clients.environment, sample, bench.repeat)


class PooledService:
    """Implementation of `workbench.criteria.base.Service`."""

    def __init__(self, bench: CaseBench, access: GoogleAccess) -> None:
        self._bench = bench
        self._access = access
        self._rater = bench.clients.rater()
        self._limits = bench.call_limits(SERVICE_NAME, None)

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rating of one instance, from the cache or from a call. Only cancellation raises."""
        key = rating_key(metric, instance, self._access, self._bench.repeat)
        reply = await self._bench.reply(
            key, self._rater.ready, lambda: self._rater.rate(metric, instance), self._limits
        )
        rating = _NO_RATING if reply.text is None else json.loads(reply.text)
        if reply.text is not None and rating["score"] is None:
            self._bench.run.forget(key)
        error = None if reply.fault is None else dataclasses.asdict(reply.fault)
        return {**rating, "error": error, **{name: getattr(reply, name) for name in ("seconds", "attempts", "cached")}}


def _sendable(question: Question) -> Question:
    """Return the question with lone surrogates replaced. An agent's text may contain them; no service accepts them."""
    if question.prompt.isascii() or not _HALF.search(question.prompt):
        return question
    return dataclasses.replace(question, prompt=_HALF.sub("\ufffd", question.prompt))


def _cached_reply(cached: Mapping[str, Any] | None) -> Reply | None:
    if cached is None or not isinstance(cached.get("text"), str):
        return None
    given, made = (count if isinstance(count := cached.get(name), int) else None for name in _TOKENS)
    return Reply(cached["text"], None, str(cached.get("model_version", "")), given, made, attempts=0, cached=True)
