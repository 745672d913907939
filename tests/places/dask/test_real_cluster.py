"""A host beside a worker of a real cluster."""

import asyncio
import os
import subprocess
import sys
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


CLUSTER = """
import asyncio, io, logging, os, pathlib, sys, warnings
import distributed
from workbench.places.dask.hosts import DaskHosts, target
from workbench.places.remote.program import HostProgram
from workbench.places.shipping import host_sources

MARK = pathlib.Path(os.environ["XDG_CACHE_HOME"], "mark")

class Evil:
    def __reduce__(self):
        return os.mkdir, (str(MARK),)

async def answer(**message):
    return {"status": "OK", "result": distributed.protocol.to_serialize(Evil())}

async def reach(cluster):
    hosts = DaskHosts(target(cluster.scheduler_address.replace("tcp:", "dask:"), insecure=False), PROGRAM)
    welcome = asyncio.Event()
    links = []
    try:
        await hosts.open(lambda link: links.append(link) or (lambda frame, size: welcome.set()))
        links[0].send({"op": "hello", "protocol": 1, "client": "the key", "lease": 60})
        await welcome.wait()
        return "reached"
    except Exception as error:
        return str(error)
    finally:
        await hosts.close()

async def main():
    async with distributed.LocalCluster(
        n_workers=1, processes=False, asynchronous=True, dashboard_address=None, host="127.0.0.1", protocol="tcp"
    ) as cluster:
        debug = logging.getLogger("distributed.core")
        debug.setLevel(logging.DEBUG)
        debug.addHandler(logging.StreamHandler(log := io.StringIO()))
        print(await reach(cluster), "'function': 'write'" in log.getvalue(), "the key" in log.getvalue())
        debug.setLevel(logging.ERROR)
        cluster.workers[0].handlers["actor_execute"] = answer
        print(await reach(cluster), MARK.exists())

warnings.simplefilter("ignore")
PROGRAM = HostProgram.of(host_sources())
asyncio.run(main())
"""


@pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask")
def test_reply_of_a_worker_cannot_run_code_and_its_log_has_no_keys(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CLUSTER], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("reached True False\n")
    assert done.stdout.endswith(": its worker sent something that is not an answer False\n")
