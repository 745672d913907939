"""Cache of answers, each stored under the hash of all its inputs, and the state of one run's calls.

A damaged answer counts as missing. If writing fails, the user gets one notice, and answers stay in memory.
"""

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.judges.base import JudgeEnvironment, JudgeIdentity, JudgeOptions, Question, Reply
from workbench.judges.google_access import GoogleAccess
from workbench.judges.kinds import kind_of
from workbench.store.database.database import Database, database
from workbench.store.database.values import drop_judge_answer, get_judge_answer, put_judge_answers

VERSION = 2
"""Version of the questions, which is part of all keys. Increase it when the questions change."""
_MOMENT = 0.1
"""Seconds to wait before writing. Several answers are then written at once."""


def key_of(parts: Mapping[str, Any]) -> str:
    """Return the hash of `parts` (JSON data) and `VERSION`. The order of keys does not matter."""
    text = json.dumps({"version": VERSION, **parts}, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Cache:
    """Cached answers: JSON objects, each with a text or a number.

    `state` is the state folder; None keeps them in memory. `on_fault` is called once if nothing can be stored.
    """

    def __init__(self, state: Path | None, on_fault: Callable[[str], None]) -> None:
        self._stored: Database | None = None if state is None else database(state)
        self._on_fault = on_fault
        self._held: dict[str, dict[str, Any]] = {}
        """All answers if nothing is stored, else those that are not stored (yet)."""
        self._to_write: dict[str, dict[str, Any]] = {}
        self._forgotten: set[str] = set()
        """Keys whose answers are about to be deleted."""
        self._timer: asyncio.TimerHandle | None = None
        self._writer = ThreadPoolExecutor(1, "judge-cache")
        self._reported = False

    def get(self, key: str, since: float | None = None) -> dict[str, Any] | None:
        """Return the answer under `key`, or None if there is no readable one.

        With `since` (seconds since the epoch), return only answers stored in the database at or after it.
        """
        if key in self._held:
            return self._held[key] if since is None else None
        if self._stored is None or key in self._forgotten:
            return None
        try:
            found = self._stored.read(lambda connection: get_judge_answer(connection, key))
        except OSError:
            return None
        return None if found is None or found.stored < (since or 0.0) else _parsed(found.answer)

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Cache `answer`. A background thread stores it a moment later."""
        self._held[key] = answer
        if self._stored is not None:
            self._to_write[key] = answer
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_MOMENT, self._write_soon)

    def forget(self, key: str) -> None:
        """Remove the answer under `key`. The background thread deletes it from the database later."""
        self._held.pop(key, None)
        self._to_write.pop(key, None)
        if self._stored is not None:
            self._forgotten.add(key)
            gone = asyncio.get_running_loop().run_in_executor(self._writer, self._remove, key)
            gone.add_done_callback(lambda done: self._forgotten.discard(key))

    async def close(self) -> None:
        """Wait until everything is written."""
        if self._timer is not None:
            self._timer.cancel()
            self._write_soon()
        await asyncio.to_thread(self._writer.shutdown)

    def _write_soon(self) -> None:
        self._timer = None
        answers, self._to_write = self._to_write, {}
        writing = asyncio.get_running_loop().run_in_executor(self._writer, self._write_all, answers)
        writing.add_done_callback(lambda done: self._written(answers, done.result()))

    def _write_all(self, answers: dict[str, dict[str, Any]]) -> str:
        """Store answers, and return why that failed, or ""."""
        assert self._stored is not None
        texts = {key: json.dumps(answer) for key, answer in answers.items()}
        try:
            self._stored.write(lambda connection: put_judge_answers(connection, texts, time.time()))
        except OSError as error:
            return error.strerror or type(error).__name__
        return ""

    def _remove(self, key: str) -> None:
        # If an answer cannot be deleted, the only effect is one more useless question.
        if self._stored is not None and self._stored.exists:
            with contextlib.suppress(OSError):
                self._stored.write(lambda connection: drop_judge_answer(connection, key))

    def _written(self, answers: dict[str, dict[str, Any]], fault: str) -> None:
        for key, answer in answers.items():
            if not fault and self._held.get(key) is answer:
                del self._held[key]
        if fault and not self._reported:
            self._reported = True
            path = None if self._stored is None else self._stored.path
            self._on_fault(f"judges' answers cannot be cached in {path}: {fault}; they last until the workbench ends")


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def question_key(
    question: Question,
    identity: JudgeIdentity,
    options: JudgeOptions,
    environment: JudgeEnvironment,
    sample: int,
    repeat: int,
) -> str | None:
    """Return the key of an answer, or None if the answer must not be cached.

    An answer is not cached if it depends on something unknown, such as a Python function whose file was not found.
    """
    parts: dict[str, Any] = {
        "judge": identity.kind,
        "model": options.model,
        "base_url": identity.base_url,
        "config": options.config,
        "prompt": question.prompt,
        "schema": question.schema,
        "sample": sample,
        "repeat": repeat,
    }
    others = kind_of(options.model).determinants(question, options.model, environment)
    return None if others is None else key_of({**parts, **others})


def rating_key(metric: str, instance: Mapping[str, Any], access: GoogleAccess, repeat: int) -> str:
    """Return the key of a rating of the evaluation service."""
    place = {"project": access.project, "location": access.location, "base_url": access.base_url}
    return key_of({"judge": "vertex", "metric": metric, "instance": instance, **place, "repeat": repeat})


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of one run.

    - `in_flight`: calls at once, over all judges, the evaluation service and simulated users
    - `max_calls`: calls in the whole run (None: no limit)
    - `use_cache`: if false, cached answers are ignored, except those stored at or after `since` (seconds since the
      epoch), which a resumed run asked for itself. New answers replace the cached ones.
    - `may_cache`: an answer is cached only if `may_cache(its text)`
    - `cache_dir`: None caches answers in memory only
    """

    in_flight: int = 100
    max_calls: int | None = None
    use_cache: bool = True
    since: float | None = None
    may_cache: Callable[[str], bool] = lambda text: True
    cache_dir: Path | None = None


@dataclass(slots=True)
class Tally:
    """Usage of one bench: questions sent (without retries) and answered from the cache, tokens, and seconds.

    Tokens are those that the services report. `seconds` is the total time spent waiting for answers.
    """

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


@dataclass
class _SharedCall:
    task: "asyncio.Task[Reply]"
    waiting: int = 0


class SharedCalls:
    """Calls in progress by key: the same question, asked twice at the same time, is sent once.

    A call is cancelled when no question waits for it any more.
    """

    def __init__(self) -> None:
        self._joinable: dict[str, _SharedCall] = {}
        self._tasks: set[asyncio.Task[Reply]] = set()

    @property
    def busy(self) -> bool:
        """Whether a call is in progress."""
        return bool(self._tasks)

    async def share(self, key: str, start: Callable[[], Coroutine[Any, Any, Reply]]) -> tuple[Reply, bool]:
        """Return the result of the call for `key`, and whether this caller started it with `start`."""
        call = self._joinable.get(key)
        first = call is None
        if call is None:
            call = _SharedCall(asyncio.get_running_loop().create_task(start()))
            self._tasks.add(call.task)
            call.task.add_done_callback(self._tasks.discard)
            self._joinable[key] = call
        call.waiting += 1
        try:
            return await asyncio.shield(call.task), first
        finally:
            call.waiting -= 1
            if not call.waiting:
                if self._joinable.get(key) is call:
                    del self._joinable[key]
                call.task.cancel()

    async def close(self) -> None:
        """Cancel all calls, and wait until they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class RunState:
    """Limits, budget and calls of one run. `slots` limits how many calls are in progress at once."""

    def __init__(self, limits: RunLimits, cache: Cache) -> None:
        self.limits = limits
        self.slots = asyncio.Semaphore(limits.in_flight)
        self.calls = SharedCalls()
        self._cache = cache
        self._calls = 0
        self.open = True
        """Whether calls may still be made."""

    def take_call(self) -> bool:
        """Count one call against the budget. Return False if the budget is used up or no calls may be made any more."""
        if not self.open or (self.limits.max_calls is not None and self._calls >= self.limits.max_calls):
            return False
        self._calls += 1
        return True

    def cached(self, key: str) -> dict[str, Any] | None:
        """Return the cached answer under `key`, or None.

        A run without a cache gets only the answers that it stored itself before it was resumed.
        """
        if self.limits.use_cache:
            return self._cache.get(key)
        return None if self.limits.since is None else self._cache.get(key, self.limits.since)

    def store(self, key: str, answer: dict[str, Any]) -> None:
        """Cache `answer`, unless its `text` must not be stored."""
        if self.limits.may_cache(answer["text"]):
            self._cache.put(key, answer)

    def forget(self, key: str) -> None:
        """Remove the answer under `key` from the cache."""
        self._cache.forget(key)
