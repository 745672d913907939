"""Repeated cases in the outcome of an evaluation."""

import pytest

from tests.cli.stores import ANSWER_PASSED, TRAJECTORY_FAILED, case_events, feed, ref, started
from workbench.testing.results import evaluation


def test_each_repeated_case_has_a_pass_rate() -> None:
    refs = [ref("late_parcel", repeat=number) for number in (1, 2, 3)]
    runs = [case_events(case, "passed", [ANSWER_PASSED]) for case in refs[:2]]
    found = evaluation(feed([started(refs)], *runs, case_events(refs[2], "failed", [TRAJECTORY_FAILED])), ())
    case = found.repeats_of("late_parcel")
    assert (case.rate.passed, case.rate.total, case.flaky) == (2, 3, True)
    assert case.pass_hat(2) == pytest.approx(1 / 3)
    assert "desk/refunds/late_parcel: 2/3 passed, 66% (20–94%), pass^3 0.00, FLAKY" in found.explanation()
    with pytest.raises(KeyError):
        found.repeats_of("other")


def test_single_execution_has_no_pass_rate() -> None:
    found = evaluation(feed([started([ref("late_parcel")])], case_events(ref("late_parcel"), "passed")), ())
    assert found.repeats == ()
