"""The frames on the sockets, and the classes that send and receive them, for whole sockets and for shared ones.

A frame is 4 bytes of length, big-endian, then that many bytes of JSON in ASCII. ASCII keeps lone surrogates intact. NaN
and infinities are written as Python's json writes them. File descriptors travel with the first byte of a frame. Both
ends use this module, so both must be able to import it.
"""

from __future__ import annotations

import array
import asyncio
import collections
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .jsonable import dumps

MAX_FRAME = 16 * 1024 * 1024
"""Maximum number of bytes of JSON in a frame."""
_LENGTH = struct.Struct(">I")
_READ = 1 << 16
_MAX_FDS = 16
# Plain numbers, because combining enumeration members takes longer than reading.
_WAITING = int(getattr(socket, "MSG_CMSG_CLOEXEC", 0))
_AT_ONCE = _WAITING | int(getattr(socket, "MSG_DONTWAIT", 0))


class FrameTooLargeError(Exception):
    """A message with more bytes of JSON (`size`) than a frame may have."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size:,} bytes in one message; at most {MAX_FRAME:,} are allowed")
        self.size = size


def encode(message: Any) -> bytes:
    """Return the frame of a message.

    Raises:
        FrameTooLargeError: the frame would have more than `MAX_FRAME` bytes of JSON.
    """
    body = dumps(message).encode("ascii")
    if len(body) > MAX_FRAME:
        raise FrameTooLargeError(len(body))
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """A stream of bytes, split into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the undecoded JSON of each message that `data` completes.

        Raises:
            FrameTooLargeError: a frame announces more than `MAX_FRAME` bytes; the stream is unusable from there on.
        """
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer)
            if size > MAX_FRAME:
                raise FrameTooLargeError(size)
            end = _LENGTH.size + size
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield body


def send(sock: socket.socket, message: Any, fds: Sequence[int] = ()) -> None:
    """Send one message, optionally with open file descriptors, on a blocking socket."""
    data = encode(message)
    if fds:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        data = data[sock.sendmsg([data], rights) :]
    if data:
        # Only if bytes are left: even an empty send fails once the other side has the message and has closed.
        sock.sendall(data)


class Channel:
    """One end of a socket, which sends and receives messages and file descriptors."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.pending: collections.deque[dict[str, Any]] = collections.deque()
        """Messages that arrived and were not taken yet."""
        self._fds: collections.deque[int] = collections.deque()
        self._decoder = Decoder()
        self._one_at_a_time = threading.RLock()

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self.sock.fileno()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self.write(encode(message))

    def write(self, data: bytes) -> None:
        """Send encoded frames. Several threads may do so at the same time."""
        with self._one_at_a_time:
            self.sock.sendall(data)

    def fill(self, *, wait: bool = True) -> bool:
        """Read once and append completed messages to `pending`. Return False at the end of the stream.

        Without `wait`, return at once if no data is available.
        """
        space = socket.CMSG_LEN(_MAX_FDS * array.array("i").itemsize)
        try:
            data, ancillary, _, _ = self.sock.recvmsg(_READ, space, _WAITING if wait else _AT_ONCE)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
                for fd in fds:
                    os.set_inheritable(fd, False)
                self._fds.extend(fds)
        self.pending.extend(map(json.loads, self._decoder.feed(data)))
        return bool(data)

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None at the end of the stream."""
        while not self.pending:
            if not self.fill():
                return None
        return self.pending.popleft()

    def take_fds(self, count: int) -> list[int]:
        """Return the next `count` file descriptors that came with messages. Call this for each message that has some.

        Raises:
            ValueError: the message came with fewer descriptors.
        """
        if len(self._fds) < count:
            raise ValueError(f"{count} file descriptors expected, {len(self._fds)} came")
        return [self._fds.popleft() for _ in range(count)]

    def close(self) -> None:
        """Close the socket and all descriptors not taken."""
        self.sock.close()
        while self._fds:
            os.close(self._fds.popleft())


class SocketWire(Channel):
    """A socket that carries the messages of one case only."""

    def encode(self, message: dict[str, Any]) -> bytes:
        """Return the frame of a message of this case, as the function `encode` does."""
        return encode(message)

    def refill(self) -> bool:
        """Read available data into `pending` without waiting. Return False if no more data can arrive."""
        return self.fill(wait=False)

    async def wait_for_data(self) -> None:
        """Wait until data can be read."""
        loop = asyncio.get_running_loop()
        has_data = asyncio.Event()
        loop.add_reader(self.fileno(), has_data.set)
        try:
            await has_data.wait()
        finally:
            loop.remove_reader(self.fileno())


class SharedWire:
    """The messages of case `number` on a socket that several cases share. Each message carries the number.

    The interface is that of a `SocketWire`. `write` sends encoded frames.
    """

    def __init__(self, write: Callable[[bytes], None], number: int) -> None:
        self.write = write
        self._number = number
        self.pending: collections.deque[dict[str, Any]] = collections.deque()
        self._has_data = asyncio.Event()

    def put(self, message: dict[str, Any]) -> None:
        """Add a message for the case."""
        self.pending.append(message)
        self._has_data.set()

    def encode(self, message: dict[str, Any]) -> bytes:
        """Return the frame of a message, with the case's number."""
        return encode({**message, "id": self._number})

    def refill(self) -> bool:
        """Record that the available data was read. Return True."""
        self._has_data.clear()
        return True

    async def wait_for_data(self) -> None:
        """Wait until there is a message."""
        await self._has_data.wait()

    def close(self) -> None:
        """Leave the socket to the other cases. Writing fails afterwards."""
        self.write = _closed


def _closed(data: bytes) -> None:
    raise BrokenPipeError
