"""A host beside a worker of a real cluster."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest

from workbench.agents.channel import Frame
from workbench.places.dask.hosts import DaskHosts, target
from workbench.places.place import OnFrame
from workbench.places.remote.link import HostLink
from workbench.places.remote.program import HostProgram
from workbench.places.shipping import host_sources


@pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask")
async def test_host_beside_a_worker_answers_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    links: list[HostLink] = []
    frames: asyncio.Queue[Frame] = asyncio.Queue()

    def take(link: HostLink) -> OnFrame:
        links.append(link)
        return lambda frame, size: frames.put_nowait(frame)

    hosts = DaskHosts(target("dask-local:1", insecure=False), HostProgram.of(host_sources()))
    await hosts.open(take)
    (link,) = links
    link.send({"op": "hello", "protocol": 1, "client": "test", "lease": 60})
    assert (await frames.get())["op"] == "welcome"
    await hosts.close()
    assert link.ended.result() == f"{link.name}: was closed"
