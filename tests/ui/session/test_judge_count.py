"""Judge calls in the bar during a run, with and without a price table."""

from dataclasses import replace

from workbench.events.events import (
    CaseFinished,
    CaseRef,
    Event,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunStarted,
    Usage,
    UserSimulated,
)
from workbench.files.prices import Price, Prices
from workbench.ui.session.session import JudgeCount

REF = CaseRef("desk", "desk/a.evalset.json", "a", "one")
STARTED = RunStarted("run", "/root", "", (PlannedCase(REF, None, "defaults"),))
PRICES = Prices({"gemini-2.5-flash": Price(1.0, 2.0)}, "EUR")


def scored(name: str, calls: int, cached: int = 0, model: str = "gemini-2.5-flash") -> MetricScored:
    tally = {"calls": calls, "cached": cached, "input_tokens": 10_000 * calls, "output_tokens": 0}
    return MetricScored(REF, MetricResult(name, "passed", details={"judge": {"model": model}, "tally": tally}))


def simulated(model: str) -> UserSimulated:
    replies = [{"input_tokens": 20_000, "output_tokens": 0, "cached": False}]
    return UserSimulated(REF, 1, "", {"judge": {"model": model}, "replies": replies})


def counted(prices: Prices | None, *events: Event) -> JudgeCount:
    count = JudgeCount(prices)
    for event in (STARTED, *events):
        count.apply(event)
    return count


def test_judge_calls_cached_answers_and_cost_are_counted_as_they_arrive() -> None:
    count = counted(PRICES, scored("a", 3), scored("b", 0, 5), simulated("gemini-2.5-flash"))
    assert count.text == "3 judge calls, 5 cached, 1 simulator call, 0.050 EUR"
    count.apply(CaseFinished(REF, "passed", None, 1.0, Usage(judge_calls=4, judge_calls_cached=5)))
    assert count.text == "3 judge calls, 5 cached, 1 simulator call, 0.050 EUR", "the end counts the user's call too"
    count.apply(STARTED)
    assert count.text == ""


def test_unknown_cost_is_left_out() -> None:
    assert counted(None, scored("a", 3)).text == "3 judge calls"
    assert counted(PRICES, scored("a", 3), scored("b", 1, model="other")).text == "4 judge calls"
    assert counted(PRICES, scored("a", 3), simulated("other")).text == "3 judge calls, 1 simulator call"


def test_cached_answers_cost_nothing() -> None:
    assert counted(PRICES, scored("a", 0, 5, model="other")).text == "0 judge calls, 5 cached, 0.00 EUR"


def test_simulated_user_costs_nothing_while_transcripts_are_scored_again() -> None:
    count = counted(PRICES, replace(STARTED, scored_from="earlier"), simulated("other"), scored("a", 3))
    assert count.text == "3 judge calls, 0.030 EUR"
