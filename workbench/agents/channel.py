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
_DECODED_IN_THREAD = 256 * 1024
"""Frames from this size in bytes on are decoded in a thread."""

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
        self._received: deque[bytes] = deque()
        self._decoding: asyncio.Task[None] | None = None
        self._waits_to_write = False
        self._unsent: deque[tuple[bytes | memoryview, Sequence[int]]] = deque()
        self._open = True
        self._end_reason: str | None = None
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

    def drain_at_once(self) -> bool:
        """Process the data that has arrived, without waiting. Return False if `drain` must process the rest."""
        while self._decoding is None and self._read_once():
            continue
        return self._decoding is None

    async def drain(self) -> None:
        """Process the data that has arrived. Wait for large frames that a thread decodes."""
        while not self.drain_at_once():
            if self._decoding is not None:
                await self._decoding

    def close(self) -> None:
        """Close this end. No callback is called afterwards."""
        if not self._open:
            return
        self._loop.remove_reader(self._number)
        self._stop_writing()
        self._open = False
        self._socket.close()
        self._received.clear()
        self._drop_unsent()

    def _read_once(self) -> bool:
        """Read once, and deliver the frames. Return False if nothing has arrived or the channel has ended."""
        if not self._open or self._end_reason is not None:
            return False
        try:
            data = self._socket.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        try:
            self._received.extend(self._decoder.feed(data))
        except FrameTooLargeError as error:
            self._end_reason = str(error)
        if not data:
            self._end_reason = ""
        self._deliver()
        return True

    def _deliver(self) -> None:
        """Deliver the received frames. A large frame is decoded in a thread while later frames wait."""
        while self._received and self._decoding is None:
            payload = self._received.popleft()
            if len(payload) >= _DECODED_IN_THREAD:
                self._loop.remove_reader(self._number)
                self._decoding = self._loop.create_task(self._deliver_from_thread(payload))
                return
            self._take(_decode(payload), len(payload))
        if self._end_reason is not None and self._open and self._decoding is None:
            self.close()
            self._on_end(self._end_reason)

    async def _deliver_from_thread(self, payload: bytes) -> None:
        frame = await asyncio.to_thread(_decode, payload)
        self._decoding = None
        if self._open:
            self._loop.add_reader(self._number, self._read_once)
            self._take(frame, len(payload))
            self._deliver()

    def _take(self, frame: Frame | ValueError, size: int) -> None:
        if isinstance(frame, ValueError):
            self._received.clear()
            self._end_reason = str(frame)
        else:
            self.frame_bytes = size
            self._on_frame(frame)

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


def _decode(payload: bytes) -> Frame | ValueError:
    """Return the frame's JSON, or the reason why it is unusable."""
    try:
        frame = json.loads(payload.decode("ascii"))
    except (ValueError, RecursionError) as error:
        return ValueError(f"a message cannot be read: {error}")
    return frame if isinstance(frame, dict) else ValueError("a message is not an object")


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
