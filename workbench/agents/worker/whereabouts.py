"""Where an agent is at the moment: asked when it is stopped because it takes too long."""

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
    """The lines being executed, if the project has a part in them, else what the tasks of the running event loop wait
    for. `frame` is the one that a signal interrupted."""
    running = [(here.f_code.co_filename, line, here.f_code.co_name) for here, line in traceback.walk_stack(frame)][::-1]
    if any(is_project_file(place[0]) for place in running):
        return "".join(["Running (most recent call last):\n", *place_lines(running)])
    try:
        return stack_of_tasks(asyncio.all_tasks(asyncio.get_running_loop()))
    except RuntimeError:
        return "".join(["Running (most recent call last):\n", *place_lines(running)])


def stack_of_tasks(tasks: Iterable[Any]) -> str:
    """What the tasks wait for, those of the project; "" if there are none."""
    waiting = [_awaited(task.get_coro()) for task in tasks]
    own = [places for places in waiting if any(is_project_file(place[0]) for place in places)]
    texts = ["".join(["Waiting (most recent call last):\n", *place_lines(places)]) for places in own[:_MOST_TASKS]]
    return "\n".join(texts)


def _awaited(awaitable: Any) -> List[Place]:
    """From a coroutine to the innermost line that it waits at."""
    places: List[Place] = []
    seen: Set[int] = set()
    while awaitable is not None and id(awaitable) not in seen and len(seen) < _DEEPEST:
        seen.add(id(awaitable))
        frame = _attribute(awaitable, "cr_frame", "ag_frame", "gi_frame")
        if frame is not None:
            places.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        awaitable = _attribute(awaitable, "cr_await", "ag_await", "gi_yieldfrom") or _hidden(awaitable, frame, seen)
    return places


def _attribute(awaitable: Any, *names: str) -> Any:
    return next((value for name in names if (value := getattr(awaitable, name, None)) is not None), None)


def _hidden(awaitable: Any, frame: Optional[types.FrameType], seen: Set[int]) -> Any:
    """What is waited for by something that does not say so: the step of an async generator holds it where only the
    garbage collector looks, and a coroutine that is driven by hand is in a local variable of who drives it."""
    if isinstance(awaitable, (asyncio.Future, asyncio.Task)):
        return None
    held = list(frame.f_locals.values()) if frame is not None else gc.get_referents(awaitable)
    for value in held:
        suspended = inspect.iscoroutine(value) or inspect.isasyncgen(value) or inspect.isgenerator(value)
        if id(value) not in seen and (suspended or type(value).__name__.startswith("async_generator_")):
            return value
    return None
