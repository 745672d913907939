import pytest

from tests.cli.stores import all_statuses, case_events, feed, ref, started
from workbench.cli.exit_codes import exit_code
from workbench.events import CaseStatus, RunFinished
from workbench.store import Store


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


def test_interrupted_run_exits_with_130() -> None:
    assert exit_code(run_of("passed", interrupted=True)) == 130
    assert exit_code(all_statuses(interrupted=True)) == 130


def test_unfinished_case_is_not_a_success() -> None:
    assert exit_code(feed([started([ref("one"), ref("two")])], case_events(ref("one"), "passed"))) == 3


def test_empty_store_is_not_a_success() -> None:
    assert exit_code(Store()) == 3
