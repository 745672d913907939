"""Each failure of an agent is the error of one case with its cause, and other cases are not affected."""

from pathlib import Path

import pytest
import pytest_asyncio

from tests.run.project import Outcome, Project, execute
from workbench.events.events import OutputCaptured
from workbench.files.run_options import RunOptions
from workbench.run.processes.children import Children

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENT = """
import asyncio, atexit, os, signal, sys, time

seen = []

def spin():
    os.nice(19)  # The other cases have the same seconds.
    while True:
        pass

async def leave():
    sys.exit("no more")

async def root_agent(message, session):
    seen.append(str(message))
    if message == "raises":
        raise LookupError("no such parcel")
    if message == "exits":
        os._exit(3)
    if message == "sys_exit":
        sys.exit(4)
    if message == "exits_in_a_task":
        await asyncio.create_task(leave())
    if message == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if message == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if message == "loops":
        spin()
    if message == "waits":
        await asyncio.sleep(1000)
    if message == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1)
    if message == "floods":
        while True:
            os.write(1, b"x" * 50_000 + b"\\n")
    if message == "huge":
        yield "x" * 20_000_000
        return
    if message == "silent":
        return
    if message == "prints":
        print("to stdout")
        print("to stderr", file=sys.stderr)
    if message == "leaves_a_child":
        os.system("sleep 1000 &")
    if message == "crashes_later":
        atexit.register(os._exit, 9)
    if message == "seen":
        yield " ".join(seen)
        return
    yield "ok"
"""
GOOD = ("prints", "leaves_a_child", "crashes_later", "well")
BAD = {
    "raises": ("agent_raised", "LookupError: no such parcel"),
    "exits": ("crashed", "exit code 3"),
    "sys_exit": ("agent_raised", "sys.exit(4)"),
    "exits_in_a_task": ("agent_raised", "the agent called sys.exit('no more')"),
    "segfault": ("crashed", "SIGSEGV"),
    "killed": ("crashed", "SIGKILL"),
    "loops": ("timeout", "longer than 4 s"),
    "waits": ("timeout", "longer than 4 s"),
    "stubborn": ("timeout", "longer than 4 s"),
    "floods": ("output_flood", "more than 16 MiB"),
    "huge": ("too_large", "16"),
    "silent": ("turn_count", "turn"),
}
OPTIONS = RunOptions(timeout=4, concurrency=30)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def hard(children: Children, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Run all hard cases together once, each in its own process."""
    return await _run(children, tmp_path_factory.mktemp("hard"), OPTIONS)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def shared(children: Children, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Run all hard cases together once, in shared processes."""
    return await _run(
        children, tmp_path_factory.mktemp("shared"), RunOptions(timeout=4, concurrency=30, isolation="run")
    )


async def _run(children: Children, root: Path, options: RunOptions) -> Outcome:
    (root / ".workbench").mkdir()
    project = Project(root)
    project.agent(AGENT)
    project.cases(*BAD, *GOOD)
    return await execute(project.plan(options), children, options)


@pytest.mark.parametrize("name", BAD)
async def test_each_failing_case_has_its_own_error(hard: Outcome, name: str) -> None:
    kind, words = BAD[name]
    assert hard.states[name] == "error"
    assert hard.error(name)[0] == kind
    assert words in hard.error(name)[1]


@pytest.mark.parametrize("name", GOOD)
async def test_other_cases_are_not_affected(hard: Outcome, name: str) -> None:
    assert hard.states[name] == "passed"


@pytest.mark.parametrize("name", BAD)
async def test_guilty_case_is_found_in_a_shared_process(shared: Outcome, name: str) -> None:
    kind, words = BAD[name]
    assert shared.error(name)[0] == kind
    assert words in shared.error(name)[1]


@pytest.mark.parametrize("name", GOOD)
async def test_other_cases_of_a_dead_shared_process_run_again(shared: Outcome, name: str) -> None:
    assert shared.states[name] == "passed"


async def test_timeout_shows_the_running_line(hard: Outcome) -> None:
    for name, line in (("loops", "in spin"), ("waits", "await asyncio.sleep(1000)")):
        error = hard.record(name).error
        assert error is not None
        assert "agent.py" in error.traceback
        assert line in error.traceback


async def test_traceback_has_the_agents_own_lines(hard: Outcome) -> None:
    error = hard.record("raises").error
    assert error is not None
    assert 'raise LookupError("no such parcel")' in error.traceback


async def test_output_belongs_to_its_case(hard: Outcome) -> None:
    assert hard.record("prints").output == {"stdout": "to stdout\n", "stderr": "to stderr\n"}


async def test_flood_of_output_is_kept_up_to_the_limit(hard: Outcome) -> None:
    floods = [event for event in hard.of(OutputCaptured) if event.case.eval_id == "floods"]
    assert 15_000_000 < sum(len(event.text) for event in floods) < 18_000_000


async def test_each_case_ends_once_without_later_events(hard: Outcome, shared: Outcome) -> None:
    for outcome in (hard, shared):
        ended = set()
        for event in outcome.events:
            ref = getattr(event, "case", None)
            assert ref is None or ref not in ended, event
            if type(event).__name__ == "CaseFinished":
                ended.add(ref)
        assert len(ended) == len(BAD) + len(GOOD)
        assert [type(event).__name__ for event in (outcome.events[0], outcome.events[-1])] == [
            "RunStarted",
            "RunFinished",
        ]


async def test_cases_do_not_see_each_others_module_state(children: Children, project: Project) -> None:
    project.agent(AGENT)
    project.cases("well", "seen", "prints")
    outcome = await execute(project.plan(), children)
    assert outcome.answer("seen") == "seen"
    options = RunOptions(concurrency=1, isolation="run")
    outcome = await execute(project.plan(options), children, options)
    assert outcome.answer("seen") == "well seen"
