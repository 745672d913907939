"""The first limit of one workbench: messages of a real host, replayed as those of 10, 100 and 1,000 machines.

A host runs cases of a real `LlmAgent` with a scripted model, and what it sends for one case is recorded. Another
process replays that for as many machines as wanted, each with a connection of its own. The workbench cannot tell the
difference: it decodes, judges and stores each case. Only the network's limits are not measured.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks import figures
from benchmarks.run_adk import write_project
from workbench.agents.channel import Channel, Frame
from workbench.places.place import OnFrame, Place
from workbench.places.remote.here import HereHosts
from workbench.places.remote.link import End, HostLink
from workbench.places.remote.remote_place import RemotePlace
from workbench.places.remote.stream_link import StreamLink, connect

MACHINES = (10, 100, 1000)
WAITED = 20.0
"""Seconds that a replay takes if the workbench keeps up."""
_RECORDED = 20
_LOOKS = 0.05
"""Seconds between two looks at how late the event loop is."""


class Recording(NamedTuple):
    """What a host sends: its welcome, what follows an agent's start, and what follows a case (`id` is left out)."""

    welcome: Frame
    started: Frame
    imported: Frame
    case: list[Frame]


class Outcome(NamedTuple):
    """A replayed run: seconds, CPU seconds of the workbench, the worst delay of its loop, and bytes of its journal."""

    wall: float
    cpu: float
    late: float
    journal: int


def measure(options: argparse.Namespace) -> None:
    """Record, find the highest rate, and check the model at the rates of more and more machines."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        recording = asyncio.run(_record(write_project(root, _RECORDED)))
        texts = [json.dumps(frame) for frame in recording.case]
        print(f"a case: {len(texts)} messages, {sum(map(len, texts)) / 1024:.1f} KiB")
        (file := root / "recording.json").write_text(json.dumps(recording._asdict()))
        cases = options.cases or 2000
        most = _replay(root, file, write_project(root, cases), 10, 50, 0.0)
        highest, each = cases / most.wall, 1000 * most.cpu / cases
        print(
            f"at once: {cases} cases in {most.wall:.1f} s, {each:.2f} ms CPU and {most.journal / cases:.0f} bytes each"
        )
        _figure("highest rate of cases into one workbench", highest, "cases/s")
        _figure("messages at that rate", highest * len(texts), "messages/s")
        _figure("journal at that rate", highest * most.journal / cases / 1024, "KiB/s")
        _figure("CPU of the workbench for a case", each, "ms")
        limit = highest * options.seconds / options.slots
        title = f"machines of {options.slots} slots with cases of {options.seconds:g} s: model's first limit"
        _figure(title, limit, "machines")
        for count in options.machines or MACHINES:
            rate = count * options.slots / options.seconds
            wanted = max(count * options.slots, round(rate * WAITED))
            model = max(wanted / rate, wanted / highest)
            took = _replay(root, file, write_project(root, wanted), count, options.slots, options.seconds)
            print(
                f"{count:5} machines, {rate:6.1f} cases/s asked, {wanted / took.wall:6.1f} done: {wanted} cases in "
                f"{took.wall:.1f} s, model {model:.1f} s; {100 * took.cpu / took.wall:.0f} % of a processor, "
                f"loop at most {1000 * took.late:.0f} ms late",
                flush=True,
            )
            _figure(f"{count} machines: wall to the model", took.wall / model, "x")


def _figure(name: str, value: float, unit: str) -> None:
    figures.record("machines", name, value, unit)
    print(f"    {name:66} {value:10.2f} {unit}", flush=True)


# Recording:


class _RecordingHosts(HereHosts):
    """One host on this machine, whose messages are kept."""

    def __init__(self) -> None:
        super().__init__(["recorded"], {"PYTHONPATH": os.environ["PYTHONPATH"]})
        self.frames: list[Frame] = []

    async def open(self, on_link: Callable[[HostLink], OnFrame]) -> None:
        def recorded(link: HostLink) -> OnFrame:
            take = on_link(link)

            def keep(frame: Frame, size: int) -> None:
                self.frames.append(frame)
                take(frame, size)

            return keep

        await super().open(recorded)


async def _record(evalset: Path) -> Recording:
    hosts = _RecordingHosts()
    await _run(evalset, RemotePlace(lambda: hosts), 1)
    by_case: dict[int, list[Frame]] = {}
    for frame in hosts.frames:
        if frame["op"] == "from" and "id" in frame["frame"]:
            by_case.setdefault(frame["frame"]["id"], []).append(frame)
    case = sorted(by_case.values(), key=lambda frames: len(json.dumps(frames)))[len(by_case) // 2]

    def find(op: str) -> Frame:
        return next(frame for frame in hosts.frames if op in (frame["op"], frame.get("frame", {}).get("op")))

    return Recording(find("welcome"), find("agent_started"), find("imported"), case)


async def _run(evalset: Path, place: Place, concurrency: int) -> Outcome:
    """Run an evalset without a screen. All cases must pass."""
    from workbench.engine.plan.run_options import RunOptions
    from workbench.engine.plan.run_plan import make_plan
    from workbench.engine.plan.selection import open_selection
    from workbench.engine.plan.target_parser import Selection, Target
    from workbench.engine.processes.children import Children
    from workbench.engine.run.run import Run
    from workbench.events import CaseFinished, Event
    from workbench.history.journal import Journal

    selection = Selection((Target("set", evalset),))
    workspace = open_selection(selection, folder=evalset.parent)
    wrong: list[Event] = []
    late: list[float] = [0.0]

    def note(event: Event) -> None:
        if isinstance(event, CaseFinished) and event.status != "passed":
            wrong.append(event)

    async def look() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_LOOKS)
            late.append(time.perf_counter() - began - _LOOKS)

    plan = make_plan(workspace, selection, RunOptions(isolation="run", concurrency=concurrency))
    runs = evalset.parents[1] / ".workbench"
    async with Children() as children:
        looking = asyncio.create_task(look())
        cpu, began = time.process_time(), time.perf_counter()
        try:
            await Run(plan, note, children, Journal.open(runs, plan.run_id), place=place).execute()
            wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        finally:
            looking.cancel()
            await place.close()
    if wrong:
        raise SystemExit(f"{len(wrong)} cases did not pass: {str(wrong[0])[:1000]}")
    stored = sum(file.stat().st_size for file in runs.rglob(f"*{plan.run_id}*/*") if file.is_file())
    return Outcome(wall, cpu, max(late), stored)


# Replaying:


class _ReplayHosts:
    """Connections to the process that replays."""

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = path, count
        self._links: list[StreamLink] = []

    async def open(self, on_link: Callable[[HostLink], OnFrame]) -> None:
        async def ended(reason: str) -> End:
            return End(reason or "the replay has ended")

        for number in range(self._count):
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(str(self._path))
            self._links.append(connect(StreamLink(f"machine{number}", sock, ended), on_link))

    async def close(self) -> None:
        await asyncio.gather(*(link.close() for link in self._links))


def _replay(root: Path, recording: Path, evalset: Path, count: int, slots: int, seconds: float) -> Outcome:
    """Run an evalset on replayed machines whose cases take some seconds."""
    path = root / f"replay{count}-{seconds:g}"
    command = [sys.executable, "-m", "benchmarks.machine_rates", str(path), str(recording), str(seconds)]
    child = subprocess.Popen(command)
    try:
        while not path.exists():
            time.sleep(0.05)
        place = RemotePlace(lambda: _ReplayHosts(path, count), slots=slots)
        return asyncio.run(_run(evalset, place, count * slots))
    finally:
        child.terminate()
        child.wait()


class _Replayed:
    """The other end of one connection: answers as a host does, with recorded messages."""

    def __init__(self, sock: socket.socket, recording: Recording, seconds: float) -> None:
        self._recording, self._seconds = recording, seconds
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._channel = Channel(sock, self._take, self._end)
        self._beating = self._loop.create_task(self._beat())

    def _take(self, frame: Frame) -> None:
        match frame["op"]:
            case "hello":
                self._channel.send(self._recording.welcome)
            case "agent":
                self._channel.send({**self._recording.started, "agent": frame["agent"]})
                self._from(frame["agent"], self._recording.imported)
            case "to":
                for inner in frame["frames"]:
                    if inner["op"] == "case":
                        self._say(frame["agent"], inner["id"], 0)
            case "close" | "kill":
                self._channel.send({"op": "agent_ended", "agent": frame["agent"], "how": "was closed"})

    def _say(self, agent: int, case: int, index: int) -> None:
        """Send a message of a case, and the next one later. The first comes at once, the last after the seconds."""
        frame = self._recording.case[index]
        self._from(agent, {**frame, "frame": {**frame["frame"], "id": case}})
        if index + 1 < len(self._recording.case):
            pause = self._seconds / (len(self._recording.case) - 1)
            self._loop.call_later(pause, self._say, agent, case, index + 1)

    def _from(self, agent: int, frame: Frame) -> None:
        self._number += 1
        self._channel.send({**frame, "agent": agent, "n": self._number, "held": 0.0})

    def _end(self, reason: str) -> None:
        self._beating.cancel()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._channel.send({"op": "beat", "t": self._loop.time(), "held": 0.0})


async def _serve(path: str, recording: Recording, seconds: float) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(1024)
    listening.setblocking(False)
    machines = []
    while True:
        sock, _ = await asyncio.get_running_loop().sock_accept(listening)
        machines.append(_Replayed(sock, recording, seconds))


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], Recording(**json.loads(Path(sys.argv[2]).read_text())), float(sys.argv[3])))
