"""A child that answers many calls at once, each identified by a number, and the output of each call.

→ is a message to the child, ← a message from it:

→ `{"op": "call", "id", "payload"}`; a payload too large for one frame is sent before it, as JSON text split into
   `{"op": "part", "id", "text"}`
→ `{"op": "cancel", "id"}`; `{"op": "quit"}`, or the end of the socket
← `{"op": "ready"}` once; then for each call one of `{"op": "returned", "id", "value"}`, `{"op": "failed", "id",
   "error"}` and, when it has really stopped, `{"op": "cancelled", "id"}`

Calls, or cases that share a process, have their output separated by the task that wrote it, if it goes through
`sys.stdout` and `sys.stderr`. Output that bypasses them, from C code or child processes, goes to the process's own.
"""

from __future__ import annotations

import asyncio
import codecs
import contextvars
import io
import json
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TextIO, cast

from . import processes
from .frames import Channel, FrameTooLargeError

Answer = Callable[[Any], Awaitable[Any]]
_PIECE = 64 * 1024
"""Maximum number of bytes reported at once."""
OnOutput = Callable[[str, str], bool]
"""A receiver of "stdout" or "stderr" and the printed text. It returns False if it can no longer report it."""
_current: contextvars.ContextVar[dict[str, TextIO] | None] = contextvars.ContextVar(
    "agent_workbench_output", default=None
)
_of_process: dict[str, TextIO] = {}


class CallFailedError(Exception):
    """A failed call. `error` is the JSON data that is sent to the other side."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error


def serve(control: int, lifeline: int, answer: Answer) -> NoReturn:
    """Answer calls from the socket `control` until the other side disconnects, then end this process.

    On Linux, all processes that it started are killed, too. `answer(payload)` raises CallFailedError if it fails.
    """
    for descriptor in (control, lifeline):
        os.set_inheritable(descriptor, False)
    if sys.platform == "linux":
        processes.adopt_orphans()
    threading.Thread(target=processes.die_at_end_of, args=(lifeline,), daemon=True, name="lifeline").start()
    channel = Channel(socket.socket(fileno=control))
    # A surviving fork must not keep the socket open, or this process would seem alive.
    os.register_at_fork(after_in_child=channel.sock.close)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    serving = loop.create_task(_Server(channel, answer).run())
    while not serving.done():
        try:
            loop.run_until_complete(serving)
        except (SystemExit, KeyboardInterrupt):
            # These leave the loop if foreign code raises them in a task. The loop can continue.
            continue
    if sys.platform == "linux":
        processes.kill_descendants()
    # A normal exit would wait for threads that never end.
    os._exit(0)


class _Server:
    def __init__(self, channel: Channel, answer: Answer) -> None:
        self._channel = channel
        self._answer = answer
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._parts: dict[int, list[str]] = {}

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._channel.fileno(), self._read)
        self._channel.send({"op": "ready"})
        await self._over

    def _read(self) -> None:
        if not self._channel.fill(wait=False):
            self._end()
        while self._channel.pending:
            self._take(self._channel.pending.popleft())

    def _take(self, message: dict[str, Any]) -> None:
        number = message.get("id", 0)
        if message["op"] == "part":
            self._parts.setdefault(number, []).append(message["text"])
        elif message["op"] == "call":
            parts = self._parts.pop(number, None)
            payload = message["payload"] if parts is None else json.loads("".join(parts))
            self._tasks[number] = asyncio.get_running_loop().create_task(self._call(number, payload))
        elif message["op"] == "cancel":
            self._parts.pop(number, None)
            if number in self._tasks:
                self._tasks[number].cancel()
        else:
            self._end()

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._channel.fileno())
        if not self._over.done():
            self._over.set_result(None)

    async def _call(self, number: int, payload: Any) -> None:
        try:
            self._send({"op": "returned", "id": number, "value": await self._answer(payload)})
        except CallFailedError as error:
            self._send({"op": "failed", "id": number, "error": error.error})
        except asyncio.CancelledError:
            self._send({"op": "cancelled", "id": number})
        except Exception as error:
            error_data = {"kind": "internal", "message": f"{type(error).__name__}: {error}"}
            self._send({"op": "failed", "id": number, "error": error_data})
        finally:
            self._tasks.pop(number, None)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._channel.send(message)
        except FrameTooLargeError as error:
            error_data = {"kind": "too_large", "message": f"the answer is too large: {error}"}
            self._channel.send({"op": "failed", "id": message["id"], "error": error_data})
        except OSError:
            # The other side is gone; the reader notices.
            return


class _Routed:
    """A stand-in for `sys.stdout` or `sys.stderr` that forwards to the stream of the current call or case, if any."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        streams = _current.get()
        return getattr((_of_process if streams is None else streams)[self._name], name)


def route_output() -> None:
    """Install the routed streams. Call this before other code stores references to the real streams."""
    _of_process.update(stdout=sys.stdout, stderr=sys.stderr)
    sys.stdout, sys.stderr = cast(TextIO, _Routed("stdout")), cast(TextIO, _Routed("stderr"))


def use_output(on_output: OnOutput) -> None:
    """Report all further output of the current task and its subtasks to `on_output`."""
    _current.set(_Streams(on_output))


class _Streams(dict[str, TextIO]):
    """The streams of one case, each created on first use, because most cases print nothing."""

    def __init__(self, on_output: OnOutput) -> None:
        super().__init__()
        self._on_output = on_output

    def __missing__(self, name: str) -> TextIO:
        raw: Any = _CaseStream(name, self._on_output)
        stream = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
        return self.setdefault(name, stream)


class _CaseStream(io.RawIOBase):
    """A stream that reports written text.

    Text that cannot be reported, and data written to the descriptor itself, go to the process's stream.
    """

    def __init__(self, name: str, on_output: OnOutput) -> None:
        super().__init__()
        self.name = f"<{name}>"
        self._stream = name
        self._on_output = on_output
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the process's stream."""
        return _of_process[self._stream].fileno()

    def write(self, data: Any) -> int:
        """Report the text, in pieces. Return the number of bytes."""
        everything = bytes(data)
        for start in range(0, len(everything), _PIECE):
            text = self._decode(everything[start : start + _PIECE])
            if text and not self._on_output(self._stream, text):
                _of_process[self._stream].write(text)
        return len(everything)
