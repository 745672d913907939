"""Costs of judges in the report and in the summary."""

import json
from typing import Any

import jsonschema

from tests.cli.stores import feed, ref, started
from workbench.events.events import (
    CaseFinished,
    CaseStarted,
    MetricResult,
    MetricScored,
    RunFinished,
    RunStarted,
    Usage,
    UserSimulated,
)
from workbench.exporting.report import json_schema, report_pieces
from workbench.files.prices import Price, Prices
from workbench.results.plain_summary import summary_lines
from workbench.store.store import Store

PRICES = Prices({"gemini-2.5-flash": Price(0.30, 2.50)}, "EUR")
ONE, TWO = ref("one"), ref("two")


def judged(calls: int, cached: int, read: int, written: int, model: str = "gemini-2.5-flash") -> MetricResult:
    tally = {"calls": calls, "cached": cached, "input_tokens": read, "output_tokens": written, "seconds": 1.0}
    return MetricResult("final_response_match_v2", "passed", 1.0, 0.8, "", {"judge": {"model": model}, "tally": tally})


def store(*results: MetricResult, scored_from: str = "") -> Store:
    """Return a store of a run with one case for each result."""
    refs = [ONE, TWO][: len(results)]
    start = started(refs)
    events: list[Any] = [RunStarted(start.run_id, start.root, start.started, start.cases, scored_from)]
    for case, result in zip(refs, results, strict=True):
        tally = result.details["tally"]
        usage = Usage(0, 0, 0, *(tally[key] for key in ("calls", "cached", "input_tokens", "output_tokens")))
        events += [
            CaseStarted(case, 0.0, (), {}),
            MetricScored(case, result),
            CaseFinished(case, "passed", None, 1.0, usage),
        ]
    return feed(events, [RunFinished(1.0)])


def report(of: Store, prices: Prices) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(b"".join(report_pieces(of, prices)))
    jsonschema.validate(data, json_schema(), cls=jsonschema.Draft202012Validator)
    return data


def said(of: Store, prices: Prices = PRICES) -> str:
    return "\n".join(map(str, summary_lines(of, prices)))


def test_cost_is_shown_for_case_criterion_and_run() -> None:
    run = store(judged(5, 1, 1_000_000, 100_000), judged(1, 0, 10_000, 0))
    data = report(run, PRICES)
    assert [case["usage"]["judge_cost"] for case in data["cases"]] == [0.55, 0.003]
    assert data["cases"][0]["metrics"][0]["details"]["tally"]["cost"] == 0.55
    assert (data["judge_cost"], data["currency"]) == (0.553, "EUR")
    assert data["cases"][0]["usage"]["judge_input_tokens"] == 1_000_000
    assert "Judged with 6 calls (1 more answer cached), 1,010,000 tokens in, 100,000 out, 0.55 EUR" in said(run)


def test_missing_price_makes_the_sum_unknown() -> None:
    run = store(judged(5, 0, 1_000_000, 100_000), judged(1, 0, 10_000, 0, "other/model"))
    data = report(run, PRICES)
    assert [case["usage"]["judge_cost"] for case in data["cases"]] == [0.55, None]
    assert (data["judge_cost"], data["currency"]) == (None, "EUR")
    assert "cost unknown" in said(run)


def test_no_cost_is_shown_without_a_price_table() -> None:
    run = store(judged(5, 0, 1_000_000, 100_000))
    data = report(run, Prices())
    assert (data["judge_cost"], data["currency"], data["cases"][0]["usage"]["judge_cost"]) == (None, None, None)
    assert "cost" not in data["cases"][0]["metrics"][0]["details"]["tally"]
    assert "Judged with 5 calls, 1,000,000 tokens in, 100,000 out\n" in said(run, Prices())


def test_cached_answers_cost_nothing() -> None:
    run = store(judged(0, 5, 0, 0), scored_from="run \x1b[31m")
    assert report(run, PRICES)["judge_cost"] == 0.0
    assert "Judged with 0 calls (5 answers cached), 0.00 EUR" in said(run)
    assert "Transcripts from run run ␛[31m." in said(run)
    assert report(run, PRICES)["scored_from"] == "run \x1b[31m"


def test_calls_of_a_simulated_user_are_not_calls_of_judges() -> None:
    reply = {"input_tokens": 1_000_000, "output_tokens": 0}
    question = {"judge": {"model": "gemini-2.5-flash"}, "replies": [reply, reply, {**reply, "cached": True}]}
    usage = Usage(judge_calls=7, judge_calls_cached=2, judge_input_tokens=3_000_000)
    start = started([ONE])
    ran: list[Any] = [
        CaseStarted(ONE, 0.0, (), {}),
        UserSimulated(ONE, 0, "", question),
        MetricScored(ONE, judged(5, 1, 1_000_000, 0)),
    ]
    run = feed([start, *ran, CaseFinished(ONE, "passed", None, 1.0, usage)], [RunFinished(1.0)])
    words = (
        "Judged with 5 calls (1 more answer cached), 2 simulator calls (1 cached), 3,000,000 tokens in, 0 out, 0.90 EUR"
    )
    assert words in said(run)
    again = RunStarted(start.run_id, start.root, start.started, start.cases, "earlier")
    usage = Usage(judge_calls=5, judge_calls_cached=1)
    assert "Judged with 5 calls (1 more answer cached), 0.30 EUR" in said(
        feed([again, *ran, CaseFinished(ONE, "passed", None, 1.0, usage)], [RunFinished(1.0)])
    )
