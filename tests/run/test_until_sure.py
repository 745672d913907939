"""The executions that `--until-sure` starts, and those that it leaves out."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.events.events import CaseError, CaseFinished, CaseRef, CaseStatus, ErrorKind, Usage
from workbench.run.case_queue import CaseQueue
from workbench.run.plan.plan import PlanEntry
from workbench.run.plan.run_plan import too_few
from workbench.store.rates import pass_rate, sure


@dataclass(frozen=True)
class _Entry:
    ref: CaseRef


def _entries(cases: int, runs: int) -> list[PlanEntry]:
    refs = [CaseRef("a", "f", "s", f"c{case}", repeat) for case in range(cases) for repeat in range(1, runs + 1)]
    return cast(list[PlanEntry], [_Entry(ref) for ref in refs])


def _ended(ref: CaseRef, status: CaseStatus, kind: ErrorKind | None = None, **usage: int) -> CaseFinished:
    error = None if kind is None else CaseError(kind, "because")
    return CaseFinished(ref, status, error, 0.1, Usage(**usage))


def _play(
    waiting: CaseQueue, outcome: Callable[[CaseRef], CaseFinished], at_once: int
) -> tuple[list[CaseRef], set[Any]]:
    """Run what is waiting, `at_once` at a time, oldest first. Return what ran and what was left out."""

    async def play() -> tuple[list[CaseRef], set[Any]]:
        executed: list[CaseRef] = []
        under_way: list[CaseRef] = []
        dropped: set[CaseRef] = set()
        while True:
            while len(under_way) < at_once:
                try:
                    entry = await asyncio.wait_for(waiting.next(), 0 if under_way else None)
                except TimeoutError:
                    break
                if entry is None:
                    break
                waiting.begin(entry.ref)
                under_way.append(entry.ref)
            if not under_way:
                return executed, dropped
            ref = under_way.pop(0)
            executed.append(ref)
            dropped.update(waiting.take(outcome(ref)))
            waiting.ended(ref)

    return asyncio.run(play())


def test_without_until_sure_cases_start_in_plan_order() -> None:
    entries = _entries(2, 3)
    executed, dropped = _play(CaseQueue(entries), lambda ref: _ended(ref, "passed"), 4)
    assert executed == [entry.ref for entry in entries]
    assert not dropped


@given(st.floats(0.3, 0.95), st.integers(1, 3), st.integers(1, 20), st.randoms(use_true_random=False))
def test_decided_cases_are_not_run_again(threshold: float, cases: int, at_once: int, random: Any) -> None:
    """For any outcomes and any number of concurrent runs, each case stops once it is sure."""
    entries = _entries(cases, 30)
    chances = [random.random() for _ in range(cases)]
    passed = {f"c{case}": [random.random() < chances[case] for _ in range(30)] for case in range(cases)}

    def outcome(ref: CaseRef) -> CaseFinished:
        return _ended(ref, "passed" if passed[ref.eval_id][ref.repeat - 1] else "failed")

    executed, dropped = _play(CaseQueue(entries, threshold), outcome, at_once)
    assert len(executed) == len(set(executed))
    assert {*executed, *dropped} == {entry.ref for entry in entries}
    for eval_id, verdicts in passed.items():
        made = [verdicts[ref.repeat - 1] for ref in executed if ref.eval_id == eval_id]
        looks = [sure(pass_rate(sum(made[:count]), count), threshold) for count in range(1, len(made) + 1)]
        assert not any(looks[:-1])
        assert looks[-1] or len(made) == 30


def test_cases_are_repeated_in_rounds() -> None:
    executed, _ = _play(CaseQueue(_entries(3, 2), 0.9), lambda ref: _ended(ref, "passed"), 1)
    assert [ref.repeat for ref in executed] == [1, 1, 1, 2, 2, 2]


def test_spent_budget_ends_only_cases_with_judges() -> None:
    def outcome(ref: CaseRef) -> CaseFinished:
        return _ended(ref, "passed", judge_calls=4 if ref.eval_id == "c0" else 0)

    executed, dropped = _play(CaseQueue(_entries(2, 10), 0.9, 8), outcome, 1)
    assert [ref.repeat for ref in executed if ref.eval_id == "c0"] == [1, 2]
    assert len([ref for ref in executed if ref.eval_id == "c1"]) == 10
    assert {ref.eval_id for ref in dropped} == {"c0"}


@pytest.mark.parametrize(("kind", "runs"), [("agent_raised", 3), ("judge", 10), ("quota", 10)])
def test_only_verdicts_on_the_agent_count(kind: ErrorKind, runs: int) -> None:
    executed, _ = _play(CaseQueue(_entries(1, 10), 0.9), lambda ref: _ended(ref, "error", kind, judge_calls=1), 1)
    assert len(executed) == runs


def test_cancelled_execution_does_not_start() -> None:
    waiting = CaseQueue(_entries(1, 3))
    assert waiting.remove(CaseRef("a", "f", "s", "c0", 2))
    assert not waiting.remove(CaseRef("a", "f", "s", "c0", 2))
    executed, _ = _play(waiting, lambda ref: _ended(ref, "passed"), 1)
    assert [ref.repeat for ref in executed] == [1, 3]


def test_closed_queue_starts_nothing() -> None:
    async def play() -> object:
        waiting = CaseQueue(_entries(1, 30), 0.9)
        while (task := asyncio.ensure_future(waiting.next())) and (await asyncio.wait([task], timeout=0))[0]:
            entry = task.result()
            assert entry is not None
            waiting.begin(entry.ref)
        waiting.close()
        return await task

    assert asyncio.run(play()) is None


def test_too_few_repeats_are_a_warning() -> None:
    notice = too_few(0.9, 20)
    assert notice is not None
    assert "44 passes" in notice.hint
    assert too_few(0.9, 44) is None
