"""The pool of judges of a scorer process: one limit, one cache and one budget for a run, and clients for each agent."""

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from workbench.agents.answering_child import Functions
from workbench.files.plugins import resolve
from workbench.judges.attempts import CallLimits, ModelQueue, Outcome, RetryPolicy, ask_until_answered, retry_policy_of
from workbench.judges.base import (
    Answer,
    Answerer,
    JudgeEnvironment,
    JudgeFault,
    JudgeIdentity,
    JudgeOptions,
    Question,
    Rating,
    Reply,
    cut_fault,
)
from workbench.judges.cache import Cache, RunLimits, RunState, SharedCalls, Tally, question_key, rating_key
from workbench.judges.clients import SERVICE_NAME, Vertex, vertex_access
from workbench.judges.google_access import GoogleAccess
from workbench.judges.kinds import Connection, identify_judge, is_own, kind_of
from workbench.judges.plugin_child import PluginJudge
from workbench.judges.secret_forms import Scrubber
from workbench.text.counting import counted
from workbench.text.json_values import mapping, number, objects

__all__ = ["CaseBench", "JudgeEnvironment", "JudgePool", "PooledJudge", "PooledService", "RunLimits", "Tally"]

T = TypeVar("T")
_LONGEST = 1_000_000
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
        self._runs = [*(run for run in self._runs if run.busy), RunState(limits, cache)]
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
            await run.close()
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

    async def cached_or_new(
        self,
        key: str,
        calls: SharedCalls[T],
        ask: Callable[[], Coroutine[Any, Any, T]],
        to_cache: Callable[[T], tuple[str, dict[str, Any]] | None],
        read: Callable[[Mapping[str, Any] | None], T | None],
    ) -> T:
        """Return the answer cached under `key`, or call `ask` and cache its answer.

        `to_cache` returns the text of an answer and its form in the cache, or None if the answer must not be cached.
        `read` reads this form, and returns None for anything else. If another call for `key` is in progress, its answer
        is returned and counted as cached.
        """
        cached = read(self.run.cached(key))
        if cached is None:
            result, first = await calls.share(key, ask)
            answer = to_cache(result)
            if first and answer is not None:
                self.run.store(key, *answer)
            cached = None if first or answer is None else read(answer[1])
            if cached is None:
                return result
        self.tally.cached += 1
        return cached

    def start_call(self) -> JudgeFault | None:
        """Count a call right before it is made, and return None. Return a fault if it must not be made."""
        if not self.run.take_call():
            return JudgeFault("limit", f"not sent: --max-judge-calls {self.run.limits.max_calls} is reached")
        self.tally.calls += 1
        return None

    def add_usage(self, answer: Answer | None, seconds: float) -> None:
        """Add the usage of a call to the tally."""
        self.tally.seconds += seconds
        if answer is not None:
            self.tally.input_tokens += answer.input_tokens or 0
            self.tally.output_tokens += answer.output_tokens or 0


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
        bench = self._bench
        question = _sendable(question)
        key = self._key(question, sample)

        def attempt() -> Awaitable[Answer]:
            return self._answerer.answer(question, self.options, sample)

        async def fresh() -> Reply:
            await self._answerer.ready()
            outcome = await ask_until_answered(attempt, _is_nothing, self._limits, bench.start_call)
            bench.add_usage(outcome.value, outcome.seconds)
            return _reply(outcome)

        if key is None:
            return await fresh()
        return await bench.cached_or_new(key, bench.run.replies, fresh, _reply_to_cache, _cached_reply)

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
        bench = self._bench
        key = rating_key(metric, instance, self._access, bench.repeat)

        def attempt() -> Awaitable[Rating]:
            return self._rater.rate(metric, instance)

        async def fresh() -> dict[str, Any]:
            await self._rater.ready()
            outcome = await ask_until_answered(attempt, lambda rating: False, self._limits, bench.start_call)
            bench.add_usage(None, outcome.seconds)
            rating, fault = outcome.value, outcome.fault
            made = {"seconds": outcome.seconds, "attempts": outcome.attempts}
            error = None if fault is None else dataclasses.asdict(fault)
            return _rated(rating or Rating(None), error=error, **made)

        return await bench.cached_or_new(key, bench.run.ratings, fresh, _rating_to_cache, _cached_rating)


def _sendable(question: Question) -> Question:
    """Return the question with lone surrogates replaced. An agent's text may contain them; no service accepts them."""
    if question.prompt.isascii() or not _HALF.search(question.prompt):
        return question
    return dataclasses.replace(question, prompt=_HALF.sub("\ufffd", question.prompt))


def _is_nothing(answer: Answer) -> bool:
    return not (answer.text or "").strip()


def _reply(outcome: Outcome[Answer]) -> Reply:
    answer, fault = outcome.value, outcome.fault
    if answer is not None and len(answer.text or "") > _LONGEST:
        message = f"the reply has {counted(len(answer.text or ''), 'character')}, more than the limit of {_LONGEST:,}"
        answer, fault = None, JudgeFault("unreadable", message)
    if answer is None:
        return Reply(None, fault, seconds=outcome.seconds, attempts=outcome.attempts)
    return Reply(
        None if _is_nothing(answer) else answer.text,
        cut_fault(answer.cut, begun=True) if answer.cut else None,
        answer.model_version,
        answer.input_tokens,
        answer.output_tokens,
        outcome.seconds,
        outcome.attempts,
    )


def _reply_to_cache(reply: Reply) -> tuple[str, dict[str, Any]] | None:
    if reply.text is None or reply.fault is not None:
        return None
    return reply.text, {name: getattr(reply, name) for name in ("text", "model_version", *_TOKENS)}


def _cached_reply(cached: Mapping[str, Any] | None) -> Reply | None:
    if cached is None or not isinstance(cached.get("text"), str):
        return None
    given, made = (count if isinstance(count := cached.get(name), int) else None for name in _TOKENS)
    return Reply(cached["text"], None, str(cached.get("model_version", "")), given, made, attempts=0, cached=True)


def _cached_rating(cached: Mapping[str, Any] | None) -> dict[str, Any] | None:
    score = number(mapping(cached).get("score"))
    if cached is None or score is None:
        return None
    rubrics = tuple(objects(cached.get("rubrics")))
    return _rated(Rating(score, str(cached.get("explanation", "")), rubrics), cached=True)


def _rated(rating: Rating, **rest: Any) -> dict[str, Any]:
    """Return a rating as `workbench.criteria.base.Service.rate` returns it, with the fields in `rest`."""
    given = {"score": rating.score, "explanation": rating.explanation, "rubrics": list(rating.rubrics)}
    return {**given, "error": None, "seconds": 0.0, "attempts": 0, "cached": False, **rest}


def _rating_to_cache(rated: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    if rated["score"] is None or rated["error"] is not None:
        return None
    texts = (str(rubric.get(name, "")) for rubric in rated["rubrics"] for name in ("text", "reasoning"))
    text = "\n".join((rated["explanation"], *texts))
    return text, {name: rated[name] for name in ("score", "explanation", "rubrics")}
