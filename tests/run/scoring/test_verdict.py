"""The status of a case, by the table of statuses."""

import itertools
from dataclasses import replace
from typing import cast

import pytest

from workbench.criteria.base import Scored
from workbench.events.events import CaseStatus, MetricResult, MetricStatus
from workbench.judges.base import FaultKind, JudgeFault, Reply, reply_record
from workbench.run.scoring.verdict import case_status, faults_behind, metric_error, only_limited


def results(*statuses: MetricStatus) -> list[MetricResult]:
    return [MetricResult(f"metric_{number}", status) for number, status in enumerate(statuses)]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["passed"], "passed"),
        (["passed", "failed"], "failed"),
        (["passed", "not_evaluated"], "not_evaluated"),
        (["failed", "not_evaluated"], "failed"),
        (["failed", "error"], "failed"),
        (["failed", "error", "not_evaluated"], "failed"),
        (["passed", "error", "not_evaluated"], "error"),
        (["passed", "not_applicable", "informational"], "passed"),
        (["not_applicable"], "not_evaluated"),
        (["informational"], "not_evaluated"),
        ([], "not_evaluated"),
    ],
)
def test_status_of_a_case_does_not_depend_on_the_order_of_its_metrics(
    statuses: list[MetricStatus], expected: CaseStatus
) -> None:
    for order in itertools.permutations(statuses):
        assert case_status(results(*order)) == expected


def test_not_evaluated_metrics_can_be_ignored() -> None:
    assert case_status(results("passed", "not_evaluated"), allow_not_evaluated=True) == "passed"
    assert case_status(results("failed", "not_evaluated"), allow_not_evaluated=True) == "failed"
    assert case_status(results("not_evaluated"), allow_not_evaluated=True) == "not_evaluated"


def test_error_of_a_metric_is_the_error_of_the_case() -> None:
    crashed = MetricResult("m", "error", None, 1.0, "KeyError", {"traceback": "Traceback …"})
    error = metric_error([Scored(crashed)])
    assert error is not None
    assert (error.kind, error.message, error.traceback) == ("metric_crashed", "m: KeyError", "Traceback …")
    assert metric_error(map(Scored, results("failed", "passed"))) is None


def judged(*faults: str, status: MetricStatus = "error", answered: bool = True) -> Scored:
    """Return a result of two turns, the second without a verdict because of these faults.

    The fault "" is a reply that cannot be read, "-" is one that can.
    """
    replies = [
        reply_record(
            number,
            Reply(None, JudgeFault(cast(FaultKind, kind), f"{kind} happened")) if kind.strip("-") else Reply("maybe"),
            "valid" if kind == "-" else None,
            "" if kind == "-" else "the reply has no verdict",
        )
        for number, kind in enumerate(faults, 1)
    ]
    question = {"kind": "final_response_match", "prompt": "…", "judge": {}, "replies": replies}
    good = {"questions": [{"replies": [reply_record(1, Reply(None, JudgeFault("http", "500")), None, "500")]}]}
    if answered:
        good["questions"][0]["replies"].append(reply_record(2, Reply("valid"), "valid"))
    turns = (
        MetricResult("m", "passed", 1.0, 0.5, "", good),
        MetricResult("m", status, None, 0.5, "turn 2: nothing to read", {"questions": [question]}),
    )
    return Scored(MetricResult("m", status, 1.0, 0.5, "turn 2: nothing to read", {"judge": {}}), turns)


@pytest.mark.parametrize(
    ("faults", "kind", "hint"),
    [
        (["quota", "quota"], "quota", "asks only for the rest"),
        (["quota", "timeout"], "judge", "asks only for the rest"),
        ([""], "judge", "in full"),
        (["blocked"], "judge", "Another judge_model"),
        (["limit", ""], "judge", "--max-judge-calls"),
    ],
)
def test_judge_failure_has_the_kind_judge(faults: list[str], kind: str, hint: str) -> None:
    error = metric_error([judged(*faults)])
    assert error is not None
    assert error.kind == kind
    assert error.message == "m: turn 2: nothing to read"
    assert hint in error.hint


@pytest.mark.parametrize("fault", ["quota", "timeout", "http", "connection"])
def test_hint_mentions_stored_answers_only_if_there_are_any(fault: str) -> None:
    error = metric_error([judged(fault, answered=False)])
    assert error is not None
    assert error.hint
    assert "kept" not in error.hint


def test_cut_reply_has_a_hint() -> None:
    error = metric_error([judged("cut")])
    assert error is not None
    assert (error.kind, error.hint) == (
        "judge",
        "Raise max_output_tokens in judge_model_config, or use another judge_model",
    )


@pytest.mark.parametrize(("who", "hint"), [("judge", "Another judge_model"), ("service", "asks the service again")])
def test_skipped_items_are_the_judges_fault(who: str, hint: str) -> None:
    reason = "turn 1: the judge gave no verdict on r1 (3 samples)"
    error = metric_error([Scored(MetricResult("m", "error", None, 0.5, reason, {who: {}}))])
    assert error is not None
    assert (error.kind, error.message) == ("judge", f"m: {reason}")
    assert hint in error.hint


def test_fault_in_a_turn_with_a_verdict_is_ignored() -> None:
    assert [fault.kind for fault in faults_behind(judged("quota"))] == ["quota"]


def test_call_limit_is_not_an_error() -> None:
    scored = only_limited(judged("limit", "limit"))
    assert scored.result.status == "not_evaluated"
    assert scored.result.score == 1.0, "what was judged keeps its score"
    assert scored.result.reason == "limit happened (1 of 2 turns judged)"
    assert [turn.status for turn in scored.turns] == ["passed", "not_evaluated"]


@pytest.mark.parametrize("faults", [["limit", "http"], ["limit", ""], []])
def test_other_faults_besides_the_limit_stay_errors(faults: list[str]) -> None:
    assert only_limited(judged(*faults)).result.status == "error"


def test_turn_that_the_judge_left_out_stays_an_error_beside_the_limit() -> None:
    limited = judged("limit")
    skipped = MetricResult("m", "error", 0.5, 0.5, "1 of 2 sentences have no label", judged("-").turns[1].details)
    assert only_limited(Scored(limited.result, (skipped, limited.turns[1]))).result.status == "error"


@pytest.mark.parametrize(("verdict", "status"), [("unread", "error"), ("valid", "not_evaluated")])
def test_stop_without_a_verdict_stays_an_error_beside_the_limit(verdict: str, status: str) -> None:
    limited = judged("limit")
    stop = {"verdict": verdict, "questions": judged("http").turns[1].details["questions"]}
    result = replace(limited.result, details={"judge": {}, "stop": stop})
    assert only_limited(Scored(result, limited.turns)).result.status == status


def test_call_limit_never_changes_a_verdict() -> None:
    passed = judged("limit", status="passed")
    assert only_limited(passed) is passed
