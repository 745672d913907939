"""The scores of a criterion in earlier runs, and its words."""

import math
from dataclasses import replace
from typing import Any

import pytest

from workbench.events.events import CaseRef, MetricResult, MetricStatus, PlannedCase
from workbench.files.criteria import Criterion
from workbench.results.definition import _criterion
from workbench.results.document import Subject
from workbench.results.history import build, past_run_lines
from workbench.results.lines import View
from workbench.store.execution import CaseRecord, Execution
from workbench.store.history.latest import PastRun


def _runs(*statuses: MetricStatus) -> list[PastRun]:
    planned = PlannedCase(CaseRef("desk", "file", "set", "case"), None, "")
    results = [MetricResult("quality", status, 4.0) for status in statuses]
    return [PastRun("run", "", (Execution(planned, "failed", scores={"quality": one}),)) for one in results]


def test_past_scores_without_a_threshold_do_not_count_as_failures() -> None:
    _, line = past_run_lines("quality", _runs("informational", "informational"), View(70))
    assert line.plain.endswith("never decided")
    _, line = past_run_lines("quality", _runs("passed", "failed", "informational"), View(70))
    assert line.plain.endswith("passed 1 of 2")


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 1e308])
def test_past_score_of_any_number_is_drawn(score: float) -> None:
    other, run = MetricResult("quality", "failed", -score), _runs("failed")[0]
    runs = [run, PastRun("run", "", (replace(run.executions[0], scores={"quality": replace(other, score=score)}),))]
    runs.append(PastRun("run", "", (replace(run.executions[0], scores={"quality": other}),)))
    _, line = past_run_lines("quality", runs, View(70))
    assert line.plain.endswith("passed 0 of 3")


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ({"earlier": tuple(_runs("failed"))}, "There is no earlier verdict of this case."),
        ({"loading": True}, "Earlier verdicts are still being read."),
        ({"earlier": tuple(_runs("failed", "failed"))}, "Its earlier runs have no scores to show."),
    ],
)
def test_history_without_earlier_verdicts_says_so(subject: dict[str, Any], words: str) -> None:
    planned = PlannedCase(CaseRef("desk", "file", "set", "case"), None, "")
    document = build(Subject(CaseRecord(planned, "failed"), **subject), View(90))
    assert [line.plain.strip() for line in document.lines] == [words]


def test_criterion_without_a_threshold_shows_no_threshold() -> None:
    assert _criterion(Criterion("quality", 0.0, None, {})).plain == "quality without a threshold"
    assert _criterion(Criterion("quality", 4.0, 4.0, {})).plain == "quality ≥ 4.00"


def test_options_of_a_criterion_are_shown_as_text() -> None:
    options = {
        "judge_model_options": {"judge_model": "gemini-2.5-flash", "num_samples": 5},
        "rubrics": [{"rubric_id": "a"}, {"rubric_id": "b"}],
        "include_agent_tools": True,
    }
    shown = _criterion(Criterion("final_response_match_v2", 1.0, 1.0, options)).plain
    assert shown == (
        "final_response_match_v2 ≥ 1.00, judge gemini-2.5-flash, 5 samples, 2 rubrics, include agent tools"
    )
    assert _criterion(Criterion("own", 1.0, 1.0, {"rubrics": [{"rubric_id": "a"}]})).plain == "own ≥ 1.00, 1 rubric"
