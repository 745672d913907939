"""Cache of answers, each stored under the hash of all its inputs in the database of the project.

A damaged answer counts as missing. If writing fails, the user is told once, and answers stay in memory.
"""

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from workbench.judges.base import JudgeEnvironment, JudgeIdentity, JudgeOptions, Question
from workbench.judges.google_access import GoogleAccess
from workbench.judges.kinds import kind_of
from workbench.store.database.database import Database, database
from workbench.store.database.values import StoredAnswer, drop_judge_answer, get_judge_answer, put_judge_answers

VERSION = 1
"""Version of the questions, and a part of all keys. Raise it when they change."""
_MOMENT = 0.1
"""Seconds to wait before writing, because more answers are coming in."""


def key_of(parts: Mapping[str, Any]) -> str:
    """Return the hash of `parts`, JSON data in any order."""
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

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the answer under `key`, or None if there is no readable one."""
        if key in self._held:
            return self._held[key]
        found = self._read(key)
        return None if found is None else _parsed(found.answer)

    def get_since(self, key: str, since: float) -> dict[str, Any] | None:
        """Return the answer under `key` if it was not stored before `since`, in seconds since the epoch."""
        found = None if key in self._held else self._read(key)
        return None if found is None or found.stored < since else _parsed(found.answer)

    def _read(self, key: str) -> StoredAnswer | None:
        if self._stored is None or key in self._forgotten:
            return None
        try:
            return self._stored.read(lambda connection: get_judge_answer(connection, key))
        except OSError:
            return None

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Cache `answer`. A background thread stores it a moment later."""
        self._held[key] = answer
        if self._stored is not None:
            self._to_write[key] = answer
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_MOMENT, self._write_soon)

    def forget(self, key: str) -> None:
        """Remove the answer under `key`. The background thread deletes it after current writes."""
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
    return key_of(
        {
            "judge": "vertex",
            "metric": metric,
            "instance": instance,
            "project": access.project,
            "location": access.location,
            "base_url": access.base_url,
            "repeat": repeat,
        }
    )
