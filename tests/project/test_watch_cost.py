"""The estimated cost of a save, from the cost of earlier runs."""

import json
from typing import Any

import pytest

from workbench.events.events import CaseRef, MetricResult, PlannedCase, SpansRecorded, Usage, UserSimulated
from workbench.files.criteria import stored_config
from workbench.files.prices import Price, Prices
from workbench.project.cost_estimate import Limit, estimate, limit_words
from workbench.store.execution import CaseRecord, Turn
from workbench.store.inputs import Effect

PRICES = Prices({"gemini-2.5-flash": Price(1.0, 10.0), "judge": Price(2.0, 0.0)})


def ran(*models: str, calls: int | None = None, judged: int = 0, cached: int = 0, judge: str = "judge") -> CaseRecord:
    """Return an execution that used 1,000 tokens in and 100 out for each model, and 500 in for each judge."""
    ref = CaseRef("desk", "f", "s", "c")
    spans = [
        {"kind": "model", "name": name, "id": number + 1, "start": 0.0, "end": 1.0, "tokens": [1000, 100]}
        for number, name in enumerate(models)
    ]
    record = CaseRecord(PlannedCase(ref, None, ""), "passed")
    record.turns = [Turn({}, spans=SpansRecorded(ref, 0, json.dumps(spans)))]
    count = len(models) if calls is None else calls
    record.usage = Usage(model_calls=count, judge_calls=judged, judge_calls_cached=cached)
    details: dict[str, Any] = {"judge": {"model": judge}, "tally": {"calls": judged, "cached": cached}}
    details["tally"]["input_tokens"] = 500 * judged
    record.scores = {"m": MetricResult("m", "passed", 1.0, 1.0, "", details)}
    return record


def words(record: CaseRecord, depth: Effect = "run", prices: Prices = PRICES, times: float = 1) -> str:
    return estimate(4, [record], depth, prices, times).text(40).removeprefix("4 of 40 stale").removeprefix(", ")


FLASH = "gemini-2.5-flash"


@pytest.mark.parametrize(
    ("record", "depth", "said"),
    [
        (ran(FLASH, FLASH), "run", "about 8 calls, about $0.016"),
        (ran(FLASH, f"models/{FLASH}", judged=3), "run", "about 20 calls, about $0.028"),
        (ran(FLASH, judged=3), "score", "about 12 calls, about $0.012"),
        (ran(FLASH, judged=3), "decide", ""),
        (ran(FLASH), "score", ""),
        (ran(FLASH, "mine"), "run", "about 8 calls, cost unknown: no price for mine"),
        (ran("mine", "yours"), "run", "about 8 calls, cost unknown: no price for mine and 1 more"),
        (ran(FLASH, judged=1, judge="his"), "score", "about 4 calls, cost unknown: no price for his"),
        (ran(FLASH, calls=3), "run", "about 12 calls, cost unknown"),
        (ran(FLASH, judged=1, cached=1), "score", "about 8 calls, about $0.0080"),
        (ran(FLASH, cached=2), "score", "about 8 calls, cost unknown"),
        (ran(), "run", ""),
    ],
)
def test_estimate_has_calls_and_money(record: CaseRecord, depth: Effect, said: str) -> None:
    assert words(record, depth) == said


def test_calls_of_the_simulated_user_count_only_if_the_agent_runs() -> None:
    record = ran(FLASH, judged=1, cached=1)
    reply = {"input_tokens": 500, "output_tokens": 0, "cached": False}
    question = {"judge": {"model": "judge"}, "replies": [reply] * 4}
    record.simulated = [UserSimulated(record.ref, 0, "", question)]
    record.usage = Usage(model_calls=1, judge_calls=5, judge_calls_cached=1)
    assert words(record, "score") == "about 8 calls, about $0.0080"
    assert words(record, "run") == "about 28 calls, about $0.032"


def test_cost_of_an_agent_without_usage_is_unknown_beside_a_known_judge() -> None:
    silent = ran(judged=3)
    agent = {"kind": "agent", "name": "desk", "id": 1, "start": 0.0, "end": 1.0}
    silent.turns = [Turn({}, spans=SpansRecorded(silent.ref, 0, json.dumps([agent])))]
    assert words(silent) == "about 12 calls, cost unknown: the agent reports no usage"
    assert words(silent, "score") == "about 12 calls, about $0.012"
    assert words(silent, prices=Prices()) == "about 12 calls"
    assert estimate(4, [silent], "run", PRICES).above(Limit(money=1.0))


def test_rescoring_does_not_change_the_agents_estimated_cost() -> None:
    assert words(ran(FLASH, FLASH, calls=0)) == "about 8 calls, about $0.016"


def test_without_prices_the_estimate_has_no_money() -> None:
    assert words(ran(FLASH, judged=1), prices=Prices()) == "about 8 calls"


def test_repeats_count_in_the_estimate() -> None:
    assert words(ran(FLASH), times=2.5) == "about 10 calls, about $0.020"


def test_cost_is_unknown_before_the_first_run() -> None:
    assert estimate(4, [], "run", PRICES, 1).calls is None
    assert estimate(4, [], "decide", PRICES, 1).calls == 0


def test_calls_of_a_new_criterion_are_estimated() -> None:
    rubrics = [{"rubric_id": "a", "rubric_content": {"text_property": "polite"}}]
    value = {"threshold": 0.5, "rubrics": rubrics, "judge_model_options": {"judge_model": "judge", "num_samples": 3}}
    new = stored_config({"rubric_based_final_response_quality_v1": value}, {}, None)
    found = estimate(4, [ran(FLASH)], "score", PRICES, criteria_of=lambda ref: new)
    assert found.text(40) == "4 of 40 stale, about 12 calls, cost unknown"


def test_estimate_is_an_amount_and_limits_are_text() -> None:
    assert estimate(4, [ran(FLASH, FLASH)], "run", PRICES, 1).amount == pytest.approx(0.016)
    assert estimate(4, [ran("mine")], "run", PRICES, 1).amount is None
    assert limit_words(Limit(1200, 0.5), PRICES) == "1,200 calls, $0.50"
    assert limit_words(Limit(1), PRICES) == "1 call"
    assert limit_words(Limit(money=2), Prices({}, "EUR")) == "2.00 EUR"
