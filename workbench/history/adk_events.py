"""Cases of ADK's result files as events of a run."""

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from workbench.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    MetricResult,
    MetricScored,
    MetricStatus,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.history.adk_results import ENDING, adk_frozen, adk_results, adk_status, adk_time, read_adk_result
from workbench.history.summary import number
from workbench.json_values import mapping

_OF_CASE: dict[MetricStatus, CaseStatus] = {"passed": "passed", "failed": "failed"}
_SOURCE = "as in ADK's result file"


def adk_case_events(path: Path, refs: Collection[CaseRef] | None = None) -> Iterator[Event]:
    """Yield the file as the events of a run, with these cases only, or with all.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not an ADK result file.
    """
    data = read_adk_result(path)
    found = {CaseRef(*key): result for key, result in adk_results(path, data)}
    if refs is not None:
        found = {ref: result for ref, result in found.items() if ref in refs}
    run_id = path.name.removesuffix(ENDING)
    planned = tuple(PlannedCase(ref, None, _SOURCE) for ref in found)
    yield RunStarted(run_id, str(path.parents[3]), adk_time(data.get("creation_timestamp")), planned)
    for ref, result in found.items():
        # A case of unknown form is shown without an end. The others are complete.
        with contextlib.suppress(TypeError, ValueError, AttributeError, KeyError, RecursionError):
            yield from list(_case(ref, result))
    yield RunFinished(0.0)


def _case(ref: CaseRef, result: dict[str, Any]) -> Iterator[Event]:
    metrics = list(_metrics(result.get("overall_eval_metric_results")))
    turns = [turn for turn in result.get("eval_metric_result_per_invocation") or () if isinstance(turn, dict)]
    expected = [turn.get("expected_invocation") for turn in turns]
    reference = tuple(item for item in expected if isinstance(item, dict))
    criteria = {metric.name: metric.threshold for metric in metrics}
    # A case with a simulated user has references without an answer. They are shown as they are.
    yield CaseStarted(ref, 0.0, reference if len(reference) == len(turns) else None, criteria)
    turn_metrics: list[dict[str, MetricResult]] = []
    for place, turn in enumerate(turns):
        actual = mapping(turn.get("actual_invocation"))
        yield TurnStarted(ref, place, mapping(actual.get("user_content")))
        yield TurnFinished(ref, place, actual)
        turn_metrics.append({metric.name: metric for metric in _metrics(turn.get("eval_metric_results"))})
    for metric in metrics:
        nothing = MetricResult(metric.name, "not_applicable")
        yield MetricScored(ref, metric, tuple(turn.get(metric.name, nothing) for turn in turn_metrics))
    status = adk_status(result.get("final_eval_status"))
    yield CaseFinished(ref, _OF_CASE.get(status, "not_evaluated"), None, 0.0, frozen=adk_frozen(result))


def _metrics(items: Any) -> Iterator[MetricResult]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("metric_name"):
            score, threshold = number(item.get("score")), number(item.get("threshold"))
            status = adk_status(item.get("eval_status"))
            yield MetricResult(str(item["metric_name"]), status, score, threshold, _reason(item))


def _reason(item: dict[str, Any]) -> str:
    """Return a judge's rationales, if the file has them."""
    details = item.get("details")
    rubrics = details.get("rubric_scores") if isinstance(details, dict) else None
    rationales = [rubric.get("rationale") for rubric in rubrics or () if isinstance(rubric, dict)]
    return " ".join(text for text in rationales if isinstance(text, str) and text)
