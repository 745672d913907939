"""Last verdicts under other criteria: flips, unknown outcomes, and repeated comparison."""

from typing import Any

import pytest

from workbench.criteria.base import ScoreRequest
from workbench.criteria.trajectory import score
from workbench.editing.what_if import Outlook, WhatIf
from workbench.events.events import CaseRef, MetricResult, PlannedCase
from workbench.files.criteria import CriteriaConfig, Criterion, stored_config
from workbench.store.execution import CaseRecord, Turn

TRAJECTORY = "tool_trajectory_avg_score"
MATCH = "response_match_score"


def invocation(*names: str, amount: int = 1) -> dict[str, Any]:
    calls = [{"name": name, "args": {"amount": amount}} for name in names]
    return {"user_content": {"parts": [{"text": "hi"}]}, "intermediate_data": {"tool_uses": calls}}


def record(name: str, *metrics: MetricResult, criteria: Any = None, repeat: int = 1) -> CaseRecord:
    one = CaseRecord(PlannedCase(CaseRef("desk", "a.evalset.json", "a", name, repeat), None, ""))
    one.scores = {metric.name: metric for metric in metrics}
    statuses = {metric.status for metric in metrics}
    one.state = "failed" if "failed" in statuses else "error" if "error" in statuses else "passed"
    one.criteria = criteria or {}
    return one


def match(value: float, threshold: float = 0.8) -> MetricResult:
    return MetricResult(MATCH, "passed" if value >= threshold else "failed", value, threshold)


def called(name: str, expected: dict[str, Any], actual: dict[str, Any]) -> CaseRecord:
    """Return a record scored with EXACT, with the details that the metric stores."""
    scored = score(ScoreRequest(Criterion(TRAJECTORY, 1.0, 1.0, {}), (expected,), (actual,)))
    one = record(name, scored.result)
    one.expected = (expected,)
    one.turns = [Turn({}, actual=actual)]
    return one


def under(records: list[CaseRecord], criteria: dict[str, Any]) -> Outlook:
    return WhatIf(records).with_criteria(stored_config(criteria, {}, None))


def test_changed_threshold_names_the_flipped_cases() -> None:
    records = [record("high", match(0.9)), record("middle", match(0.8)), record("low", match(0.5))]
    higher = under(records, {MATCH: 0.85})
    assert [(flip.name, flip.before, flip.after) for flip in higher.flips] == [("middle", "passed", "failed")]
    one = higher.criteria[MATCH]
    assert (one.scored, one.before, one.after, one.redo) == (3, 2, 1, 0)
    lower = under(records, {MATCH: 0.5})
    assert [(flip.name, flip.after, flip.score) for flip in lower.criteria[MATCH].flips] == [("low", "passed", 0.5)]
    assert under(records, {MATCH: 0.8}).flips == ()


def test_verdict_of_a_custom_metric_is_not_computed_from_a_threshold() -> None:
    one = record("brief", MetricResult("brief", "failed", 0.9, 0.5))
    one.custom_metrics = {"brief": {"code_config": {"name": "desk.metrics.brief"}}}
    assert under([one], {"brief": 0.5}).flips == ()
    moved = under([one], {"brief": 0.1})
    assert (moved.flips, moved.unknown, moved.criteria["brief"].scored) == ((), 1, 0)


def test_score_of_an_agents_cli_metric_is_compared_with_a_new_threshold() -> None:
    one = record("quality", MetricResult("quality", "informational", 4.0, None))
    one.state = "not_evaluated"
    one.custom_metrics = {"quality": {"agents_cli": {"kind": "function", "suggested": 4.0}}}
    higher = under([one], {"quality": 4.5})
    assert [(flip.before, flip.after) for flip in higher.flips] == [("not_evaluated", "failed")]
    assert (higher.criteria["quality"].scored, higher.criteria["quality"].after) == (1, 0)
    assert [flip.after for flip in under([one], {"quality": 4.0}).flips] == ["passed"]
    none = WhatIf([one]).with_criteria(CriteriaConfig(None, (Criterion("quality", 0.0, None, {}),)))
    assert (none.flips, none.unknown) == ((), 0)


def test_flipped_criterion_does_not_always_flip_the_case() -> None:
    records = [record("both", match(0.5), MetricResult("safety_v1", "failed", 0.1, 0.8))]
    outlook = under(records, {MATCH: 0.4, "safety_v1": 0.8})
    assert outlook.flips == ()
    assert outlook.criteria[MATCH].after == 1


def test_removing_a_criterion_can_flip_the_case() -> None:
    records = [record("both", match(0.9), MetricResult("safety_v1", "failed", 0.1, 0.8))]
    assert [flip.after for flip in under(records, {MATCH: 0.8}).flips] == ["passed"]


def test_missing_score_makes_the_outcome_unknown() -> None:
    records = [record("good", match(0.9)), record("bad", match(0.1))]
    outlook = under(records, {MATCH: 0.8, "safety_v1": 0.8})
    assert outlook.unknown == 1  # the bad one fails whatever safety says
    assert outlook.flips == ()
    assert outlook.criteria["safety_v1"].scored == 0


def test_new_threshold_does_not_repair_an_error() -> None:
    crashed = record("crashed")
    crashed.state = "error"
    judged = record("judged", match(0.9), MetricResult("safety_v1", "error", None, 0.8))
    assert under([crashed, judged], {MATCH: 0.1, "safety_v1": 0.1}).flips == ()
    assert [flip.after for flip in under([judged], {MATCH: 0.1}).flips] == ["passed"]


def test_failed_criterion_outweighs_an_error_of_another_criterion() -> None:
    broken = MetricResult("safety_v1", "error", None, 0.8)
    records = [record("judged", match(0.9), broken)]
    assert [flip.after for flip in under(records, {MATCH: 1.0, "safety_v1": 0.8}).flips] == ["failed"]
    missing = under(records, {TRAJECTORY: 1.0, "safety_v1": 0.8})
    assert (missing.unknown, missing.flips) == (1, ())  # The missing score may fail.


def test_unfinished_cases_are_left_out() -> None:
    running = record("running", match(0.9))
    running.state = "running"
    assert under([running], {MATCH: 1.0}).cases == 0


def test_repeats_are_named_by_number() -> None:
    records = [record("same", match(0.8)), record("same", match(0.8), repeat=2)]
    assert [flip.name for flip in under(records, {MATCH: 1.0}).flips] == ["same", "same#2"]


def test_cases_scored_with_other_options_are_counted() -> None:
    name = "final_response_match_v2"
    metric = MetricResult(name, "passed", 1.0, 0.8)
    records = [record("a", metric, criteria={name: 0.8}), record("b", metric, criteria={name: {"threshold": 0.8}})]
    now = {name: {"threshold": 0.5, "judge_model_options": {"judge_model": "python:a:b"}}}
    assert under(records, now).criteria[name].redo == 2
    assert under(records, {name: 0.5}).criteria[name].redo == 0


CALLS = {
    "exact": (invocation("look", "pay"), invocation("look", "pay")),
    "more": (invocation("look", "pay"), invocation("look", "ask", "pay")),
    "turned": (invocation("look", "pay"), invocation("pay", "look")),
    "other_args": (invocation("look", "pay"), invocation("look", "pay", amount=2)),
    "missing": (invocation("look", "pay"), invocation("look")),
}


@pytest.mark.parametrize("kept", [True, False])
def test_other_match_types_are_computed_from_transcripts(kept: bool) -> None:
    records = [called(name, *pair) for name, pair in CALLS.items()]
    if not kept:  # as a run of another version might have stored it
        for one in records:
            result = one.metrics[TRAJECTORY]
            one.metrics[TRAJECTORY] = MetricResult(result.name, result.status, result.score, result.threshold)
    outlook = under(records, {TRAJECTORY: 1.0})
    ways = {"EXACT": 1, "IN_ORDER": 2, "ANY_ORDER": 3, "EXACT by names only": 2}
    assert outlook.criteria[TRAJECTORY].ways == ways
    for way, names in {"IN_ORDER": ["more"], "ANY_ORDER": ["more", "turned"]}.items():
        found = under(records, {TRAJECTORY: {"threshold": 1.0, "match_type": way}})
        assert [flip.name for flip in found.flips] == names
        assert all(flip.after == "passed" for flip in found.flips)
    names_only = under(records, {TRAJECTORY: {"threshold": 1.0, "match_type": "ANY_ORDER", "ignore_args": True}})
    assert [flip.name for flip in names_only.flips] == ["more", "turned", "other_args"]


def test_unknown_match_type_changes_nothing() -> None:
    records = [called("exact", *CALLS["exact"])]
    outlook = under(records, {TRAJECTORY: {"threshold": 1.0, "match_type": "SOMEHOW"}})
    assert outlook.flips == ()
    assert outlook.criteria[TRAJECTORY].ways == {}


def test_conversations_of_different_length_are_not_scored_again() -> None:
    one = called("exact", *CALLS["exact"])
    one.turns.append(Turn({}, actual=invocation()))
    one.metrics[TRAJECTORY] = MetricResult(TRAJECTORY, "passed", 1.0, 1.0)
    assert under([one], {TRAJECTORY: {"threshold": 1.0, "match_type": "IN_ORDER"}}).flips == ()


def test_rules_for_arguments_are_scored_from_the_transcript() -> None:
    records = [
        called("close", invocation("a"), invocation("a", amount=2)),
        called("same", invocation("a"), invocation("a")),
    ]
    rules = {"args_match": {"a": {"amount": {"abs": 1}}}}
    one = under(records, {TRAJECTORY: {"threshold": 1.0, **rules}}).criteria[TRAJECTORY]
    assert [(flip.name, flip.after) for flip in one.flips] == [("close", "passed")]
    assert (one.before, one.after, one.redo) == (1, 2, 0)
    # Scored by rules, and then without them.
    sides = (invocation("a", amount=1),), (invocation("a", amount=2),)
    scored = score(ScoreRequest(Criterion(TRAJECTORY, 1.0, 1.0, rules), sides[0], sides[1]))
    records[0].scores = {TRAJECTORY: scored.result}
    records[0].state = "passed"
    assert [flip.after for flip in under(records, {TRAJECTORY: 1.0}).flips] == ["failed"]
    assert under(records, {TRAJECTORY: {"threshold": 1.0, "args_match": {"a": {"amount": 7}}}}).flips == ()


def answered(name: str, text: str, *metrics: MetricResult) -> CaseRecord:
    one = record(name, *metrics)
    actual = {**invocation("find", "refund"), "final_response": {"parts": [{"text": text}]}}
    one.turns = [Turn({}, actual=actual, inner_calls=())]
    return one


def test_new_criterion_without_a_judge_is_scored_from_transcripts() -> None:
    records = [answered("refund", "Your refund comes.", match(0.9)), answered("sorry", "Sorry.", match(0.9))]
    rules = {MATCH: 0.8, "answer_match": {"threshold": 1.0, "contains": ["refund"]}}
    outlook = under(records, rules)
    one = outlook.criteria["answer_match"]
    assert (one.scored, one.new, one.after) == (2, 2, 1)
    assert [(flip.name, flip.after) for flip in outlook.flips] == [("sorry", "failed")]
    assert outlook.unknown == 0
    assert [flip.name for flip in one.flips] == ["sorry"]


def test_limit_on_a_known_figure_counts_though_another_was_unknown() -> None:
    unknown = MetricResult("limits", "not_evaluated", None, 1.0, "cost unknown")
    records = [answered("case", "x", unknown)]
    records[0].state = "not_evaluated"
    assert under(records, {"limits": {"threshold": 1.0, "tool_calls": 2}}).flips[0].after == "passed"
    assert under(records, {"limits": {"threshold": 1.0, "tool_calls": 1}}).flips[0].after == "failed"
    assert under(records, {"limits": {"threshold": 1.0, "tokens": 9}}).flips == ()
