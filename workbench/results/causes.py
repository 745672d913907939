"""Failing cases grouped by cause, and causes as plain text."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from workbench.results.faces import BY_FUNCTION
from workbench.store.execution import Execution
from workbench.store.reasons import ONE_OF_A_KIND, UNKNOWN, Cause

MAX_SINGLE = 20
"""Maximum number of causes with one case each that are listed separately, if no cause is shared."""

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class CauseGroup(Generic[Key]):
    """Cases that share a cause, in the order in which they were given."""

    cause: Cause
    cases: tuple[Key, ...]


def group_by_cause(cases: Iterable[tuple[Key, Cause]]) -> list[CauseGroup[Key]]:
    """Return the groups, the biggest first. Groups of the same size are in the order of their first case.

    Several groups of one case are merged into a last group, `ONE_OF_A_KIND`, unless there are at most `MAX_SINGLE`
    groups and no bigger ones.
    """
    found: dict[str, tuple[Cause, list[Key]]] = {}
    for key, cause in cases:
        found.setdefault(cause.slug, (cause, []))[1].append(key)
    # Python's sort is stable, so equal sizes stay in the order of their first case.
    groups = sorted(found.values(), key=lambda group: -len(group[1]))
    shared = [CauseGroup(cause, tuple(keys)) for cause, keys in groups if len(keys) > 1]
    single = [CauseGroup(cause, tuple(keys)) for cause, keys in groups if len(keys) == 1]
    if len(single) < 2 or (not shared and len(single) <= MAX_SINGLE):
        return shared + single
    return [*shared, CauseGroup(ONE_OF_A_KIND, tuple(key for group in single for key in group.cases))]


def single_slugs(causes: Iterable[Cause]) -> frozenset[str]:
    """Return the slugs that occur exactly once among the causes."""
    counts = Counter(cause.slug for cause in causes)
    return frozenset(slug for slug, count in counts.items() if count == 1)


def matching_slugs(wanted: Sequence[str], known: Iterable[str]) -> frozenset[str]:
    """Return the known slugs that match a filter. Each wanted text selects the equal slug, else all that contain it."""
    slugs = frozenset(known)
    found: set[str] = set()
    for text in wanted:
        found.update((text,) if text in slugs else (slug for slug in slugs if text in slug))
    return frozenset(found)


def failing_groups(records: Iterable[Execution]) -> list[CauseGroup[Execution]]:
    """Return the executions that failed or ended in an error, except those with a fault or a fork, grouped by cause."""
    failing = (record for record in records if _has_cause(record))
    return group_by_cause((record, record.cause or UNKNOWN) for record in failing)


def is_shared(group: CauseGroup[Execution]) -> bool:
    """Return whether a group has several cases with the same cause."""
    return len(group.cases) > 1 and group.cause != ONE_OF_A_KIND


def cause_text(cause: Cause) -> str:
    """Return a cause on one line, followed by `(error)` or `(function)` if it is an error or a function found it."""
    marks = ["error"] if cause.layer == "error" else [BY_FUNCTION.word] if cause.by_function else []
    return " ".join([cause.text, *(f"({mark})" for mark in marks)])


def by_cause(records: Iterable[Execution]) -> list[Execution]:
    """Return the failures and errors, grouped by cause, then all others in the given order."""
    records = list(records)
    failing = [record for group in failing_groups(records) for record in group.cases]
    return [*failing, *(record for record in records if not _has_cause(record))]


def _has_cause(record: Execution) -> bool:
    return record.state in ("failed", "error") and not record.planned.is_apart
