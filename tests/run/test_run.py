"""A run from start to end: verdicts, cancelling, stopping and unusable agents."""

import asyncio
import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.run.project import Outcome, Project, evalset, execute, turn
from workbench.events.event_json import Line
from workbench.events.events import (
    CaseFinished,
    CaseStarted,
    Event,
    MetricScored,
    Noticed,
    RepeatsDropped,
    RunFinished,
    RunStarted,
    TurnStarted,
)
from workbench.files.run_options import RunOptions
from workbench.run.plan.plan import Plan
from workbench.run.plan.selection import Target
from workbench.run.plan.source import DecidedSource
from workbench.run.processes.children import Children, LocalPlace
from workbench.run.recorder import Recorder
from workbench.run.resuming import Resumable, resume
from workbench.run.run import Run
from workbench.store.database.database import close_databases, database
from workbench.store.history.latest import latest_runs
from workbench.store.history.reading import load_summary
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.stored_events import read_run

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENT = """
import asyncio

async def root_agent(message, session):
    if message.startswith("wait"):
        await asyncio.sleep(1000)
    if message == "who":
        yield f"{session.app_name} {session.user_id} {session.id} {session.state['city']}"
        return
    if message == "count":
        session.state["turns"] = session.state.get("turns", 0) + 1
        yield f"turn {session.state['turns']}"
        return
    if message == "look":
        yield {"tool_call": {"name": "find", "args": {"id": 7}}}
        yield {"tool_response": {"name": "find", "response": {"found": True}}}
        yield {"usage": {"input_tokens": 11, "output_tokens": 3}}
    yield "ok"
"""


READS = """
from pathlib import Path

def root_agent(message, session):
    return (Path(__file__).parents[1] / "{file}").read_text()
"""


async def started(
    outcome: Outcome, plan: Plan, children: Children, turns: int = 1, **options: Any
) -> tuple[Run, "asyncio.Task[None]"]:
    """Start a run, and wait until so many turns have begun."""
    begun = asyncio.Semaphore(0)
    outcome.watchers.append(lambda event: begun.release() if isinstance(event, TurnStarted) else None)
    run = Run(replace(plan, options=RunOptions(**options)), outcome.take, children)
    task = asyncio.create_task(run.execute())
    for _ in range(turns):
        await begun.acquire()
    return run, task


async def test_events_of_one_case_are_in_order(project: Project, children: Children) -> None:
    project.agent(AGENT)
    expected = turn("look", "ok", [{"name": "find", "args": {"id": 7}}])
    project.write("desk/one.evalset.json", evalset("one", {"look": [expected]}))
    outcome = await execute(project.plan(), children)
    kinds = [type(event).__name__ for event in outcome.events]
    metrics = [name for name in kinds if name == "MetricScored"]
    assert [name for name, _ in itertools.groupby(kinds)] == [
        *("RunStarted", "CaseStarted", "TurnStarted", "AgentActed", "SpansRecorded", "TurnFinished"),
        *("MetricScored", "CaseFinished", "RunFinished"),
    ]
    assert len(metrics) == 2 + 4
    record = outcome.record("look")
    assert record.state == "passed"
    assert record.expected == (expected,)
    assert record.criteria == {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    assert (record.usage.input_tokens, record.usage.output_tokens) == (11, 3)
    assert record.duration_seconds > 0
    assert record.planned.config_file is None
    assert "defaults" in record.planned.criteria_source


async def test_case_starts_with_its_session(project: Project, children: Children) -> None:
    project.agent(AGENT)
    content = evalset("s", {"who": [turn("who", "shop ada s-1 Porto")], "count": [turn("count", "turn 1")] * 2})
    content["eval_cases"][0]["session_input"] = {
        "app_name": "shop",
        "user_id": "ada",
        "session_id": "s-1",
        "state": {"city": "Porto"},
    }
    content["eval_cases"][1]["conversation"] = [turn("count", "turn 1"), turn("count", "turn 2")]
    project.write("desk/s.evalset.json", content)
    outcome = await execute(project.plan(), children)
    assert outcome.answer("who") == "shop ada s-1 Porto"
    metric = outcome.record("count").metrics["response_match_score"]
    assert metric.score == 1.0


async def test_repeats_are_separate_cases(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.cases("one", "two")
    options = RunOptions(runs=3)
    outcome = await execute(project.plan(options), children, options)
    assert sorted((ref.eval_id, ref.repeat) for ref in outcome.store.records) == [
        (name, repeat) for name in ("one", "two") for repeat in (1, 2, 3)
    ]
    assert set(outcome.store.counts()) == {"passed"}


async def test_case_is_scored_as_soon_as_its_transcript_is_complete(project: Project, children: Children) -> None:
    """Other cases may still run."""
    project.agent(AGENT)
    project.cases("quick", "wait")
    outcome = Outcome()
    judged = asyncio.Event()
    outcome.watchers.append(lambda event: judged.set() if isinstance(event, CaseFinished) else None)
    run, task = await started(outcome, project.plan(), children, turns=2)
    await judged.wait()
    assert outcome.states == {"quick": "passed", "wait": "running"}
    run.cancel(kill=True)
    await task
    assert outcome.error("wait")[0] == "cancelled"


@pytest.mark.parametrize("kill", [False, True])
async def test_cancelling_one_case_leaves_the_others(project: Project, children: Children, kill: bool) -> None:
    project.agent(AGENT)
    project.cases("wait", "queued", "well")
    outcome = Outcome()
    run, task = await started(outcome, project.plan(), children, concurrency=1)
    run.cancel(outcome.ref("queued"))
    run.cancel(outcome.ref("wait"), kill=kill)
    await task
    assert outcome.error("wait") == ("cancelled", "cancelled while it was running")
    assert outcome.error("queued") == ("cancelled", "cancelled before it started")
    assert outcome.states["well"] == "passed"
    assert not outcome.store.run.interrupted


async def test_case_can_be_cancelled_before_the_run_is_announced(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.cases("first", "second")
    plan, outcome = project.plan(), Outcome()
    run = Run(plan, outcome.take, children)
    task = asyncio.create_task(run.execute())
    await asyncio.sleep(0)
    run.cancel(plan.entries[0].ref)
    await task
    assert outcome.states == {"first": "cancelled", "second": "passed"}
    assert outcome.of(RunFinished)[0].cancelled == 1


async def test_resumed_case_that_became_sure_with_its_last_repeat_does_not_end_the_run(
    project: Project, children: Children
) -> None:
    project.agent(AGENT)
    project.cases("first", "second")
    plan = project.plan(RunOptions(runs=7, until_sure=0.5, exit_first=True))
    entries = [
        replace(entry, source=DecidedSource((), CaseFinished(entry.ref, "passed", None, 0.1)))
        if entry.ref.eval_id == "first"
        else entry
        for entry in plan.entries
    ]
    outcome = await execute(replace(plan, entries=tuple(entries)), children)
    assert outcome.of(RepeatsDropped) == []
    assert [event.status for event in outcome.of(CaseFinished)] == ["passed"] * 7


async def test_cancelling_a_finished_case_has_no_effect(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.cases("well")
    outcome = Outcome()
    run = Run(project.plan(), outcome.take, children)
    await run.execute()
    run.cancel(outcome.ref("well"))
    run.stop()
    assert outcome.states == {"well": "passed"}


async def test_stop_lets_running_cases_finish_and_starts_no_others(project: Project, children: Children) -> None:
    project.agent(
        "import asyncio, os\n"
        "async def root_agent(message, session):\n"
        "    while not os.path.exists('stopped'):\n"
        "        await asyncio.sleep(0.01)\n"
        "    return 'ok'\n"
    )
    project.cases("first", "second", "third")
    outcome = Outcome()
    run, task = await started(outcome, project.plan(), children, concurrency=1)
    run.stop()
    project.write("stopped", "")
    await task
    assert outcome.states == {"first": "passed", "second": "cancelled", "third": "cancelled"}
    assert outcome.store.run.interrupted


async def test_run_that_is_cancelled_while_it_ends_still_publishes_its_end(
    project: Project, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.agent(AGENT)
    project.write("desk/one.evalset.json", evalset("one", {"look": [turn("look", "ok")]}))
    ends, may_end, close = asyncio.Event(), asyncio.Event(), Recorder.close

    async def close_late(recorder: Recorder) -> None:
        ends.set()
        await may_end.wait()
        await close(recorder)

    monkeypatch.setattr(Recorder, "close", close_late)
    outcome = Outcome()
    task = asyncio.create_task(Run(project.plan(), outcome.take, children).execute())
    await ends.wait()
    task.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert isinstance(outcome.events[-1], RunFinished)


async def test_cancelling_all_cases_ends_soon(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.cases("wait", "wait 2", "queued")
    outcome = Outcome()
    run, task = await started(outcome, project.plan(), children, turns=2, concurrency=2)
    run.cancel()
    await task
    assert outcome.states == {"wait": "cancelled", "wait 2": "cancelled", "queued": "cancelled"}
    assert outcome.store.run.interrupted


IMPORTS: dict[str, tuple[str, str, str]] = {
    "raises": ("print('before')\nraise ValueError('no such model')", "import_failed", "no such model"),
    "syntax": ("def root_agent(:", "import_failed", "SyntaxError"),
    "missing": ("import no_such_package\nroot_agent = None", "import_failed", "no_such_package"),
    "exits": ("import os\nos._exit(7)\nroot_agent = 1", "crashed", "exit code 7"),
    "hangs": ("while True: pass\nroot_agent = 1", "timeout", "longer than 1 s"),
}


@pytest.mark.parametrize("name", IMPORTS)
async def test_import_failure_is_the_error_of_its_cases(project: Project, children: Children, name: str) -> None:
    source, kind, words = IMPORTS[name]
    project.agent(source + "\nroot_agent = None\n")
    project.agent(AGENT, "other")
    project.cases("one", "two")
    project.write("other/well.evalset.json", evalset("well", {"well": [turn("well", "ok")]}))
    options = RunOptions(timeout=1 if name == "hangs" else 30)
    outcome = await execute(project.plan(options), children, options)
    for case in ("one", "two"):
        assert outcome.error(case)[0] == kind
        assert words in outcome.error(case)[1]
    assert outcome.states["well"] == "passed"
    if name == "raises":
        assert outcome.record("one").output == {"stdout": "before\n"}


async def test_interpreter_that_does_not_start_is_an_error(
    project: Project, children: Children, tmp_path: Path
) -> None:
    project.agent(AGENT)
    project.cases("one")
    python = project.write("broken-python", "#!/bin/sh\necho cannot find libpython >&2\nexit 127\n")
    python.chmod(0o755)
    options = RunOptions(python=python)
    outcome = await execute(project.plan(options), children, options)
    kind, message = outcome.error("one")
    assert kind == "crashed"
    assert "cannot find libpython" in message
    assert str(python) in message


@pytest.fixture
def cannot_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_zygote(*arguments: object, **options: object) -> None:
        return None

    monkeypatch.setattr(LocalPlace, "zygote", no_zygote)


@pytest.mark.usefixtures("cannot_fork")
async def test_cases_share_a_process_if_forking_is_impossible(project: Project, children: Children) -> None:
    project.agent(AGENT + "import os, signal\n" + "inner = root_agent\n" + KILLER)
    project.cases("one", "two", "kill", "three")
    outcome = await execute(project.plan(), children)
    assert outcome.states == {"one": "passed", "two": "passed", "kill": "error", "three": "passed"}
    assert outcome.error("kill")[0] == "crashed"
    assert any("share a process" in message for message in outcome.notices)


KILLER = """
async def root_agent(message, session):
    if message == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    async for step in inner(message, session):
        yield step
"""


async def test_threads_after_the_import_make_cases_share_a_process(project: Project, children: Children) -> None:
    project.agent(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n" + AGENT
    )
    project.cases("one", "two")
    outcome = await execute(project.plan(), children)
    assert set(outcome.states.values()) == {"passed"}
    assert [message for message in outcome.notices if "desk share a process" in message]


async def test_single_case_of_a_single_run_gets_a_fresh_process(project: Project) -> None:
    project.agent(AGENT + "import os, signal\n" + "inner = root_agent\n" + KILLER)
    project.cases("well", "kill")
    for name, state in (("well", "passed"), ("kill", "error")):
        plan = project.plan(None, Target("all", project.root / "desk/all.evalset.json", (name,)))
        async with Children(keep_warm=False) as children:
            outcome = await execute(plan, children)
            assert not children.local._zygotes
        assert outcome.states == {name: state}
        assert outcome.notices == []
        assert len(outcome.of(CaseStarted)) == 1


async def test_blocked_cases_appear_with_their_reason(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.agent(AGENT, "other")
    project.cases("well")
    project.write("desk/broken.evalset.json", '{"eval_set_id": "b", "eval_cases": [{]}')
    project.write("both.evalset.json", evalset("both", {"orphan": [turn("hello", "ok")]}))
    scenario = {"eval_id": "play", "conversation_scenario": {"starting_prompt": "hello", "conversation_plan": "buy"}}
    project.write("desk/scenario.evalset.json", {"eval_set_id": "s", "eval_cases": [scenario]})
    outcome = await execute(project.plan(), children)
    assert outcome.states == {"": "error", "orphan": "error", "play": "not_evaluated", "well": "passed"}
    assert outcome.error("")[0] == "broken_file"
    assert outcome.error("orphan")[0] == "no_agent"
    assert outcome.error("play")[0] == "config"  # no criterion can judge it
    assert outcome.record("orphan").expected == (turn("hello", "ok"),)
    assert outcome.record("play").metrics["response_match_score"].status == "not_applicable"


async def test_secrets_reach_scoring_but_are_not_published(
    project: Project, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "tr0ub4dor&3")
    project.write("desk/.env", "DB_PASSWORD=correct-horse\n")
    project.agent(
        "import os\n"
        "def root_agent(message, session):\n"
        "    print(os.environ['SHOP_API_KEY'])\n"
        "    return os.environ['DB_PASSWORD'] + ' and ' + os.environ['SHOP_API_KEY']\n"
    )
    project.write("desk/one.evalset.json", evalset("one", {"one": [turn("hi", "correct-horse and tr0ub4dor&3")]}))
    state = project.root / ".workbench"
    plan = project.plan()
    journal = RunWriter.open(state, plan.run_id)
    outcome = await execute(plan, children, writer=journal)
    assert outcome.states == {"one": "passed"}
    assert outcome.answer("one") == "[secret DB_PASSWORD] and [secret SHOP_API_KEY]"
    assert outcome.record("one").output == {"stdout": "[secret SHOP_API_KEY]\n"}
    assert journal.path is not None
    database(state).close()
    written = (state / "runs.db").read_bytes()
    assert b"horse" not in written
    assert b"tr0ub4dor" not in written
    assert list(read_run(journal.path)) == outcome.events


def _fill(state: Path) -> None:
    """Let the database take no more pages, as on a full disk."""
    database(state).write(lambda connection: connection.execute("PRAGMA max_page_count=1"))


def _lock(state: Path) -> None:
    """Let SQLite refuse changes, as if the file had become read-only."""
    database(state).write(lambda connection: connection.execute("PRAGMA query_only=ON"))


def _remove(state: Path) -> None:
    for file in state.glob("runs.db*"):
        file.unlink()


@pytest.mark.parametrize(
    ("fault", "after", "reason"),
    [
        (_fill, RunStarted, "no space left"),  # Some small events may still fit, so large ones must follow.
        (_lock, CaseFinished, "read-only"),
        (_remove, CaseFinished, "deleted from the database"),
    ],
)
async def test_run_goes_on_in_memory_after_a_failed_write(
    project: Project, children: Children, fault: Callable[[Path], None], after: type[Event], reason: str
) -> None:
    project.agent(AGENT)
    names = ("first", "second", "third", "last")
    project.cases(*names)
    project.write("desk/all.evalset.json", evalset("all", {name: [turn(name * 5000, "ok")] for name in names}))
    state = project.root / ".workbench"
    plan = project.plan(RunOptions(concurrency=1))
    outcome, writer = Outcome(), RunWriter.open(state, plan.run_id)
    stored: list[Event] = []
    write = writer.write

    def break_after_the_first(lines: Iterable[Line], *, sync: bool) -> None:
        """Write until the first event of this kind, and break the database before anything else is written."""
        lines = list(lines)
        first = next((number for number, line in enumerate(lines, 1) if isinstance(line.event, after)), 0)
        if first and not stored:
            write(lines[:first], sync=sync)
            stored.append(lines[first - 1].event)
            fault(state)
            lines = lines[first:]
        write(lines, sync=sync)

    writer.write = break_after_the_first  # type: ignore[method-assign]
    await Run(plan, outcome.take, children, writer).execute()
    assert outcome.states == dict.fromkeys(names, "passed")
    (notice,) = outcome.of(Noticed)
    assert notice.level == "warning"
    assert "kept in memory only" in notice.message
    assert str(state / "runs.db") in notice.message
    assert reason in notice.message
    assert isinstance(outcome.events[-1], RunFinished)
    close_databases()
    if fault is _remove:
        assert not list(latest_runs(state, {}))
        return
    summary, _ = load_summary(state, plan.run_id)
    assert summary.seconds is None, "as far as is stored, it was interrupted"
    statuses = {ref.eval_id: one.state if one.finished else None for ref, one in summary.executions.items()}
    passed = {event.case.eval_id: "passed" for event in stored if isinstance(event, CaseFinished)}
    assert statuses == {**dict.fromkeys(names), **passed}
    again = resume(state, project.plan(plan.options))
    assert isinstance(again, Resumable) is bool(passed), "the same command continues it, unless it has nothing yet"
    if isinstance(again, Resumable):
        again.writer.release()


@pytest.mark.parametrize("file", ["shared.txt", "desk/README.md"])
async def test_unscored_transcript_is_not_reused_after_a_change_of_any_file_that_its_agent_read(
    project: Project, children: Children, file: str
) -> None:
    project.agent(READS.format(file=file))
    project.write(file, "ok")
    project.cases("one")
    state, plan = project.root / ".workbench", project.plan()
    writer = RunWriter.open(state, plan.run_id)
    write = writer.write

    def without_scores(lines: Iterable[Line], *, sync: bool) -> None:
        write(
            [line for line in lines if not isinstance(line.event, MetricScored | CaseFinished | RunFinished)], sync=sync
        )

    writer.write = without_scores  # type: ignore[method-assign]
    await Run(plan, Outcome().take, children, writer).execute()
    again = resume(state, project.plan())
    assert isinstance(again, Resumable)
    again.writer.release()
    project.write(file, "other")
    fresh = resume(state, project.plan())
    assert isinstance(fresh, Plan)
    assert fresh.notices[0].message.endswith(f"is not resumed: {file}")


async def test_unwritable_journal_is_one_notice(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.cases("well")
    (project.root / "blocked").write_text("")
    plan = project.plan()
    outcome = await execute(plan, children, writer=RunWriter.open(project.root / "blocked" / "state", plan.run_id))
    assert outcome.states == {"well": "passed"}
    assert [event.level for event in outcome.of(Noticed)] == ["warning"]
    summary, _ = load_summary(project.root / "blocked" / "state", plan.run_id)
    assert [one.state for one in summary.executions.values()] == ["passed"], "as long as this process runs"


async def test_hundred_cases_pass_with_a_concurrency_of_100(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.cases(*(f"case {number}" for number in range(100)))
    options = RunOptions(concurrency=100)
    outcome = await execute(project.plan(options), children, options)
    assert outcome.store.counts() == {"passed": 100}
