"""Causes of failures as plain text, for the printed summary and for exports."""

from collections.abc import Iterable

from workbench.results.cause_groups import CauseGroup, group_by_cause
from workbench.results.faces import BY_FUNCTION
from workbench.store.cause import ONE_OF_A_KIND, UNKNOWN, Cause
from workbench.store.execution import Execution


def failing_groups(records: Iterable[Execution]) -> list[CauseGroup[Execution]]:
    """Return the executions that failed or ended in an error in groups that share a cause, the biggest first.

    Executions with injected faults are left out: they fail for the injected reason.
    """
    failing = (record for record in records if _has_cause(record))
    return group_by_cause((record, record.cause or UNKNOWN) for record in failing)


def is_shared(group: CauseGroup[Execution]) -> bool:
    """Return whether the cases of a group have the same cause."""
    return len(group.cases) > 1 and group.cause != ONE_OF_A_KIND


def cause_text(cause: Cause) -> str:
    """Return a cause on one line, and whether it is an error or was found by a function."""
    marks = ["error"] if cause.layer == "error" else [BY_FUNCTION.word] if cause.by_function else []
    return " ".join([cause.text, *(f"({mark})" for mark in marks)])


def by_cause(records: Iterable[Execution]) -> list[Execution]:
    """Return the executions that failed or ended in an error, by cause, then all others in their order."""
    records = list(records)
    failing = [record for group in failing_groups(records) for record in group.cases]
    return [*failing, *(record for record in records if not _has_cause(record))]


def _has_cause(record: Execution) -> bool:
    return record.state in ("failed", "error") and not record.planned.is_apart
