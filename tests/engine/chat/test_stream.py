"""Texts that grow: told as a whole, seldom, and never with half a secret at their end."""

import pytest

from workbench.engine.chat import stream as chat_stream
from workbench.engine.chat.stream import LONGEST, StreamBuffer, Streamed, has_text
from workbench.engine.plan.secrets import Secrets

pytestmark = pytest.mark.asyncio


def buffer(told: list[Streamed], **secrets: str) -> StreamBuffer:
    return StreamBuffer(told.append, Secrets([secrets]).clean_text)


async def test_pieces_are_told_together_and_each_time_as_the_whole_so_far() -> None:
    told: list[Streamed] = []
    texts = buffer(told)
    for piece in ("It ", "left"):
        texts.add("desk", piece, False)
    assert told == []
    texts.publish_now()
    texts.add("desk", " yesterday", False)
    texts.add("below", "hm", True)
    texts.add("below", "yes", False)
    texts.publish_now()
    texts.publish_now()
    assert told == [
        Streamed("desk", (("It left", False),)),
        Streamed("desk", (("It left yesterday", False),)),
        Streamed("below", (("hm", True), ("yes", False))),
    ]


async def test_it_is_told_by_itself_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr(chat_stream, "PAUSE", 0.0)
    done = asyncio.Event()
    StreamBuffer(lambda _: done.set(), str).add("desk", "It left", False)
    await asyncio.wait_for(done.wait(), 10)


async def test_a_step_that_is_there_and_a_turn_that_is_over_are_told_no_more() -> None:
    told: list[Streamed] = []
    texts = buffer(told)
    texts.add("desk", "It left", False)
    texts.drop("desk")
    texts.add("below", "It left", False)
    texts.end()
    texts.publish_now()
    assert told == []


async def test_a_secret_is_not_told_in_pieces() -> None:
    told: list[Streamed] = []
    texts = buffer(told, DESK_TOKEN="sesame-open-please")
    for letter in "it is sesame-open-please!":
        texts.add("desk", letter, False)
        texts.publish_now()
    assert not any("sesame-o" in str(streamed) for streamed in told)
    assert told[-1].passages == (("it is [secret DESK_TOKEN]!", False),)


async def test_a_text_without_end_does_not_grow_for_ever() -> None:
    told: list[Streamed] = []
    texts = buffer(told)
    for _ in range(5):
        texts.add("desk", "x" * (LONGEST // 2), False)
    texts.publish_now()
    assert len(told[-1].passages[0][0]) == LONGEST


@pytest.mark.parametrize(
    ("acted", "says"),
    [
        ({"author": "desk", "content": {"parts": [{"text": "yes"}]}}, True),
        ({"author": "desk", "content": {"parts": [{"function_call": {"name": "look"}}]}}, False),
        ({"author": "desk", "content": None}, False),
        ({"author": "desk"}, False),
    ],
)
async def test_only_a_step_with_a_text_is_the_one_that_was_growing(acted: dict[str, object], says: bool) -> None:
    assert has_text(acted) is says
