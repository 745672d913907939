"""The parent's side of a child that answers calls, tested with scripted children."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from workbench.agents.answering_child import AnsweringChild, CallRefusedError, CallTimeoutError, ChildLostError
from workbench.agents.child_process import ChildProcess, Command

SOURCE = """
import argparse, asyncio, os
from workbench.worker.serving import CallFailedError, serve

async def answer(payload):
    match payload["do"]:
        case "echo":
            return payload
        case "refuse":
            raise CallFailedError({"kind": "no", "message": "I would rather not"})
        case "bug":
            raise ZeroDivisionError("in the child")
        case "exit":
            os._exit(9)
        case "wait":
            with open(payload["pipe"], "w") as pipe:
                pipe.write(str(os.getpid()))
            await asyncio.Event().wait()
        case "pid":
            return os.getpid()

parser = argparse.ArgumentParser()
parser.add_argument("--control", type=int)
parser.add_argument("--lifeline", type=int)
given = parser.parse_args()
BEFORE
serve(given.control, given.lifeline, answer)
"""
Make = Callable[..., AnsweringChild]


@pytest_asyncio.fixture
async def make(tmp_path: Path, repository: Path) -> AsyncIterator[Make]:
    made: list[AnsweringChild] = []

    def child(before: str = "", **given: float) -> AnsweringChild:
        script = tmp_path / "child.py"
        script.write_text(SOURCE.replace("BEFORE", before), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(repository)}
        made.append(AnsweringChild(Command([sys.executable, str(script)], environment, tmp_path), **given))
        return made[-1]

    yield child
    for each in made:
        await each.close()


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Return the file that a waiting call writes to when it begins."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


async def begun(pipe: Path) -> int:
    """Wait until a call waits. Return the child's process ID."""
    return int(await asyncio.wait_for(asyncio.to_thread(pipe.read_text), 60))


async def test_child_starts_with_the_first_call(make: Make) -> None:
    child = make()
    assert child.pid is None
    assert await child.call({"do": "echo", "text": "a \ud800 b"}) == {"do": "echo", "text": "a \ud800 b"}
    assert await child.call({"do": "pid"}) == child.pid


async def test_failure_report_of_the_child_is_raised(make: Make) -> None:
    child = make()
    with pytest.raises(CallRefusedError, match="I would rather not") as caught:
        await child.call({"do": "refuse"})
    assert caught.value.error["kind"] == "no"
    with pytest.raises(CallRefusedError, match="ZeroDivisionError: in the child"):
        await child.call({"do": "bug"})


async def test_new_child_starts_after_the_first_ended(make: Make) -> None:
    child = make()
    first = await child.call({"do": "pid"})
    with pytest.raises(ChildLostError, match=r"^ended with exit code 9$") as caught:
        await child.call({"do": "exit"})
    assert caught.value.began
    assert await child.call({"do": "pid"}) != first


async def test_stopped_child_is_killed_while_a_call_waits(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.agents.child_process._CHECK_EVERY", 0.02)
    starting = make("os.kill(os.getpid(), 19)")
    with pytest.raises(ChildLostError, match=r"^was stopped by a signal$"):
        await starting.start()
    child = make()
    first = await child.call({"do": "pid"})
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(ChildLostError, match=r"^was stopped by a signal$"):
        await child.call({"do": "echo"})
    assert await child.call({"do": "pid"}) != first


async def test_child_that_never_starts_is_an_error(make: Make) -> None:
    child = make("raise SystemExit('no good')")
    for attempt in (child.start, lambda: child.call({"do": "pid"})):
        with pytest.raises(ChildLostError, match="ended with exit code 1: no good") as caught:
            await attempt()
        assert not caught.value.began


async def test_child_that_starts_too_slowly_is_an_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that does not listen yet is killed without a grace period."""
    monkeypatch.setattr(ChildProcess.close, "__kwdefaults__", {"grace": 3600.0})
    child = make("import time; time.sleep(1e6)", ready_within=0.3)
    with pytest.raises(ChildLostError, match=r"was not ready after 0\.3 s") as caught:
        await child.call({"do": "pid"})
    assert not caught.value.began
    async with asyncio.timeout(60):
        await child.close()


async def test_call_times_out(make: Make, pipe: Path) -> None:
    child = make()
    reading = asyncio.create_task(begun(pipe))
    with pytest.raises(CallTimeoutError):
        await child.call({"do": "wait", "pipe": str(pipe)}, within=1)
    # The call could be stopped, so the same child is used again.
    assert await child.call({"do": "pid"}) == await reading


async def test_pending_call_stays_with_the_old_child_after_renewal(make: Make, pipe: Path) -> None:
    child = make()
    waiting = asyncio.create_task(child.call({"do": "wait", "pipe": str(pipe)}))
    old = await begun(pipe)
    child.renew()
    assert await child.call({"do": "pid"}) != old
    assert not waiting.done()
    os.kill(old, 9)
    with pytest.raises(ChildLostError, match="was killed by SIGKILL"):
        await waiting


async def test_close_ends_waiting_calls(make: Make, pipe: Path) -> None:
    child = make()
    waiting = asyncio.create_task(child.call({"do": "wait", "pipe": str(pipe)}))
    number = await begun(pipe)
    await child.close()
    with pytest.raises(ChildLostError):
        await waiting
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    with pytest.raises(ChildLostError, match="was closed"):
        await child.call({"do": "pid"})
