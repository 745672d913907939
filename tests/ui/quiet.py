"""A pilot that continues as soon as the event loop is idle.

Textual's own pilot measures CPU time: after each key, it sleeps 20 ms at a time until the process was idle for that
long. This would take a third of the time of all screen tests.
"""

import asyncio
import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.geometry import Region

_HORIZON = 0.02
"""Seconds within which due timers are waited for and threads may finish, as in Textual's pilot."""
_LONGEST = 10.0
"""Seconds after which a loop that is never idle is no longer waited for."""
_LOOK_AGAIN = 0.001
_WORKS = 0.00005
"""Seconds of processor time between two polls that show that another thread is busy."""


async def until_quiet(min_sleep: float = _HORIZON, max_sleep: float = 1.0, *, draws: bool = True) -> None:
    """Wait until the loop is idle, no timer is due soon, and no thread is busy.

    The process may use at most `max_sleep` seconds of processor time meanwhile, so a busy machine gets more time.
    Replaces Textual's `wait_for_idle` and has its arguments. `draws`: then draw the last frame, if there is a new one.
    """
    # asyncio has no public access to its queue.
    loop: Any = asyncio.get_running_loop()
    began, used = time.monotonic(), time.process_time()
    while time.process_time() - used < max_sleep and (passed := time.monotonic() - began) < _LONGEST:
        await asyncio.sleep(0)
        if loop._ready:
            continue
        elsewhere = _used_by_other_threads()
        await asyncio.sleep(0)
        if loop._ready:
            continue
        due = next_timer()
        young = passed < _HORIZON
        if passed + due < _HORIZON:
            await asyncio.sleep(max(due, 0.0))
        elif (
            (young and _in_threads(loop) > _lasting.get(loop, 0))
            or _used_by_other_threads() - elsewhere > _WORKS
            or _wait_for_a_core()
        ):
            await asyncio.sleep(_LOOK_AGAIN)
        elif draws and _undrawn:
            # Widgets may notice what has changed only when they are drawn.
            try:
                compositor, behind = _undrawn.popitem()
            except KeyError:  # The screens of an earlier test are gone: their references are weak.
                continue
            screen: Any = compositor.root
            if screen.is_running and screen.is_current:
                _draw_widgets(compositor, behind)
        else:
            break
    _lasting[loop] = _in_threads(loop)


def next_timer() -> float:
    """Return the seconds until the next timer of the loop is due."""
    loop: Any = asyncio.get_running_loop()
    due: float = min((timer.when() for timer in loop._scheduled if not timer.cancelled()), default=math.inf)
    now: float = loop.time()
    return due - now


_lasting: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""Number of threads per loop that did not end in time, such as the thread of a run. They are not waited for again."""


def _in_threads(loop: Any) -> int:
    """Return the number of active calls of `asyncio.to_thread`."""
    pool = loop._default_executor
    return 0 if pool is None else pool._work_queue.qsize() + len(pool._threads) - pool._idle_semaphore._value


def _used_by_other_threads() -> float:
    """Return the processor time that the other threads have used, in seconds."""
    return time.process_time() - time.thread_time()


_TASKS = "/proc/self/task"
_WAITING_STATES = frozenset({b"R", b"D"})
"""States of threads that run, wait for a core, or wait for the disk."""
_tells_states = Path(_TASKS).is_dir()


def _wait_for_a_core() -> bool:
    """Return whether another thread could run, so that it uses no time only because the machine is busy."""
    mine = str(threading.get_native_id())
    # Called after each key: paths as objects would take three times as long.
    for task in os.listdir(_TASKS) if _tells_states else ():  # noqa: PTH208
        if task != mine:
            with suppress(OSError), open(f"{_TASKS}/{task}/stat", "rb", 0) as file:  # noqa: PTH123
                if file.read(200).rpartition(b") ")[2][:1] in _WAITING_STATES:
                    return True
    return False


_render = Compositor.render_update
_undrawn: WeakKeyDictionary[Compositor, Any] = WeakKeyDictionary()
"""Screens whose last frame was not drawn, with the screens behind them."""


def _draw_later(compositor: Compositor, full: bool = False, screen_stack: Any = None, **more: Any) -> Any:
    """Draw a screenshot at once, and a frame only when the loop is idle. It has no terminal to go to."""
    if full:
        return _render(compositor, full, screen_stack, **more)
    _undrawn[compositor] = screen_stack
    return None


def _draw_widgets(compositor: Compositor, behind: Any) -> None:
    """Draw the changed widgets, without putting them together to a frame."""
    dirty, everything = compositor._dirty_regions, compositor.size.region
    crop = everything if everything in dirty else Region.from_union(dirty).intersection(everything) if dirty else None
    dirty.clear()
    visible_screen_stack.set(behind or [])
    for _ in compositor._get_renders(crop) if crop else ():
        pass


@contextmanager
def quick_pilots() -> Iterator[None]:
    """Let pilots use `until_quiet`, and update the screen a thousand times a second instead of sixty.

    Of the frames of a burst of keys, only the last is drawn. All of them would take another third of the time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", _draw_later)
        patch.setattr("textual.pilot.wait_for_idle", until_quiet)
        # Between keys that are pressed together.
        patch.setattr("textual.app.wait_for_idle", partial(until_quiet, draws=False))
        patch.setattr("textual.screen.UPDATE_PERIOD", 0.001)
        # Each strip makes seven caches, which costs more than what they save in a test.
        patch.setattr("textual.strip.FIFOCache", lambda size: {})
        yield
