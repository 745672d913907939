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
def test_the_worst_status_decides(statuses: tuple[CaseStatus, ...], code: int) -> None:
    assert exit_code(run_of(*statuses)) == code


def test_an_interrupted_run_says_so_whatever_was_scored() -> None:
    assert exit_code(run_of("passed", interrupted=True)) == 130
    assert exit_code(all_statuses(interrupted=True)) == 130


def test_a_case_that_never_ended_is_no_success() -> None:
    assert exit_code(feed([started([ref("one"), ref("two")])], case_events(ref("one"), "passed"))) == 3


def test_a_store_that_saw_no_run_is_no_success() -> None:
    assert exit_code(Store()) == 3
