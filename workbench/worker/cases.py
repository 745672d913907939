"""The running of cases and chats, each in its own process or as tasks of one event loop.

Tasks are used if forking is unsafe, impossible or unwanted. They share the agent's modules, and a case that blocks the
loop stops them all. A case that is stopped reports where its agent was.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import gc
import inspect
import signal
import socket
import traceback
import types
from collections.abc import AsyncIterator, Iterable
from typing import Any

from . import faults
from .case import Case, MissedError, Wire, WorkbenchGoneError
from .driver import FinishedTurn, IncompleteAnswerError, Loaded
from .faults import Place, place_lines
from .frames import Channel, FrameTooLargeError, SharedWire, SocketWire
from .project_files import is_project_file
from .serving import use_output

_CANCEL_SECONDS = 5.0
"""Seconds that a cancelled case has to end."""
_DEEPEST = 300
_MOST_TASKS = 3


def case_of(wire: Wire, spec: dict[str, Any], loaded: Loaded, *, shared: bool) -> Case:
    """Return the case of a spec, or the chat with a user if the spec has `chat`."""
    return (Chat if spec.get("chat") else Case)(wire, spec, loaded, shared=shared)


def run_forked(sock: socket.socket, spec: dict[str, Any], loaded: Loaded) -> None:
    """Run a case in this process, which serves only this case. An agent's `sys.exit` becomes the case's error."""
    case = case_of(SocketWire(sock), spec, loaded, shared=False)

    def on_terminate(number: int, frame: Any) -> None:
        case.stopped(stack_of_this_process(frame))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, on_terminate)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(case.run())
    try:
        loop.run_until_complete(task)
    except BaseException as error:
        # sys.exit in a task of the agent leaves the loop directly, past the task that awaits it.
        case.failed(faults.agent_fault(error))


class Chat(Case):
    """A live conversation with a user, who may stop a turn.

    A failed turn does not end it, and the session's state is reported after each turn.
    """

    _stop_requested = False

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        await self._send_state()
        async for content in super()._messages():
            yield content

    async def _turn(self, content: dict[str, Any]) -> bool:
        """Run one turn, and report the answer or why there is none. Return True: the conversation continues."""
        number = self._finished_turns
        self._stop_requested = False
        outcome = await self._run_turn(content)
        assert self._opened is not None
        self._send_spans()
        await self._send_state()
        if isinstance(outcome, FinishedTurn):
            try:
                self._send(self._finished(outcome))
                self._finished_turns += 1
                return True
            except FrameTooLargeError as error:
                outcome = faults.fault("too_large", f"the agent's answer has {error}")
        usage = self._opened.conversation.usage._asdict()
        self._send({"event": "TurnFailed", "turn": number, "error": outcome, "usage": usage})
        return True

    async def _run_turn(self, content: dict[str, Any]) -> FinishedTurn | faults.Fault:
        """Run the turn while watching the socket for a `stop`. Raise WorkbenchGoneError if the socket ends."""
        turn = asyncio.ensure_future(self._attempt(content))
        try:
            # Let the turn begin first, so that it can report a `stop` that came together with the message.
            await asyncio.sleep(0)
            self._check_stop(turn)
            while not turn.done():
                data = asyncio.ensure_future(self._wire.wait_for_data())
                await asyncio.wait({turn, data}, return_when=asyncio.FIRST_COMPLETED)
                if not data.done():
                    data.cancel()
                    await asyncio.wait({data})
                    continue
                if not self._wire.refill():
                    raise WorkbenchGoneError
                self._check_stop(turn)
        finally:
            turn.cancel()
        return turn.result()

    def _check_stop(self, turn: asyncio.Future[Any]) -> None:
        others = [message for message in self._wire.pending if message["op"] != "stop"]
        if len(others) < len(self._wire.pending) or any(message["op"] == "end" for message in others):
            self._stop_requested = True
            turn.cancel()
        self._wire.pending.clear()
        self._wire.pending.extend(others)

    async def _attempt(self, content: dict[str, Any]) -> FinishedTurn | faults.Fault:
        """Run the turn. Return the agent's exceptions as faults."""
        number = self._finished_turns
        assert self._opened is not None
        try:
            turn = self._opened.conversation.turn(
                content,
                functools.partial(self._send_acted, number),
                lambda author, text, thought: self._send(
                    {"event": "Streamed", "author": author, "text": text, "thought": thought}
                ),
            )
            finished = await self._unless_missed(turn)
        except WorkbenchGoneError:
            raise
        except MissedError as error:
            assert self._gate is not None
            self._miss = asyncio.get_running_loop().create_future()
            self._gate.forget_miss()
            return error.fault
        except IncompleteAnswerError as error:
            return faults.fault("agent_raised", str(error))
        except FrameTooLargeError as error:
            return faults.fault("too_large", f"a step of the agent has {error}")
        except BaseException as error:
            # Anything that an agent raises is its error, even SystemExit.
            if self._stop_requested:
                return faults.fault("cancelled", "stopped before the agent had answered")
            if self._stopped:
                raise
            return faults.agent_fault(error)
        if finished is None:
            return faults.fault("turn_count", "the agent produced no event")
        return (None if self._gate is None else self._gate.end_turn()) or finished

    async def _send_state(self) -> None:
        self._send({"event": "State", **await self._state()})


class SharedCases:
    """The cases that the workbench requests on `channel`, as tasks of one event loop."""

    def __init__(self, channel: Channel, lifeline: int, loaded: Loaded) -> None:
        self._channel = channel
        self._lifeline = lifeline
        self._loaded = loaded
        self._running: dict[int, asyncio.Task[None]] = {}
        self._cases: dict[int, Case] = {}
        self._wires: dict[int, SharedWire] = {}
        self._stopping: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        """Run until the workbench disconnects. Cases still running are dropped."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(64, thread_name_prefix="agent"))
        task = loop.create_task(self._serve())
        while not task.done():
            try:
                loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt):
                # These leave the loop if an agent's task raises them. The loop can continue, and the case
                # that awaits the task gets the exception.
                continue

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._channel.fileno(), self._read, over)
        loop.add_reader(self._lifeline, _finish, over)
        # Commands that came together with the first one.
        self._take(over)
        await over

    def _read(self, over: asyncio.Future[None]) -> None:
        # Never waits: after a SystemExit the loop may call this again for data already read.
        if self._channel.fill(wait=False):
            self._take(over)
        else:
            _finish(over)

    def _take(self, over: asyncio.Future[None]) -> None:
        while self._channel.pending:
            command = self._channel.pending.popleft()
            if command["op"] == "quit":
                _finish(over)
            elif command["op"] == "case":
                self._start(command["id"], command)
            elif command["op"] == "kill":
                self._cancel(command["id"])
            elif command["id"] in self._wires:
                self._wires[command["id"]].put(command)

    def _start(self, number: int, command: dict[str, Any]) -> None:
        wire = self._wires[number] = SharedWire(self._channel.write, number)
        case = case_of(wire, command["case"], self._loaded, shared=True)
        task = asyncio.get_running_loop().create_task(self._run(number, case))
        self._running[number], self._cases[number] = task, case
        # For a task that is cancelled before it begins.
        task.add_done_callback(lambda _: self._ended(number))

    async def _run(self, number: int, case: Case) -> None:
        use_output(case.printed)
        try:
            await case.run()
        finally:
            self._ended(number)

    def _cancel(self, number: int) -> None:
        task = self._running.get(number)
        if task is None or task in self._stopping:
            return
        self._stopping.add(task)
        self._cases[number].stopped(stack_of_tasks([task]))
        task.cancel()
        # A case that ignores the cancellation is abandoned: its task stays, its number is free.
        asyncio.get_running_loop().call_later(_CANCEL_SECONDS, self._ended, number)

    def _ended(self, number: int) -> None:
        task = self._running.pop(number, None)
        case = self._cases.pop(number, None)
        self._wires.pop(number, None)
        if task is not None and case is not None:
            self._stopping.discard(task)
            if not case.end_sent:
                self._channel.send({"op": "exited", "id": number, "status": 0})


def _finish(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)


def stack_of_this_process(frame: types.FrameType | None) -> str:
    """Return the lines being executed, if the project is involved, else the lines at which the event loop's tasks wait.

    `frame` is the frame that a signal interrupted.
    """
    running = [(here.f_code.co_filename, line, here.f_code.co_name) for here, line in traceback.walk_stack(frame)][::-1]
    if not any(is_project_file(place[0]) for place in running):
        with contextlib.suppress(RuntimeError):
            return stack_of_tasks(asyncio.all_tasks(asyncio.get_running_loop()))
    return "".join(["Running (most recent call last):\n", *place_lines(running)])


def stack_of_tasks(tasks: Iterable[Any]) -> str:
    """Return the lines at which the project's tasks wait, for at most three tasks, or "" if none waits."""
    waiting = [_awaited(task.get_coro()) for task in tasks]
    own = [places for places in waiting if any(is_project_file(place[0]) for place in places)]
    texts = ["".join(["Waiting (most recent call last):\n", *place_lines(places)]) for places in own[:_MOST_TASKS]]
    return "\n".join(texts)


def _awaited(awaitable: Any) -> list[Place]:
    """Return the places from a coroutine down to the innermost line where it waits."""
    places: list[Place] = []
    seen: set[int] = set()
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


def _unlisted_awaitable(awaitable: Any, frame: types.FrameType | None, seen: set[int]) -> Any:
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
