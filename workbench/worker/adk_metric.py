"""Arguments and results of a custom metric of ADK.

`google.adk.evaluation.custom_metric_evaluator` calls the metric with four positional arguments: an EvalMetric without
its threshold (which is in the criterion), the actual turns, the expected turns or None, the scenario or None. The
metric sets the status itself.
"""

from __future__ import annotations

import json
from typing import Any

from google.adk.evaluation import eval_case
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric
from google.adk.evaluation.evaluator import EvaluationResult

from . import faults, jsonable
from .serving import CallFailedError

Invocation = eval_case.Invocation


def arguments(data: dict[str, Any], path: str) -> tuple[Any, Any, Any, Any]:
    """Return the four arguments of a custom metric.

    `data` is `{"name", "threshold", "criterion", "actual", "expected", "scenario"}`. `criterion` is the value of the
    criterion in the config, a number or an object.

    Raises:
        CallFailedError: this version of ADK cannot read `data`.
    """
    try:
        value = data["criterion"] if isinstance(data["criterion"], dict) else {"threshold": data["threshold"]}
        fields = {"metric_name": data["name"], "criterion": BaseCriterion.model_validate(value)}
        if "custom_function_path" in EvalMetric.model_fields:
            fields["custom_function_path"] = path
        # Older versions require a threshold here.
        metric = EvalMetric(threshold=data["threshold"], **fields)
        metric.threshold = None
        expected, scenario = data["expected"], data["scenario"]
        return (
            metric,
            [_invocation(turn) for turn in data["actual"]],
            None if expected is None else [_invocation(turn) for turn in expected],
            None if scenario is None else eval_case.ConversationScenario.model_validate(scenario),
        )
    except ValueError as error:
        message = f"google-adk cannot read the turns to judge: {error}"
        raise CallFailedError(faults.fault("wrong_input", message)) from None


def _invocation(turn: dict[str, Any]) -> Any:
    """Return ADK's Invocation of a turn, without newer fields, which older versions of ADK reject."""
    known = {name: value for name, value in turn.items() if name in Invocation.model_fields}
    recorded = (known.get("intermediate_data") or {}).get("invocation_events")
    if recorded is not None:
        fields = eval_case.InvocationEvent.model_fields
        # A missing key means null, but older versions require `content`.
        full = ({"content": None, **event} for event in recorded)
        events = [{name: value for name, value in event.items() if name in fields} for event in full]
        known["intermediate_data"] = {**known["intermediate_data"], "invocation_events": events}
    return Invocation.model_validate(known)


def plain(result: Any, path: str) -> dict[str, Any]:
    """Return a result as `{"score", "status", "rubrics", "turns": [{"score", "status", "rubrics"}, …]}`.

    Statuses are ADK's names. Rubrics are `[{"rubric_id", "score", "rationale"}, …]`.

    Raises:
        CallFailedError: the result is not an EvaluationResult.
    """
    if not isinstance(result, EvaluationResult):
        message = f"{path} returned {type(result).__name__} {jsonable.shown(result)[:200]}, not an EvaluationResult"
        raise CallFailedError(faults.fault("wrong_result", message))
    turns = [
        {"score": turn.score, "status": _name(turn.eval_status), "rubrics": _rubrics(turn)}
        for turn in result.per_invocation_results
    ]
    overall = {"score": result.overall_score, "status": _name(result.overall_eval_status)}
    # A model's attributes may hold any value.
    plain_data: dict[str, Any] = json.loads(
        jsonable.dumps({**overall, "rubrics": _rubrics(result, "overall_rubric_scores"), "turns": turns})
    )
    return plain_data


def _name(status: Any) -> str:
    return str(getattr(status, "name", status))


def _rubrics(result: Any, name: str = "rubric_scores") -> list[dict[str, Any]]:
    return [
        {
            "rubric_id": getattr(rubric, "rubric_id", ""),
            "score": getattr(rubric, "score", None),
            "rationale": getattr(rubric, "rationale", None) or "",
        }
        for rubric in getattr(result, name, None) or []
    ]
