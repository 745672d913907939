"""ADK's result file as versions before 2.13 read it.

They refuse every key that they do not know, so what 2.13 has added is left out: durations, counts of tokens, criteria
that are only informational. Until 1.22 the file was JSON within a JSON text; later ones read that as well.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

_FIRST_OF_TODAY = (2, 13)
_LAST_OF_OLD_STATUSES = 3
_TURN = frozenset(
    (
        "invocation_id",
        "user_content",
        "final_response",
        "intermediate_data",
        "creation_timestamp",
        "rubrics",
        "app_details",
    )
)


def is_older(version: Any) -> bool:
    """Whether google-adk of this version lacks what is written today; False where the version is not known."""
    numbers = re.match(r"(\d+)\.(\d+)", version if isinstance(version, str) else "")
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < _FIRST_OF_TODAY


def for_older(result: Mapping[str, Any]) -> str:
    """The content of the file for an `EvalSetResult` in its JSON form."""
    cases = [_case(case) for case in result["eval_case_results"]]
    text = json.dumps({**result, "eval_case_results": cases}, ensure_ascii=False, allow_nan=False)
    return json.dumps(text, ensure_ascii=False)


def _case(case: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **case,
        "overall_eval_metric_results": _metrics(case["overall_eval_metric_results"]),
        "eval_metric_result_per_invocation": [
            {
                "actual_invocation": _turn(turn["actual_invocation"]),
                "expected_invocation": _turn(turn["expected_invocation"]),
                "eval_metric_results": _metrics(turn["eval_metric_results"]),
            }
            for turn in case["eval_metric_result_per_invocation"]
        ],
    }


def _metrics(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **{name: value for name, value in metric.items() if name != "custom_function_path"},
            "details": {"rubric_scores": metric["details"]["rubric_scores"]},
        }
        for metric in metrics
        if metric["eval_status"] <= _LAST_OF_OLD_STATUSES and metric["threshold"] is not None
    ]


def _turn(turn: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if turn is None:
        return None
    kept = {name: value for name, value in turn.items() if name in _TURN}
    events = (kept.get("intermediate_data") or {}).get("invocation_events")
    if isinstance(events, list):
        # One without a content tells only of tokens.
        told = [event for event in events if isinstance(event, dict) and event.get("content")]
        shown = [{"author": event.get("author") or "", "content": event["content"]} for event in told]
        kept["intermediate_data"] = {"invocation_events": shown}
    return kept
