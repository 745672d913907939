"""The current position of an agent, reported when it is stopped for taking too long."""

from __future__ import annotations

import asyncio
import gc
import inspect
import traceback
import types
from typing import Any, Iterable, List, Optional, Set

from .faults import Place, place_lines
from .sources import is_project_file

_DEEPEST = 300
_MOST_TASKS = 3


def stack_of_this_process(frame: Optional[types.FrameType]) -> str:
    """Return the lines being executed, if the project is involved, else what the event loop's tasks wait for.

    `frame` is the one that a signal interrupted.
    """
    running = [(here.f_code.co_filename, line, here.f_code.co_name) for here, line in traceback.walk_stack(frame)][::-1]
    if any(is_project_file(place[0]) for place in running):
        return "".join(["Running (most recent call last):\n", *place_lines(running)])
    try:
        return stack_of_tasks(asyncio.all_tasks(asyncio.get_running_loop()))
    except RuntimeError:
        return "".join(["Running (most recent call last):\n", *place_lines(running)])


def stack_of_tasks(tasks: Iterable[Any]) -> str:
    """Return what the project's tasks wait for, or "" if there are none."""
    waiting = [_awaited(task.get_coro()) for task in tasks]
    own = [places for places in waiting if any(is_project_file(place[0]) for place in places)]
    texts = ["".join(["Waiting (most recent call last):\n", *place_lines(places)]) for places in own[:_MOST_TASKS]]
    return "\n".join(texts)


def _awaited(awaitable: Any) -> List[Place]:
    """Return the places from a coroutine down to the innermost line where it waits."""
    places: List[Place] = []
    seen: Set[int] = set()
    while awaitable is not None and id(awaitable) not in seen and len(seen) < _DEEPEST:
        seen.add(id(awaitable))
        frame = _attribute(awaitable, "cr_frame", "ag_frame", "gi_frame")
        if frame is not None:
            places.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        awaitable = _attribute(awaitable, "cr_await", "ag_await", "gi_yieldfrom") or _unlisted_awaitable(
            awaitable, frame, seen
        )
    return places


def _attribute(awaitable: Any, *names: str) -> Any:
    return next((value for name in names if (value := getattr(awaitable, name, None)) is not None), None)


def _unlisted_awaitable(awaitable: Any, frame: Optional[types.FrameType], seen: Set[int]) -> Any:
    """Return the object that an awaitable waits for if no attribute names it.

    The step of an async generator is only visible to the garbage collector. A coroutine that is driven by hand is a
    local variable of its driver.
    """
    if isinstance(awaitable, (asyncio.Future, asyncio.Task)):
        return None
    held = list(frame.f_locals.values()) if frame is not None else gc.get_referents(awaitable)
    for value in held:
        suspended = inspect.iscoroutine(value) or inspect.isasyncgen(value) or inspect.isgenerator(value)
        if id(value) not in seen and (suspended or type(value).__name__.startswith("async_generator_")):
            return value
    return None
