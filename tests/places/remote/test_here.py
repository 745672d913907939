"""Real hosts as children: a run on two of them gives the verdicts of a run on this machine."""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import workbench
from tests.engine.project import Outcome, Project
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.processes import agent_process
from workbench.engine.processes.children import Children
from workbench.engine.run.run import Run
from workbench.places.remote.here import HereHosts
from workbench.places.remote.remote_place import RemotePlace

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT = """
import asyncio, os, signal

async def root_agent(message, session):
    print("printed", message)
    while message == "one" and not os.path.exists("two"):
        await asyncio.sleep(0.01)
    if message == "two":
        open("two", "w").close()
    yield {"tool_call": {"name": "look", "args": {"in": os.path.basename(os.getcwd())}}}
    if message == "die":
        os._exit(3)
    if message == "raise":
        raise RuntimeError("no")
    if message == "wait":
        await asyncio.sleep(1000)
    yield f"{message} {os.getppid()}"
"""
NAMES = ("one", "two", "three", "die", "raise")


class Here:
    """A place with two hosts or the named ones, and the hosts themselves."""

    def __init__(self, *names: str) -> None:
        self.hosts = HereHosts(names or ["h1", "h2"])
        self.place = RemotePlace(lambda: self.hosts, slots=1)


@pytest_asyncio.fixture(loop_scope="session")
async def here() -> AsyncIterator[Here]:
    both = Here()
    yield both
    await both.place.close()


async def ran(project: Project, children: Children, here: Here | None, options: RunOptions) -> Outcome:
    outcome = Outcome()
    place = None if here is None else here.place
    await Run(project.plan(options), outcome.take, children, place=place).execute()
    return outcome


async def test_verdicts_equal_those_of_this_machine(project: Project, children: Children, here: Here) -> None:
    project.agent(AGENT)
    project.cases(*NAMES, response_match_score=0.0)
    options = RunOptions(concurrency=4)
    local = await ran(project, children, None, options)
    (project.root / "desk/two").unlink(missing_ok=True)
    (project.root / "two").unlink(missing_ok=True)
    remote = await ran(project, children, here, options)
    assert remote.states == local.states
    for name in NAMES:
        there, own = remote.record(name), local.record(name)
        assert there.output == own.output
        assert there.error == own.error
        assert there.machine in ("h1", "h2")
    assert {remote.record(name).machine for name in NAMES} == {"h1", "h2"}
    assert remote.notices == local.notices


async def test_samples_score_the_same_on_other_machines(tmp_path: Path, repository: Path) -> None:
    here = Here("h1")  # Each machine would import ADK.
    shutil.copytree(repository / "sample_agents/order_desk", tmp_path / "order_desk")
    found = []
    for place in (None, here.place):
        async with workbench.Project(tmp_path, place=place, keep_runs=False) as project:
            await project.read()
            plan = await project.plan("order_desk/refunds.evalset.json", "order_desk/parcels.evalset.json")
            await project.run(plan).result()
            records = list(project.store.current_records())
            turns = {one.ref: _without_ids([turn.actual for turn in one.turns]) for one in records}
            verdicts = {one.ref: (one.state, one.error) for one in records}
            found.append((verdicts, turns))
    await here.place.close()
    assert found[0] == found[1]
    assert len(found[0][0]) > 3


def _without_ids(turns: Any) -> str:
    """Return a transcript without the values that differ in each run."""
    return re.sub(r"'(invocation_id|id|creation_timestamp|[a-z_]*duration[a-z_]*)': [^,}\]]+", "", str(turns))


async def test_case_of_a_killed_host_runs_again_on_the_other(project: Project, children: Children, here: Here) -> None:
    project.agent(AGENT.replace('"wait"', '"wait" and not os.path.exists("killed")'))
    project.cases("wait", response_match_score=0.0)

    async def kill_host() -> None:
        while not any(state.running for state in here.place.machines()):
            await asyncio.sleep(0.01)
        (name,) = (state.name for state in here.place.machines() if state.running)
        (project.root / "killed").touch()
        os.kill(here.hosts.processes[name].pid, signal.SIGKILL)

    killing = asyncio.create_task(kill_host())
    outcome = await ran(project, children, here, RunOptions())
    await killing
    record = outcome.record("wait")
    assert (record.state, record.attempt) == ("passed", 2)
    assert [lost.why for lost in record.lost] == ["the host was killed by SIGKILL"]
    assert {record.machine, record.lost[0].machine} == {"h1", "h2"}


async def test_host_that_joins_late_takes_cases(project: Project, children: Children, here: Here) -> None:
    here.hosts._names = ["h1"]
    project.agent(AGENT)
    project.cases("one", "wait", response_match_score=0.0)
    await here.place._connected()
    here.hosts.add("late")
    outcome = await ran(project, children, here, RunOptions(timeout=0.5, concurrency=2))
    assert {outcome.record(name).machine for name in ("one", "wait")} == {"h1", "late"}
    assert outcome.error("wait")[0] == "timeout"


async def test_agent_without_any_machine_has_the_reasons(project: Project, children: Children, tmp_path: Path) -> None:
    project.agent(AGENT)
    project.cases("one")
    place = RemotePlace(lambda: HereHosts(["h1", "h2"], command=["/bin/false"]))
    outcome = Outcome()
    await Run(project.plan(), outcome.take, children, place=place).execute()
    await place.close()
    kind, message = outcome.error("one")
    assert kind == "no_place"
    assert "h1: the host ended with exit code 1" in message
    assert "h2: the host ended with exit code 1" in message


SHARED = """
import asyncio, os, time

async def root_agent(message, session):
    if message == "stuck":
        open("stuck", "w").close()
        time.sleep(1000)
    open("waits", "w").close()
    while not os.path.exists("over"):
        await asyncio.sleep(0.01)
    yield "done"
"""


async def test_shared_case_that_is_stuck_costs_only_its_own_machine(
    project: Project, children: Children, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_process, "_TERMINATE_GRACE", 0.05)
    project.agent(SHARED)
    project.cases("stuck", "waits", response_match_score=0.0)
    outcome = Outcome()
    plan = project.plan(RunOptions(isolation="run", concurrency=2))
    run = Run(plan, outcome.take, children, place=here.place)
    running = asyncio.create_task(run.execute())
    async with asyncio.timeout(20):
        while not all((project.root / name).exists() for name in ("stuck", "waits")):
            await asyncio.sleep(0.01)
        (ref,) = (entry.ref for entry in plan.entries if entry.ref.eval_id == "stuck")
        run.cancel(ref, kill=True)
        while sum(state.running for state in here.place.machines()) > 1:
            await asyncio.sleep(0.01)
    (project.root / "over").touch()
    await running
    assert outcome.record("stuck").state == "cancelled"
    assert (outcome.record("waits").state, outcome.record("waits").attempt) == ("passed", 1)
