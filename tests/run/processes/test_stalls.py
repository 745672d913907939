"""A hung process that forks cases is replaced, and its cases start again once."""

import os
from pathlib import Path

import pytest

from tests.run.project import Project, execute
from workbench.events.events import CaseStarted
from workbench.files.run_options import RunOptions
from workbench.run.processes import agent_clock, children
from workbench.run.processes.agent_clock import Activity, PingCheck, read_activity
from workbench.run.processes.children import Children

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Stops its parent, its grandparent or both; with "once", only where no other case has done so before.
AGENT = """
import asyncio, os, signal

def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])

async def root_agent(message, session):
    what, _, rest = message.partition(" ")
    if what in ("parent", "zygote", "both"):
        try:
            if "once" in rest:
                os.close(os.open(os.path.join(os.path.dirname(__file__), "done"), os.O_CREAT | os.O_EXCL))
            parent = os.getppid()
            above = parent_of(parent)
            for pid in [above] * (what != "parent") + [parent] * (what != "zygote"):
                os.kill(pid, signal.SIGSTOP)
        except FileExistsError:
            rest = "again"
    if "wait" in rest:
        await asyncio.sleep(1000)
    return "ok"
"""
OPTIONS = RunOptions(concurrency=2, timeout=60)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_clock, "_SILENT", 0.05)
    monkeypatch.setattr(children, "_CHECK_EVERY", 0.03)


class Process:
    """Stands for a watched process: how often it was asked, and what it seems to do."""

    def __init__(self) -> None:
        self.asked = 0
        self.now = 0.0
        self.activity: Activity | None = Activity("S", 7)
        self.pinged = PingCheck(self._ask, lambda pid: self.activity, lambda: self.now)

    def _ask(self) -> None:
        self.asked += 1

    def check(self, after: float) -> str:
        self.now += after
        return self.pinged.check(1)


async def test_answering_process_is_pinged_again_and_never_replaced() -> None:
    process = Process()
    process.activity = Activity("T", 7)
    for _ in range(5):
        assert process.check(30.0) == ""
        process.pinged.answered()
    assert process.asked == 5


async def test_process_stopped_in_two_checks_is_replaced() -> None:
    process = Process()
    process.activity = Activity("T", 7)
    process.check(0.0)
    assert process.check(3.0) == ""
    assert "stopped" in process.check(1.0)


async def test_silent_idle_process_is_replaced_after_ten_seconds() -> None:
    process = Process()
    process.check(0.0)
    assert [process.check(1.0) != "" for _ in range(13)] == [False] * 11 + [True] * 2


@pytest.mark.parametrize("state", ["S", "R"])
async def test_silent_busy_process_is_kept(state: str) -> None:
    process = Process()
    for second in range(40):
        process.activity = Activity(state, 7 if state == "R" else second // 5)
        assert process.check(1.0) == ""


async def test_stopped_workbench_replaces_no_process() -> None:
    process = Process()
    process.check(0.0)
    assert process.check(3600.0) == ""
    process.pinged.answered()
    assert process.check(1.0) == ""


async def test_ended_process_is_not_replaced() -> None:
    process = Process()
    process.activity = None
    assert [process.check(20.0) for _ in range(3)] == [""] * 3


@pytest.mark.skipif(not agent_clock.CAN_WATCH, reason="there is no /proc")
async def test_activity_of_this_process_can_be_read() -> None:
    own = read_activity(os.getpid())
    assert own is not None
    assert own.state == "R"
    assert read_activity(2**22 + 1) is None


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("what", ["parent", "both"])
async def test_cases_of_a_hung_process_start_again_as_attempt_2(project: Project, what: str) -> None:
    project.agent(AGENT)
    project.cases(f"{what} once wait", *(f"case {number}" for number in range(5)))
    async with Children() as children:
        outcome = await execute(project.plan(), children, OPTIONS)
    assert set(outcome.states.values()) == {"passed"}
    assert outcome.record(f"{what} once wait").attempt == 2
    assert outcome.record("case 4").attempt == 1
    assert any("hung" in notice for notice in outcome.notices)
    begun = [event.attempt for event in outcome.of(CaseStarted) if event.case.eval_id == f"{what} once wait"]
    assert begun == [1, 2]


@pytest.mark.usefixtures("quick")
async def test_case_in_two_hung_processes_is_an_error(project: Project) -> None:
    project.agent(AGENT)
    project.cases("parent wait", *(f"case {number}" for number in range(5)))
    async with Children() as children:
        outcome = await execute(project.plan(), children, OPTIONS)
    kind, message = outcome.error("parent wait")
    assert kind == "crashed"
    assert "both attempts" in message
    assert outcome.record("parent wait").attempt == 2
    others = {name: state for name, state in outcome.states.items() if name != "parent wait"}
    # The one beside it may have waited in the same process both times.
    assert sorted(others.values()).count("passed") >= 4


@pytest.mark.usefixtures("quick")
async def test_hung_zygote_is_replaced_for_the_next_run(project: Project, tmp_path: Path) -> None:
    project.agent(AGENT)
    project.cases("zygote wait", "case 1")
    async with Children() as children:
        outcome = await execute(project.plan(), children, RunOptions(concurrency=1, timeout=60))
        assert outcome.states["case 1"] == "passed"
        assert outcome.error("zygote wait")[0] == "crashed"
        project.cases("case 2", "case 3")
        outcome = await execute(project.plan(), children, OPTIONS)
        assert set(outcome.states.values()) == {"passed"}


@pytest.mark.usefixtures("quick")
async def test_single_case_starts_again_after_its_zygote_was_stopped(project: Project) -> None:
    """The agent's process has become the case's own: what it stops is the zygote."""
    project.agent(AGENT)
    project.cases("parent once wait")
    async with Children() as children:
        outcome = await execute(project.plan(), children, OPTIONS)
    assert outcome.states == {"parent once wait": "passed"}
    assert outcome.record("parent once wait").attempt == 2
