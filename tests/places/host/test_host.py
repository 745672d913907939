"""The host program: it runs agents for one client, and leaves nothing behind."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.places.host.running import RunningHost, unpack
from workbench.agents.worker import processes
from workbench.places.shipping import host_sources

HELLO = {"op": "hello", "protocol": 1, "client": "c", "lease": 60}
AGENT = """
import asyncio, os, subprocess

print("imported")

async def root_agent(message, session):
    if message == "wait":
        print(os.getpid(), subprocess.Popen(["sleep", "1000"], start_new_session=True).pid, flush=True)
        await asyncio.sleep(1000)
    if message == "talk":
        for _ in range(150):
            print("x" * 99_999)
    yield message
"""
needs_proc = pytest.mark.skipif(bool(processes.cannot_fork()), reason="descendants are found on Linux only")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("host"))


@pytest.fixture
async def host(unpacked: Path) -> AsyncIterator[RunningHost]:
    running = RunningHost(unpacked)
    yield running
    running.channel.close()
    assert await running.ended() == 0


def agent_message(folder: Path, **drivers: str) -> dict[str, Any]:
    (folder / "desk").mkdir()
    (folder / "desk/agent.py").write_text(AGENT)
    desk = str(folder / "desk")
    spec = {"name": "desk", "folder": desk, "root": str(folder), "kind": "python", "env": {}, "cwd": str(folder)}
    start = {name: spec[name] for name in ("name", "folder", "root", "kind")}
    start |= {"interpreter": sys.executable, "spec": spec}
    return {"op": "agent", "agent": 7, "start": start, "drivers": drivers, "cases": 2}


def case_message(number: int, text: str, **calls: Any) -> dict[str, Any]:
    case = {"eval_id": "e", "session_input": None, "env": {}, "answers": None, "calls": calls or None}
    start = {"op": "case", "id": number, "attempt": 1, "share": False, "here": False, "case": case}
    turn = {"op": "turn", "id": number, "content": {"role": "user", "parts": [{"text": text}]}}
    return {"op": "to", "agent": 7, "frames": [start, turn, {"op": "end", "id": number}]}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children_of(pid: int) -> list[int]:
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def gone(*pids: int) -> bool:
    for _ in range(500):
        if not any(map(is_running, pids)):
            return True
        await asyncio.sleep(0.02)
    return False


async def waiting_case(host: RunningHost, folder: Path) -> list[int]:
    """Start a case that waits. Return its process and that of its child, which has its own session."""
    host.send(HELLO, agent_message(folder))
    await host.until(op="agent_started")
    host.send(case_message(1, "wait"))
    printed = await host.until_from(event="Printed")
    return [*map(int, printed["text"].split())]


def test_host_needs_no_other_package() -> None:
    names = {name for name in host_sources() if "/worker/" not in name}
    assert "workbench/places/host/serving.py" in names
    assert "workbench/agents/worker/__main__.py" in host_sources()
    assert not [name for name in names if "engine" in name or "remote" in name or "shipping" in name]


@pytest.mark.parametrize("stdio", [False, True])
async def test_case_runs_as_on_this_machine(unpacked: Path, tmp_path: Path, stdio: bool) -> None:
    host = RunningHost(unpacked, stdio=stdio)
    host.send(HELLO, agent_message(tmp_path))
    welcome = await host.until(op="welcome")
    assert (welcome["protocol"], welcome["pid"]) == (1, host.process.pid)
    assert await host.until(op="agent_started") == {"op": "agent_started", "agent": 7, "serves_one_case": False}
    assert (await host.until_from(op="imported"))["framework"] == "python"
    host.send(case_message(1, "hello"))
    finished = await host.until_from(event="TurnFinished")
    assert finished["actual"]["final_response"]["parts"] == [{"text": "hello"}]
    assert (await host.until_from(op="exited"))["how"] == "ended with exit code 0"
    host.send({"op": "close", "agent": 7})
    assert (await host.until(op="agent_ended"))["agent"] == 7
    host.channel.close()
    assert await host.ended() == 0


@needs_proc
async def test_nothing_is_left_when_the_link_closes(unpacked: Path, tmp_path: Path) -> None:
    host = RunningHost(unpacked)
    pids = await waiting_case(host, tmp_path)
    host.channel.close()
    assert await host.ended() == 0
    assert await gone(*pids)


@needs_proc
async def test_nothing_is_left_when_the_host_is_killed(unpacked: Path, tmp_path: Path) -> None:
    host = RunningHost(unpacked)
    pids = await waiting_case(host, tmp_path)
    host.process.kill()
    assert await host.ended() == -signal.SIGKILL
    assert await gone(*pids)
    host.channel.close()


@needs_proc
async def test_nothing_is_left_when_the_lease_is_over(unpacked: Path, tmp_path: Path) -> None:
    host = RunningHost(unpacked)
    pids = await waiting_case(host, tmp_path)
    host.send({**HELLO, "lease": 0.5})
    assert (await host.until(op="leaving"))["why"] == "nothing came from the client for 0.5 s"
    assert await host.ended() == 0
    assert await gone(*pids)
    host.channel.close()


@needs_proc
async def test_nothing_is_left_when_the_host_is_stopped_for_good(unpacked: Path, tmp_path: Path) -> None:
    host = RunningHost(unpacked)
    pids = await waiting_case(host, tmp_path)
    guards = [pid for pid in children_of(host.process.pid) if b"zygote" not in command_line(pid)]
    assert len(guards) == 1
    host.send({**HELLO, "lease": 0.2})
    await host.until(op="welcome")
    host.process.send_signal(signal.SIGSTOP)
    assert await host.ended() == -signal.SIGKILL
    assert await gone(*pids, *guards)
    host.channel.close()


@needs_proc
async def test_guard_ends_with_its_host(unpacked: Path) -> None:
    host = RunningHost(unpacked)
    host.send(HELLO)
    await host.until(op="welcome")
    guards = children_of(host.process.pid)
    host.channel.close()
    assert await host.ended() == 0
    assert [is_running(pid) for pid in guards] == [False]


async def test_agent_that_cannot_start_is_reported(host: RunningHost, tmp_path: Path) -> None:
    message = agent_message(tmp_path)
    message["start"]["interpreter"] = "/nowhere/python"
    host.send(HELLO, message)
    failed = await host.until(op="agent_failed")
    assert "/nowhere/python cannot be started" in failed["message"]
    assert failed["died"] is False


async def test_death_of_the_agents_process_is_in_the_exits_of_its_cases(host: RunningHost, tmp_path: Path) -> None:
    await waiting_case(host, tmp_path)
    host.send({"op": "kill", "agent": 7})
    exited = await host.until_from(op="exited")
    assert (exited["how"], exited["parent"]) == (None, "was killed by SIGKILL")


async def test_slow_client_stops_the_reading_of_cases(host: RunningHost, tmp_path: Path) -> None:
    host.send(HELLO, agent_message(tmp_path))
    await host.until(op="agent_started")
    host.send(case_message(1, "talk"))
    beat = await host.until(op="beat")
    while not beat["held"]:
        beat = await host.until(op="beat")
    came = [frame["n"] for frame in host.came if frame["op"] == "from"]
    assert came == []
    host.send({"op": "ack", "n": 10_000})
    while (frame := await host.until(op="from"))["frame"].get("event") != "TurnFinished":
        host.send({"op": "ack", "n": frame["n"]})
    assert frame["held"] >= beat["held"]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"op": "agent"}, "agent before hello"),
        ({**HELLO, "protocol": 2}, "protocol 2, this host has 1"),
        ({}, "KeyError"),
    ],
)
async def test_invalid_message_ends_the_host(host: RunningHost, message: dict[str, Any], why: str) -> None:
    host.send(message)
    assert why in (await host.until(op="leaving"))["why"]


async def test_told_to_end_it_says_so(host: RunningHost) -> None:
    host.send(HELLO)
    await host.until(op="welcome")
    os.kill(host.process.pid, signal.SIGTERM)
    assert (await host.until(op="leaving"))["why"] == "it was told to end by SIGTERM"
