"""The charts of the HTML page: which cases they list, and what they say in words."""

import pytest

from workbench.editing.triage.entry import About, Entry, Judged, agreements
from workbench.events.events import CaseFinished, CaseRef, MetricResult, PlannedCase, RunStarted, Usage
from workbench.exporting.html import agreement_tables, build_html, distribution, trend_words
from workbench.results.costs import Costs
from workbench.results.tally import scores
from workbench.store.execution import CaseRecord
from workbench.store.history.run_list import RunRate, Trend
from workbench.store.store import Store


def record(name: str, seconds: float = 1.0, tokens: int = 10) -> CaseRecord:
    made = CaseRecord(PlannedCase(CaseRef("desk", "desk/talk.evalset.json", "talk", name), None, ""), "passed")
    made.duration_seconds, made.usage = seconds, Usage(1, tokens, 0, judge_output_tokens=1)
    return made


def test_table_has_costs_with_prices_and_says_which_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    made = {"slow": record("slow", seconds=9), "large": record("large", tokens=90)}
    store.apply(RunStarted("run", "/p", "", tuple(one.planned for one in made.values())))
    for one in made.values():
        store.apply(CaseFinished(one.ref, "passed", None, one.duration_seconds, one.usage))
    assert ">cost" not in build_html(store).decode()
    found = Costs("EUR", {made["large"].ref: 0.01}, 1, ("x",))
    monkeypatch.setattr("workbench.exporting.html.costs", lambda *_: found)
    page = build_html(store).decode()
    assert ">cost EUR</button>" in page
    assert page.count(">0.010") == 1
    assert "<p>Cost unknown for 1 execution: no price or token count for x</p>" in page


@pytest.mark.parametrize(
    ("trend", "said"),
    [
        (Trend((RunRate("a", "", 0, 4), RunRate("b", "", 3, 4)), 4), "2 runs of the same 4 cases  now 75% (3 of 4)"),
        (Trend((), 4), "no complete run of these cases is stored"),
        (Trend((RunRate("a", "", 1, 2),), 2), "nothing to compare: no two runs of the same cases"),
        (Trend((RunRate("a", "", 1, 2),), 2, 3), "left out: 3 runs with under half of these cases"),
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


@pytest.mark.parametrize(
    ("threshold", "score", "colour"),
    [
        (0.72, 0.71, ""),
        (0.72, 0.75, "good"),
        (0.72, 0.69, "bad"),
        (0.8, 0.8, "good"),
        (0.8, 0.79, "bad"),
        (2, 1, "bad"),
    ],
)
def test_bar_is_good_only_if_all_its_scores_reach_the_threshold(threshold: float, score: float, colour: str) -> None:
    one = record("a")
    one.scores = {"match": MetricResult("match", "failed", score, threshold)}
    (found,) = scores([one])
    assert distribution(found).count("class=") == bool(colour)
    assert f'class="{colour}"' in distribution(found) or not colour


def test_agreement_that_is_not_full_does_not_appear_as_kappa_1() -> None:
    rated = [("failed", "failed"), *[("passed", "passed")] * 400, *[("failed", "failed")] * 399, ("passed", "failed")]
    found = agreements(
        Entry(About(f"case {number}", "match"), Judged(judge, "answer"), says=user)
        for number, (user, judge) in enumerate(rated)
    )
    assert "agrees in 800 of 801, kappa 0.99<" in "".join(agreement_tables(found))
