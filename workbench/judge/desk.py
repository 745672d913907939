"""The one place through which everything is asked: one limit, one cache, one budget for the whole run."""

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from workbench.agents.functions import Functions
from workbench.counting import counted
from workbench.judge.answering import Answer, Rating, cut_fault
from workbench.judge.attempts import Outcome, Road, ask_until_answered
from workbench.judge.base import JudgeFault, JudgeIdentity, JudgeOptions, Question, Reply
from workbench.judge.cache import Cache
from workbench.judge.environment import JudgeEnvironment
from workbench.judge.google_access import GoogleAccess
from workbench.judge.kinds import who_judges
from workbench.judge.limits import RunLimits, Tally
from workbench.judge.office import Office
from workbench.judge.question_key import question_key, rating_key
from workbench.judge.retry import Patience
from workbench.judge.run_state import Flights, RunState
from workbench.judge.vertex import WHO, vertex_access

__all__ = ["Desk", "DeskBench", "DeskJudge", "DeskService", "JudgeEnvironment", "RunLimits", "Tally"]

T = TypeVar("T")
_LONGEST = 1_000_000
_HALF = re.compile("[\ud800-\udfff]")
_TOKENS = ("input_tokens", "output_tokens")


class Desk:
    """One for each scorer; it is kept over runs, and so are its connections. `on_wait(model, seconds, reason)` is
    called when the queue of a model pauses, and with 0 seconds when it goes on; `on_notice(text)` when answers cannot
    be kept."""

    def __init__(
        self,
        on_wait: Callable[[str, float, str], None],
        on_notice: Callable[[str], None] = lambda text: None,
        patience: Patience | None = None,
    ) -> None:
        self._on_wait = on_wait
        self._on_notice = on_notice
        self._patience = patience or Patience()
        self._offices: dict[str, Office] = {}
        self._caches: dict[Path | None, Cache] = {}
        self._runs: list[RunState] = []
        self.begin_run(RunLimits())

    def begin_run(self, limits: RunLimits) -> None:
        """From here on these limits hold, and calls are counted from 0. What is still asked for an earlier run goes on
        by its own limits."""
        cache = self._caches.get(limits.cache_dir)
        if cache is None:
            cache = self._caches[limits.cache_dir] = Cache(limits.cache_dir, self._on_notice)
        self._runs = [*(run for run in self._runs if run.busy), RunState(limits, cache)]
        for office in self._offices.values():
            office.start_over()

    def bench(self, environment: JudgeEnvironment, repeat: int, all_votes: bool) -> "DeskBench":
        """What the criteria of one case, in its `repeat`-th execution, ask through."""
        office = self._offices.get(environment.key)
        if office is None:
            office = self._offices[environment.key] = Office(environment, self._patience, self._on_wait)
        return DeskBench(self._runs[-1], office, repeat, all_votes)

    def ask_no_more(self) -> None:
        """From here on no call is made; what is under way goes on."""
        for run in self._runs:
            run.open = False

    async def close(self) -> None:
        """Ends what is under way, writes what is to be kept, closes all connections and children."""
        for run in self._runs:
            await run.close()
        for cache in self._caches.values():
            await cache.close()
        for office in self._offices.values():
            await office.close()


class DeskBench:
    """Implements `workbench.metrics.base.Bench`; `tally` says what went through it."""

    def __init__(self, run: RunState, office: Office, repeat: int, all_votes: bool) -> None:
        self.tally = Tally()
        self.run = run
        self.office = office
        self.repeat = repeat
        self._all_votes = all_votes

    @property
    def all_votes(self) -> bool:
        return self._all_votes

    def judge(self, options: JudgeOptions) -> "DeskJudge":
        """Raises:
        NotAvailableError: it cannot be asked here.
        """
        return DeskJudge(self, options, who_judges(options, self.office.environment))

    def service(self) -> "DeskService":
        """Raises:
        NotAvailableError: no project, no credentials, or not installed.
        """
        return DeskService(self, vertex_access(self.office.environment.values))

    def functions(self) -> Functions:
        return self.office.functions()

    def road(self, model: str, cap: asyncio.Semaphore | None) -> Road:
        """What an attempt to ask `model` passes."""
        return Road(self.office.lane(model), self.run.places, cap, self.office.patience, self.office.scrub)

    async def kept_or_asked(
        self,
        key: str,
        flights: Flights[T],
        ask: Callable[[], Coroutine[Any, Any, T]],
        to_keep: Callable[[T], tuple[str, dict[str, Any]] | None],
        read: Callable[[Mapping[str, Any] | None], T | None],
        *,
        free: bool = False,
    ) -> T:
        """Return the answer kept under `key`, or ask and keep what came.

        `to_keep` gives the words of an answer and its form in the cache, None if it is not to be kept. `read` reads
        that form, and returns None for anything else that may stand in a file. Who asks while the same question is
        under way gets that answer as a kept one. `free` answers are of rules, which are no call: they are not counted.
        """
        kept = read(self.run.kept(key))
        if kept is None:
            came, first = await flights.share(key, ask)
            answer = to_keep(came)
            if first and answer is not None:
                self.run.keep(key, *answer)
            kept = None if first or answer is None else read(answer[1])
            if kept is None:
                return came
        self.tally.cached += not free
        return kept

    def begin(self) -> JudgeFault | None:
        """Counts a call, right before it is made; why it must not be."""
        if not self.run.spend():
            return JudgeFault("limit", f"not asked: --max-judge-calls {self.run.limits.max_calls} is reached")
        self.tally.calls += 1
        return None

    def spent(self, answer: Answer | None, seconds: float) -> None:
        self.tally.seconds += seconds
        if answer is not None:
            self.tally.input_tokens += answer.input_tokens or 0
            self.tally.output_tokens += answer.output_tokens or 0


class DeskJudge:
    """Implements `workbench.judge.base.Judge`: a judge with its options, for one criterion of one case."""

    def __init__(self, bench: DeskBench, options: JudgeOptions, identity: JudgeIdentity) -> None:
        self._bench = bench
        self._options = options
        self._identity = identity
        self._answerer = bench.office.answerer(options.model)
        self._road = bench.road(
            options.model, None if options.parallel is None else asyncio.Semaphore(options.parallel)
        )

    @property
    def identity(self) -> JudgeIdentity:
        return self._identity

    @property
    def options(self) -> JudgeOptions:
        return self._options

    async def ask(self, question: Question, sample: int = 1) -> Reply:
        """The reply to a question, kept or asked for; never raises but when cancelled."""
        bench = self._bench
        question = _sendable(question)
        key, free = self._key(question, sample), self._identity.by == "rules"

        def attempt() -> Awaitable[Answer]:
            return self._answerer.answer(question, self._options, sample)

        async def fresh() -> Reply:
            await self._answerer.ready()
            begin = _costs_nothing if free else bench.begin
            outcome = await ask_until_answered(attempt, _is_nothing, self._road, begin)
            bench.spent(outcome.value, outcome.seconds)
            return _reply(outcome)

        if key is None:
            return await fresh()
        return await bench.kept_or_asked(key, bench.run.replies, fresh, _to_keep, _kept_reply, free=free)

    def forget(self, question: Question, sample: int = 1) -> None:
        """The reply is not kept, neither in memory nor on disk."""
        key = self._key(_sendable(question), sample)
        if key is not None:
            self._bench.run.forget(key)

    def _key(self, question: Question, sample: int) -> str | None:
        bench = self._bench
        return question_key(question, self._identity, self._options, bench.office.environment, sample, bench.repeat)


class DeskService:
    """Implements `workbench.metrics.base.Service`."""

    def __init__(self, bench: DeskBench, access: GoogleAccess) -> None:
        self._bench = bench
        self._access = access
        self._rater = bench.office.rater()
        self._road = bench.road(WHO, None)

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> dict[str, Any]:
        """The rating of one instance, kept or asked for; never raises but when cancelled."""
        bench = self._bench
        key = rating_key(metric, instance, self._access, bench.repeat)

        def attempt() -> Awaitable[Rating]:
            return self._rater.rate(metric, instance)

        async def fresh() -> dict[str, Any]:
            await self._rater.ready()
            outcome = await ask_until_answered(attempt, lambda rating: False, self._road, bench.begin)
            bench.spent(None, outcome.seconds)
            return _rating(outcome)

        return await bench.kept_or_asked(key, bench.run.ratings, fresh, _rating_to_keep, _kept_rating)


def _costs_nothing() -> None:
    """Rules are no call: they are asked without limit, and what judges cost does not count them."""


def _sendable(question: Question) -> Question:
    """The question with halves of characters (lone surrogates, which an agent's text may hold) as replacement
    characters: no service could be sent them."""
    if question.prompt.isascii() or not _HALF.search(question.prompt):
        return question
    return dataclasses.replace(question, prompt=_HALF.sub("\ufffd", question.prompt))


def _is_nothing(answer: Answer) -> bool:
    return not (answer.text or "").strip()


def _reply(outcome: Outcome[Answer]) -> Reply:
    answer, fault = outcome.value, outcome.fault
    if answer is not None and len(answer.text or "") > _LONGEST:
        message = f"the reply has {counted(len(answer.text or ''), 'character')}: more than {_LONGEST:,} are not read"
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


def _to_keep(reply: Reply) -> tuple[str, dict[str, Any]] | None:
    if reply.text is None or reply.fault is not None:
        return None
    return reply.text, {name: getattr(reply, name) for name in ("text", "model_version", *_TOKENS)}


def _kept_reply(kept: Mapping[str, Any] | None) -> Reply | None:
    if kept is None or not isinstance(kept.get("text"), str):
        return None
    given, made = (count if isinstance(count := kept.get(name), int) else None for name in _TOKENS)
    return Reply(kept["text"], None, str(kept.get("model_version", "")), given, made, attempts=0, cached=True)


def _kept_rating(kept: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if kept is None or not isinstance(kept.get("score"), int | float):
        return None
    listed = kept.get("rubrics")
    rubrics = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return _rated(Rating(float(kept["score"]), str(kept.get("explanation", "")), tuple(rubrics)), cached=True)


def _rated(rating: Rating, **rest: Any) -> dict[str, Any]:
    """A rating in the shape of `workbench.metrics.base.Service.rate`."""
    given = {"score": rating.score, "explanation": rating.explanation, "rubrics": list(rating.rubrics)}
    return {**given, "error": None, "seconds": 0.0, "attempts": 0, "cached": False, **rest}


def _rating_to_keep(rated: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    if rated["score"] is None or rated["error"] is not None:
        return None
    told = (str(rubric.get(name, "")) for rubric in rated["rubrics"] for name in ("text", "reasoning"))
    words = "\n".join((rated["explanation"], *told))
    return words, {name: rated[name] for name in ("score", "explanation", "rubrics")}


def _rating(outcome: Outcome[Rating]) -> dict[str, Any]:
    rating, fault = outcome.value, outcome.fault
    made = {"seconds": outcome.seconds, "attempts": outcome.attempts}
    error = None if fault is None else dataclasses.asdict(fault)
    return _rated(rating or Rating(None), error=error, **made)
