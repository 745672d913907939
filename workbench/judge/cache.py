"""Cache of answers, each stored under the hash of all its inputs.

Each answer is a file `<folder>/<2 hex digits>/<sha256>.json`, readable only by the user. A damaged file, or one of
another version, counts as missing. If writing fails, the user is told once, and answers stay in memory.
"""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from workbench.state_folder import delete_stored, make_stored_folder, read_stored, replace_stored

VERSION = 1
"""Version of the questions and of the file format. Raise it when either changes."""
_MOMENT = 0.1
"""Seconds to wait before writing, because more answers are coming in."""
_LARGEST = 16 * 1024 * 1024


def key_of(parts: Mapping[str, Any]) -> str:
    """Return the hash of `parts`, JSON data in any order."""
    text = json.dumps({"version": VERSION, **parts}, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Cache:
    """Cached answers: JSON objects, each with a text or a number.

    `folder` None keeps them in memory. `on_fault` is called once if the folder cannot be used.
    """

    def __init__(self, folder: Path | None, on_fault: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_fault = on_fault
        self._held: dict[str, dict[str, Any]] = {}
        """All answers if there is no folder, else those that are not on disk (yet)."""
        self._to_write: dict[str, dict[str, Any]] = {}
        self._forgotten: set[str] = set()
        """Keys whose files are about to be removed."""
        self._timer: asyncio.TimerHandle | None = None
        self._writer = ThreadPoolExecutor(1, "judge-cache")
        self._reported = False

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the answer under `key`, or None if there is no readable one."""
        if key in self._held:
            return self._held[key]
        if self._folder is None or key in self._forgotten:
            return None
        try:
            entry = json.loads(read_stored(self._file(key), _LARGEST))
        except (OSError, ValueError, RecursionError):
            return None
        whole = isinstance(entry, dict) and entry.get("version") == VERSION and entry.get("key") == key
        return entry["answer"] if whole and isinstance(entry.get("answer"), dict) else None

    def get_since(self, key: str, since: float) -> dict[str, Any] | None:
        """Return the answer under `key` if its file is not older than `since`, in seconds since the epoch."""
        if self._folder is None or key in self._held:
            return None
        try:
            return self.get(key) if self._file(key).stat().st_mtime >= since else None
        except OSError:
            return None

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Cache `answer`. A background thread writes it to disk a moment later."""
        self._held[key] = answer
        if self._folder is not None:
            self._to_write[key] = answer
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_MOMENT, self._write_soon)

    def forget(self, key: str) -> None:
        """Remove the answer under `key`. The background thread removes its file after current writes."""
        self._held.pop(key, None)
        self._to_write.pop(key, None)
        if self._folder is not None:
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

    def _file(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key}.json"

    def _write_all(self, answers: dict[str, dict[str, Any]]) -> dict[str, str]:
        """Return the keys that could not be written, with the reasons."""
        faults = {}
        for key, answer in answers.items():
            content = json.dumps({"version": VERSION, "key": key, "answer": answer}).encode()
            try:
                file = self._file(key)
                make_stored_folder(file.parent)
                # Waiting for the disk would take longer than the answer did. A lost file counts as missing.
                replace_stored(file, content, sync=False)
            except OSError as error:
                faults[key] = error.strerror or type(error).__name__
        return faults

    def _remove(self, key: str) -> None:
        # If a file cannot be removed, the only effect is one more useless question.
        with contextlib.suppress(OSError):
            delete_stored(self._file(key), missing_ok=True)

    def _written(self, answers: dict[str, dict[str, Any]], faults: dict[str, str]) -> None:
        for key, answer in answers.items():
            if key not in faults and self._held.get(key) is answer:
                del self._held[key]
        if faults and not self._reported:
            self._reported = True
            fault = next(iter(faults.values()))
            self._on_fault(
                f"judges' answers cannot be cached in {self._folder}: {fault}; they last until the workbench ends"
            )
