"""The names of Dask places, and links to their workers through a scripted client process."""

import asyncio
import importlib.util
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.places.echo_host import echo_program
from tests.places.remote.fakes import settle
from workbench.agents.channel import Frame
from workbench.agents.child_process import Command
from workbench.agents.interpreter import install_extra
from workbench.places.dask import hosts as hosts_module
from workbench.places.dask.hosts import DaskHosts, DaskPlaceError, target
from workbench.places.place import NotStartedError, OnFrame
from workbench.places.remote.link import HostLink
from workbench.places.remote.program import HostProgram


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    def installed(is_installed: bool) -> None:
        found = importlib.util.find_spec("json") if is_installed else None
        monkeypatch.setattr(hosts_module, "find_spec", lambda name: found)

    installed(True)
    return installed


@pytest.mark.parametrize(
    ("word", "opening"),
    [
        ("dask://localhost:8786", {"address": "tcp://localhost:8786"}),
        ("dask://127.0.0.1:1", {"address": "tcp://127.0.0.1:1"}),
        ("dask://127.1.255.19:1", {"address": "tcp://127.1.255.19:1"}),
        ("dask://[::1]:8786", {"address": "tcp://[::1]:8786"}),
        ("tls://head.example:8786", {"address": "tls://head.example:8786"}),
        ("dask-local:2", {"workers": 2}),
    ],
)
def test_place_is_known_by_its_name(dask: Callable[[bool], None], word: str, opening: Frame) -> None:
    assert target(word, insecure=False) == opening


@pytest.mark.parametrize("word", ["dask://", "dask://host", "dask-local:0", "dask-local:two", "tls://a b:1"])
def test_misspelt_place_is_refused(word: str) -> None:
    with pytest.raises(DaskPlaceError, match="is not a Dask place"):
        target(word, insecure=True)


@pytest.mark.parametrize(
    "host", ["head", "10.0.0.1", "127.example", "localhost.evil", "[fe80::1]", "0.0.0.0", "127.1", "127.0.0.256"]
)
def test_unencrypted_place_elsewhere_must_be_allowed(dask: Callable[[bool], None], host: str) -> None:
    with pytest.raises(DaskPlaceError) as refused:
        target(f"dask://{host}:8786", insecure=False)
    assert f"use tls://{host}:8786 with" in refused.value.hint
    assert "--insecure-place" in refused.value.hint
    assert target(f"dask://{host}:8786", insecure=True) == {"address": f"tcp://{host}:8786"}


def test_missing_dask_is_named_with_the_command(dask: Callable[[bool], None]) -> None:
    dask(False)
    with pytest.raises(DaskPlaceError, match="Dask is not installed") as refused:
        target("dask-local:2", insecure=False)
    assert refused.value.hint == install_extra("dask")


class ScriptedChild:
    """The client process: it answers `open` with some frames, and records what it is told."""

    last_line = ""

    def __init__(self, answers: list[Frame], on_frame: Callable[[Frame], None]) -> None:
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.channel = self
        self.tell = on_frame
        self.sent: list[Frame] = []
        self.descriptors: list[int] = []
        self._answers = answers

    def send(self, *messages: Frame, descriptors: list[int] = []) -> None:  # noqa: B006
        self.sent.extend(messages)
        self.descriptors.extend(descriptors)
        if messages[0]["op"] == "open":
            for answer in self._answers:
                asyncio.get_running_loop().call_soon(self.tell, answer)

    async def close(self, *, grace: float) -> None:
        if not self.ended.done():
            self.ended.set_result("ended with exit code 0")


class Cluster:
    """Hosts with a scripted child, and what became of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Frame) -> None:
        self.links: list[HostLink] = []
        self.notices: list[str] = []
        self.environment: dict[str, str] = {}

        def start(command: Command, lifeline: int, on_frame: Callable[[Frame], None]) -> Any:
            self.environment = dict(command.environment)
            self.child = ScriptedChild([*answers], on_frame)
            return self.child

        async def land(sock: socket.socket, program: HostProgram) -> str | None:
            return self.refusal

        self.refusal: str | None = None
        monkeypatch.setattr(hosts_module, "ChildProcess", start)
        monkeypatch.setattr(hosts_module, "land", land)
        self.hosts = DaskHosts({"address": "tcp://h:1"}, echo_program(), self.notices.append)

    def take(self, link: HostLink) -> OnFrame:
        self.links.append(link)
        return lambda frame, size: None

    async def open(self) -> None:
        await self.hosts.open(self.take)


def joined(worker: str) -> Frame:
    return {"op": "worker", "worker": worker, "threads": 4, "version": "2026.8.0"}


def ended(worker: str, why: str, *, died: bool = False) -> Frame:
    return {"op": "ended", "worker": worker, "why": why, "died": died}


SETTLED: Frame = {"op": "settled"}


async def test_each_worker_is_a_link_with_its_threads_as_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", "/scratch")
    cluster = Cluster(monkeypatch, joined("a:1"), joined("b:2"), SETTLED)
    await cluster.open()
    assert [(link.name, link.slots) for link in cluster.links] == [("a:1", 4), ("b:2", 4)]
    assert cluster.links[0].about == "Dask 2026.8.0"
    assert len(cluster.child.descriptors) == 2
    assert "OPENAI_API_KEY" not in cluster.environment
    assert cluster.environment["DASK_TEMPORARY_DIRECTORY"] == "/scratch"
    cluster.child.tell(joined("late:3"))
    await settle()
    assert cluster.links[-1].name == "late:3"
    await cluster.hosts.close()


async def test_lost_worker_and_lost_scheduler_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, joined("a:1"), joined("b:2"), SETTLED)
    await cluster.open()
    cluster.child.tell(ended("a:1", "the host was killed by SIGKILL", died=True))
    cluster.child.tell({"op": "failed", "why": "the connection to the Dask scheduler was lost"})
    close_all(cluster.child.descriptors)
    reasons = [await link.ended for link in cluster.links]
    assert [link.host_died for link in cluster.links] == [True, False]
    assert reasons == ["a:1: the host was killed by SIGKILL", "b:2: the connection to the Dask scheduler was lost"]
    await cluster.hosts.close()


async def test_worker_that_comes_back_gets_another_link(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, joined("a:1"), joined("b:2"), SETTLED)
    await cluster.open()
    cluster.child.tell(joined("a:1"))
    cluster.child.tell(ended("a:1", "Dask lost its worker"))
    cluster.child.tell(joined("a:1"))
    await settle()
    assert [link.name for link in cluster.links] == ["a:1", "b:2", "a:1"]
    cluster.child.tell(ended("a:1", "its worker left the cluster"))
    close_all(cluster.child.descriptors)
    assert await cluster.links[0].ended == "a:1: Dask lost its worker"
    assert await cluster.links[2].ended == "a:1: its worker left the cluster"
    await cluster.hosts.close()


async def test_unusable_worker_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = ended("a:1", "its worker's Python is 3.10")
    busy = {"op": "notice", "text": "c:3 is busy"}
    cluster = Cluster(monkeypatch, bad, busy, joined("b:2"), SETTLED)
    await cluster.open()
    assert cluster.links[0].ended.result() == "a:1: its worker's Python is 3.10"
    assert not cluster.links[1].ended.done()
    assert cluster.notices == ["c:3 is busy"]
    close_all(cluster.child.descriptors)
    await cluster.hosts.close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"op": "failed", "why": "no Dask scheduler answers"}, "no Dask scheduler answers"),
        (ended("a:1", "full disk"), "a:1: full disk"),
    ],
)
async def test_cluster_of_no_use_is_an_error(monkeypatch: pytest.MonkeyPatch, answer: Frame, why: str) -> None:
    with pytest.raises(NotStartedError, match=why):
        await Cluster(monkeypatch, answer, SETTLED).open()


async def test_process_that_does_not_become_the_host_is_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, joined("a:1"), SETTLED)
    cluster.refusal = "no answer in 60 s"
    with pytest.raises(NotStartedError, match="a:1: no answer in 60 s"):
        await cluster.open()
    assert [link.name for link in cluster.links] == ["a:1"]
    close_all(cluster.child.descriptors)


async def test_scheduler_without_workers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts_module, "_WORKER_WITHIN", 0.01)
    with pytest.raises(NotStartedError, match=r"no worker has joined the Dask scheduler in 0\.01 s"):
        await Cluster(monkeypatch, SETTLED).open()


def close_all(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
