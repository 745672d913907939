"""The tools of a plain-Python agent, as far as it calls them with `session.tool`."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import contextlib
import functools
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .calls import POLL, Call, Calls
from .error_forms import decoded_error
from .fork import Asked, state_digest
from .gate import CANCEL_SECONDS, Decision, Gate, Inject, Live, Miss, Replay, inside, within_tool
from .jsonable import dumps
from .matching import Recorded, ToolCall
from .value_forms import GONE, UnknownFormError, decoded, encoded_text

State = dict[str, Any]


class Tools:
    """The tools of one conversation of the agent `name`. `session` has its `state`, which the agent may replace.

    With `waits`, a thread whose call has no answer waits until its process ends. Without it, the call is cancelled.
    """

    def __init__(self, name: str, session: Any, *, branch: str = "", waits: bool = True) -> None:
        self._name = name
        self._session = session
        self._branch = branch
        self._waits = waits
        self.gate: Gate | None = None
        """The gate that the calls pass, or None if they are neither recorded nor replayed."""

    def call(self, tool: str, args: dict[str, Any], function: Callable[..., Any]) -> Any:
        """Return `function(**args)`, or the recorded or injected answer. For an async function, it is awaitable.

        Raises:
            Exception: the function's own exception, or the recorded or injected one.
            CancelledError: the case has ended, and the call must not return.
        """
        if self.gate is None:
            return function(**args)
        if inside.get():
            self.gate.count_passed(tool)
            return function(**args)
        if _is_async(function):
            return self._call_async(tool, args, function)
        decision, recording = self._pass(tool, args, function)
        if isinstance(decision, Inject):
            time.sleep(decision.fault.seconds)
        place = self.gate.begin_in_order(self._branch, tool, decision)
        try:
            if _is_live(decision):
                return self._make(recording, functools.partial(function, **args), decision)
            # The thread of an event loop cannot wait, because the other calls use the loop.
            while not _has_loop() and self.gate.order.waits(place):
                time.sleep(POLL)
            self.gate.order.released(place)
            return self._replay(recording, decision)
        except _NoAnswerError as error:
            if error.miss is not None:
                self.gate.end(error.miss)
            if not self._waits:
                raise asyncio.CancelledError from None
            return _never()
        finally:
            self.gate.order.end(place)

    async def _call_async(self, tool: str, args: dict[str, Any], function: Callable[..., Any]) -> Any:
        assert self.gate is not None
        decision, recording = self._pass(tool, args, function)
        if isinstance(decision, Inject):
            await asyncio.sleep(decision.fault.seconds)
        place = self.gate.begin_in_order(self._branch, tool, decision)
        try:
            if _is_live(decision):
                with _keeping(recording) as keep, within_tool():
                    return keep(_changed(decision, await function(**args)))
            while self.gate.order.waits(place):
                await asyncio.sleep(POLL)
            self.gate.order.released(place)
            if place.recorded is not None and place.recorded.was_cancelled:
                with _keeping(recording):
                    await asyncio.sleep(CANCEL_SECONDS)
                raise _NoAnswerError(self.gate.not_cancelled(place.recorded))
            return self._replay(recording, decision)
        except _NoAnswerError as error:
            if error.miss is not None:
                self.gate.end(error.miss)
            return await asyncio.get_running_loop().create_future()
        finally:
            self.gate.order.end(place)

    def _pass(
        self, tool: str, args: dict[str, Any], function: Callable[..., Any]
    ) -> tuple[Decision, _Recording | None]:
        gate = self.gate
        assert gate is not None
        if gate.fork is not None and not gate.fork.passed:
            state = state_digest(self._session.state)
            diverged = gate.fork.check(Asked("tool", self._name, self._branch, tool, args, state))
            if diverged is not None:
                return Miss(diverged), None
        declaration = gate.declare(self._name, tool, function)
        decision = gate.tool(ToolCall(self._name, self._branch, tool, args, declaration=declaration))
        if gate.calls is None:
            return decision, None
        state = state_digest(self._session.state)
        named = gate.calls.argument_piece(args)
        more = {"order": gate.next_order(), "args": named, "state": state}
        call = gate.begin("tool", self._name, self._branch, decision, tool=tool, **more)
        assert call is not None
        return decision, _Recording(call, gate.calls, self._session)

    def _make(self, recording: _Recording | None, function: Callable[[], Any], decision: Decision) -> Any:
        with _keeping(recording) as keep, within_tool():
            answer = function()
            if inspect.isawaitable(answer):
                raise TypeError("session.tool: the call returned an awaitable; pass the async function itself")
            return keep(_changed(decision, answer))

    def _replay(self, recording: _Recording | None, decision: Decision) -> Any:
        """Return or raise the recorded or injected outcome. Raise _NoAnswerError if there is none."""
        found = decision.then if isinstance(decision, Inject) else decision
        if isinstance(found, Miss):
            raise _NoAnswerError(found)
        if isinstance(found, Replay):
            return self._recorded(recording, found.recorded, decision)
        assert isinstance(decision, Inject)
        fault = decision.fault
        if fault.kind == "never":
            if recording is not None:
                recording.call.lost("it never ended, because of an injected fault")
            raise _NoAnswerError(None)
        with _keeping(recording) as keep:
            if fault.error is not None:
                raise decoded_error(fault.error)
            return keep(fault.answer)

    def _recorded(self, recording: _Recording | None, recorded: Recorded, decision: Decision) -> Any:
        try:
            state = {name: decoded(value) for name, value in (recorded.effects.get("state") or {}).items()}
            answer = decoded(recorded.value) if recorded.outcome == "answer" else None
        except (UnknownFormError, RecursionError) as error:
            assert self.gate is not None
            raise _NoAnswerError(self.gate.unreadable(recorded, error)) from None
        with _keeping(recording) as keep:
            for name, value in state.items():
                if value is GONE:
                    self._session.state.pop(name, None)
                else:
                    self._session.state[name] = value
            if recorded.outcome == "error":
                raise decoded_error(recorded.value)
            return keep(_changed(decision, answer))


def _is_live(decision: Decision) -> bool:
    return isinstance(decision.then if isinstance(decision, Inject) else decision, Live)


def _changed(decision: Decision, answer: Any) -> Any:
    return decision.changed(answer) if isinstance(decision, Inject) else answer


class _NoAnswerError(Exception):
    """A call that must not return. `miss` is the reason to end the case, if there is one."""

    def __init__(self, miss: Miss | None) -> None:
        super().__init__()
        self.miss = miss


class _Recording:
    """A call that is being recorded, with the session's state before it."""

    def __init__(self, call: Call, calls: Calls, session: Any) -> None:
        self.call, self._calls, self._session = call, calls, session
        self._before = {name: dumps(value) for name, value in self._state().items()}

    def effects(self) -> dict[str, Any] | None:
        """Store the changes of the state since the call began. Return `{"state": digest}`, or None without changes."""
        now = self._state()
        changed = {name: value for name, value in now.items() if self._before.get(name) != dumps(value)}
        if isinstance(self._session.state, dict):
            changed.update((name, GONE) for name in self._before if name not in now)
        return {"state": self._calls.text_piece(encoded_text(changed))} if changed else None

    def _state(self) -> State:
        state = self._session.state
        return state if isinstance(state, dict) else {}


@contextlib.contextmanager
def _keeping(recording: _Recording | None) -> Iterator[Callable[[Any], Any]]:
    """Record the outcome of a call: the argument of the function that this yields, or an exception raised inside."""

    def keep(answer: Any) -> Any:
        if recording is not None:
            _end(recording, recording.call.answered, answer)
        return answer

    try:
        yield keep
    except (Exception, asyncio.CancelledError) as error:
        if recording is not None:
            _end(recording, recording.call.raised, error)
        raise


def _end(recording: _Recording, outcome: Callable[..., None], value: Any) -> None:
    try:
        effects = recording.effects()
    except Exception as error:
        recording.call.failed(error)
    else:
        outcome(value, effects)


def _never() -> Any:
    """Never return, because the case has ended. A thread waits until its process ends, then raises CancelledError.

    The thread of an event loop raises it at once, because other cases use the loop.
    """
    if not _has_loop():
        # The interpreter waits for threads of executors when it ends.
        while threading.main_thread().is_alive() and not getattr(concurrent.futures.thread, "_shutdown", False):
            time.sleep(0.2)
    raise asyncio.CancelledError


def _has_loop() -> bool:
    return asyncio._get_running_loop() is not None


def _is_async(function: Callable[..., Any]) -> bool:
    return any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004
