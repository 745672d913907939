"""The lines about single criteria in the pane of scores."""

from workbench.history.case_rows import PastRun
from workbench.history.summary import Row
from workbench.model.criteria import Criterion
from workbench.rendering.lines import text_of
from workbench.rendering.reference import _criterion
from workbench.rendering.rows import View
from workbench.rendering.score_pane import past_run_lines


def _runs(*statuses: str) -> list[PastRun]:
    rows: list[Row] = [{"metrics": {"quality": [4.0, None, status]}} for status in statuses]
    return [PastRun("run", "", (row,)) for row in rows]


def test_past_scores_without_a_threshold_are_no_failures() -> None:
    (line,) = past_run_lines("quality", _runs("informational", "informational"), View(70))
    assert text_of(line).endswith("never decided")
    (line,) = past_run_lines("quality", _runs("passed", "failed", "informational"), View(70))
    assert text_of(line).endswith("passed 1 of 2")


def test_criterion_without_a_threshold_is_not_shown_with_one() -> None:
    assert text_of(tuple(_criterion(Criterion("quality", 0.0, None, {})))) == "quality without a threshold"
    assert text_of(tuple(_criterion(Criterion("quality", 4.0, 4.0, {})))) == "quality ≥ 4"
