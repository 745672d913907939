"""From the verdicts of the criteria to the status of a case."""

from collections.abc import Iterable

from workbench.events import CaseError, CaseStatus, MetricResult


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


def metric_error(results: Iterable[MetricResult]) -> CaseError | None:
    """What a case says that is `error` because of its metrics: the first such metric, or None if there is none."""
    for result in results:
        if result.status == "error":
            traceback = str(result.details.get("traceback", ""))
            return CaseError("metric_crashed", f"{result.name}: {result.reason}", traceback=traceback)
    return None
