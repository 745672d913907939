"""When a pilot goes on: as soon as the loop has nothing left to do.

Textual's own pilot looks at the processor: it sleeps 20 ms at a time, several times a key, until the process has done
nothing for so long. That was a third of what the tests of the screen took.
"""

import asyncio
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import pytest

_HORIZON = 0.02
"""Seconds: timers that are due within them are waited for, and threads are given them, as Textual's pilot does."""
_LOOK_AGAIN = 0.001
_WORKS = 0.00005
"""Seconds of processor time between two looks from which on another thread is at work."""


async def until_quiet(min_sleep: float = _HORIZON, max_sleep: float = 1.0) -> None:
    """Until nothing is ready to run in the loop, no timer is due soon, and no thread of the process works; `max_sleep`
    seconds at most. In the place of Textual's `wait_for_idle`, with its arguments."""
    # asyncio has no public way to what waits in it.
    loop: Any = asyncio.get_running_loop()
    began = time.monotonic()
    while (passed := time.monotonic() - began) < max_sleep:
        elsewhere = _used_by_other_threads()
        await asyncio.sleep(0)
        if loop._ready:
            continue
        due = min((timer.when() for timer in loop._scheduled if not timer.cancelled()), default=math.inf) - loop.time()
        young = passed < _HORIZON
        if passed + due < _HORIZON:
            await asyncio.sleep(max(due, 0.0))
        elif (young and _in_threads(loop) > _lasting.get(loop, 0)) or _used_by_other_threads() - elsewhere > _WORKS:
            await asyncio.sleep(_LOOK_AGAIN)
        else:
            break
    _lasting[loop] = _in_threads(loop)


_lasting: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""How many threads of a loop were waited for to no end, such as that of a run: not again at the next key."""


def _in_threads(loop: Any) -> int:
    """How many calls `asyncio.to_thread` still works on."""
    pool = loop._default_executor
    return 0 if pool is None else pool._work_queue.qsize() + len(pool._threads) - pool._idle_semaphore._value


def _used_by_other_threads() -> float:
    """Seconds of processor time."""
    return time.process_time() - time.thread_time()


@contextmanager
def quick_pilots() -> Iterator[None]:
    """Pilots wait by `until_quiet`, and the screen is brought up to date a thousand times a second, not sixty."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("textual.app", "textual.pilot"):
            patch.setattr(f"{module}.wait_for_idle", until_quiet)
        patch.setattr("textual.screen.UPDATE_PERIOD", 0.001)
        yield
