"""Streamed texts: published as a whole, not too often, and never with a part of a secret."""

import pytest

from workbench.criteria.secrets import Secrets
from workbench.run import chat as chat_stream
from workbench.run.chat import LONGEST, StreamBuffer, Streamed, has_text

pytestmark = pytest.mark.asyncio


def buffer(told: list[Streamed], **secrets: str) -> StreamBuffer:
    return StreamBuffer(told.append, Secrets([secrets]).clean_text)


async def test_each_update_has_the_whole_text_so_far() -> None:
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


async def test_pending_text_is_published_after_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr(chat_stream, "PAUSE", 0.0)
    done = asyncio.Event()
    StreamBuffer(lambda _: done.set(), str).add("desk", "It left", False)
    await asyncio.wait_for(done.wait(), 60)


async def test_finished_steps_and_turns_send_no_updates() -> None:
    told: list[Streamed] = []
    texts = buffer(told)
    texts.add("desk", "It left", False)
    texts.drop("desk")
    texts.add("below", "It left", False)
    texts.end()
    texts.publish_now()
    assert told == []


async def test_secret_is_never_published_in_pieces() -> None:
    told: list[Streamed] = []
    texts = buffer(told, DESK_TOKEN="sesame-open-please")
    for letter in "it is sesame-open-please!":
        texts.add("desk", letter, False)
        texts.publish_now()
    assert not any("sesame-o" in str(streamed) for streamed in told)
    assert told[-1].passages == (("it is [secret DESK_TOKEN]!", False),)


async def test_endless_text_is_cut_at_the_limit() -> None:
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
async def test_only_a_step_with_a_text_replaces_the_streamed_text(acted: dict[str, object], says: bool) -> None:
    assert has_text(acted) is says
