"""Frames cross a socket unchanged, whatever they contain and however the bytes arrive."""

import json
import math
import os
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.worker import frames

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters())
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner), max_leaves=8
)


@given(st.lists(_VALUES, max_size=5), st.integers(1, 40))
def test_messages_survive_any_fragmentation(messages: list[Any], size: int) -> None:
    stream = b"".join(frames.encode(message) for message in messages)
    decoder = frames.Decoder()
    bodies = [body for start in range(0, len(stream), size) for body in decoder.feed(stream[start : start + size])]
    # In JSON, a pair of surrogates equals the character that they encode.
    assert [json.loads(body) for body in bodies] == json.loads(json.dumps(messages))


def test_frames_are_ascii_with_a_length_in_front() -> None:
    frame = frames.encode({"text": "é\ud800"})
    assert frame == len(frame[4:]).to_bytes(4, "big") + b'{"text":"\\u00e9\\ud800"}'


def test_nan_and_infinities_survive() -> None:
    (body,) = frames.Decoder().feed(frames.encode([math.nan, math.inf, -math.inf]))
    value = json.loads(body)
    assert math.isnan(value[0])
    assert value[1:] == [math.inf, -math.inf]


def test_frame_may_have_16_mib_and_no_more() -> None:
    fits = "x" * (frames.MAX_FRAME - 2)
    assert len(frames.encode(fits)) == frames.MAX_FRAME + 4
    with pytest.raises(frames.FrameTooLargeError) as raised:
        frames.encode(fits + "x")
    assert raised.value.size == frames.MAX_FRAME + 1


def test_announced_length_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(frames.FrameTooLargeError):
        list(frames.Decoder().feed((frames.MAX_FRAME + 1).to_bytes(4, "big")))


def test_descriptors_arrive_with_their_message() -> None:
    ours, theirs = socket.socketpair()
    channel = frames.Channel(theirs)
    read_end, write_end = os.pipe()
    frames.send(ours, {"op": "first"}, [write_end])
    frames.send(ours, {"op": "second", "text": "x" * 100})
    os.close(write_end)
    assert channel.receive() == {"op": "first"}
    (received,) = channel.take_fds(1)
    assert not os.get_inheritable(received)
    os.write(received, b"through the copy")
    os.close(received)
    assert os.read(read_end, 100) == b"through the copy"
    assert channel.receive() == {"op": "second", "text": "x" * 100}
    with pytest.raises(ValueError, match="1 file descriptors expected, 0 came"):
        channel.take_fds(1)
    ours.close()
    assert channel.receive() is None
    channel.close()
    os.close(read_end)
