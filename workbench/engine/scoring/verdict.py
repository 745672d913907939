"""From the verdicts of the criteria to the status of a case."""

from collections.abc import Iterable, Mapping

from workbench.engine.scoring.judge_faults import faults_behind, something_answered
from workbench.events import CaseError, CaseStatus, ErrorKind, MetricResult
from workbench.metrics.base import Scored

_KEPT = "What was answered is kept: the next run asks only for the rest"
_UNANSWERED: Mapping[str, str] = {
    "quota": "Run again when the quota is renewed, or name another judge_model",
    "timeout": "Run again, or name another judge_model",
    "http": "Run again when that is put right, or name another judge_model",
    "connection": "Check the connection and the address, then run again",
}
_WAYS_OUT: Mapping[str, str] = {
    "skipped": "The next run asks again; another judge_model may answer everything",
    "unrated": "The next run asks the service again",
    "cut": "Raise max_output_tokens in judge_model_config, or name another judge_model",
    "blocked": "Another judge_model may answer what this one refuses",
    "unreadable": "The report has each reply word for word; the next run asks again, another judge_model may do better",
    "raised": "The judge is a function of the project",
    "limit": "A higher --max-judge-calls lets it finish",
}
"""Beside what the message says itself."""


def case_status(results: Iterable[MetricResult], *, allow_not_evaluated: bool = False) -> CaseStatus:
    """The status of a case whose transcript is complete.

    An `error` of any metric wins, then `failed`, then `not_evaluated` (unless `allow_not_evaluated` leaves such metrics
    out), then `passed`. A case that no metric passed is `not_evaluated`: nothing was shown to be right. Metrics that
    are `informational` or `not_applicable` never count.
    """
    seen = {result.status for result in results}
    if "error" in seen:
        return "error"
    if "failed" in seen:
        return "failed"
    if "not_evaluated" in seen and not allow_not_evaluated:
        return "not_evaluated"
    return "passed" if "passed" in seen else "not_evaluated"


def metric_error(scored: Iterable[Scored]) -> CaseError | None:
    """What a case says that is `error` because of its metrics: the first such metric, or None if there is none. It is
    the judge's fault (`judge`, or `quota` where nothing else was wrong) if replies were missing or could not be read,
    and else the metric's."""
    for one in scored:
        result = one.result
        if result.status == "error":
            message = f"{result.name}: {result.reason}"
            traceback = str(result.details.get("traceback", ""))
            faults = [] if traceback else faults_behind(one)
            if not faults:
                return CaseError("metric_crashed", message, traceback=traceback)
            kind: ErrorKind = "quota" if all(fault.kind == "quota" for fault in faults) else "judge"
            return CaseError(kind, message, _way_out(faults[0].kind, one))
    return None


def _way_out(kind: str, scored: Scored) -> str:
    """What can be done about the first fault, which is the one that the message tells."""
    if kind in _UNANSWERED:
        return _KEPT if something_answered(scored) else _UNANSWERED[kind]
    return _WAYS_OUT.get(kind, "")
