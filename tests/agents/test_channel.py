"""Frames and printed output at the parent's end: order, size, descriptors, and misbehaving children."""

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from workbench.agents.channel import Frame, LoopChannel
from workbench.agents.child_process import OutputPipe
from workbench.worker.frames import Channel as Blocking
from workbench.worker.frames import FrameTooLargeError, encode


class Heard:
    """The frames and the end that a channel delivered."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.ended: list[str] = []
        self.changed = asyncio.Event()
        ours, self.other = socket.socketpair()
        self.channel = LoopChannel(ours, self._frame, self._end)

    def _frame(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.changed.set()

    def _end(self, reason: str) -> None:
        self.ended.append(reason)
        self.changed.set()

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not done():
                await self.changed.wait()
                self.changed.clear()


async def test_frames_of_any_size_arrive_in_order() -> None:
    heard = Heard()
    sent = [{"n": number, "text": "x" * (1_000_000 if number % 5 == 0 else number)} for number in range(20)]

    def send_all() -> None:
        for frame in sent:
            heard.other.sendall(encode(frame))
        heard.other.close()

    thread = threading.Thread(target=send_all)
    thread.start()
    await heard.until(lambda: bool(heard.ended))
    thread.join()
    assert heard.frames == sent
    assert heard.ended == [""]


async def test_frame_may_arrive_byte_by_byte() -> None:
    heard = Heard()
    for byte in encode({"a": "\ud800é"}):
        heard.other.send(bytes([byte]))
        await asyncio.sleep(0)
    await heard.until(lambda: bool(heard.frames))
    assert heard.frames == [{"a": "\ud800é"}]
    heard.channel.close()
    heard.other.close()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (struct.pack(">I", 2**31) + b"x", "at most"),
        (struct.pack(">I", 3) + b"{x}", "cannot be read"),
        (struct.pack(">I", 2) + b"[]", "not an object"),
        (struct.pack(">I", 400_000) + b"[" * 400_000, "cannot be read"),
    ],
)
async def test_invalid_frame_ends_the_channel_with_the_reason(data: bytes, words: str) -> None:
    heard = Heard()
    heard.other.sendall(encode({"first": 1}))
    threading.Thread(target=lambda: heard.other.sendall(data)).start()
    await heard.until(lambda: bool(heard.ended))
    assert heard.frames == [{"first": 1}]
    assert words in heard.ended[0]
    heard.other.close()


async def test_slow_reader_gets_everything_and_the_descriptors() -> None:
    heard = Heard()
    reading, writing = os.pipe()
    large = "x" * 3_000_000
    heard.channel.send({"op": "first", "text": large})
    heard.channel.send({"op": "second"}, {"op": "third"}, descriptors=[writing])
    received: list[Any] = []

    def read() -> None:
        other = Blocking(heard.other)
        received.extend(other.receive() for _ in range(3))
        (descriptor,) = other.take_fds(1)
        os.write(descriptor, b"through")
        os.close(descriptor)

    await asyncio.to_thread(read)
    assert received == [{"op": "first", "text": large}, {"op": "second"}, {"op": "third"}]
    assert os.read(reading, 100) == b"through"
    assert os.read(reading, 100) == b""
    os.close(reading)
    heard.channel.close()
    heard.other.close()


async def test_oversized_frame_is_refused_before_anything_is_sent() -> None:
    heard = Heard()
    reading, writing = os.pipe()
    with pytest.raises(FrameTooLargeError):
        heard.channel.send({"op": "small"}, {"text": "x" * 17_000_000}, descriptors=[writing])
    assert os.read(reading, 1) == b"", "the descriptor is closed"
    os.close(reading)
    heard.channel.close()
    assert heard.other.recv(100) == b""
    heard.other.close()


async def test_frames_of_one_loop_iteration_are_sent_together() -> None:
    heard = Heard()
    for number in range(3):
        heard.channel.send({"n": number})
    await asyncio.sleep(0)
    assert heard.other.recv(1000) == b"".join(encode({"n": number}) for number in range(3))
    heard.channel.close()
    heard.other.close()


async def test_sending_after_the_end_closes_the_descriptors() -> None:
    heard = Heard()
    heard.other.close()
    reading, writing = os.pipe()
    heard.channel.send({"op": "lost"}, descriptors=[writing])
    await asyncio.sleep(0)  # Frames are sent in the next iteration of the event loop.
    assert os.read(reading, 1) == b""
    os.close(reading)
    await heard.until(lambda: bool(heard.ended))
    heard.channel.send({"op": "after"})


async def test_drain_processes_what_has_arrived() -> None:
    heard = Heard()
    heard.other.sendall(encode({"n": 1}) + encode({"n": 2}))
    heard.channel.drain()
    assert [frame["n"] for frame in heard.frames] == [1, 2]
    heard.other.close()
    heard.channel.drain()
    assert heard.ended == [""]


async def test_printed_lines_arrive_together_and_complete() -> None:
    reading, writing = os.pipe()
    texts: list[str] = []
    pipe = OutputPipe(reading, texts.append, lambda count: None)
    for piece in (b"one\ntwo ", b"three\nfo\xc3", b"\xbcr\xff"):
        os.write(writing, piece)
        await asyncio.sleep(0)
    pipe.finish()
    os.close(writing)
    assert "".join(texts) == "one\ntwo three\nfoür\ufffd"
    assert all(text.endswith("\n") for text in texts[:-1])


async def test_unfinished_line_is_not_cut_within_a_word() -> None:
    reading, writing = os.pipe()
    texts: list[str] = []
    pipe = OutputPipe(reading, texts.append, lambda count: None)
    line = b"correct-horse-battery;" * 7000
    for start in range(0, len(line), 4096):
        os.write(writing, line[start : start + 4096])
        await asyncio.sleep(0.001)
    pipe.finish()
    os.close(writing)
    assert "".join(texts).encode() == line
    assert len(texts) > 2
    assert all(text.endswith(";") for text in texts)


async def test_grandchild_that_holds_the_pipe_does_not_block() -> None:
    reading, writing = os.pipe()
    texts: list[str] = []
    pipe = OutputPipe(reading, texts.append, lambda count: None)
    os.write(writing, b"last words")
    pipe.finish()
    assert texts == ["last words"]
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"more")
    os.close(writing)
