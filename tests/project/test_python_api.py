"""`workbench.Project` as a program uses it: the examples of docs/python-api.md, and what they do not show."""

import asyncio
import builtins
import contextlib
import json
import os
import re
import select
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.saves import save
from tests.stored import only_run
from workbench import Project, RunOptions, UsageFaultError
from workbench.events.events import CaseFinished, CaseStarted, Event, RunFinished, RunStarted
from workbench.files.criteria import parse_config

AGENT = """
def root_agent(message, session):
    return "It is lost" if "lost" in message else "It is on its way"
"""
SLOW = """
import time

def root_agent(message, session):
    with open({pipe!r}, "w") as pipe:
        pipe.write("runs")
        pipe.flush()
        time.sleep(600)
"""
PAGE = Path(__file__).parents[2] / "docs/python-api.md"
EXAMPLES = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n(.*?)```", PAGE.read_text("utf-8"), re.M | re.S))


class SeenEnoughError(Exception):
    """Ends an example that would go on for ever."""


def case(eval_id: str, message: str, answer: str) -> dict[str, Any]:
    turn = {"user_content": {"parts": [{"text": message}]}, "final_response": {"parts": [{"text": answer}]}}
    return {"eval_id": eval_id, "conversation": [turn]}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an agent, and an evalset with one case that passes and one that fails."""
    folder = tmp_path / "order_desk"
    folder.mkdir()
    (tmp_path / ".git").mkdir()
    (folder / "agent.py").write_text(AGENT, "utf-8")
    cases = [case("late_parcel", "Where is it?", "It is on its way"), case("lost_parcel", "It is lost", "We lost it")]
    (folder / "refunds.evalset.json").write_text(json.dumps({"eval_set_id": "refunds", "eval_cases": cases}), "utf-8")
    (folder / "test_config.json").write_text(json.dumps({"criteria": {"response_match_score": 0.8}}), "utf-8")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def run_example(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run an example of the page, and return the lines that it prints; `on_line` is told of each."""

    def run(title: str, on_line: Callable[[list[str]], None] = lambda lines: None) -> list[str]:
        lines: list[str] = []

        def note(*words: object) -> None:
            lines.append(" ".join(map(str, words)))
            on_line(lines)

        monkeypatch.setattr(builtins, "print", note)
        exec(compile(EXAMPLES[title], title, "exec"), {"__name__": "example"})
        return lines

    return run


async def verdicts(project: Project) -> dict[str, str]:
    store = await project.run(await project.plan()).result()
    return {record.ref.eval_id: record.state for record in store.current_records()}


def test_each_example_of_the_page_has_a_test() -> None:
    assert list(EXAMPLES) == [
        "Open and list",
        "Run and print verdicts",
        "Score under another threshold",
        "Freeze",
        "Fork",
        "Watch",
        "Compare two runs",
        "Try a change",
        "Talk to an agent",
    ]


def test_example_lists_every_case_and_runs_nothing(desk: Path, run_example: Callable[..., list[str]]) -> None:
    file = "order_desk/refunds.evalset.json"
    assert run_example("Open and list") == [f"{file} late_parcel", f"{file} lost_parcel"]
    assert not (desk.parent / ".workbench").exists()


def test_example_prints_a_verdict_for_each_case(desk: Path, run_example: Callable[..., list[str]]) -> None:
    first, second = run_example("Run and print verdicts")
    assert first == "passed late_parcel 1.0"
    assert second.startswith("failed lost_parcel 0.6")


def test_example_tries_a_variable_that_nothing_reads(desk: Path, run_example: Callable[..., list[str]]) -> None:
    (line,) = run_example("Try a change")
    assert line.startswith("TONE=short unclear 0.0 points [")


def test_example_scores_without_calling_the_agent(desk: Path, run_example: Callable[..., list[str]]) -> None:
    run_example("Run and print verdicts")
    (desk / "agent.py").write_text(AGENT + "raise RuntimeError('never imported')\n", "utf-8")
    assert run_example("Score under another threshold") == ["passed late_parcel", "passed lost_parcel"]


def test_example_lists_the_recordings_that_freezing_would_create(
    desk: Path, run_example: Callable[..., list[str]]
) -> None:
    lines = run_example("Freeze")
    assert [line.split()[:2] for line in lines] == [
        ["new", "late_parcel.frozen.json"],
        ["new", "lost_parcel.frozen.json"],
    ]
    assert not (desk / "refunds.evalset.frozen").exists()


def test_example_tries_another_message(desk: Path, run_example: Callable[..., list[str]]) -> None:
    assert run_example("Fork") == ["1 passed None", "2 passed None"]


def test_example_reruns_cases_affected_by_a_save(desk: Path, run_example: Callable[..., list[str]]) -> None:
    seen: list[str] = []

    def save_then_end(lines: list[str]) -> None:
        seen[:] = lines
        if len(lines) == 2:
            save(desk / "agent.py", AGENT.replace("It is lost", "We lost it"))
        elif len(lines) == 4:
            raise SeenEnoughError

    with pytest.raises(SeenEnoughError):
        run_example("Watch", save_then_end)
    assert sorted(seen[:2]) == ["failed lost_parcel", "passed late_parcel"]
    assert sorted(seen[2:]) == ["passed late_parcel", "passed lost_parcel"]


def test_example_compares_two_runs(desk: Path, run_example: Callable[..., list[str]]) -> None:
    assert run_example("Compare two runs") == ["0 regressions"]


def test_example_prints_the_agents_answer(desk: Path, run_example: Callable[..., list[str]]) -> None:
    assert run_example("Talk to an agent") == ["It is on its way"]


async def test_run_ends_if_its_listener_raises(desk: Path, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def publish(event: Event) -> None:
        heard.append(event)
        if isinstance(event, CaseStarted):
            raise SeenEnoughError

    async with Project.open(".") as project:
        with pytest.raises(SeenEnoughError):
            await project.run(await project.plan(), publish).execute()
        await project.compare("last", "last")  # The run is on disk, with its end.
    assert isinstance(heard.pop(), CaseStarted)
    assert not any(isinstance(event, CaseStarted) for event in heard)
    assert not caplog.records


async def test_cases_of_an_open_workspace_are_planned_with_its_criteria(desk: Path) -> None:
    async with Project.open("order_desk") as project:
        (entry,) = project.evalsets
        config = parse_config(Path("criteria"), b'{"criteria": {"response_match_score": 0.0}}')
        edited = replace(entry, criteria=replace(entry.criteria, config=config))
        workspace = replace(project.workspace, evalsets=(edited,))
        plan = await project.plan(workspace=workspace, names=[(entry.relative, "lost_parcel")])
        store = await project.run(plan).result()
    assert {record.ref.eval_id: record.state for record in store.current_records()} == {"lost_parcel": "passed"}


async def test_events_arrive_in_order_during_the_run(desk: Path) -> None:
    async with Project.open("order_desk") as project:
        events = [event async for event in project.run(await project.plan())]
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert sum(isinstance(event, CaseFinished) for event in events) == 2


async def test_leaving_the_loop_ends_the_run_and_every_process(desk: Path) -> None:
    async with Project.open("order_desk") as project:
        # The first run of this process starts the warm servers, which stay.
        await project.run(await project.plan()).result()
    pipe = desk.parent / "pipe"
    os.mkfifo(pipe)
    (desk / "agent.py").write_text(SLOW.format(pipe=str(pipe)), "utf-8")
    before = children()
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as writers:
        async with Project.open("order_desk") as project:
            async for event in project.run(await project.plan()):
                if isinstance(event, CaseStarted):
                    await asyncio.to_thread(select.select, [writers], [], [], 60)
                    break
            assert children() - before
            await asyncio.wait_for(project.close(), 60)
        assert writers.read(1_000)
        select.select([writers], [], [], 60)  # A killed process may still be ending.
        assert writers.read(1) == b"", "the agent still runs"
    assert children() <= before


def children() -> set[int]:
    """Return the processes that this one has started."""
    listed = Path("/proc/self/task").glob("*/children")
    return {int(pid) for thread in listed for pid in thread.read_text().split()}


async def test_result_after_an_iteration_matches_its_events(desk: Path) -> None:
    async with Project.open("order_desk") as project:
        run = project.run(await project.plan())
        events = [event async for event in run]
        store = await run.result()
        assert store.run.run_id == next(event.run_id for event in events if isinstance(event, RunStarted))
        assert store.counts() == {"passed": 1, "failed": 1}
        assert only_run(desk.parent / ".workbench")


async def test_run_can_be_iterated_over_only_once(desk: Path) -> None:
    async with Project.open("order_desk") as project:
        run = project.run(await project.plan())
        await run.result()
        with pytest.raises(RuntimeError, match="once"):
            [event async for event in run]
        assert project.store.counts() == {"passed": 1, "failed": 1}


async def test_runs_of_a_project_take_turns(desk: Path) -> None:
    events: list[Event] = []
    async with Project.open("order_desk") as project:
        runs = [project.run(await project.plan(), events.append) for _ in range(2)]
        await asyncio.gather(*(run.result() for run in runs))
    first = next(at for at, event in enumerate(events) if isinstance(event, RunFinished))
    assert sum(isinstance(event, RunStarted) for event in events[:first]) == 1
    assert sum(isinstance(event, CaseFinished) for event in events) == 4


@pytest.mark.parametrize("way", ["break", "raise", "watch"])
async def test_closing_the_project_ends_all_its_tasks(desk: Path, way: str) -> None:
    (desk / "agent.py").write_text(SLOW.format(pipe=os.devnull), "utf-8")
    before = asyncio.all_tasks()
    with contextlib.suppress(SeenEnoughError):
        async with Project.open("order_desk") as project:
            news = project.watch() if way == "watch" else project.run(await project.plan())
            async for event in news:
                if isinstance(event, CaseStarted):
                    if way == "raise":
                        raise SeenEnoughError
                    break
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_compare_names_the_cause_of_a_failure(desk: Path) -> None:
    async with Project.open("order_desk") as project:
        assert await verdicts(project) == {"late_parcel": "passed", "lost_parcel": "failed"}
        first = project.store.run.run_id
        (desk / "agent.py").write_text(AGENT.replace("on its way", "somewhere"), "utf-8")
        assert (await verdicts(project))["late_parcel"] == "failed"
        found = await project.compare(first)
        gate = await project.gate(first)
    assert found.count("regression") == 1
    assert (gate.failed, gate.rates.change, gate.drops[0].chance) == (False, -0.5, 0.5)
    (change,) = [one for one in found.cases if one.change == "regression"]
    assert any("agent.py" in cause.what for cause in change.causes)


async def test_status_runs_nothing(desk: Path) -> None:
    async with Project.open("order_desk") as project:
        assert [verdict.status for verdict in await project.status()] == [None, None]
        await verdicts(project)
        assert [verdict.status for verdict in await project.status()] == ["passed", "failed"]


async def test_rescored_verdicts_stay_fresh(desk: Path) -> None:
    async with Project.open("order_desk") as project:
        await verdicts(project)
        await (await project.score("last")).result()
        assert [verdict.changed for verdict in await project.status()] == [(), ()]
        (desk / "agent.py").write_text(f"{AGENT}# changed\n", "utf-8")
        changed = {(change.input, change.file) for verdict in await project.status() for change in verdict.changed}
    assert changed == {("agent_file", "order_desk/agent.py")}


async def test_wrong_names_and_thresholds_are_rejected(desk: Path) -> None:
    async with Project.open("order_desk") as project:
        with pytest.raises(UsageFaultError, match="refnds"):
            await project.plan("refnds.evalset.json")
        await verdicts(project)
        with pytest.raises(UsageFaultError, match=r"^criteria:.*response_mtch_score"):
            await project.score(criteria={"response_mtch_score": 0.5})
        with pytest.raises(UsageFaultError, match="response_match_score"):
            await project.score(criteria={"response_match_score": None})


async def test_unknown_place_is_refused_before_anything_is_written(desk: Path) -> None:
    async with Project("order_desk", place="nowhere") as project:
        with pytest.raises(UsageFaultError, match="nowhere"):
            project.run(await project.plan())
    assert not (desk.parent / ".workbench").exists()


async def test_run_uses_the_options_of_its_plan(desk: Path) -> None:
    async with Project.open("order_desk", keep_runs=False) as project:
        plan = await project.plan("refunds", cases=("late_parcel",), options=RunOptions(runs=3))
        store = await project.run(plan).result()
    assert store.counts() == {"passed": 3}
    assert not (desk.parent / ".workbench").exists()


async def test_plan_selects_cases_by_name_and_last_verdict(desk: Path) -> None:
    async with Project.open(desk) as project:
        await project.run(await project.plan()).result()
        failed = await project.plan(last_failed=True)
        assert [entry.ref.eval_id for entry in failed.entries] == ["lost_parcel"]
        named = await project.plan(name_contains="LATE")
        assert [entry.ref.eval_id for entry in named.entries] == ["late_parcel"]


async def test_run_ends_after_the_first_case_that_did_not_pass(desk: Path) -> None:
    async with Project.open(desk) as project:
        await project.run(await project.plan()).result()
        plan = await project.plan(options=RunOptions(exit_first=True, concurrency=1))
        plan = replace(plan, entries=plan.entries[::-1])
        store = await project.run(plan).result()
        assert [record.ref.eval_id for record in store.current_records()] == ["lost_parcel"]
        verdicts = {record.ref.eval_id: record.state for record in store.latest_verdicts()}
        assert verdicts == {"lost_parcel": "failed", "late_parcel": "passed"}
