"""Processes prepared in advance: a spare one for the next agent, and the agent of the first case."""

import os
import signal
from pathlib import Path

import pytest

from tests.run.project import Project, execute
from workbench.files.run_options import RunOptions
from workbench.run.processes.children import Children, Zygote
from workbench.worker import processes

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(bool(processes.cannot_fork()), reason="processes are forked on Linux only"),
]
AGENT = """
import os, time

def root_agent(message, session):
    print("printed at the end")
    if message == "wait":
        time.sleep(1000)
    return f"{os.getpid()} {os.getppid()}"
"""


async def zygote_of(project: Project, children: Children) -> Zygote:
    """Return the zygote of the runs."""
    (setting,) = project.plan().agents.values()
    zygote = await children.local.zygote(setting.interpreter.path, project.root, warm=False)
    assert zygote is not None
    return zygote


def waiting(zygote: Zygote) -> list[int]:
    """Return the processes that the zygote has forked."""
    pid = zygote.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_single_case_runs_in_the_agents_own_process(project: Project) -> None:
    project.agent(AGENT)
    project.cases("hi", response_match_score=0.0)
    async with Children() as children:
        zygote = await zygote_of(project, children)
        outcome = await execute(project.plan(), children)
        _, parent = map(int, outcome.answer("hi").split())
        assert parent == zygote.process.pid
    assert outcome.states == {"hi": "passed"}
    assert outcome.record("hi").output == {"stdout": "printed at the end\n"}


async def test_several_cases_run_in_separate_processes(project: Project) -> None:
    project.agent(AGENT)
    project.cases("one", "two", response_match_score=0.0)
    async with Children() as children:
        zygote = await zygote_of(project, children)
        outcome = await execute(project.plan(), children)
        found = [[*map(int, outcome.answer(name).split())] for name in ("one", "two")]
    (first, agent), (second, same) = found
    assert agent == same != zygote.process.pid
    assert first != second


async def test_next_agent_uses_the_spare_process(project: Project) -> None:
    project.agent(AGENT)
    project.cases("hi", response_match_score=0.0)
    async with Children() as children:
        zygote = await zygote_of(project, children)
        for _ in range(3):
            await execute(project.plan(), children)
            (spare,) = waiting(zygote) or [0]
            if spare:
                break
        outcome = await execute(project.plan(), children)
        assert int(outcome.answer("hi").split()[0]) == spare


async def test_killed_spare_process_is_replaced(project: Project) -> None:
    project.agent(AGENT)
    project.cases("hi", response_match_score=0.0)
    async with Children() as children:
        zygote = await zygote_of(project, children)
        await execute(project.plan(), children)
        for spare in waiting(zygote):
            os.kill(spare, signal.SIGKILL)
        assert (await execute(project.plan(), children)).states == {"hi": "passed"}


async def test_single_case_is_stopped_at_its_timeout(project: Project) -> None:
    project.agent(AGENT)
    project.cases("wait")
    options = RunOptions(timeout=0.2)
    async with Children() as children:
        outcome = await execute(project.plan(options), children, options)
    kind, message = outcome.error("wait")
    assert (kind, "turn 1" in message) == ("timeout", True)
    assert "root_agent" in str(outcome.record("wait").error)
