"""An HTTP/1.1 server on loopback that answers as it is told, and breaks off as it is told.

It runs in a thread with an event loop of its own, so that tests with and without a loop can use it. A script is a
function from a request to a `Response`; it runs on the server's loop and must not wait.
"""

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self


@dataclass(frozen=True)
class Request:
    """A received request. Names in `headers` are lower case. `body` is parsed JSON, or None without a body."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Response:
    """A response to be sent `latency` seconds after the request.

    `fault` "reset" resets the connection instead, "truncated" announces more bytes than it sends, and "drip" sends a
    byte every `drip` seconds.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0
    fault: Literal["", "reset", "truncated", "drip"] = ""
    drip: float = 0.05


class LoopbackServer:
    """Use as a context manager. `requests` are all that came, `peak` how many were open at once at most."""

    def __init__(self, script: Callable[[Request], Response], port: int = 0) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.peak = 0
        self._open = 0
        self._loop = asyncio.new_event_loop()
        self._socket = socket.create_server(("127.0.0.1", port), backlog=512)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, sock=self._socket))
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while (request := await _read(reader)) is not None:
                if not await self._answer(request, writer):
                    break
        writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. Return whether the connection stays open."""
        self.requests.append(request)
        self._open += 1
        self.peak = max(self.peak, self._open)
        try:
            response = self.script(request)
            if response.latency:
                await asyncio.sleep(response.latency)
            return await _send(response, writer)
        finally:
            self._open -= 1


async def _read(reader: asyncio.StreamReader) -> Request | None:
    line = await reader.readline()
    if not line.strip():
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    headers = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, json.loads(content) if content else None)


async def _send(response: Response, writer: asyncio.StreamWriter) -> bool:
    if response.fault == "reset":
        # With a linger of 0 seconds closing sends RST.
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
    length = len(response.body) + (64 if response.fault == "truncated" else 0)
    headers = {"Content-Type": "application/json; charset=UTF-8", "Content-Length": str(length), **response.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    opening = f"HTTP/1.1 {response.status} Scripted\r\n{head}\r\n".encode("latin-1")
    if response.fault == "drip":
        writer.write(opening)
        for byte in response.body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(response.drip)
    else:
        # In one piece: the kernel would keep a second one back until the first is acknowledged, 40 ms later.
        writer.write(opening + response.body)
    await writer.drain()
    return response.fault != "truncated"
