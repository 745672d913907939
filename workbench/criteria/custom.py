"""Custom metrics: Python functions of the user that the config names under `custom_metrics`.

A function is called as ADK calls it (`google.adk.evaluation.custom_metric_evaluator`), in a child process with the
agent's interpreter. It sets score and status itself; no threshold is compared, as in ADK. Three cases are errors here
and not in ADK: no score, a score outside the declared interval, and a number of per-turn results that is neither zero
nor the number of turns (which ends ADK's whole run). A function whose signature has `final_session_state` gets the
session state at the end.

`details` of the case: `{"function", "adk_status", "rubrics": [{"rubric_id", "score", "rationale"}, …], "printed",
"whole_conversation"}`. The last is true if a verdict has no results per turn, which ends ADK's run. `details` of an
error: `{"function", "fault", "traceback", "printed"}`. `details` of a turn: `{"rubrics"}`. `printed` is the end of the
function's output.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.agents.answering_child import FunctionFailedError
from workbench.criteria.base import (
    WHOLE,
    Bench,
    NotScorableError,
    Scored,
    ScoreRequest,
    finite,
    require_same_length,
    unscored_result,
)
from workbench.events.events import MetricResult, MetricStatus
from workbench.files.spelling import get
from workbench.text.counting import compared, counted, sign
from workbench.text.safe_text import one_line


class Interval(NamedTuple):
    """Numbers between two ends. An end is included unless it is open."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, int | float) or not math.isfinite(value):
            return False
        above = value > self.low if self.low_open else value >= self.low
        return above and (value < self.high if self.high_open else value <= self.high)

    def __str__(self) -> str:
        return f"{'(' if self.low_open else '['}{self.low:g}, {self.high:g}{')' if self.high_open else ']'}"

    @property
    def is_empty(self) -> bool:
        """Whether the interval contains no number."""
        return not (self.low < self.high or (self.low == self.high and not (self.low_open or self.high_open)))


def declared_interval(config: Mapping[str, Any]) -> Interval | None:
    """Return the interval of an entry of `custom_metrics`, or None if it does not declare one with two numbers."""
    found: Any = config
    for key in ("metric_info", "metric_value_info", "interval"):
        found = get(found, key)
    if not isinstance(found, dict):
        return None
    low, high = (_number(get(found, key)) for key in ("min_value", "max_value"))
    opened = (_is_set(get(found, key)) for key in ("open_at_min", "open_at_max"))
    return None if low is None or high is None else Interval(low, high, *opened)


def _number(value: Any) -> float | None:
    """Return a number, which may be written as text, as ADK reads it, or None for any other value."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_set(value: Any) -> bool:
    """Return a flag as ADK reads it."""
    return value in (True, 1) or (isinstance(value, str) and value.lower() in ("true", "t", "yes", "y", "on", "1"))


_STATUSES: Mapping[str, MetricStatus] = {
    "PASSED": "passed",
    "FAILED": "failed",
    "NOT_EVALUATED": "not_evaluated",
    "INFORMATIONAL": "informational",
}
_LONGEST = 4000
_REASON = 300


async def score(request: ScoreRequest, bench: Bench) -> Scored:
    """Call the function and return its verdict on the case. If the function fails, the verdict is an error.

    Raises:
        NotScorableError: A turn gets two rubrics with the same ID, or the conversations differ in length.
        workbench.judges.base.NotAvailableError: Functions cannot be called here.
    """
    criterion = request.criterion
    path = function_path(request.custom_config or {})
    payload = {
        "name": criterion.name,
        "threshold": criterion.threshold,
        "criterion": criterion.value,
        "actual": _turns_with_rubrics(request),
        "expected": None if request.expected is None else list(request.expected),
        "scenario": request.scenario,
        "end_state": request.end_state,
    }
    try:
        result = await bench.functions().call("metric", path, payload)
    except FunctionFailedError as error:
        return _failed(request, path, error)
    return _scored(request, path, result)


def function_path(config: Mapping[str, Any]) -> str:
    """Return the dotted path in an entry of `custom_metrics`, in either spelling of its keys, or "" if it has none."""
    code = config.get("code_config") or config.get("codeConfig") or {}
    return str(code.get("name") or "") if isinstance(code, Mapping) else ""


def _turns_with_rubrics(request: ScoreRequest) -> list[dict[str, Any]]:
    """Return the actual turns, each with the rubrics of the case and of its reference added, as in ADK."""
    actual, expected = request.actual, request.expected
    require_same_length(request)
    turns = []
    for index, turn in enumerate(actual):
        own = () if expected is None else expected[index].get("rubrics") or ()
        rubrics = [*(turn.get("rubrics") or ()), *request.rubrics, *own]
        names = [rubric.get("rubric_id") for rubric in rubrics]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise NotScorableError(f"turn {index + 1} has the rubric {twice!r} twice")
        turns.append({**turn, "rubrics": rubrics} if rubrics else turn)
    return turns


def _failed(request: ScoreRequest, path: str, error: FunctionFailedError) -> Scored:
    details = {
        "function": path,
        "fault": error.kind,
        "traceback": error.traceback[-_LONGEST:],
        "printed": error.printed[-_LONGEST:],
    }
    reason = f"{error.message} ({error.hint})" if error.hint else error.message
    return Scored(unscored_result(request.criterion, "error", one_line(reason, limit=_REASON), details))


def _scored(request: ScoreRequest, path: str, result: Mapping[str, Any]) -> Scored:
    criterion = request.criterion
    value, status = finite(result["score"]), _status(result["status"])
    details = {
        "function": path,
        "adk_status": result["status"],
        "rubrics": _rubrics(result),
        "printed": result["printed"][-_LONGEST:],
    }
    turns = result["turns"]
    fits = len(turns) == len(request.actual)
    if not turns and request.actual and status in ("passed", "failed"):
        details[WHOLE] = True
    wrong = _wrong_value(path, result, declared_interval(request.custom_config or {}))
    if value is None or wrong:
        status, reason = "error", wrong
    elif turns and not fits and status in ("passed", "failed"):
        reason = f"{path} returned {counted(len(turns), 'per-turn result')} for {counted(len(request.actual), 'turn')}"
        status = "error"
    elif status == "error":
        reason = f"{path} returned the status {result['status']}"
    else:
        reason = _reason(result["status"], value, criterion.threshold)
    case = MetricResult(criterion.name, status, value, criterion.threshold, one_line(reason, limit=_REASON), details)
    return Scored(case, tuple(_turn(request, turn) for turn in turns) if fits else ())


def _wrong_value(path: str, result: Mapping[str, Any], interval: Interval | None) -> str:
    """Describe the first score that is not a number or is outside the declared interval; "" if all are valid."""
    scores = [("overall score", result["score"], False)]
    scores += [(f"score of turn {number}", turn["score"], True) for number, turn in enumerate(result["turns"], 1)]
    for what, score, may_lack in scores:
        value = finite(score)
        if value is None and not (may_lack and score is None):
            return f"{path} returned the {what} {_shown(score)}"
        if value is not None and interval is not None and value not in interval:
            return f"{path} returned the {what} {_shown(score)}, outside its declared interval {interval}"
    return ""


def _turn(request: ScoreRequest, turn: Mapping[str, Any]) -> MetricResult:
    criterion = request.criterion
    value, status = finite(turn["score"]), _status(turn["status"])
    reason = ""
    interval = declared_interval(request.custom_config or {})
    if value is None and (status in ("passed", "failed") or turn["score"] is not None):
        status, reason = "error", f"{turn['status']} with the score {_shown(turn['score'])}"
    elif value is not None and interval is not None and value not in interval:
        status, reason = "error", f"the score {_shown(value)} is outside the declared interval {interval}"
    return MetricResult(criterion.name, status, value, criterion.threshold, reason, {"rubrics": _rubrics(turn)})


def _reason(status: str, value: float, threshold: float) -> str:
    """Return a sentence about the returned status, or "" if it is PASSED and the score agrees."""
    by_threshold = "PASSED" if value >= threshold else "FAILED"
    if status in ("PASSED", "FAILED") and status != by_threshold:
        score, wanted = compared(value, threshold)
        return f"the function returned {status}, which decides, although {score} {sign(value, threshold)} {wanted}"
    return "" if status == "PASSED" else f"the function returned {status}"


def _status(name: Any) -> MetricStatus:
    return _STATUSES.get(str(name), "error")


def _shown(value: Any) -> str:
    return "null" if value is None else one_line(str(value), limit=60)


def _rubrics(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "rubric_id": str(rubric["rubric_id"]),
            "score": finite(rubric["score"]),
            "rationale": str(rubric["rationale"])[:_LONGEST],
        }
        for rubric in result["rubrics"]
    ]
