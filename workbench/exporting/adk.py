"""Export of a run as ADK result files, one per evalset, like those of ADK's `LocalEvalSetResultsManager`.

ADK has four statuses. A case with an error becomes FAILED, as in ADK for an agent that failed. A criterion with an
error becomes NOT_EVALUATED. A cancelled case becomes NOT_EVALUATED.
"""

import json
import re
from collections.abc import Container, Mapping
from datetime import datetime
from itertools import count
from typing import Any, Final

from workbench.exporting.exporter import Exporter
from workbench.exporting.report import json_data, report_case
from workbench.files.invocation import recorded_events
from workbench.store.execution import CaseRecord
from workbench.store.history.other_programs import ENDING
from workbench.store.store import Store

_PASSED, _FAILED, _NOT_EVALUATED, _INFORMATIONAL = 1, 2, 3, 4
_CASE_STATUS = {
    "passed": _PASSED,
    "failed": _FAILED,
    "error": _FAILED,
    "not_evaluated": _NOT_EVALUATED,
    "cancelled": _NOT_EVALUATED,
}
_METRIC_STATUS = {"passed": _PASSED, "failed": _FAILED, "informational": _INFORMATIONAL}


def build_adk(store: Store, adk_version: Any = None) -> dict[str, bytes]:
    """Return the files by name, one per agent and evalset, in the form for this version of ADK (None: the newest)."""
    created = _timestamp(store.run.started)
    sets: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for number, record in enumerate(store.read_current(), 1):
        ref = record.ref
        if not ref.evalset_file and not ref.eval_set_id:
            continue  # Placeholder for unknown cases.
        results = sets.setdefault((ref.agent or "agent", ref.evalset_file, ref.eval_set_id or ref.evalset_file), [])
        results.append(_case(json_data(report_case(record)), record, f"{store.run.run_id}-{number}"))
    files: dict[str, bytes] = {}
    for (agent, _, set_id), results in sets.items():
        name = _name(agent, set_id, created, files)
        whole = {
            "eval_set_result_id": name,
            "eval_set_result_name": name,
            "eval_set_id": set_id,
            "eval_case_results": results,
            "creation_timestamp": created,
        }
        if _is_older(adk_version):
            older = {**whole, "eval_case_results": list(map(_older_case, results))}
            text = json.dumps(json.dumps(older, ensure_ascii=False, allow_nan=False), ensure_ascii=False)
        else:
            text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
        files[f"{name}{ENDING}"] = text.encode("utf-8", "replace")  # ADK rejects lone surrogates, escaped or not.
    return files


def _name(agent: str, set_id: str, created: float, files: Container[str]) -> str:
    """Return ADK's name of a result, short enough for a file name and different from all names in `files`."""
    whole = f"{agent}_{set_id}".replace("/", "_").replace("\\", "_").lstrip(".")
    # File systems allow 255 bytes with the time and the extension.
    short = whole.encode("utf-8", "replace")[:200].decode("utf-8", "ignore")
    names = (f"{short}_{created}" if number == 1 else f"{short}_{number}_{created}" for number in count(1))
    return next(name for name in names if f"{name}{ENDING}" not in files)


def _case(case: dict[str, Any], record: CaseRecord, session: str) -> dict[str, Any]:
    metrics = [_metric(metric, record, metric["threshold"]) for metric in case["metrics"]]
    thresholds = {metric["name"]: metric["threshold"] for metric in case["metrics"]}
    turns = [
        {
            "actual_invocation": turn["actual"],
            "expected_invocation": turn["expected"],
            "eval_metric_results": [
                _metric(metric, record, thresholds.get(metric["name"])) for metric in turn["metrics"]
            ],
        }
        for turn in case["invocations"]
        if turn["actual"] is not None
    ]
    return {
        "eval_set_file": case["eval_set_id"],
        "eval_set_id": case["eval_set_id"],
        "eval_id": case["eval_id"],
        "final_eval_status": _CASE_STATUS[case["status"]],
        "eval_metric_results": None,
        "overall_eval_metric_results": metrics,
        "eval_metric_result_per_invocation": turns,
        # ADK's format has no other place for the replay mode, and rejects further keys.
        "session_id": session if record.frozen is None else f"{session}-frozen-{record.frozen.mode}",
        "session_details": None,
        "user_id": None,
    }


def _metric(metric: dict[str, Any], record: CaseRecord, threshold: float | None) -> dict[str, Any]:
    value = record.criteria.get(metric["name"])
    settings = value if isinstance(value, dict) else {}
    return {
        "metric_name": metric["name"],
        "threshold": threshold,
        "criterion": None if threshold is None else {**settings, "threshold": threshold},
        "custom_function_path": None,
        "score": metric["score"],
        "eval_status": _METRIC_STATUS.get(metric["status"], _NOT_EVALUATED),
        "details": {
            "rubric_scores": _rubrics(metric["details"]),
            "token_usage_details": None,
            "duration_details": None,
        },
    }


def _rubrics(details: dict[str, Any]) -> list[dict[str, Any]] | None:
    rubrics = details.get("rubrics")
    if not isinstance(rubrics, list):
        return None
    return [
        {"rubric_id": str(item.get("rubric_id")), "rationale": item.get("rationale"), "score": item.get("score")}
        for item in rubrics
        if isinstance(item, dict)
    ]


_OLDER_TURN = {
    "invocation_id", "user_content", "final_response", "intermediate_data",
    "creation_timestamp", "rubrics", "app_details",
}  # fmt: skip
"""The keys of a turn that older versions of ADK know."""


def _is_older(version: Any) -> bool:
    """Return whether this version of google-adk lacks fields of current result files. False if the version is unknown.

    Versions before 2.13 refuse unknown keys, so durations, token counts and informational criteria are left out. Until
    1.22, the file was JSON inside a JSON string, which later versions still read.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version if isinstance(version, str) else "")
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < (2, 13)


def _older_case(case: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **case,
        "overall_eval_metric_results": _older_metrics(case["overall_eval_metric_results"]),
        "eval_metric_result_per_invocation": [
            {
                "actual_invocation": _older_turn(turn["actual_invocation"]),
                "expected_invocation": _older_turn(turn["expected_invocation"]),
                "eval_metric_results": _older_metrics(turn["eval_metric_results"]),
            }
            for turn in case["eval_metric_result_per_invocation"]
        ],
    }


def _older_metrics(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **{name: value for name, value in metric.items() if name != "custom_function_path"},
            "details": {"rubric_scores": metric["details"]["rubric_scores"]},
        }
        for metric in metrics
        if metric["eval_status"] != _INFORMATIONAL and metric["threshold"] is not None
    ]


def _older_turn(turn: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if turn is None:
        return None
    kept = {name: value for name, value in turn.items() if name in _OLDER_TURN}
    events = recorded_events(kept)
    if events is not None:
        # Events without content only report token counts.
        with_content = [event for event in events if isinstance(event, dict) and event.get("content")]
        reduced = [{"author": event.get("author") or "", "content": event["content"]} for event in with_content]
        kept["intermediate_data"] = {"invocation_events": reduced}
    return kept


def _timestamp(started: str) -> float:
    try:
        return datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


EXPORTER: Final = Exporter(
    "adk",
    "ADK result files, one per evalset; for several, -o names a folder",
    ENDING,
    lambda run: {name: (content,) for name, content in build_adk(run.store, run.versions.get("google-adk")).items()},
    many_files=True,
)
