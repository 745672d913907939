"""Scores of ADK's evaluators for the cases on stdin; `test_against_adk.py` runs this module as a process.

Input and output are JSON lists. A case is {"metric", "criterion", "expected", "actual"}. A result is {"overall",
"turns"} with [score, status] each. The first line's result is {"names"}: every metric of ADK.
"""

import json
import sys
from typing import Any

import tests.criteria.no_services  # isort: skip  # noqa: F401
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric, PrebuiltMetrics
from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY


def _result(case: dict[str, Any]) -> dict[str, Any]:
    criterion = case["criterion"]
    metric = EvalMetric(
        metric_name=case["metric"], criterion=None if criterion is None else BaseCriterion.model_validate(criterion)
    )
    evaluator = DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(metric)
    expected, actual = ([Invocation.model_validate(turn) for turn in case[side]] for side in ("expected", "actual"))
    found = evaluator.evaluate_invocations(actual, expected)
    details = found.overall_token_usage_details or found.overall_duration_details
    return {
        "overall": [found.overall_score, found.overall_eval_status.name],
        "turns": [[turn.score, turn.eval_status.name] for turn in found.per_invocation_results],
        "details": details.model_dump() if details else {},
    }


def main() -> None:
    names = sorted(metric.value for metric in PrebuiltMetrics)
    json.dump([{"names": names}, *map(_result, json.load(sys.stdin))], sys.stdout)


if __name__ == "__main__":
    main()
