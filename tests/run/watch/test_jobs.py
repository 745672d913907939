"""Plans for jobs of the watch: their cases, order and valid verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.run.watch.conftest import Shop, turn
from workbench.criteria.base import Scored
from workbench.events.events import (
    CaseFinished,
    CaseName,
    CaseRef,
    CaseStarted,
    MetricResult,
    MetricScored,
    PlannedCase,
    TurnFinished,
    TurnStarted,
)
from workbench.files.prices import Price, Prices, criterion_cost
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.project.watch_queue import run_plan, scoring_plan
from workbench.results.judged import tally_words
from workbench.run.plan.plan import Plan, PlanEntry
from workbench.run.plan.source import StoredSource
from workbench.run.scoring.verdict import judge_usage
from workbench.store.inputs import Change
from workbench.store.transcripts import StoredCase
from workbench.ui.session.session import JudgeCount

MATCH, TOOLS = "response_match_score", "tool_trajectory_avg_score"
ACTUAL = {**turn("one", "ok"), "invocation_id": "i"}
REF = CaseRef("desk", "desk/talk.evalset.json", "talk", "one")


def key(agent: str, eval_id: str) -> CaseName:
    return (f"{agent}/talk.evalset.json", eval_id)


def order(shop: Shop, *keys: CaseName, options: RunOptions | None = None) -> list[CaseName]:
    plan = run_plan(shop.snapshot().workspace, keys, options or RunOptions())
    return [(entry.ref.evalset_file, entry.ref.eval_id) for entry in plan.entries]


def test_run_plan_has_exactly_these_cases_in_order(shop: Shop) -> None:
    wanted = [key("router", "two"), key("desk", "one"), key("router", "one")]
    assert order(shop, *wanted) == wanted


def test_repeats_stay_with_their_case(shop: Shop) -> None:
    wanted = [key("greeter", "two"), key("greeter", "one")]
    assert order(shop, *wanted, options=RunOptions(runs=2)) == [wanted[0], wanted[0], wanted[1], wanted[1]]


def test_fault_in_another_evalset_does_not_change_the_plan(shop: Shop) -> None:
    shop.write("router/talk.evalset.json", "{")
    assert order(shop, key("desk", "one"), key("desk", "two")) == [key("desk", "one"), key("desk", "two")]


def stored(criteria: Mapping[str, float], expected: str = "ok") -> StoredCase:
    case = StoredCase(PlannedCase(REF, None, ""))
    case.started = CaseStarted(REF, 0.0, (turn("one", expected),), dict(criteria))
    case.steps = [TurnStarted(REF, 0, ACTUAL["user_content"]), TurnFinished(REF, 0, ACTUAL)]
    case.finished = CaseFinished(REF, "passed", None, 0.1)
    return case


def verdict(name: str, score: float, threshold: float) -> Scored:
    result = MetricResult(name, "passed" if score >= threshold else "failed", score, threshold, "")
    return Scored(result, (result,))


def scored_again(shop: Shop, case: StoredCase, *verdicts: Scored) -> Plan:
    found: Mapping[CaseRef, Sequence[Scored]] = {REF: verdicts}
    return scoring_plan(shop.snapshot().workspace, [case], found, "run", RunOptions())


def source_of(entry: PlanEntry) -> StoredSource:
    assert isinstance(entry.source, StoredSource)
    return entry.source


def test_computed_criteria_are_scored_again(shop: Shop) -> None:
    shop.criteria("desk", **{MATCH: 0.9})
    (entry,) = scored_again(shop, stored({MATCH: 0.5}), verdict(MATCH, 0.7, 0.5)).entries
    assert source_of(entry).verdicts == ()
    assert [criterion.threshold for criterion in entry.config.criteria] == [0.9]


def test_judged_score_is_compared_with_the_current_threshold(shop: Shop) -> None:
    judged = "final_response_match_v2"
    shop.criteria("desk", **{judged: 0.9})
    (entry,) = scored_again(shop, stored({judged: 0.5}), verdict(judged, 0.7, 0.5)).entries
    (kept,) = source_of(entry).verdicts
    assert (kept.result.status, kept.result.score, kept.result.threshold) == ("failed", 0.7, 0.9)
    assert [one.status for one in kept.turns] == ["failed"]


def test_kept_verdict_costs_nothing_in_the_run_that_keeps_it(shop: Shop) -> None:
    judged, prices = "final_response_match_v2", Prices({"m": Price(1.0, 1.0)})
    shop.criteria("desk", **{judged: 0.9})
    paid = verdict(judged, 0.7, 0.5)
    paid.result.details.update(judge={"model": "m"}, tally={"calls": 2, "input_tokens": 1000, "output_tokens": 0})
    (entry,) = scored_again(shop, stored({judged: 0.5}), paid).entries
    (kept,) = source_of(entry).verdicts
    assert (criterion_cost(paid.result, prices), criterion_cost(kept.result, prices)) == (0.001, 0.0)
    assert criterion_cost(kept.result, prices, again=True) == 0.001
    assert (judge_usage([paid]).judge_calls, judge_usage([kept]).judge_calls) == (2, 0)
    assert [word.plain for word in tally_words(kept.result.details["tally"])][-1] == "in an earlier run"
    count = JudgeCount(prices)
    count.apply(MetricScored(REF, kept.result))
    assert count.text == ""


@pytest.mark.parametrize(("threshold", "holds"), [(0.5, True), (0.1, False)])
def test_custom_metric_keeps_its_own_decision(shop: Shop, threshold: float, holds: bool) -> None:
    """For a custom metric, less may be better, so its score is not compared with a threshold."""
    custom = {"brief": {"code_config": {"name": "desk.metrics.brief"}}}
    judged = "final_response_match_v2"
    config = {"criteria": {"brief": threshold, judged: 0.9}, "custom_metrics": custom}
    shop.write("desk/test_config.json", config)
    case = stored({"brief": 0.5, judged: 0.5})
    assert case.started is not None
    case.started = replace(case.started, custom_metrics=custom)
    failed = Scored(MetricResult("brief", "failed", 0.8, 0.5, "the function returned FAILED"))
    (entry,) = scored_again(shop, case, failed, verdict(judged, 0.7, 0.5)).entries
    assert [one for one in source_of(entry).verdicts if one.result.name == "brief"] == ([failed] if holds else [])


def test_changed_reference_is_judged_again(shop: Shop) -> None:
    judged = "final_response_match_v2"
    shop.criteria("desk", **{judged: 0.5})
    (entry,) = scored_again(shop, stored({judged: 0.5}, "something else"), verdict(judged, 0.7, 0.5)).entries
    assert source_of(entry).verdicts == ()
    started = source_of(entry).case.started
    assert started is not None
    assert started.expected is not None
    assert started.expected[0]["final_response"]["parts"] == [{"text": "ok"}]


def test_changed_metric_function_drops_its_stored_verdict(shop: Shop) -> None:
    custom = {"brief": {"code_config": {"name": "desk.metrics.brief"}}}
    shop.write("desk/test_config.json", {"criteria": {"brief": 0.5}, "custom_metrics": custom})
    case = stored({"brief": 0.5})
    assert case.started is not None
    case.started = replace(case.started, custom_metrics=custom)
    verdicts = {REF: [Scored(MetricResult("brief", "failed", 0.8, 0.5, "the function returned FAILED"))]}
    changes = {key("desk", "one"): [Change("function", "desk/metrics.py", "desk/metrics.py", "score")]}
    for known, kept in ((changes, 0), ({}, 1)):
        plan = scoring_plan(shop.snapshot().workspace, [case], verdicts, "run", RunOptions(), known)
        (entry,) = plan.entries
        assert isinstance(entry.source, StoredSource)
        assert len(entry.source.verdicts) == kept


def test_deleted_case_cannot_be_planned(shop: Shop) -> None:
    with pytest.raises(UsageFaultError, match="no evalset in"):
        run_plan(shop.snapshot().workspace, [key("gone", "one")], RunOptions())
