"""The expected number of judge calls."""

from typing import Any

import pytest

from tests.run.plan.preflight.cases import ANSWER, QUALITY, RUBRIC, TYPED, config, criteria, looked, said, texts
from workbench.files.criteria import Criterion
from workbench.run.plan.preflight_cases import CallRange, criterion_calls, options_of


@pytest.mark.parametrize(
    ("name", "options", "turns", "calls"),
    [
        ("final_response_match_v2", {}, 2, CallRange(6, 10)),
        ("final_response_match_v2", {"judge_model_options": {"num_samples": 1}}, 2, CallRange(2, 2)),
        ("final_response_match_v2", {"judge_model_options": {"num_samples": 4}}, 1, CallRange(3, 4)),
        (ANSWER, {"rubrics": [RUBRIC, TYPED]}, 2, CallRange(6, 10)),
        (ANSWER, {}, 2, CallRange(0, 0)),
        ("rubric_based_multi_turn_trajectory_quality_v1", {"rubrics": [RUBRIC]}, 3, CallRange(3, 5)),
        ("hallucinations_v1", {}, 3, CallRange(6, 6)),
        ("safety_v1", {}, 3, CallRange(3, 3)),
    ],
)
def test_calls_of_one_criterion_are_estimated(name: str, options: dict[str, Any], turns: int, calls: CallRange) -> None:
    criterion = Criterion(name, 0.5, {}, options)
    samples = options_of(criterion).samples
    assert criterion_calls(criterion, samples, CallRange(turns, turns), [], all_votes=False) == calls
    every = criterion_calls(criterion, samples, CallRange(turns, turns), [], all_votes=True)
    assert (every.low, every.high) == (calls.high, calls.high)


def test_calls_of_a_run_are_summed() -> None:
    judged = config(criteria(final_response_match_v2={}, hallucinations_v1={}))
    assert texts(looked(judged), looked(judged, eval_id="b"), runs=3)[-1].startswith("about 60 to 84 judge calls")
    assert texts(looked(judged), all_votes=True, use_cache=False) == ["about 14 judge calls expected"]
    once = criteria(final_response_match_v2={"judge_model_options": {"num_samples": 1}})
    assert texts(looked(config(once), turns=1), use_cache=False) == ["about 1 judge call expected"]
    assert texts(looked(judged), scale=2.5, use_cache=False) == ["about 25 to 35 judge calls expected"]


def test_notices_about_expected_calls_are_marked_as_forecasts() -> None:
    judged = looked(config(criteria(hallucinations_v1={})))
    notices = [*said(judged), *said(judged, max_judge_calls=1)]
    assert [notice.level for notice in notices if notice.forecast] == ["info", "warning"]
    assert all(notice.forecast == ("expected" in notice.message) for notice in notices)


def test_calls_of_the_simulated_user_are_counted() -> None:
    settings = config(
        criteria(**{QUALITY: {"judge_model_options": {"num_samples": 1}}}), {"max_allowed_invocations": 4}
    )
    assert texts(looked(settings, turns=None), use_cache=False) == ["about 2 to 7 judge calls expected"]


def test_more_calls_than_the_limit_are_a_warning() -> None:
    judged = config(criteria(final_response_match_v2={}))
    (notice,) = said(looked(judged), max_judge_calls=5, use_cache=False)
    assert notice.level == "warning"
    assert "--max-judge-calls 5 is not enough" in notice.message
    (notice,) = said(looked(judged), max_judge_calls=6, use_cache=False)
    assert notice.level == "info"
