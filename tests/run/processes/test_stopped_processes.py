"""A process that forks cases is replaced if a signal stops it, and its cases start again once."""

from pathlib import Path

import pytest

from tests.run.project import Project, execute
from workbench.events.events import CaseStarted
from workbench.files.run_options import RunOptions
from workbench.run.processes import children
from workbench.run.processes.children import Children

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc"),
]

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
    monkeypatch.setattr(children, "_CHECK_EVERY", 0.03)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("what", ["parent", "both"])
async def test_cases_of_a_stopped_process_start_again_as_attempt_2(project: Project, what: str) -> None:
    project.agent(AGENT)
    project.cases(f"{what} once wait", *(f"case {number}" for number in range(5)))
    async with Children() as children:
        outcome = await execute(project.plan(), children, OPTIONS)
    assert set(outcome.states.values()) == {"passed"}
    assert outcome.record(f"{what} once wait").attempt == 2
    assert outcome.record("case 4").attempt == 1
    assert any("was stopped by a signal" in notice for notice in outcome.notices)
    begun = [event.attempt for event in outcome.of(CaseStarted) if event.case.eval_id == f"{what} once wait"]
    assert begun == [1, 2]


@pytest.mark.usefixtures("quick")
async def test_case_in_two_stopped_processes_is_an_error(project: Project) -> None:
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
async def test_stopped_zygote_is_replaced_for_the_next_run(project: Project, tmp_path: Path) -> None:
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
