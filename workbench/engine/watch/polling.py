"""Changes by looking: for file systems that tell nothing. Exact to the nanosecond."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import TypeAlias

INTERVAL = 0.3
_SHARE = 0.1
"""Of a processor, at most so much is spent looking."""

Looked: TypeAlias = dict[str, tuple[int, int, int]]
"""Path → time in nanoseconds, size, inode."""


def forced() -> bool:
    """Whether the user asks for polling, as `watchfiles` does it."""
    return os.environ.get("WATCHFILES_FORCE_POLLING", "").lower() not in ("", "0", "false", "disable", "disabled")


def _look(folders: Collection[Path]) -> tuple[Looked, float]:
    """What is there, and the seconds of a processor that it took to see it."""
    began = time.thread_time()
    return look(folders), time.thread_time() - began


def look(folders: Collection[Path]) -> Looked:
    """What is in these folders, not in those below."""
    found: Looked = {}
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    try:
                        status = entry.stat()
                    except OSError:
                        continue  # Gone between the two.
                    folder_like = entry.is_dir()
                    found[entry.path] = (
                        (0, 0, status.st_ino) if folder_like else (status.st_mtime_ns, status.st_size, status.st_ino)
                    )
        except OSError:
            found[str(folder)] = (0, 0, 0)
    return found


async def poll(folders: Collection[Path], stop: asyncio.Event, before: Looked) -> AsyncIterator[set[Path]]:
    """The paths that came, went or changed, each time some did, else nothing now and then; until `stop`. `before` is
    what was there when somebody looked last."""
    while not stop.is_set():
        began = time.monotonic()
        now, spent = await asyncio.to_thread(_look, folders)
        yield {Path(path) for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
        before = now
        # Where a server is slow to answer, it is not asked more than half of the time.
        pause = max(INTERVAL, spent / _SHARE, time.monotonic() - began)
        try:
            await asyncio.wait_for(stop.wait(), pause)
        except TimeoutError:
            continue
