"""Criteria that ask judges: side by side, in any order, and when the scorer dies."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.run.project import turn
from workbench.criteria.base import Scored
from workbench.files.criteria import Criterion
from workbench.run.processes.children import Children
from workbench.run.scoring.client import Conversation

CALLS = Criterion("tool_trajectory_avg_score", 1.0, 1.0, {})
ROUGE = Criterion("response_match_score", 0.5, 0.5, {})
ENVIRONMENT: dict[str, Any] = {
    "key": "one",
    "values": {"WHO": "one", "DESK_KEY": "sk-one-12345678"},
    "interpreter": "python",
    "root": "/root",
    "folder": "/root/desk",
    "cwd": "/root",
}


@pytest_asyncio.fixture
async def children(monkeypatch: pytest.MonkeyPatch, warm_scorers: None) -> AsyncIterator[Children]:
    monkeypatch.setattr("workbench.run.scoring.client.MODULE", "tests.run.scripted_scorer")
    monkeypatch.setattr("workbench.run.scoring.client.needs_bench", lambda name, custom=False: name.startswith("ask"))
    async with Children() as warm:
        limit(warm)
        yield warm


def limit(children: Children, waits: list[tuple[str, float, str]] | None = None, **limits: Any) -> None:
    kept: list[tuple[str, float, str]] = [] if waits is None else waits
    values = {"in_flight": 100, "max_calls": None, "use_cache": True, "cache_dir": None, "timeout": 300.0}
    children.scorer.begin_run(on_wait=lambda *wait: kept.append(wait), **(values | limits))


def ask(do: str = "", name: str = "ask", **options: str) -> Criterion:
    return Criterion(name, 0.5, 0.5, {"do": do, **options})


def conversation(*criteria: Criterion, who: str = "one", answer: str = "ok", **how: Any) -> Conversation:
    values = {**ENVIRONMENT["values"], "WHO": who}
    environment = {**ENVIRONMENT, "key": who, "values": values}
    return Conversation(criteria, [turn("hello", "ok")], [turn("hello", answer)], environment=environment, **how)


async def details(children: Children, *criteria: Criterion, **how: Any) -> dict[str, Any]:
    scored = await children.scorer.score(conversation(*(criteria or [ask()]), **how), lambda one: None)
    return scored[-1].result.details


def summary(scored: Iterable[Scored]) -> list[tuple[str, str]]:
    return [(one.result.name, one.result.status) for one in scored]


async def test_results_are_in_the_order_of_the_criteria(children: Children) -> None:
    seen: list[str] = []
    criteria = (ask("hold", "ask_1"), ROUGE, ask("release", "ask_2"), CALLS)
    scored = await children.scorer.score(conversation(*criteria), lambda one: seen.append(one.result.name))
    assert seen == [ROUGE.name, CALLS.name, "ask_2", "ask_1"], "what is computed waits for nobody"
    assert [one.result.name for one in scored] == ["ask_1", ROUGE.name, "ask_2", CALLS.name]


async def test_cases_do_not_wait_for_each_other(children: Children) -> None:
    held = asyncio.create_task(children.scorer.score(conversation(ask("hold")), lambda one: None))
    computed = await children.scorer.score(conversation(CALLS), lambda one: None)
    assert computed[0].result.status == "passed"
    await children.scorer.score(conversation(ask("release")), lambda one: None)
    assert summary(await held) == [("ask", "passed")]


async def test_each_case_is_judged_in_the_environment_of_its_agent(children: Children) -> None:
    limit(children, in_flight=7, max_calls=10, use_cache=False, cache_dir=Path("/state/cache"))
    one, two = await asyncio.gather(details(children, repeat=3), details(children, who="two", all_votes=True))
    assert (one["who"], one["repeat"], one["all_votes"]) == ("one", 3, False)
    assert (two["who"], two["repeat"], two["all_votes"]) == ("two", 1, True)
    assert one["limits"] == two["limits"] == [7, 10, False, "/state/cache"]
    assert one["keeps"] == [True, False], "an answer with a secret is not kept"


async def test_limits_of_the_newest_run_apply(children: Children) -> None:
    await details(children)
    limit(children, max_calls=3)
    assert (await details(children))["limits"][1] == 3


async def test_new_scorer_gets_only_the_remaining_budget(children: Children) -> None:
    limit(children, max_calls=10)
    await details(children, ask("count"), ask("count", "ask_2"))
    assert children.scorer.pid is not None
    os.kill(children.scorer.pid, signal.SIGKILL)
    while children.scorer.pid is not None:
        await asyncio.sleep(0)
    assert (await details(children))["limits"][1] == 10 - 2 * 3
    limit(children, max_calls=10)
    assert (await details(children))["limits"][1] == 10, "a new run has its own"


async def test_custom_metric_is_sent_with_its_definition(children: Children) -> None:
    custom = {"ask": {"code_config": {"name": "desk.metrics.polite"}}}
    case = conversation(ask())
    case.custom = custom
    scored = await children.scorer.score(case, lambda one: None)
    assert scored[0].result.details["custom"] == custom["ask"]


async def test_judge_calls_are_counted(children: Children) -> None:
    tally = (await details(children, ask("count")))["tally"]
    assert tally == {"calls": 3, "cached": 2, "input_tokens": 40, "output_tokens": 4, "seconds": 0.0}
    assert "tally" not in await details(children)


@pytest.mark.parametrize(("do", "reason"), [("raise", "LookupError: no such sentence"), ("exit", "SystemExit: enough")])
async def test_exception_of_a_criterion_affects_only_this_criterion(do: str, reason: str, children: Children) -> None:
    scored = await children.scorer.score(conversation(ask(do), ask(name="ask_2")), lambda one: None)
    assert summary(scored) == [("ask", "error"), ("ask_2", "passed")]
    assert reason in scored[0].result.reason
    assert "score_with_bench" in scored[0].result.details["traceback"]


@pytest.mark.parametrize(
    ("do", "who", "reason"),
    [("nothing", "one", "NoneType"), ("cancelled", "one", "CancelledError"), ("", "nobody", "no such office")],
)
async def test_every_criterion_gets_a_result(do: str, who: str, reason: str, children: Children) -> None:
    """A task that ended without one would be waited for without end."""
    scored = await children.scorer.score(conversation(ask(do), CALLS, who=who), lambda one: None)
    assert summary(scored) == [("ask", "error"), (CALLS.name, "passed")]
    assert reason in scored[0].result.reason


async def test_missing_judge_is_not_evaluated_with_a_hint(children: Children) -> None:
    scored = await children.scorer.score(conversation(ask("unavailable")), lambda one: None)
    assert summary(scored) == [("ask", "not_evaluated")]
    assert scored[0].result.reason == "gemini needs a key: set GOOGLE_API_KEY"


async def test_pauses_and_notices_are_forwarded(children: Children) -> None:
    waits: list[tuple[str, float, str]] = []
    notices: list[str] = []
    limit(children, waits, on_notice=notices.append)
    await details(children, ask("wait"))
    assert waits == [("gemini", 12.5, "quota")]
    assert notices == ["answers cannot be kept"]


async def test_cancelled_scoring_asks_no_more_judges(children: Children) -> None:
    shown: list[Scored] = []
    task = asyncio.create_task(
        children.scorer.score(conversation(CALLS, ask("hold", "ask_held")), lambda one: shown.append(one))
    )
    while not shown:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert summary(shown) == [(CALLS.name, "passed")]
    assert (await details(children))["cancelled"] == ["ask_held"]


async def test_skipping_judges_keeps_computed_verdicts(children: Children) -> None:
    seen: list[str] = []
    case = conversation(ask("hold", "ask_held"), ROUGE, CALLS)
    task = asyncio.create_task(children.scorer.score(case, lambda one: seen.append(one.result.name)))
    await asyncio.sleep(0)
    children.scorer.skip_judges(case)
    assert summary(await task) == [(ROUGE.name, "passed"), (CALLS.name, "passed")]
    assert seen == [ROUGE.name, CALLS.name]
    assert (await details(children))["cancelled"] == ["ask_held"]


async def test_skipping_judges_completes_a_computed_request(children: Children) -> None:
    seen: list[str] = []
    case = conversation(ask("hold", "ask_held"), CALLS)
    task = asyncio.create_task(children.scorer.score(case, lambda one: seen.append(one.result.name)))
    while not seen:
        await asyncio.sleep(0)
    children.scorer.skip_judges(case)
    assert summary(await task) == [(CALLS.name, "passed")]


async def test_pending_questions_are_asked_again_once_if_the_scorer_dies(children: Children, tmp_path: Path) -> None:
    seen: list[str] = []
    deadly = ask("die once", "ask_deadly", marker=str(tmp_path / "died"))
    scored = await children.scorer.score(
        conversation(CALLS, deadly, ask(name="ask_other")), lambda one: seen.append(one.result.name)
    )
    assert summary(scored) == [(CALLS.name, "passed"), ("ask_deadly", "passed"), ("ask_other", "passed")]
    assert sorted(seen) == ["ask_deadly", "ask_other", CALLS.name], "each is shown once"
    assert scored[1].result.details["who"] == "one", "the next scorer knows the environment too"


async def test_judged_criterion_that_kills_the_scorer_twice_is_an_error(children: Children) -> None:
    scored = await children.scorer.score(conversation(CALLS, ask("die")), lambda one: None)
    assert summary(scored) == [(CALLS.name, "passed"), ("ask", "error")]
    assert "exit code 3" in scored[1].result.reason
    assert summary(await children.scorer.score(conversation(ask()), lambda one: None)) == [("ask", "passed")]


async def test_crash_in_a_calculation_is_not_blamed_on_judges(children: Children) -> None:
    """Each criterion has its own attempts, and a question lost in another's death does not lose one of its own."""
    held = asyncio.create_task(children.scorer.score(conversation(ask("hold")), lambda one: None))
    results: list[Scored] = []

    async def kill_whatever_runs() -> None:
        killed = set()
        while not results:
            pid = children.scorer.pid
            if pid is not None and pid not in killed and children.scorer.ready:
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0)

    await details(children)
    killer = asyncio.create_task(kill_whatever_runs())
    await children.scorer.score(conversation(ROUGE, answer="word " * 300_000), results.append)
    await killer
    assert summary(results) == [(ROUGE.name, "error")]
    await children.scorer.score(conversation(ask("release", "ask_2")), lambda one: None)
    assert summary(await held) == [("ask", "passed")]


def patience(children: Children, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Begin a run in which the scorer may be silent for so many seconds."""
    monkeypatch.setattr("workbench.run.scoring.client._GRACE", seconds / 2)
    limit(children, timeout=seconds / 2)


async def test_long_wait_for_a_judge_is_not_a_hang(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge may take longer than a calculation: the scorer says now and then that it is alive."""
    await details(children)
    patience(children, monkeypatch, 2.0)
    pid = children.scorer.pid
    held = asyncio.create_task(children.scorer.score(conversation(ask("hold")), lambda one: None))
    signs = asyncio.Semaphore(0)
    take = children.scorer._take

    def count(frame: dict[str, Any]) -> None:
        signs.release()
        take(frame)

    assert children.scorer._child is not None
    monkeypatch.setattr(children.scorer._child.channel, "_on_frame", count)
    until = time.monotonic() + 2.5
    while time.monotonic() < until:
        await signs.acquire()
    await children.scorer.score(conversation(ask("release", "ask_2")), lambda one: None)
    assert summary(await held) == [("ask", "passed")]
    assert children.scorer.pid == pid


async def test_endless_calculation_ends_with_an_error(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    await details(children)
    patience(children, monkeypatch, 2.0)
    scored = await children.scorer.score(conversation(CALLS, ask("hang")), lambda one: None)
    assert summary(scored) == [(CALLS.name, "passed"), ("ask", "error")]
    assert "SIGKILL" in scored[1].result.reason


async def test_cancelled_run_does_not_wait_for_an_endless_calculation(
    children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.run.scoring.client._AFTER_CANCEL", 0.2)
    await details(children)
    hanging, cancelled = conversation(ask("hang")), conversation(CALLS, ask("hold"))
    scores = [asyncio.create_task(children.scorer.score(one, lambda scored: None)) for one in (hanging, cancelled)]
    await asyncio.sleep(0)
    children.scorer.skip_judges(cancelled)
    children.scorer.run_cancelled()
    # A case that nobody cancelled has a verdict for each criterion.
    assert [summary(await one) for one in scores] == [[("ask", "error")], []]


async def test_stopped_scorer_is_replaced(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.agents.child_process._CHECK_EVERY", 0.02)
    await details(children)
    pid = children.scorer.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    assert summary(await children.scorer.score(conversation(CALLS), lambda one: None)) == [(CALLS.name, "passed")]
    assert children.scorer.pid != pid


async def test_too_large_explanation_is_dropped_but_not_the_verdict(children: Children) -> None:
    scored = await children.scorer.score(conversation(ask("flood")), lambda one: None)
    assert summary(scored) == [("ask", "passed")]
    details = scored[0].result.details
    assert details["judge"] == {"model": "gemini"}
    assert details["tally"]["calls"] == 3
    assert "left_out" in details
    assert scored[0].turns[0].details == {}


async def test_closing_does_not_wait_for_judges(children: Children) -> None:
    held = asyncio.create_task(children.scorer.score(conversation(ask("hold")), lambda one: None))
    await details(children)
    began = time.monotonic()
    await children.scorer.close()
    assert time.monotonic() - began < 30
    held.cancel()


async def test_channel_carries_frames_of_other_handlers(children: Children) -> None:
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    scorer = children.scorer
    line = scorer.open_channel(ENVIRONMENT, said.put_nowait, lambda how: None)
    scorer.send(line, {"op": "echo", "text": "hello"})
    assert await said.get() == {"op": "echoed", "id": line.number, "text": "hello", "environments": ["one"]}
    scorer.send(line, {"op": "fail"})
    failed = await said.get()
    assert (failed["op"], failed["reason"]) == ("failed", "LookupError: no such persona")
    assert "fail" in failed["traceback"]
    scorer.send(line, {"op": "stay"})
    assert (await said.get())["op"] == "stays"
    scorer.close_channel(line)
    assert (await details(children))["cancelled"] == ["stay"]


async def test_channel_is_lost_with_the_scorer(children: Children) -> None:
    lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    line = children.scorer.open_channel(ENVIRONMENT, said.put_nowait, lost.set_result)
    children.scorer.send(line, {"op": "stay"})
    await said.get()
    assert children.scorer.pid is not None
    os.kill(children.scorer.pid, signal.SIGKILL)
    assert "SIGKILL" in await lost
    children.scorer.send(line, {"op": "stay"})
    children.scorer.close_channel(line)
    assert said.empty()
