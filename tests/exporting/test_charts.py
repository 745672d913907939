"""The charts of the HTML page: which cases they list, and what they say in words."""

from dataclasses import replace

import pytest

from workbench.events.events import CaseRef, MetricResult, PlannedCase, Usage
from workbench.exporting.case_table import distribution, most_expensive, most_tokens, slowest, trend_words
from workbench.results.costs import Costs
from workbench.results.tally import scores
from workbench.store.execution import CaseRecord
from workbench.store.history.run_list import RunRate, Trend


def record(name: str, seconds: float = 1.0, tokens: int = 10) -> CaseRecord:
    made = CaseRecord(PlannedCase(CaseRef("desk", "desk/talk.evalset.json", "talk", name), None, ""), "passed")
    made.duration_seconds, made.usage = seconds, Usage(1, tokens, 0, judge_output_tokens=1)
    return made


def test_slowest_cases_come_first_and_cases_without_duration_are_left_out() -> None:
    records = [record("a", seconds=2), record("b", seconds=3, tokens=5), record("c", seconds=0, tokens=99)]
    assert [share.record.ref.eval_id for share in slowest(records)] == ["b", "a"]
    assert [share.amount for share in most_tokens(records)[:2]] == [100.0, 11.0]


def test_most_expensive_cases_are_those_with_a_known_cost() -> None:
    records = [record("cheap"), record("unknown"), record("dear")]
    found = Costs("EUR", {records[0].ref: 0.002, records[2].ref: 0.01}, 1, ("x",))
    assert [share.record.ref.eval_id for share in most_expensive(records, found)] == ["dear", "cheap"]


def test_only_the_slowest_execution_of_a_case_is_shown() -> None:
    records = [record("often", seconds=number) for number in range(1, 20)] + [record("once", seconds=2)]
    for number, one in enumerate(records[:-1], 1):
        one.planned = PlannedCase(replace(one.ref, repeat=number), None, "")
    assert [(share.record.ref.eval_id, share.record.ref.repeat) for share in slowest(records)] == [
        ("often", 19),
        ("once", 1),
    ]


@pytest.mark.parametrize(
    ("trend", "said"),
    [
        (Trend((RunRate("a", "", 0, 4), RunRate("b", "", 3, 4)), 4), "2 runs of the same 4 cases  now 75% (3 of 4)"),
        (Trend((), 4), "no complete run of these cases is stored"),
        (Trend((RunRate("a", "", 1, 2),), 2), "nothing to compare: no two runs of the same cases"),
        (Trend((RunRate("a", "", 1, 2),), 2, 3), "3 runs left out: under half of these cases"),
        (Trend((RunRate("a", "", 1, 2), RunRate("b", "", 5 / 3, 2)), 3), "2 runs of 2 of 3 cases  now 83% (1.6 of 2)"),
        (Trend((RunRate("a", "", 9.99, 10), RunRate("b", "", 9.99, 10)), 10), "now 99% (9.9 of 10)  best 99%"),
    ],
)
def test_trend_in_words_names_its_cases(trend: Trend, said: str) -> None:
    assert said in trend_words(trend)


def test_a_mean_below_its_threshold_does_not_appear_to_reach_it() -> None:
    one = record("a")
    one.scores = {"match": MetricResult("match", "failed", 0.8, 0.8000001)}
    (found,) = scores([one])
    assert "mean 0.8, threshold 0.8000001" in distribution(found)
