"""Child processes that answer many calls at once (`worker/serving.py`), and the user's own functions in one.

A child for each agent imports and calls its custom metrics and judges (`worker/functions.py`), in the agent's
interpreter and environment. No code of the user runs in this process. Exceptions, crashes and hangs there become errors
of the one call.
"""

import asyncio
import contextlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, Command
from workbench.agents.environment import JudgeEnvironment
from workbench.worker import WORKER_DIR
from workbench.worker.frames import MAX_FRAME, FrameTooLargeError, encode

_READY_WITHIN = 120.0
"""Seconds that a child may take to start: it may import large packages from a cold, slow disk."""
_STOPPED_WITHIN = 1.0
"""Seconds that the child has to stop a cancelled call before it gets no more work."""
_PART = MAX_FRAME // 4
"""Maximum characters of a payload in one frame. Escaping them in JSON at most doubles their number."""
_ANSWER_WITHIN = 240.0
_AT_ONCE = 64
"""Maximum number of concurrent calls in the child; each synchronous one takes a thread."""
_STALE = "stale"
_RENEWALS = 3


class ChildLostError(Exception):
    """A child that has ended or could not be started. `began` is False if it was never ready for calls.

    The message completes a sentence whose subject is the child: "was killed by SIGKILL".
    """

    def __init__(self, how: str, *, began: bool = True) -> None:
        super().__init__(how)
        self.began = began


class CallTimeoutError(Exception):
    """A call without an answer within the time limit."""


class CallRefusedError(Exception):
    """A call that the child reports as failed. `error` is its report."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error


@dataclass(eq=False)
class _Running:
    """One started child.

    `calls` are futures for answers by call number. `stopping` holds the numbers of cancelled calls. `lifeline` is this
    process's end of a pipe, or -1 once this end is closed, which kills the child.
    """

    process: ChildProcess
    lifeline: int
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    calls: "dict[int, asyncio.Future[Frame]]" = field(default_factory=dict)
    stopping: set[int] = field(default_factory=set)

    def kill_if_stopped(self) -> None:
        """Kill the child if a signal stops it while it starts or a call waits for it."""
        self.process.kill_if_stopped(lambda: not self.ready.is_set() or bool(self.calls))

    def close_lifeline(self) -> None:
        """Close the lifeline. Even if it reads no messages, the child then kills itself and all that it started."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    async def end(self) -> None:
        """End the child. A child that is still starting reads no messages yet, so it is killed at once."""
        self.close_lifeline()
        await (self.process.close() if self.ready.is_set() else self.process.close(grace=0.0))

    def how_it_ended(self, how: str) -> str:
        """Return `how` with the last line of the child's output, if there is one."""
        last = self.process.last_line
        return f"{how}: {last}" if last else how


class AnsweringChild:
    """A child that starts with the first call, starts again for a call after it ended, and never outlives this process.

    A child that does not stop a cancelled call gets no new calls. It is killed when its other calls are answered.
    """

    def __init__(self, command: Command, *, ready_within: float = _READY_WITHIN) -> None:
        self._command = command
        self._ready_within = ready_within
        self._current: _Running | None = None
        self._closed = False
        self._numbers = itertools.count(1)
        self._ending: set[asyncio.Task[None]] = set()
        self._retired: set[_Running] = set()

    async def start(self) -> None:
        """Start a child unless one runs, and wait until it is ready. Raise ChildLostError if it does not start."""
        running = self._current or self._start()
        await self._until_ready(running)
        if running.process.ended.done():
            raise ChildLostError(running.how_it_ended(running.process.ended.result()), began=False)

    async def call(self, payload: Any, within: float | None = None) -> Any:
        """Return the child's answer to `payload` (JSON data). `within` is in seconds and excludes the start.

        Raises:
            ChildLostError: the child ended before it answered, or cannot be started.
            CallTimeoutError: the time is over.
            CallRefusedError: the child says that it cannot answer.
        """
        while (frame := await self._ask(payload, within))["op"] == "moved":
            continue
        return _value(frame)

    def renew(self) -> None:
        """Use a new child for the next call. The current child still finishes its calls."""
        if self._current is not None:
            self._retire(self._current)

    async def close(self) -> None:
        """End all children and their calls. No call is possible afterwards."""
        self._closed = True
        running = {*self._retired, *([self._current] if self._current is not None else [])}
        self._current = None
        self._retired.clear()
        await asyncio.gather(*(item.end() for item in running), *self._ending)

    @property
    def pid(self) -> int | None:
        """Process ID of the child that gets the next call, or None if it is not running."""
        return self._current.process.pid if self._current is not None else None

    async def _ask(self, payload: Any, within: float | None) -> Frame:
        """Return the frame that ends the call: the child's answer, or a frame from `_lost` or `_stop`.

        Raises:
            CallTimeoutError: there was no answer `within` seconds.
            ChildLostError: the child cannot be started.
        """
        running = self._current or self._start()
        number = next(self._numbers)
        answer = running.calls[number] = asyncio.get_running_loop().create_future()
        sent = False
        try:
            running.kill_if_stopped()
            await self._until_ready(running)
            running.process.channel.send(*_frames(number, payload))
            sent = True
            async with asyncio.timeout(within):
                frame: Frame = await answer
            return frame
        except TimeoutError:
            self._stop(running, number)
            raise CallTimeoutError from None
        except asyncio.CancelledError:
            # Cancelling the wait cancels the future too. If the answer came first, there is nothing to stop.
            if sent and answer.cancelled():
                self._stop(running, number)
            raise
        finally:
            running.calls.pop(number, None)
            self._tidy(running)

    def _start(self) -> _Running:
        if self._closed:
            raise ChildLostError("was closed", began=False)
        childs_lifeline, lifeline = os.pipe()
        try:
            process = ChildProcess(self._command, childs_lifeline, lambda frame: self._take(running, frame))
        except OSError as error:
            os.close(lifeline)
            raise ChildLostError(f"cannot be started: {error.strerror or error}", began=False) from None
        finally:
            os.close(childs_lifeline)
        running = self._current = _Running(process, lifeline)
        running.kill_if_stopped()
        process.ended.add_done_callback(lambda ended: self._lost(running, ended.result()))
        return running

    async def _until_ready(self, running: _Running) -> None:
        try:
            async with asyncio.timeout(self._ready_within):
                await running.ready.wait()
        except TimeoutError:
            self._retire(running)
            raise ChildLostError(f"was not ready after {self._ready_within:g} s", began=False) from None

    def _take(self, running: _Running, frame: Frame) -> None:
        if frame["op"] == "ready":
            running.ready.set()
            return
        running.stopping.discard(frame["id"])
        answer = running.calls.get(frame["id"])
        if answer is not None and not answer.done():
            answer.set_result(frame)

    def _lost(self, running: _Running, how: str) -> None:
        running.close_lifeline()
        self._retired.discard(running)
        if self._current is running:
            self._current = None
        lost: Frame = {"op": "lost", "how": running.how_it_ended(how), "began": running.ready.is_set()}
        for answer in running.calls.values():
            if not answer.done():
                answer.set_result(lost)
        running.ready.set()

    def _stop(self, running: _Running, number: int) -> None:
        running.process.channel.send({"op": "cancel", "id": number})
        running.stopping.add(number)

        def check_again() -> None:
            if number not in running.stopping or running.process.ended.done():
                return
            self._retire(running)
            # Later calls move to the next child: if this call blocks the child's loop, they have not even begun.
            for other, answer in running.calls.items():
                if other > number and not answer.done():
                    answer.set_result({"op": "moved"})

        asyncio.get_running_loop().call_later(_STOPPED_WITHIN, check_again)

    def _retire(self, running: _Running) -> None:
        if self._current is running:
            self._current = None
        self._retired.add(running)
        self._tidy(running)

    def _tidy(self, running: _Running) -> None:
        if running in self._retired and not running.calls:
            self._retired.discard(running)
            ending = asyncio.get_running_loop().create_task(running.end())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)


def _frames(number: int, payload: Any) -> Iterator[Frame]:
    call: Frame = {"op": "call", "id": number, "payload": payload}
    try:
        encode(call)
    except FrameTooLargeError:
        text = json.dumps(payload)
        for start in range(0, len(text), _PART):
            yield {"op": "part", "id": number, "text": text[start : start + _PART]}
        call["payload"] = None
    yield call


def _value(frame: Frame) -> Any:
    match frame["op"]:
        case "returned":
            return frame["value"]
        case "failed":
            raise CallRefusedError(frame["error"])
        case "lost":
            raise ChildLostError(frame["how"], began=frame["began"])
    raise CallRefusedError({"kind": "raised", "message": "it cancelled itself"})


class FunctionFailedError(Exception):
    """A call without a result.

    `kind` is `import_failed`, `no_framework` (google-adk is missing there), `raised`, `wrong_input`, `wrong_result`,
    `too_large`, `timeout`, `crashed` or `internal` (an error of the child itself). `message` is one sentence and `hint`
    says how to fix it. `traceback` shows the user's own lines. `printed` is the end of the call's output. `hint`,
    `traceback` and `printed` may be "".
    """

    def __init__(self, kind: str, message: str, hint: str = "", traceback: str = "", printed: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.traceback = traceback
        self.printed = printed


class Functions:
    """The functions of one agent. Each call may take `within` seconds."""

    def __init__(self, environment: JudgeEnvironment, *, within: float = _ANSWER_WITHIN) -> None:
        self._within = within
        self._child = AnsweringChild(_command(environment))
        self._retry_child = AnsweringChild(_command(environment))
        self._retry_lock = asyncio.Lock()
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def call(self, kind: str, path: str, payload: Mapping[str, Any]) -> Any:
        """Call the function at `path`, and return its result as JSON data.

        `path` is "package.module.function", or has a colon before the function. `kind` is one of:
        - "judge": the function is called with `payload`.
        - "evaluate": a metric of agents-cli is called, and `path` is only shown in errors. `payload` is
          `{"source", "file", "instance"}`, and the result is `{"score", "explanation", "printed"}`.
        - "metric": the function is called like a custom metric of ADK (`worker/adk_metric.py`). `payload` is
          `{"name", "threshold", "criterion", "actual", "expected", "scenario"}`, and the result is
          `{"score", "status", "rubrics", "turns", "printed"}`.

        Raises:
            FunctionFailedError: the function could not be imported, raised, hung, crashed the child, or returned
                something unusable.
        """
        request = {"kind": kind, "path": path, "data": dict(payload)}
        async with self._at_once:
            answer = await self._answer(request)
        if kind in ("metric", "evaluate"):
            return {**answer["value"], "printed": answer["printed"]}
        return answer["value"]

    async def ready(self) -> None:
        """Wait until a child is ready. If none starts, the next `call` tries again and raises."""
        with contextlib.suppress(ChildLostError):
            await self._child.start()

    async def close(self) -> None:
        """End the children."""
        await asyncio.gather(self._child.close(), self._retry_child.close())

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request. If the child crashes, find the call that crashes it.

        Any of the calls in progress may have crashed the child. Each is repeated once, alone, in another child. Only a
        call that crashes the other child, too, fails.

        Raises:
            FunctionFailedError: the call failed, or crashed both children.
        """
        try:
            return await self._answer_by(self._child, request)
        except ChildLostError as lost:
            if not lost.began:
                raise _crashed(request, lost) from None
        async with self._retry_lock:
            try:
                return await self._answer_by(self._retry_child, request)
            except ChildLostError as lost:
                raise _crashed(request, lost) from None

    async def _answer_by(self, child: AnsweringChild, request: dict[str, Any]) -> dict[str, Any]:
        for _ in range(_RENEWALS):
            try:
                answer: dict[str, Any] = await child.call(request, self._within)
            except CallRefusedError as refused:
                if refused.error.get("kind") != _STALE:
                    fields = ("kind", "message", "hint", "traceback", "printed")
                    raise FunctionFailedError(*(str(refused.error.get(name, "")) for name in fields)) from None
                child.renew()
            except CallTimeoutError:
                message = f"{request['path']} took longer than {self._within:g} s"
                raise FunctionFailedError("timeout", message) from None
            else:
                return answer
        raise FunctionFailedError("import_failed", f"{request['path']} cannot be imported: its files keep changing")


def _crashed(request: Mapping[str, Any], lost: ChildLostError) -> FunctionFailedError:
    return FunctionFailedError("crashed", f"the process that ran {request['path']} {lost}")


def _command(environment: JudgeEnvironment) -> Command:
    places = ["--folder", environment.folder, "--root", environment.root]
    arguments = [environment.interpreter, "-X", "utf8", "-u", WORKER_DIR, "functions", *places]
    return Command(arguments, environment.values, Path(environment.cwd))
