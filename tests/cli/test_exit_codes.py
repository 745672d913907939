from dataclasses import replace

import pytest

from tests.cli.stores import all_statuses, case_events, feed, ref, started
from workbench.cli.exit_codes import exit_code
from workbench.events.events import CaseStatus, RunFinished
from workbench.store.store import Store


def run_of(*statuses: CaseStatus, interrupted: bool = False) -> Store:
    refs = [ref(f"case {number}") for number in range(len(statuses))]
    cases = [case_events(case, status) for case, status in zip(refs, statuses, strict=True)]
    return feed([started(refs)], *cases, [RunFinished(1.0, interrupted)])


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ((), 3),
        (("passed",), 0),
        (("passed", "passed"), 0),
        (("passed", "failed"), 1),
        (("failed",), 1),
        (("error",), 3),
        (("passed", "error"), 3),
        (("failed", "error"), 3),
        (("passed", "not_evaluated"), 3),
        (("failed", "not_evaluated"), 3),
    ],
)
def test_worst_status_decides_the_exit_code(statuses: tuple[CaseStatus, ...], code: int) -> None:
    assert exit_code(run_of(*statuses)) == code


@pytest.mark.parametrize(
    ("cases", "code"),
    [
        ([("passed", 7)], 0),
        ([("passed", 20), ("failed", 2)], 0),  # Single repeats that fail do not change it.
        ([("passed", 7), ("error", 3)], 0),
        ([("passed", 5)], 3),
        ([("failed", 7)], 1),
        ([("error", 7)], 3),
        ([("cancelled", 7)], 3),
    ],
)
def test_pass_rate_decides_the_exit_code_with_until_sure(cases: list[tuple[CaseStatus, int]], code: int) -> None:
    statuses = [status for status, times in cases for _ in range(times)]
    assert exit_code(until_sure(one=statuses)) == code
    surely = exit_code(until_sure(one=statuses, two=["passed"] * 7))
    assert surely == code
    assert exit_code(until_sure(one=statuses, two=["failed"] * 7)) == max(code, 1)
    assert exit_code(until_sure(one=statuses, two=["passed", "failed"])) == 3
    assert exit_code(until_sure(one=statuses, interrupted=True)) == 130


def until_sure(*, interrupted: bool = False, **cases: list[CaseStatus]) -> Store:
    """Return a run that was to establish a pass rate of 50%, with the statuses of each case's repeats."""
    named = [
        (ref(name, repeat=number), status) for name, all_ in cases.items() for number, status in enumerate(all_, 1)
    ]
    begun = replace(started([case for case, _ in named]), until_sure=0.5)
    return feed([begun], *(case_events(case, status) for case, status in named), [RunFinished(1.0, interrupted)])


def test_interrupted_run_exits_with_130() -> None:
    assert exit_code(run_of("passed", interrupted=True)) == 130
    assert exit_code(all_statuses(interrupted=True)) == 130


def test_unfinished_case_exits_with_3() -> None:
    assert exit_code(feed([started([ref("one"), ref("two")])], case_events(ref("one"), "passed"))) == 3


def test_empty_store_exits_with_3() -> None:
    assert exit_code(Store()) == 3
