"""Comparison of our scores and statuses with those of ADK's own evaluators, through the public entry points.

The criterion is read from a config file, the invocations like those of an evalset, and the registry scores them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.files.invocations import normalise_invocation
from tests.parity.oracles import BY_METRIC
from tests.parity.scripted import ScriptedBench
from workbench.criteria.base import NotScorableError, Scored, ScoreRequest
from workbench.criteria.registry import check_criteria, needs_bench, score_with_bench
from workbench.events.events import MetricResult
from workbench.files.criteria import read_config
from workbench.files.current_cases import validate_case

Vector = dict[str, Any]
Result = dict[str, Any]

DECIDED_DIFFERENTLY = {
    "verdict_spelling",
    "one_failed_call_voids_invocation",
    "malformed_verdict_voids_sample",
    "repeated_verdicts_all_count",
    "last_turn_rubrics_apply_to_all_turns",
    "unevaluated_turn_counts_as_failed",
    "turn_status_uses_metric_threshold",
    "judge_failure_raises",
    "turn_without_verdict_ignored",
    "rubric_without_verdict_ignored",
    "unlabelled_sentences_ignored",
}
"""Quirks for which our documented rule (docs/adk-compatibility.md) differs; all others follow ADK.

`oracles` computes the result of our rule from the vector's script, without the implementation.
"""
_TOLERANCE = 1e-9
_NO_VERDICT = ("error", "not_evaluated", "not_applicable")


class RefusedError(ValueError):
    """The vector's criterion or invocations were rejected before scoring."""


async def test_result_of_a_vector_equals_adks_or_differs_as_documented(
    vector: Vector, outcome: dict[str, Any], tmp_path: Path
) -> None:
    scored = await _scored(vector, tmp_path, all_votes=False)
    if needs_bench(vector["metric"]):
        with_all_votes = await _scored(vector, tmp_path, all_votes=True)
        assert _verdicts(scored) == _verdicts(with_all_votes), "skipping needless samples changed a verdict"
    wrong = _differences(vector["result"], scored)
    if not wrong:
        outcome["outcome"] = "equal"
        return
    if DECIDED_DIFFERENTLY & set(vector.get("quirks") or ()):
        ours = _differences(BY_METRIC[vector["metric"]](vector), scored)
        if not ours:
            outcome["outcome"] = "differ as documented"
            return
        wrong += [f"by our own rule {each}" for each in ours]
    pytest.fail(f"{vector['id']} ({vector['note']}): {'; '.join(wrong)}")


async def _scored(vector: Vector, folder: Path, *, all_votes: bool) -> Scored | ValueError:
    """Return the result, or the refusal."""
    try:
        return await score_with_bench(_request(vector, folder), ScriptedBench(vector, all_votes=all_votes))
    except (RefusedError, NotScorableError) as refusal:
        return refusal


def _request(vector: Vector, folder: Path) -> ScoreRequest:
    file = folder / "test_config.json"
    file.write_text(json.dumps({"criteria": {vector["metric"]: vector["criterion"]}}), encoding="utf-8")
    config = read_config(file)
    errors = [fault for fault in (*config.faults, *check_criteria(config)) if fault.severity == "error"]
    if errors:
        raise RefusedError(errors[0].sentence())
    expected, case = vector["expected"], _case(vector)
    return ScoreRequest(
        criterion=config.criteria[0],
        expected=None if expected is None else _turns(expected),
        actual=_turns(vector["actual"]),
        scenario=case.get("conversation_scenario"),
        rubrics=tuple(case.get("rubrics") or ()),
    )


def _case(vector: Vector) -> dict[str, Any]:
    """Read scenario and case rubrics as a file's case has them."""
    scenario = vector.get("conversation_scenario")
    kind = {"conversation": []} if scenario is None else {"conversation_scenario": scenario}
    text = json.dumps({"eval_id": vector["id"], "rubrics": vector.get("case_rubrics"), **kind})
    case, breaches = validate_case(text.encode("ascii"))
    if case is None:
        raise RefusedError(breaches[0].message)
    return case


def _turns(invocations: list[Any]) -> tuple[dict[str, Any], ...]:
    try:
        return tuple(normalise_invocation(invocation) for invocation in invocations)
    except ValueError as error:
        raise RefusedError(str(error)) from error


def _verdicts(scored: Scored | ValueError) -> Any:
    if isinstance(scored, ValueError):
        return str(scored)
    return [(each.status, each.score) for each in (scored.result, *scored.turns)]


def _differences(wanted: Result, got: Scored | ValueError) -> list[str]:
    if isinstance(got, ValueError):
        return [] if "error" in wanted else [f"refused: {got}"]
    if "error" in wanted:
        # An error may keep the score of the rest; it is no verdict for all that.
        refused = got.result.status in _NO_VERDICT
        return [] if refused else [f"ADK refuses ({wanted['error']}), ours is {got.result.status}"]
    wrong = _compare("overall", wanted["overall_score"], wanted["overall_status"], got.result)
    turns = wanted["per_invocation"]
    if len(turns) != len(got.turns):
        return [*wrong, f"{len(turns)} turns, got {len(got.turns)}"]
    for number, (turn, result) in enumerate(zip(turns, got.turns, strict=True), 1):
        wrong += _compare(f"turn {number}", turn["score"], turn["status"], result)
        wrong += _compare_rubrics(f"turn {number}", turn.get("rubric_scores") or [], result)
    return wrong


def _compare_rubrics(what: str, wanted: list[Result], got: MetricResult) -> list[str]:
    """Compare rubrics. ADK leaves out a rubric that no reply mentions. The workbench lists it without a score."""
    scores = {each["rubric_id"]: each["score"] for each in wanted if each["score"] is not None}
    ours = {each["rubric_id"]: each["score"] for each in got.details.get("rubrics", ()) if each["score"] is not None}
    return [] if scores == ours else [f"{what}: rubrics {scores}, got {ours}"]


def _compare(what: str, score: float | None, status: str, got: MetricResult) -> list[str]:
    wrong = []
    statuses = _NO_VERDICT if status == "NOT_EVALUATED" else (status.lower(),)
    if got.status not in statuses:
        wrong.append(f"{what}: {status}, got {got.status} ({got.reason})")
    if (score is None) != (got.score is None) or abs((score or 0.0) - (got.score or 0.0)) > _TOLERANCE:
        wrong.append(f"{what}: score {score}, got {got.score}")
    return wrong
