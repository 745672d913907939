"""The status of a case, by the table of statuses."""

import itertools

import pytest

from workbench.engine.verdict import case_status, metric_error
from workbench.events import CaseStatus, MetricResult, MetricStatus


def results(*statuses: MetricStatus) -> list[MetricResult]:
    return [MetricResult(f"metric_{number}", status) for number, status in enumerate(statuses)]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["passed"], "passed"),
        (["passed", "failed"], "failed"),
        (["passed", "not_evaluated"], "not_evaluated"),
        (["failed", "not_evaluated"], "failed"),
        (["failed", "error"], "error"),
        (["passed", "not_applicable", "informational"], "passed"),
        (["not_applicable"], "not_evaluated"),
        (["informational"], "not_evaluated"),
        ([], "not_evaluated"),
    ],
)
def test_status(statuses: list[MetricStatus], expected: CaseStatus) -> None:
    for order in itertools.permutations(statuses):
        assert case_status(results(*order)) == expected


def test_what_is_not_evaluated_can_be_left_out() -> None:
    assert case_status(results("passed", "not_evaluated"), allow_not_evaluated=True) == "passed"
    assert case_status(results("failed", "not_evaluated"), allow_not_evaluated=True) == "failed"
    assert case_status(results("not_evaluated"), allow_not_evaluated=True) == "not_evaluated"


def test_the_error_of_a_metric_is_told() -> None:
    crashed = MetricResult("m", "error", None, 1.0, "KeyError", {"traceback": "Traceback …"})
    error = metric_error([*results("passed"), crashed])
    assert error is not None
    assert (error.kind, error.message, error.traceback) == ("metric_crashed", "m: KeyError", "Traceback …")
    assert metric_error(results("failed")) is None
