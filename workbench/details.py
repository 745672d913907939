"""A cache of the details of finished cases, which can be read again from the database.

A run may have many thousand cases. Status, scores and seconds are small and always stay in the record of a case.
Conversations, reasons and output are large. A finished record drops them when there are too many, and reads them
again when one of them is accessed.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import Any, Protocol, get_args
from weakref import ref

from workbench.events import CaseError, CaseRef, MetricResult, MetricStatus
from workbench.judge.judge_details import judge_in

BUDGET = 4 * 2**20
"""Bytes of events whose details may be in memory. As Python objects they take about ten times as much."""
_NO_DETAILS: dict[str, Any] = {}
_STATUSES: dict[str, MetricStatus] = {status: status for status in get_args(MetricStatus)}


class DetailSource(Protocol):
    """A run on disk from which the details of its cases can be read."""

    def size(self, ref: CaseRef) -> int:
        """Return the bytes of the events of a case, or 0 if it cannot be read there."""
        ...

    def read(self, ref: CaseRef) -> "tuple[Any, str]":
        """Return a record with all details of a case, and why something is missing ("" if nothing is)."""
        ...


class Evictable(Protocol):
    """A record that can drop its details."""

    def drop_details(self) -> None:
        """Remove the details from memory."""
        ...


@dataclass(slots=True)
class Brief:
    """The part of a finished record that always stays in memory.

    `scores` have neither reason nor details, except for who judged. `error` has only its kind.
    """

    scores: dict[str, MetricResult]
    error: CaseError | None
    source: DetailSource
    cache: "DetailCache"
    read_error: str = ""
    """Why the details could not be read again, or ""."""


@dataclass(slots=True)
class DetailCache:
    """Records whose details are in memory and can be read again, the least recently used first.

    The cache holds weak references, so a record that a newer run replaced is freed at once.
    """

    budget: int = BUDGET
    lock: threading.RLock = field(default_factory=threading.RLock)
    read_error: str = ""
    """Why details could not be read again, for the first case with that problem."""
    _held: "OrderedDict[int, tuple[ref[Evictable], int]]" = field(default_factory=OrderedDict)
    _bytes: int = 0

    def put(self, record: Evictable, size: int) -> None:
        """Add a record with its details, and drop the details of others if the budget is exceeded."""
        with self.lock:
            self.drop(record)
            self._held[id(record)] = ref(record), size
            self._bytes += size
            while self._bytes > self.budget and len(self._held) > 1:
                held, freed = self._held.popitem(last=False)[1]
                self._bytes -= freed
                other = held()
                if other is not None:
                    other.drop_details()

    def drop(self, record: Evictable) -> None:
        """Remove a record from the cache, so that it keeps its details."""
        with self.lock:
            _, size = self._held.pop(id(record), (None, 0))
            self._bytes -= size


def brief_score(result: MetricResult) -> MetricResult:
    """Return a verdict without its reason and details."""
    judge = ((str(name), str(value)) for name, value in judge_in(result.details).items())
    return short_score(result.name, result.status, result.score, result.threshold, tuple(judge))


@lru_cache(4096)
def short_score(
    name: str, status: str, score: float | None, threshold: float | None, judge: tuple[tuple[str, str | None], ...]
) -> MetricResult:
    """Return a verdict with only these fields. Equal verdicts of many cases share one object."""
    details = {"judge": dict(judge)} if judge else _NO_DETAILS
    return MetricResult(intern(name), _STATUSES.get(status, "error"), score, threshold, "", details)


def brief_error(kind: Any) -> CaseError:
    """Return an error with only its kind."""
    return _ERRORS.setdefault(kind, CaseError(kind, ""))


_ERRORS: dict[str, CaseError] = {}
