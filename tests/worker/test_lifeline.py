"""No process outlives the workbench or its parent, whichever is killed and however."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.client import Agent, Worker, is_alive, wait_until
from tests.worker.conftest import needs_fork, write

pytestmark = needs_fork

BUSY = """
import os, subprocess, sys
AT_IMPORT = subprocess.Popen(["sleep", "1000"])

def root_agent(message, session):
    same = subprocess.Popen(["sleep", "1000"])
    other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    print(os.getppid(), os.getpid(), AT_IMPORT.pid, same.pid, other.pid)
    while True: pass
"""


@pytest.fixture
def own_worker() -> Iterator[Worker]:
    """A zygote that the test may kill."""
    worker = Worker(warm=False)
    yield worker
    worker.process.kill()
    worker.close()


def start_busy(worker: Worker, folder: Path) -> tuple[Agent, list[int]]:
    """Start a case in an endless loop with children. Return the processes of the agent, the case and the children."""
    agent = worker.agent(write(folder / "desk", {"agent.py": BUSY}))
    case = agent.start()
    case.say(iter(["hi"]))
    case.wait(until=lambda outcome: outcome.stdout.endswith(b"\n"))
    pids = [int(pid) for pid in case.outcome.stdout.split()]
    assert all(map(is_alive, pids))
    return agent, pids


def all_gone(pids: list[int]) -> bool:
    return not any(map(is_alive, pids))


def test_everything_ends_with_the_workbench(own_worker: Worker, tmp_path: Path) -> None:
    _, pids = start_busy(own_worker, tmp_path)
    own_worker.cut_lifeline()
    wait_until(lambda: all_gone(pids))
    assert own_worker.process.wait(60) == 0


def test_everything_ends_with_the_control_socket(own_worker: Worker, tmp_path: Path) -> None:
    _, pids = start_busy(own_worker, tmp_path)
    own_worker.channel.close()
    wait_until(lambda: all_gone(pids))
    assert own_worker.process.wait(60) == 0


def test_everything_ends_with_a_killed_zygote(own_worker: Worker, tmp_path: Path) -> None:
    _, pids = start_busy(own_worker, tmp_path)
    agent, case, at_import, same, other = pids
    own_worker.process.kill()
    wait_until(lambda: all_gone([agent, case]))
    # The holder of the lifeline kills what they started, because it knows their groups.
    for group in (agent, case, other):
        os.killpg(group, signal.SIGKILL)
    wait_until(lambda: all_gone([at_import, same, other]))


def test_cases_end_with_a_killed_agent_process(own_worker: Worker, tmp_path: Path) -> None:
    agent, pids = start_busy(own_worker, tmp_path)
    os.kill(pids[0], signal.SIGKILL)
    assert own_worker.report("exited", agent.number)["status"] == signal.SIGKILL
    wait_until(lambda: all_gone(pids))


def test_agent_process_can_be_killed_by_command(own_worker: Worker, tmp_path: Path) -> None:
    agent, pids = start_busy(own_worker, tmp_path)
    assert own_worker.report("started", agent.number)["pid"] == pids[0]
    own_worker.channel.send({"op": "kill", "id": agent.number, "signal": 9})
    assert own_worker.report("exited", agent.number)["status"] == signal.SIGKILL
    wait_until(lambda: all_gone(pids))


def test_agent_process_ends_with_its_control_socket(own_worker: Worker, tmp_path: Path) -> None:
    agent, pids = start_busy(own_worker, tmp_path)
    agent.channel.close()
    assert own_worker.report("exited", agent.number)["status"] == 0
    wait_until(lambda: all_gone(pids))


def test_agent_process_ends_on_quit(own_worker: Worker, tmp_path: Path) -> None:
    agent, pids = start_busy(own_worker, tmp_path)
    agent.channel.send({"op": "quit"})
    assert own_worker.report("exited", agent.number)["status"] == 0
    wait_until(lambda: all_gone(pids))


def test_import_that_hangs_can_be_killed(own_worker: Worker, tmp_path: Path) -> None:
    folder = write(tmp_path / "desk", {"agent.py": "while True: pass"})
    agent = own_worker.agent(folder, awaited=False)
    own_worker.report("started", agent.number)
    own_worker.channel.send({"op": "kill", "id": agent.number, "signal": 9})
    assert own_worker.report("exited", agent.number)["status"] == signal.SIGKILL


def test_everything_ends_when_the_zygote_quits(own_worker: Worker, tmp_path: Path) -> None:
    _, pids = start_busy(own_worker, tmp_path)
    own_worker.channel.send({"op": "quit"})
    wait_until(lambda: all_gone(pids))
    assert own_worker.process.wait(60) == 0
