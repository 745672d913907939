"""Pictures of many cases: what they count, and that they fit whatever the names."""

import math

import pytest

from tests.hostile import HOSTILE
from workbench.events import CaseRef, MetricResult, PlannedCase, Usage
from workbench.history.pass_rates import RunRate
from workbench.store import CaseRecord
from workbench.ui.cells import cell_len
from workbench.ui.pictures.figures import BINS, dearest, scores, slowest
from workbench.ui.pictures.lines import picture_lines
from workbench.ui.render.lines import text_of


def record(name: str, score: float | None = None, seconds: float = 1.0, tokens: int = 10) -> CaseRecord:
    made = CaseRecord(PlannedCase(CaseRef("desk", "desk/talk.evalset.json", "talk", name), None, ""), "passed")
    if score is not None:
        status = "passed" if score >= 0.8 else "failed"
        made.metrics = {"match": MetricResult("match", status, score, 0.8)}  # type: ignore[arg-type]
    made.duration_seconds, made.usage = seconds, Usage(1, tokens, 0, judge_output_tokens=1)
    return made


def test_scores_are_counted_where_they_belong() -> None:
    given = [0.0, 0.049, 0.05, 0.15, 0.8, 0.99, 1.0, 1.0, 7.0, -3.0, math.nan]
    (found,) = scores(record(str(number), score) for number, score in enumerate(given))
    bins = [0] * BINS
    for place, count in ((0, 3), (1, 1), (3, 1), (16, 1), (19, 1), (20, 3)):
        bins[place] = count
    assert found.bins == tuple(bins)
    assert (found.passed, found.failed, found.threshold) == (5, 5, 0.8)


def test_the_slowest_and_the_dearest_come_first_and_what_took_nothing_is_left_out() -> None:
    records = [record("a", seconds=2), record("b", seconds=3, tokens=5), record("c", seconds=0, tokens=99)]
    assert [share.record.ref.eval_id for share in slowest(records)] == ["b", "a"]
    assert [share.amount for share in dearest(records, 2)] == [100.0, 11.0]


@pytest.mark.parametrize("width", [24, 56, 76, 126])
@pytest.mark.parametrize("name", ["short", "返金の確認をする長い名前のテスト" * 3, *HOSTILE])
def test_every_line_fits(width: int, name: str) -> None:
    records = [record(f"{name}{number}", number / 100, number) for number in range(100)]
    records[0].metrics[name] = MetricResult(name, "failed", 0.3, 0.5)
    rates = [RunRate(name, "", number % 4, 3) for number in range(70)]
    for line in picture_lines(records, rates, width):
        assert cell_len(text_of(line)) <= width
        assert "\x1b" not in text_of(line)


def test_a_run_is_a_column_and_the_last_one_is_told() -> None:
    told = [text_of(line) for line in picture_lines([], [RunRate("a", "", 0, 4), RunRate("b", "", 3, 4)], 80)]
    (bottom,) = [line for line in told if line.startswith("  0 %")]
    assert bottom.split()[2:] == ["▁", "█"]
    assert any("2 runs  now 75 % (3 of 4)  best 75 %" in line for line in told)


def test_nothing_to_see_says_so() -> None:
    told = " ".join(text_of(line) for line in picture_lines([], None, 80))
    assert "nothing has run yet" in told
    assert "reading …" in told
