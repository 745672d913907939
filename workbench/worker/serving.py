"""A child that answers many calls at once, each identified by a number.

→ `{"op": "call", "id", "payload"}`; a payload too large for one frame is sent before it, as JSON text split into
   `{"op": "part", "id", "text"}`
→ `{"op": "cancel", "id"}`; `{"op": "quit"}`, or the end of the socket
← `{"op": "ready"}` once; then for each call one of `{"op": "returned", "id", "value"}`, `{"op": "failed", "id",
   "error"}` and, when it has really stopped, `{"op": "cancelled", "id"}`
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from typing import Any, Awaitable, Callable, Dict, List, NoReturn

from . import processes
from .frames import Channel, FrameTooLargeError

Answer = Callable[[Any], Awaitable[Any]]


class CallFailedError(Exception):
    """A call failed; `error` is the JSON data sent to the other side."""

    def __init__(self, error: Dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error


def serve(control: int, lifeline: int, answer: Answer) -> NoReturn:
    """Answer calls from the socket `control` until the other side disconnects, then end the process and all it started.

    `answer(payload)` raises CallFailedError if it fails.
    """
    for descriptor in (control, lifeline):
        os.set_inheritable(descriptor, False)
    if sys.platform == "linux":
        processes.adopt_orphans()
    threading.Thread(target=processes.die_at_end_of, args=(lifeline,), daemon=True, name="lifeline").start()
    channel = Channel(socket.socket(fileno=control))
    # A surviving fork must not keep the socket open, or we would seem alive.
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
        self._tasks: Dict[int, asyncio.Task[None]] = {}
        self._parts: Dict[int, List[str]] = {}

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

    def _take(self, message: Dict[str, Any]) -> None:
        number = message.get("id", 0)
        if message["op"] == "part":
            self._parts.setdefault(number, []).append(message["text"])
        elif message["op"] == "call":
            parts = self._parts.pop(number, None)
            payload = message["payload"] if parts is None else json.loads("".join(parts))
            task = asyncio.get_running_loop().create_task(self._call(number, payload))
            self._tasks[number] = task
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

    def _send(self, message: Dict[str, Any]) -> None:
        try:
            self._channel.send(message)
        except FrameTooLargeError as error:
            error_data = {"kind": "too_large", "message": f"the answer is too large: {error}"}
            self._channel.send({"op": "failed", "id": message["id"], "error": error_data})
        except OSError:
            # The other side is gone; the reader notices.
            return
