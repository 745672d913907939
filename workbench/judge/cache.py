"""Answers that were given once, kept under the hash of everything that determines them.

A file each, `<folder>/<2 hex digits>/<sha256>.json`, readable only for the user; a file that is damaged, or of another
version, counts as not there. What cannot be written is told once and kept for as long as the process lives.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

VERSION = 1
"""Goes up when the same question would be put another way, or kept another way."""
_MOMENT = 0.1
"""Seconds: while answers come in, there is better to do than to write them."""
_LARGEST = 16 * 1024 * 1024


def key_of(parts: Mapping[str, Any]) -> str:
    """The hash of `parts`, JSON data in any order."""
    text = json.dumps({"version": VERSION, **parts}, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Cache:
    """Answers as JSON objects with a text or number each; `folder` None keeps them in memory. `on_fault` is told, once,
    why the folder cannot be used."""

    def __init__(self, folder: Path | None, on_fault: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_fault = on_fault
        self._held: dict[str, dict[str, Any]] = {}
        """All where there is no folder; else what is not written yet, or could not be."""
        self._to_write: dict[str, dict[str, Any]] = {}
        self._forgotten: set[str] = set()
        """What has a file still, which is about to go."""
        self._timer: asyncio.TimerHandle | None = None
        self._writer = ThreadPoolExecutor(1, "judge-cache")
        self._told = False

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer under `key`, None where there is none that can be read."""
        if key in self._held:
            return self._held[key]
        if self._folder is None or key in self._forgotten:
            return None
        try:
            with self._file(key).open("rb") as file:
                kept = json.loads(file.read(_LARGEST))
        except (OSError, ValueError, RecursionError):
            return None
        whole = isinstance(kept, dict) and kept.get("version") == VERSION and kept.get("key") == key
        return kept["answer"] if whole and isinstance(kept.get("answer"), dict) else None

    def get_since(self, key: str, since: float) -> dict[str, Any] | None:
        """The answer under `key`, if it was written to the folder at `since` (seconds of the epoch) or later."""
        if self._folder is None or key in self._held:
            return None
        try:
            return self.get(key) if self._file(key).stat().st_mtime >= since else None
        except OSError:
            return None

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Keeps `answer`; the disk is written to a moment later, behind the scenes."""
        self._held[key] = answer
        if self._folder is not None:
            self._to_write[key] = answer
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_MOMENT, self._write_soon)

    def forget(self, key: str) -> None:
        """Keeps no answer under `key`; its file goes behind the scenes, after what is being written."""
        self._held.pop(key, None)
        self._to_write.pop(key, None)
        if self._folder is not None:
            self._forgotten.add(key)
            gone = asyncio.get_running_loop().run_in_executor(self._writer, self._remove, key)
            gone.add_done_callback(lambda done: self._forgotten.discard(key))

    async def close(self) -> None:
        """Waits until all is written."""
        if self._timer is not None:
            self._timer.cancel()
            self._write_soon()
        await asyncio.to_thread(self._writer.shutdown)

    def _write_soon(self) -> None:
        self._timer = None
        answers, self._to_write = self._to_write, {}
        writing = asyncio.get_running_loop().run_in_executor(self._writer, self._write_all, answers)
        writing.add_done_callback(lambda done: self._written(answers, done.result()))

    def _file(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key}.json"

    def _write_all(self, answers: dict[str, dict[str, Any]]) -> dict[str, str]:
        """Which of them could not be written, and why."""
        faults = {}
        for key, answer in answers.items():
            content = json.dumps({"version": VERSION, "key": key, "answer": answer}).encode()
            try:
                file = self._file(key)
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                _put(file, content)
            except OSError as error:
                faults[key] = error.strerror or type(error).__name__
        return faults

    def _remove(self, key: str) -> None:
        # A file that cannot be removed costs a question that is put, and read in vain, once more.
        with contextlib.suppress(OSError):
            self._file(key).unlink(missing_ok=True)

    def _written(self, answers: dict[str, dict[str, Any]], faults: dict[str, str]) -> None:
        for key, answer in answers.items():
            if key not in faults and self._held.get(key) is answer:
                del self._held[key]
        if faults and not self._told:
            self._told = True
            fault = next(iter(faults.values()))
            self._on_fault(
                f"judges' answers cannot be kept in {self._folder}: {fault}; they last as long as the workbench runs"
            )


def _put(file: Path, content: bytes) -> None:
    """Without waiting for the disk, which takes longer than the answer did: what does not arrive there before the
    machine stops counts as not there."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}.tmp")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(content)
        draft.replace(file)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
