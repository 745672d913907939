"""The parent's end of a frame socket, driven by the event loop."""

import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from workbench.worker.frames import Decoder, FrameTooLargeError, encode

_READ = 256 * 1024
_SENT_TOGETHER = 64 * 1024
"""Frames are joined up to this many bytes and sent by one system call."""

Frame: TypeAlias = dict[str, Any]


class LoopChannel:
    """Frames to and from a child process, in order.

    `on_frame(frame)` is called for each frame received. `on_end(reason)` is called once, when no more frames can
    arrive: the other side closed its end (reason ""), or sent something that is not a frame (the reason says what).
    Neither may raise. No method blocks: data that the other side does not accept yet is queued.
    """

    def __init__(self, sock: socket.socket, on_frame: Callable[[Frame], None], on_end: Callable[[str], None]) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._number = sock.fileno()
        self._on_frame = on_frame
        self._on_end = on_end
        self._decoder = Decoder()
        self._loop = asyncio.get_running_loop()
        self._waits_to_write = False
        self._unsent: deque[tuple[bytes | memoryview, Sequence[int]]] = deque()
        self._open = True
        self.frame_bytes = 0
        """Size in bytes of the frame being delivered."""
        self._loop.add_reader(self._number, self._read_once)

    def send(self, *messages: Frame, descriptors: Sequence[int] = ()) -> int:
        """Send frames, the first one with file descriptors, which the channel takes over and closes.

        After the end of the channel, nothing is sent. Return the size of the frames in bytes.

        Raises:
            FrameTooLargeError: a message is over 16 MiB; none is sent.
        """
        try:
            data = b"".join(map(encode, messages))
        except FrameTooLargeError:
            _close(descriptors)
            raise
        if not self._open:
            _close(descriptors)
            return len(data)
        if not self._unsent:
            # Each send wakes the other side, so frames of one event loop iteration go together.
            self._loop.call_soon(self._writable)
        before, with_it = self._unsent[-1] if self._unsent else (b"", ())
        if self._unsent and not descriptors and len(before) + len(data) <= _SENT_TOGETHER:
            self._unsent[-1] = (bytes(before) + data, with_it)
        else:
            self._unsent.append((data, descriptors))
        return len(data)

    def drain(self) -> None:
        """Process the data that has arrived."""
        while self._read_once():
            continue

    def close(self) -> None:
        """Close this end. No callback is called afterwards."""
        if not self._open:
            return
        self._loop.remove_reader(self._number)
        self._stop_writing()
        self._open = False
        self._socket.close()
        self._drop_unsent()

    def _read_once(self) -> bool:
        """Read once, and deliver the frames. Return False if nothing has arrived or the channel has ended."""
        if not self._open:
            return False
        try:
            data = self._socket.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        reason = None if data else ""
        frames: list[tuple[Frame, int]] = []
        try:
            frames.extend((_decode(payload), len(payload)) for payload in self._decoder.feed(data))
        except (FrameTooLargeError, ValueError) as error:
            reason = str(error)
        for frame, self.frame_bytes in frames:
            if self._open:
                self._on_frame(frame)
        if reason is not None and self._open:
            self.close()
            self._on_end(reason)
        return True

    def _writable(self) -> None:
        while self._unsent:
            data, descriptors = self._unsent[0]
            try:
                sent = socket.send_fds(self._socket, [data], descriptors) if descriptors else self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                self._loop.add_writer(self._number, self._writable)
                self._waits_to_write = True
                return
            except OSError:
                # The other side is gone; the reader notices and reports it.
                self._drop_unsent()
                break
            _close(descriptors)
            if sent < len(data):
                self._unsent[0] = (memoryview(data)[sent:], ())
            else:
                self._unsent.popleft()
        self._stop_writing()

    def _stop_writing(self) -> None:
        if self._waits_to_write:
            self._loop.remove_writer(self._number)
            self._waits_to_write = False

    def _drop_unsent(self) -> None:
        for _, descriptors in self._unsent:
            _close(descriptors)
        self._unsent.clear()


def _decode(payload: bytes) -> Frame:
    """Return the frame's JSON. Raise ValueError with the reason if it is unusable."""
    try:
        frame = json.loads(payload.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a message cannot be read: {error}") from None
    if not isinstance(frame, dict):
        raise ValueError("a message is not an object")
    return frame


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
