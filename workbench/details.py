"""The details of finished cases: in memory as long as they are in use, and else in the journal.

A run may have many thousand cases. What is told of each at any time (status, scores, seconds) is small and stays in
its record. Conversations, reasons and output are not: a finished record gives them up when there are too many, and
reads them again when somebody asks for one.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import Any, Protocol, get_args
from weakref import ref

from workbench.events import CaseError, CaseRef, MetricResult, MetricStatus
from workbench.history.judge_named import judge_in

BUDGET = 4 * 2**20
"""Bytes of journal lines whose details are in memory; as Python objects they take about ten times as much."""
_NO_DETAILS: dict[str, Any] = {}
_STATUSES: dict[str, MetricStatus] = {status: status for status in get_args(MetricStatus)}


class Kept(Protocol):
    """A run on disk that the details of its cases can be read from."""

    def size(self, ref: CaseRef) -> int:
        """Return how many bytes of the journal tell of a case; 0 if it cannot be read there."""
        ...

    def read(self, ref: CaseRef) -> "tuple[Any, str]":
        """Return a record with all details of a case. If something is missing, the text says what."""
        ...


class Foldable(Protocol):
    """A record that can give up its details."""

    def fold(self) -> None:
        """Give up the details."""
        ...


@dataclass(slots=True)
class Brief:
    """What a record tells at any time after its details have left memory. `scores` have neither reason nor details,
    except for who judged. `error` has only its kind."""

    scores: dict[str, MetricResult]
    error: CaseError | None
    kept: Kept
    shelf: "Shelf"
    lost: str = ""
    """Why the details could not be read again; "" as long as that did not happen."""


@dataclass(slots=True)
class Shelf:
    """The records whose details are in memory and could be read again, the one that was used last at the end.

    It keeps no record alive: that of a verdict that a newer run has replaced goes at once.
    """

    budget: int = BUDGET
    lock: threading.RLock = field(default_factory=threading.RLock)
    lost: str = ""
    """Why details of a case could not be read again, the first time that this happened."""
    _held: "OrderedDict[int, tuple[ref[Foldable], int]]" = field(default_factory=OrderedDict)
    _bytes: int = 0

    def put(self, record: Foldable, size: int) -> None:
        """Take a record with its details, and fold others if these are too many now."""
        with self.lock:
            self.drop(record)
            self._held[id(record)] = ref(record), size
            self._bytes += size
            while self._bytes > self.budget and len(self._held) > 1:
                held, freed = self._held.popitem(last=False)[1]
                self._bytes -= freed
                other = held()
                if other is not None:
                    other.fold()

    def drop(self, record: Foldable) -> None:
        """Forget a record: from now on it keeps its details."""
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
    """Return a verdict of which only these are known. Most cases have verdicts in common, which share their memory."""
    details = {"judge": dict(judge)} if judge else _NO_DETAILS
    return MetricResult(intern(name), _STATUSES.get(status, "error"), score, threshold, "", details)


def brief_error(kind: Any) -> CaseError:
    """Return an error of which only the kind is known."""
    return _ERRORS.setdefault(kind, CaseError(kind, ""))


_ERRORS: dict[str, CaseError] = {}
