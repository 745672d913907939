"""Limits, budget and cancellation of calls, and the answers that are cached or shared."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.judges.clocks import Clock
from tests.judges.conftest import Waits, ask, first, key_environment
from tests.services.scripted_gemini import Asked, ScriptedGemini, failed, quota, said
from tests.services.scripted_gemini import Reply as ScriptedReply
from workbench.judges.base import JudgeOptions, NotAvailableError, Question, Reply
from workbench.judges.judge_pool import CaseBench, JudgeEnvironment, JudgePool, RunLimits


@pytest.fixture
def environment(server: ScriptedGemini) -> JudgeEnvironment:
    return key_environment(server.url)


async def until(condition: Callable[[], bool]) -> None:
    """Wait at most a minute for the effect of another thread or task."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def meeting(server: ScriptedGemini, number: int) -> Callable[[Asked], ScriptedReply]:
    """Return answers of which the first `number` take long enough to be open at the same time."""
    return lambda asked: said("yes").after(0.5 if len(server.asked) <= number else 0.01)


async def test_calls_at_once_are_limited_by_the_run(
    server: ScriptedGemini, pool: JudgePool, environment: JudgeEnvironment
) -> None:
    pool.begin_run(RunLimits(in_flight=3))
    server.answer = meeting(server, 3)
    benches = [pool.bench(environment, 1, False) for _ in range(4)]
    replies = await asyncio.gather(*(ask(bench, f"{n}?") for bench in benches for n in range(3 * 4)))
    assert all(reply.text == "yes" for reply in replies)
    assert server.peak == 3


async def test_limit_covers_all_models_and_environments(
    server: ScriptedGemini, pool: JudgePool, environment: JudgeEnvironment
) -> None:
    pool.begin_run(RunLimits(in_flight=2))
    server.answer = meeting(server, 2)
    other = JudgeEnvironment("other", {**environment.values, "GOOGLE_API_KEY": "another-key-0123456789"})
    work = [
        ask(pool.bench(each, 1, False), f"{number} for {each.key}?", model=model)
        for number in range(3)
        for each in (environment, other)
        for model in ("gemini-2.5-flash", "gemini-2.5-pro")
    ]
    await asyncio.gather(*work)
    assert (len(server.asked), server.peak) == (12, 2)


async def test_parallelism_limit_applies_to_its_criterion(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = meeting(server, 2)
    capped = bench.judge(JudgeOptions(parallel=2))
    await asyncio.gather(*(capped.ask(Question("claims", f"{number}?")) for number in range(8)))
    assert server.peak == 2


async def test_tally_counts_the_calls_of_a_case(server: ScriptedGemini, bench: CaseBench, clock: Clock) -> None:
    server.answer = first(failed(500))
    await ask(bench, "one?")
    await ask(bench, "one?")
    await ask(bench, "two?")
    tally = bench.tally
    assert (tally.calls, tally.cached, tally.input_tokens, tally.output_tokens) == (2, 1, 200, 40)


async def test_forgotten_reply_is_requested_again(server: ScriptedGemini, bench: CaseBench) -> None:
    judge = bench.judge(JudgeOptions())
    asked = Question("claims", "Is it so, \ud800?")
    for sample in (1, 2):
        await judge.ask(asked, sample)
    judge.forget(asked, 2)
    assert [(await judge.ask(asked, sample)).cached for sample in (1, 2)] == [True, False]
    assert len(server.asked) == 3


async def test_samples_and_repeats_are_cached_separately(
    server: ScriptedGemini, pool: JudgePool, environment: JudgeEnvironment
) -> None:
    for repeat in (1, 2):
        for sample in (1, 2, 1):
            await ask(pool.bench(environment, repeat, False), sample=sample)
    assert len(server.asked) == 4


async def test_exhausted_budget_is_a_fault(
    server: ScriptedGemini, pool: JudgePool, environment: JudgeEnvironment
) -> None:
    pool.begin_run(RunLimits(max_calls=3))
    server.answer = first(failed(500), failed(503))
    bench = pool.bench(environment, 1, False)
    replies = await asyncio.gather(*(ask(bench, f"{number}?") for number in range(5)))
    faults = [reply.fault for reply in replies if reply.fault is not None]
    assert [fault.kind for fault in faults] == ["limit", "limit"]
    assert "--max-judge-calls 3" in faults[0].message
    assert bench.tally.calls == 3
    assert len(server.asked) == 5, "two attempts failed; attempts are not calls"
    kept = await asyncio.gather(*(ask(bench, f"{number}?") for number in range(3)))
    assert all(reply.cached for reply in kept), "what is kept costs nothing"
    pool.begin_run(RunLimits(max_calls=1))
    assert (await ask(pool.bench(environment, 1, False), "6?")).text == "yes", "a run begins at 0"


async def test_concurrent_equal_questions_make_one_call(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = lambda asked: said("yes").after(0.02)
    replies = await asyncio.gather(ask(bench), ask(bench), ask(bench))
    assert [reply.text for reply in replies] == ["yes"] * 3
    assert sorted(reply.cached for reply in replies) == [False, True, True]
    assert (len(server.asked), bench.tally.calls, bench.tally.cached) == (1, 1, 2)


async def test_shared_call_survives_the_cancellation_of_one_caller(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = lambda asked: said("yes").after(0.1)
    one, other = asyncio.create_task(ask(bench)), asyncio.create_task(ask(bench))
    await until(lambda: len(server.asked) == 1)
    one.cancel()
    assert (await other).text == "yes"
    assert one.cancelled()
    assert len(server.asked) == 1


async def test_fault_is_not_cached(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = first(failed(418))
    assert (await ask(bench)).fault is not None
    assert (await ask(bench)).text == "yes"


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_final_refusal_stops_all_further_questions(
    server: ScriptedGemini, pool: JudgePool, bench: CaseBench, status: int
) -> None:
    server.answer = lambda asked: failed(status)
    first_reply = await ask(bench)
    others = [await ask(bench, f"{number}?") for number in range(3)]
    assert len(server.asked) == 1
    assert first_reply.fault is not None
    for reply in others:
        assert reply.fault is not None
        assert reply.fault.kind == "http"
        assert reply.fault.message == f"not sent, because an earlier call was refused: {first_reply.fault.message}"
    server.answer = lambda asked: said("yes")
    pool.begin_run(RunLimits())
    again = pool.bench(bench.clients.environment, 1, False)
    assert (await ask(again)).text == "yes", "the next run asks again: the key may be another one"


async def test_waiting_questions_are_not_sent_after_a_final_refusal(
    server: ScriptedGemini, waits: Waits, environment: JudgeEnvironment
) -> None:
    pool = JudgePool(waits)
    pool.begin_run(RunLimits(in_flight=1))
    bench = pool.bench(environment, 1, False)
    server.answer = lambda asked: failed(401)
    replies = await asyncio.gather(*(ask(bench, f"{number}?") for number in range(5)))
    await pool.close()
    assert (len(server.asked), sum(reply.fault is not None for reply in replies)) == (1, 5)


async def test_few_questions_are_sent_before_the_first_reply(
    server: ScriptedGemini, pool: JudgePool, bench: CaseBench
) -> None:
    for _ in range(2):
        server.asked.clear()
        server.answer = lambda asked: failed(401).after(0.2)
        replies = await asyncio.gather(*(ask(bench, f"{number}?") for number in range(60)))
        assert len(server.asked) <= 8
        assert all(reply.fault for reply in replies)
        pool.begin_run(RunLimits())
        bench = pool.bench(bench.clients.environment, 1, False)


@pytest.mark.parametrize("where", ["in flight", "in the queue", "in a back-off", "in a pause"])
async def test_cancelled_question_releases_everything_at_once(
    server: ScriptedGemini, waits: Waits, environment: JudgeEnvironment, where: str
) -> None:
    pool = JudgePool(waits)  # By the real clock: back-offs and pauses of seconds, time-outs of a minute.
    pool.begin_run(RunLimits(in_flight=1))
    bench = pool.bench(environment, 1, False)
    server.answer = lambda asked: {
        "in flight": said("late").after(60),
        "in the queue": said("late").after(60),
        "in a back-off": failed(503, Retry_After="60"),
        "in a pause": quota("60"),
    }[where]
    await bench.clients.answerer("gemini-2.5-flash").ready()
    tasks = [asyncio.create_task(ask(bench, f"{number}?")) for number in range(3 if where == "in the queue" else 1)]
    await until(lambda: len(server.asked) == 1)
    if where == "in a pause":
        await until(lambda: bool(waits.told))
    elif where == "in a back-off":
        await until(lambda: not bench.run.slots.locked())
    started = time.monotonic()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert all(task.cancelled() for task in tasks)
    assert time.monotonic() - started < 30
    server.answer = lambda asked: said("yes")
    if where == "in a pause":
        pool.begin_run(RunLimits(in_flight=1))
        bench = pool.bench(environment, 1, False)
    async with asyncio.timeout(60):
        assert (await ask(bench, "after all")).text == "yes"
        await pool.close()


async def test_closing_the_pool_cancels_calls_in_progress(
    server: ScriptedGemini, waits: Waits, environment: JudgeEnvironment
) -> None:
    pool = JudgePool(waits)
    server.answer = lambda asked: said("late").after(60)
    task = asyncio.create_task(ask(pool.bench(environment, 1, False)))
    await until(lambda: len(server.asked) == 1)
    async with asyncio.timeout(60):
        await pool.close()
        await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


async def test_pause_stops_only_its_own_model(
    server: ScriptedGemini, pool: JudgePool, environment: JudgeEnvironment, clock: Clock, waits: Waits
) -> None:
    refused = False

    def answer(asked: object) -> object:
        nonlocal refused
        if asked.model == "gemini-2.5-pro" and not refused:  # type: ignore[attr-defined]
            refused = True
            return quota("30")
        return said("yes")

    server.answer = answer  # type: ignore[assignment]
    bench = pool.bench(environment, 1, False)
    replies = await asyncio.gather(
        *(ask(bench, f"{n}?", model=model) for n in range(5) for model in ("gemini-2.5-pro", "gemini-2.5-flash"))
    )
    assert all(reply.text == "yes" for reply in replies)
    assert waits.told == [
        ("gemini-2.5-pro", 30.0, "429 RESOURCE_EXHAUSTED"),
        ("gemini-2.5-pro", 0.0, ""),
    ]


async def test_small_quota_answers_all_questions_eventually(
    server: ScriptedGemini, pool: JudgePool, environment: JudgeEnvironment, clock: Clock, waits: Waits
) -> None:
    """Ten calls a minute, sixty questions at once: each is answered, and few calls are spent on refusals."""
    served: list[float] = []
    refusals = 0

    def answer(asked: object) -> object:
        nonlocal refusals
        if len([at for at in served if at > clock.time - 60]) >= 10:
            refusals += 1
            return quota("61")
        served.append(clock.time)
        return said("yes")

    server.answer = answer  # type: ignore[assignment]
    bench = pool.bench(environment, 1, False)
    replies = await asyncio.gather(*(ask(bench, f"{number}?") for number in range(60)))
    assert all(reply.text == "yes" for reply in replies)
    assert len(served) == 60
    assert refusals < 100, "the first wave, and a few at each of the pauses"


async def test_each_agent_uses_its_own_key(server: ScriptedGemini, pool: JudgePool) -> None:
    keys = ["first-key-0123456789", "second-key-0123456789"]
    for key in keys:
        environment = JudgeEnvironment(key, {"GOOGLE_API_KEY": key, "GOOGLE_GEMINI_BASE_URL": server.url})
        pool.begin_run(RunLimits(use_cache=False))
        await ask(pool.bench(environment, 1, False))
    assert [asked.request.headers["x-goog-api-key"] for asked in server.asked] == keys


async def test_unavailable_judge_raises_before_any_call(pool: JudgePool) -> None:
    bench = pool.bench(JudgeEnvironment("none", {"HOME": "/nonexistent"}), 1, False)
    with pytest.raises(NotAvailableError, match=r"gemini-2\.5-flash needs a key") as caught:
        bench.judge(JudgeOptions())
    assert "GOOGLE_API_KEY" in caught.value.hint
    with pytest.raises(NotAvailableError):
        bench.service()


async def test_cached_answers_follow_the_runs_limits(
    server: ScriptedGemini, waits: Waits, environment: JudgeEnvironment, tmp_path: Path
) -> None:
    """Simulate two processes with two pools and one folder."""

    async def asked_with(limits: RunLimits) -> tuple[Reply, int]:
        pool = JudgePool(waits)
        pool.begin_run(limits)
        before = len(server.asked)
        reply = await ask(pool.bench(environment, 1, False))
        await pool.close()
        return reply, len(server.asked) - before

    folder = tmp_path / "cache"
    kept = RunLimits(cache_dir=folder)
    fresh, calls = await asked_with(kept)
    assert (fresh.cached, calls) == (False, 1)
    again, calls = await asked_with(kept)
    assert (again.text, again.cached, again.seconds, calls) == ("yes", True, 0.0, 0)
    assert again.model_version == fresh.model_version
    server.answer = lambda asked: said("no")
    asked_afresh, calls = await asked_with(RunLimits(cache_dir=folder, use_cache=False))
    assert (asked_afresh.text, calls) == ("no", 1)
    replaced, calls = await asked_with(kept)
    assert (replaced.text, calls) == ("no", 0)
    began = time.time()
    for since, expected in ((began + 60, 1), (began - 60, 0)):
        _, calls = await asked_with(RunLimits(cache_dir=folder, use_cache=False, since=since))
        assert calls == expected, "what a run that is resumed got itself is not asked again"


async def test_answer_with_a_secret_is_not_cached(
    server: ScriptedGemini, waits: Waits, environment: JudgeEnvironment, tmp_path: Path
) -> None:
    pool = JudgePool(waits)
    pool.begin_run(RunLimits(cache_dir=tmp_path, may_cache=lambda text: "s3cret" not in text))
    server.answer = lambda asked: said("the password is s3cret")
    await ask(pool.bench(environment, 1, False))
    await pool.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
