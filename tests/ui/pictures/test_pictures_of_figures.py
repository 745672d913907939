"""Charts of many cases: what they count, and that they fit whatever the names are."""

import math
from dataclasses import replace

import pytest

from tests.hostile import HOSTILE
from workbench.events import CaseRef, MetricResult, PlannedCase, Usage
from workbench.execution import CaseRecord, Turn
from workbench.exporting.charts import distribution
from workbench.history.pass_rates import RunRate, Trend
from workbench.prices import Price, Prices
from workbench.rendering.cells import cell_len
from workbench.rendering.charts.costs import costs
from workbench.rendering.charts.figures import BINS, most_expensive, most_tokens, scores, slowest
from workbench.rendering.charts.lines import chart_lines
from workbench.rendering.lines import text_of


def record(name: str, score: float | None = None, seconds: float = 1.0, tokens: int = 10) -> CaseRecord:
    made = CaseRecord(PlannedCase(CaseRef("desk", "desk/talk.evalset.json", "talk", name), None, ""), "passed")
    if score is not None:
        status = "passed" if score >= 0.8 else "failed"
        made.scores = {"match": MetricResult("match", status, score, 0.8)}  # type: ignore[arg-type]
    made.duration_seconds, made.usage = seconds, Usage(1, tokens, 0, judge_output_tokens=1)
    return made


def test_scores_are_counted_in_their_bins() -> None:
    given = [0.0, 0.049, 0.05, 0.15, 0.8, 0.99, 1.0, 1.0, 7.0, -3.0, math.nan]
    (found,) = scores(record(str(number), score) for number, score in enumerate(given))
    bins = [0] * BINS
    for place, count in ((0, 3), (1, 1), (3, 1), (16, 1), (19, 1), (20, 3)):
        bins[place] = count
    assert found.bins == tuple(bins)
    assert (found.passed, found.failed, found.threshold) == (5, 5, 0.8)


def test_slowest_cases_come_first_and_cases_without_duration_are_left_out() -> None:
    records = [record("a", seconds=2), record("b", seconds=3, tokens=5), record("c", seconds=0, tokens=99)]
    assert [share.record.ref.eval_id for share in slowest(records)] == ["b", "a"]
    assert [share.amount for share in most_tokens(records)[:2]] == [100.0, 11.0]


def test_only_the_slowest_execution_of_a_case_is_shown() -> None:
    records = [record("often", seconds=number) for number in range(1, 20)] + [record("once", seconds=2)]
    for number, one in enumerate(records[:-1], 1):
        one.planned = PlannedCase(replace(one.ref, repeat=number), None, "")
    assert [(share.record.ref.eval_id, share.record.ref.repeat) for share in slowest(records)] == [
        ("often", 19),
        ("once", 1),
    ]


def paid(name: str, model: str, *, told: bool = True) -> CaseRecord:
    """Build a case in which the agent called `model` once.

    If `told`, the model reported a thousand tokens in and out.
    """
    made = record(name)
    tokens = {"usage_metadata": {"prompt_token_count": 1000, "candidates_token_count": 1000}} if told else {}
    event = {"author": "desk", "model_version": model, "content": {"parts": [{"text": "yes"}]}, **tokens}
    made.turns = [Turn({}, acted=[event])]
    return made


def test_cost_is_shown_if_all_prices_are_known_else_the_missing_ones() -> None:
    assert costs([paid("a", "m")], None) is None
    assert costs([paid("a", "m")], Prices()) is None
    records = [paid("cheap", "m"), paid("dear", "l"), paid("unpriced", "x"), paid("silent", "m", told=False)]
    records += [paid("judged", "m"), record("of_a_report")]
    tally = {"calls": 1, "input_tokens": 1000, "output_tokens": 0}
    details = {"judge": {"model": "judge"}, "tally": tally}
    records[4].metrics["match"] = MetricResult("match", "passed", 1.0, 0.8, "", details)
    found = costs(records, Prices({"m": Price(1.0, 1.0), "l": Price(5.0, 5.0)}, "EUR"))
    assert found is not None
    assert {ref.eval_id: amount for ref, amount in found.amounts.items()} == {"cheap": 0.002, "dear": 0.01}
    assert (found.unknown, found.missing) == (4, ("judge", "m", "the agent's model", "x"))
    assert [share.record.ref.eval_id for share in most_expensive(records, found)] == ["dear", "cheap"]
    told = "\n".join(text_of(line) for line in chart_lines(records, Trend(), 76, found))
    assert "talk › dear    0.010 EUR  ━━" in told
    assert "unknown for 4: no price or token count for judge, m, the agent's" in told


def test_page_without_prices_says_how_to_add_them() -> None:
    assert "[prices]" in "\n".join(text_of(line) for line in chart_lines([record("a")], Trend(), 76))


@pytest.mark.parametrize("width", [24, 56, 76, 126])
@pytest.mark.parametrize("name", ["short", "返金の確認をする長い名前のテスト" * 3, *HOSTILE])
def test_every_line_fits(width: int, name: str) -> None:
    records = [record(f"{name}{number}", number / 100, number) for number in range(100)]
    records[0].metrics[name] = MetricResult(name, "failed", 0.3, 0.5)
    trend = Trend(tuple(RunRate(name, "", number % 4, 3) for number in range(70)), 5, 2)
    found = costs([paid(name, name)], Prices({"m": Price(1.0, 1.0)}))
    for line in chart_lines(records, trend, width, found):
        assert cell_len(text_of(line)) <= width
        assert "\x1b" not in text_of(line)


def test_each_run_is_a_column_and_the_last_is_described() -> None:
    trend = Trend((RunRate("a", "", 0, 4), RunRate("b", "", 3, 4)), 4)
    told = [text_of(line) for line in chart_lines([], trend, 80)]
    (bottom,) = [line for line in told if line.startswith("  0 %")]
    assert bottom.split()[2:] == ["▁", "█"]
    assert any("2 runs of the same 4 cases  now 75 % (3 of 4)  best 75 %" in line for line in told)


@pytest.mark.parametrize(
    ("trend", "said"),
    [
        (Trend((), 4), "no complete run of these cases is stored"),
        (Trend((RunRate("a", "", 1, 2),), 2), "nothing to compare: no two runs of the same cases"),
        (Trend((RunRate("a", "", 1, 2),), 2, 3), "3 runs left out: under half of these cases"),
        (Trend((RunRate("a", "", 1, 2), RunRate("b", "", 5 / 3, 2)), 3), "2 runs of 2 of 3 cases now 83 % (1.6 of 2)"),
        (Trend((RunRate("a", "", 9.99, 10), RunRate("b", "", 9.99, 10)), 10), "now 99 % (9.9 of 10) best 99 %"),
    ],
)
def test_trend_names_its_cases_or_says_that_no_runs_are_comparable(trend: Trend, said: str) -> None:
    told = " ".join(" ".join(text_of(line).split()) for line in chart_lines([], trend, 80))
    assert said in told


def test_repeats_of_a_case_share_one_vote_in_the_scores() -> None:
    records = [record("good", 1.0) for _ in range(44)] + [record("bad", 0.0) for _ in range(3)] + [record("new")]
    records[-1].scores = {"match": MetricResult("match", "error")}
    (found,) = scores(records)
    assert (round(found.passed, 9), found.cases, found.undecided, round(found.mean, 9)) == (1, 2, 1, 0.5)


def test_a_mean_below_its_threshold_does_not_appear_to_reach_it() -> None:
    one = record("a", 0.8)
    one.scores = {"match": MetricResult("match", "failed", 0.8, 0.8000001)}
    told = " ".join(text_of(line) for line in chart_lines([one], Trend(), 100))
    assert "mean 0.80  ≥ 0.8000001" in told
    (found,) = scores([one])
    assert "mean 0.8, threshold 0.8000001" in distribution(found)


def test_charts_without_a_run_say_so() -> None:
    told = " ".join(text_of(line) for line in chart_lines([], None, 80))
    assert "no scores yet" in told
    assert "loading" in told
