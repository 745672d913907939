"""Changes as the system tells of them, and why it does not where it does not."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

STEP = 5
"""Milliseconds without a change that end a batch: the latency of everything."""
TICK = 3000
"""Milliseconds after which nothing is told, so that somebody looks whether all is as it should be."""
_DEBOUNCE = 100
_HELD_UP = 2.0
_LOST_FROM = 2000
"""Files at once from which some may have been lost: the system keeps 16,384 events, about five for each file."""


class NoNoticeError(Exception):
    """The system cannot tell of changes; the text says why, and the way out."""


async def notified(
    folders: Collection[Path], stop: asyncio.Event, armed: asyncio.Event
) -> AsyncIterator[tuple[set[Path], bool]]:
    """What changed in the folders (not below them), each time something did, and nothing now and then; until `stop`.
    True with it: there may have been more than was told, because this process stood still, or because it was too much.

    Raises:
        NoNoticeError: there is no more to be had from the system.
        FileNotFoundError: a folder went just now.
    """
    from watchfiles import awatch

    watching = awatch(
        *folders,
        # Nothing is filtered here: whatever comes shows that this process does not stand still.
        watch_filter=None,
        debounce=_DEBOUNCE,
        step=STEP,
        stop_event=stop,
        rust_timeout=TICK,
        yield_on_timeout=True,
        recursive=False,
        # Who asked for it, and who needs it, is polled by ourselves.
        force_polling=False,
        # It would pass over the end of the system's watches as well.
        ignore_permission_denied=False,
    )
    armed.set()
    looked = monotonic()
    try:
        async for changes in watching:
            held_up = monotonic() - looked > TICK / 1000 + _HELD_UP
            yield {Path(path) for _, path in changes}, held_up or len(changes) >= _LOST_FROM
            looked = monotonic()
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:  # `watchfiles` has a RuntimeError for whatever it does not know.
        raise NoNoticeError(_why(error)) from error


def _why(error: Exception) -> str:
    said = str(error)
    if "watch limit" in said:
        return "the system has no more file watches to give; more: sysctl fs.inotify.max_user_watches=524288"
    if os.strerror(errno.EMFILE) in said:
        return "the system watches for too many programs already; more: sysctl fs.inotify.max_user_instances=512"
    return f"the system does not tell of changes: {said}"
