"""The client of Dask: what a cluster says is bounded, and nothing odd stops it."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.run.dask import client as module
from workbench.run.dask.client import Cluster


class Channel:
    """The frames that the workbench would get."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, frame: dict[str, Any]) -> None:
        self.sent.append(frame)


class Dask:
    """A client of Dask whose scheduler answers with `identity`, or raises it."""

    status = "running"

    def __init__(self, identity: dict[str, Any] | Exception) -> None:
        self._identity = identity
        self.scheduler = SimpleNamespace(identity=self._answer)

    async def _answer(self, n_workers: int) -> dict[str, Any]:
        if isinstance(self._identity, Exception):
            raise self._identity
        return self._identity


def cluster(dask: Any = None) -> tuple[Any, list[dict[str, Any]]]:
    channel = Channel()
    made: Any = Cluster(channel)  # type: ignore[arg-type]
    made._client = dask
    return made, channel.sent


async def test_scheduler_that_cannot_answer_is_lost() -> None:
    made, sent = cluster(Dask(TypeError("identity() got an unexpected keyword argument " + "x" * 10_000)))
    await made._watch()
    assert [frame["op"] for frame in sent] == ["lost"]
    assert sent[0]["why"].startswith("TypeError: identity() got")
    assert len(sent[0]["why"]) < 3000


async def test_long_name_of_a_worker_is_cut() -> None:
    worker = {"name": "n" * 20_000_000, "nthreads": 1, "last_seen": 0.0}
    made, sent = cluster(Dask({"workers": {"tcp://w": worker}}))
    watching = asyncio.create_task(made._watch())
    while not sent:
        await asyncio.sleep(0)
    watching.cancel()
    assert len(sent[0]["workers"][0]["name"]) == 2000


async def test_malformed_questions_are_ignored() -> None:
    made, sent = cluster()
    good = json.dumps({"key": "k", "talk": "t", "turns": []})
    questions: asyncio.Queue[Any] = asyncio.Queue()
    for text in (5, None, "{", "[]", "{}", good):
        questions.put_nowait(text)
    asking = asyncio.create_task(made._ask(questions))
    while not sent:
        await asyncio.sleep(0)
    asking.cancel()
    assert sent == [{"op": "question", "key": "k", "text": good, "more": False}]


async def test_task_that_is_cancelled_while_its_files_are_sent_again_is_not_submitted() -> None:
    made, sent = cluster()  # Without a client, a submission would raise.
    made._files = (None, None)
    sending = asyncio.Event()

    async def send_again(workers: list[str] | None) -> None:
        sending.set()
        await asyncio.sleep(0)

    made._send_again = send_again
    made.take({"op": "submit", "key": "k", "job": "{}", "workers": None, "again": True})
    await sending.wait()
    made.take({"op": "cancel", "key": "k"})
    assert await asyncio.gather(*made._tasks) == [None]
    assert sent == []


def test_report_over_the_size_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    made, sent = cluster()
    monkeypatch.setattr(module, "LARGEST_REPORT", 10)
    with pytest.raises(ValueError, match="sent 11 bytes; the limit is 10"):
        made._send_pieces("report", "k", b"x" * 11)
    assert sent == []
