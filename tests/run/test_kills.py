"""kill -9 of every process: scored results stay, other cases continue, and no process is left."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.run.project import Outcome, Project, execute
from tests.stored import only_run
from workbench.agents.child_process import kill_marked, kill_stale, new_mark
from workbench.events.events import Event, MetricScored, RunFinished, RunStarted, TurnFinished, TurnStarted
from workbench.files.run_options import RunOptions
from workbench.run.processes.children import Children
from workbench.run.run import Run
from workbench.store.history.stored_events import read_run
from workbench.store.store import Store
from workbench.worker.processes import MARK

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes by pidfd: Linux only"),
]

# Answers with its own process, its parent and its grandparent; or kills one of them.
AGENT = """
import asyncio, os, signal

def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])

async def root_agent(message, session):
    line = [os.getpid(), os.getppid(), parent_of(os.getppid())]
    if message.startswith("kill parent"):
        os.kill(line[1], signal.SIGKILL)
    if message.startswith("kill zygote"):
        os.kill(line[2], signal.SIGKILL)
    if message.startswith(("wait", "kill")):
        await asyncio.sleep(1000)
    return " ".join(map(str, line))
"""
ONE_BY_ONE = RunOptions(concurrency=1)


def gone(pids: Iterable[int], seconds: float = 10.0) -> bool:
    """Return whether all these processes end in time."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([descriptor], [], [], seconds)[0]:
                return False
        finally:
            os.close(descriptor)
    return True


def line_of(outcome: Outcome, eval_id: str) -> list[int]:
    """Return the IDs of the case's process, its parent and its grandparent."""
    return [int(number) for number in outcome.answer(eval_id).split()]


@pytest.mark.parametrize("victim", ["parent", "zygote"])
async def test_next_case_after_a_kill_gets_a_new_process(project: Project, victim: str) -> None:
    project.agent(AGENT)
    project.cases("first", f"kill {victim}", "second", "third", response_match_score=0.0)
    async with Children() as children:
        outcome = await execute(project.plan(), children, ONE_BY_ONE)
        kind, message = outcome.error(f"kill {victim}")
        assert kind == "crashed"
        assert "SIGKILL" in message
        before, after, last = (line_of(outcome, name) for name in ("first", "second", "third"))
        assert before[1] != after[1]
        assert (before[2] == after[2]) is (victim == "parent")
        assert after[1:] == last[1:]
        assert gone(before[:2])
    assert gone(before + after + last)


@pytest.mark.parametrize("victim", ["parent", "zygote"])
async def test_cases_in_a_killed_process_end_with_an_error(project: Project, victim: str) -> None:
    project.agent(AGENT)
    project.cases("wait", f"kill {victim}", "after")
    async with Children() as children:
        outcome = await execute(project.plan(), children, RunOptions(concurrency=2))
    assert outcome.error("wait")[0] == "crashed"
    assert outcome.states["after"] in ("failed", "passed")


# The second case answers when the scorer was killed.
WAITING = """
import asyncio, os

async def root_agent(message, session):
    while message == "second" and not os.path.exists(os.path.join(os.path.dirname(__file__), "killed")):
        await asyncio.sleep(0.01)
    return message
"""


async def test_killed_scorer_is_started_again(project: Project) -> None:
    project.agent(WAITING)
    project.cases("first", "second", response_match_score=0.0)
    async with Children() as children:
        outcome = Outcome()
        killed: list[int] = []

        def kill(event: Event) -> None:
            if isinstance(event, TurnFinished) and not killed and children.scorer.pid is not None:
                killed.append(children.scorer.pid)
                os.kill(killed[0], signal.SIGKILL)
                project.write("desk/killed", "")

        outcome.watchers.append(kill)
        await execute(project.plan(), children, ONE_BY_ONE, outcome=outcome)
        assert children.scorer.pid not in (None, *killed)
    assert outcome.states == {"first": "passed", "second": "passed"}


async def test_cancelling_the_task_ends_the_children(project: Project) -> None:
    project.agent(AGENT)
    project.cases("wait")
    outcome = Outcome()
    turn_started = asyncio.Event()
    outcome.watchers.append(lambda event: turn_started.set() if isinstance(event, TurnStarted) else None)
    async with Children() as children:
        task = asyncio.create_task(Run(project.plan(), outcome.take, children).execute())
        await turn_started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert outcome.error("wait")[0] == "cancelled"
        assert isinstance(outcome.events[-1], RunFinished)
        assert outcome.events[-1].interrupted


def below(pid: int) -> list[int]:
    """Return all descendants of `pid`, without those that end meanwhile."""
    children: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
            children += map(int, tasks.read_text().split())
    return children + [other for child in children for other in below(child)]


async def test_killed_workbench_leaves_no_processes(project: Project, repository: Path) -> None:
    """All printed results are on disk, the journal can be read, and no child outlives the workbench."""
    project.agent(AGENT)
    project.cases("first", "wait", "second", response_match_score=0.0)
    command = [sys.executable, "-m", "workbench", "run", str(project.root), "--plain", "--concurrency", "2"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=repository, text=True)
    assert program.stdout is not None
    shown = [program.stdout.readline() for _ in range(2)]
    assert all(line.startswith("PASS desk/all/") for line in shown)
    children = below(program.pid)
    program.kill()
    program.wait()
    program.stdout.close()
    assert len(children) >= 3  # The scorer, the zygote, the agent's process.
    assert gone(children)
    path = only_run(project.root / ".workbench")
    store = Store()
    events = list(read_run(path))
    for event in events:
        store.apply(event)
    assert isinstance(events[0], RunStarted)
    assert not any(isinstance(event, RunFinished) for event in events)
    states = {ref.eval_id: record.state for ref, record in store.records.items()}
    assert states == {"first": "passed", "second": "passed", "wait": "running"}
    assert {event.case.eval_id for event in events if isinstance(event, MetricScored)} == {"first", "second"}
    outcome = Outcome(events, store)
    assert gone([*line_of(outcome, "first"), *line_of(outcome, "second")])


# Starts a program in its own group and one in its own session, and yields both.
STARTER = """
import subprocess, time, os, signal

def root_agent(message, session):
    if message == "ends":
        return
    started = [subprocess.Popen(["sleep", "1000"], start_new_session=own) for own in (False, True)]
    zygote = os.getppid()  # The only case of a run has the agent's process for its own.
    yield {"tool_call": {"name": "start", "args": {"pids": [child.pid for child in started]}}}
    if message.startswith("kill zygote"):
        os.kill(zygote, signal.SIGKILL)
    time.sleep(1000)
"""


def started_by(outcome: Outcome, eval_id: str) -> list[int]:
    """Return the programs that the case started: one in its group, and one in its own session."""
    (event,) = outcome.record(eval_id).turns[0].acted
    (part,) = event["content"]["parts"]
    return [int(pid) for pid in part["function_call"]["args"]["pids"]]


@pytest.mark.parametrize("beside", [0, 1])
async def test_child_processes_of_a_case_end_with_a_killed_zygote(project: Project, beside: int) -> None:
    """With one case, its parent is the zygote. With two, it is the agent's process."""
    project.agent(STARTER)
    project.cases("kill zygote", *["ends"] * beside)
    async with Children() as children:
        outcome = await execute(project.plan(), children, ONE_BY_ONE)
    assert outcome.error("kill zygote")[0] == "crashed"
    assert gone(started_by(outcome, "kill zygote"))


async def test_next_run_kills_processes_of_a_killed_workbench(project: Project, repository: Path) -> None:
    project.agent(STARTER)
    project.cases("wait 1", "wait 2")
    command = [sys.executable, "-m", "workbench", "run", str(project.root), "--plain"]
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=repository)
    while len(sleeps := [pid for pid in below(program.pid) if b"sleep\x001000" in _command_line(pid)]) < 4:
        await asyncio.sleep(0.01)
    for pid in sorted({program.pid, *below(program.pid)} - {*sleeps}):
        os.kill(pid, signal.SIGSTOP)
    for pid in sorted({program.pid, *below(program.pid)} - {*sleeps}):
        os.kill(pid, signal.SIGKILL)
    program.wait()
    kill_stale()
    assert gone(sleeps)


async def test_processes_of_a_live_workbench_are_not_stale() -> None:
    mark = new_mark()
    child = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: mark}, start_new_session=True)
    try:
        # The new program's environment is there a moment after `Popen` returns.
        while mark.encode() not in Path(f"/proc/{child.pid}/environ").read_bytes():
            await asyncio.sleep(0.01)
        kill_stale()
        assert child.poll() is None
        assert kill_marked(mark) == 1
        assert child.wait(timeout=60) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("cases", [1, 2])
async def test_child_processes_of_a_case_end_with_the_workbench(project: Project, repository: Path, cases: int) -> None:
    """With one case there is no zygote, so the case's process must end them itself."""
    project.agent(STARTER)
    project.cases(*(f"wait {number}" for number in range(cases)))
    command = [sys.executable, "-m", "workbench", "run", str(project.root), "--plain"]
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=repository)
    sleeps: list[int] = []
    while len(sleeps) < 2 * cases:
        await asyncio.sleep(0.01)
        sleeps = [pid for pid in below(program.pid) if b"sleep\x001000" in _command_line(pid)]
    program.kill()
    program.wait()
    assert gone(sleeps)


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
