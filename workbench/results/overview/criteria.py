"""The scores of many cases by criterion: counts, mean and distribution, with one vote for each case."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from workbench.events.events import CaseName, MetricResult
from workbench.results.judged import is_function
from workbench.store.execution import Execution

STEPS = 20
BINS = STEPS + 1
"""The number of bins for scores from 0 to 1. Each is 0.05 wide, and 1 has its own, because many thresholds are 1."""
_COUNTED = ("passed", "failed")
_LEFT_OUT = ("informational", "not_applicable")


class Vote(NamedTuple):
    """The vote of one case on one criterion, shared by its repeats.

    `scores` are those of the repeats that passed or failed, of which `passed` passed. `thresholds` are the distinct
    thresholds of these. `by_function`: whether a function judged one of them.
    """

    scores: tuple[float, ...] = ()
    passed: int = 0
    thresholds: tuple[float | None, ...] = ()
    by_function: bool = False


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one criterion: a count for each bin, and the results.

    Each of the `cases` has one vote, shared by its repeats. So the counts are fractions if a case was repeated.
    `undecided` counts cases without a score. `threshold` is None if it was not the same for all. Scores outside 0 to 1
    count in the outermost bins.
    """

    name: str
    bins: tuple[float, ...]
    mean: float
    passed: float
    cases: int
    undecided: int
    threshold: float | None
    by_function: bool = False
    """Whether a function judged, at least in some cases."""

    @property
    def failed(self) -> float:
        """The number of cases that did not pass, in shares of repeats."""
        return self.cases - self.passed


def scores(records: Iterable[Execution]) -> list[Scores]:
    """Return the scores by criterion, in the order in which they appear.

    Informational metrics and cancelled cases are left out.
    """
    of_cases: dict[CaseName, list[Execution]] = {}
    for record in records:
        of_cases.setdefault(record.ref.name, []).append(record)
    return [summed(name, votes) for name, votes in votes_of(of_cases.values()).items()]


def votes_of(cases: Iterable[Sequence[Execution]]) -> dict[str, list[tuple[Vote, int]]]:
    """Return the votes of cases by criterion, each with the number of cases that voted so.

    Each case is given by its executions. Verdicts of different cases are often one object, so 10,000 cases take a few
    milliseconds.
    """
    single: list[Execution] = []
    repeated: list[Sequence[Execution]] = []
    for executions in cases:
        if len(executions) == 1:
            single.append(executions[0])
        else:
            repeated.append(executions)
    results = list(chain.from_iterable([record.scores.values() for record in single if record.has_verdict]))
    by_id = dict(zip(map(id, results), results, strict=True))
    found: dict[str, list[tuple[Vote, int]]] = {}
    for number, times in Counter(map(id, results)).items():
        result = by_id[number]
        if result.status not in _LEFT_OUT:
            found.setdefault(result.name, []).append((_vote((result,)), times))
    for executions in repeated:
        for name, of_case in _by_criterion(executions).items():
            found.setdefault(name, []).append((_vote(of_case), 1))
    return found


def summed(name: str, votes: Iterable[tuple[Vote, int]]) -> Scores:
    """Return the scores of one criterion."""
    counts = [0.0] * BINS
    thresholds: set[float | None] = set()
    means: list[float] = []
    passed, cases, undecided, by_function = 0.0, 0, 0, False
    for vote, times in votes:
        by_function = by_function or vote.by_function
        share = len(vote.scores)
        if not share:
            undecided += times
            continue
        cases += times
        passed += vote.passed * times / share
        thresholds.update(vote.thresholds)
        for score in vote.scores:
            means.append(min(max(score, -1e12), 1e12) * times / share)
            # 0.15 * 20 is a little less than 3, but 0.15 belongs to the bin that begins there.
            counts[int(min(max(score, 0.0), 1.0) * STEPS + 1e-9)] += times / share
    threshold = thresholds.pop() if len(thresholds) == 1 else None
    return Scores(
        name, tuple(counts), math.fsum(means) / max(cases, 1), passed, cases, undecided, threshold, by_function
    )


def merged(parts: Sequence[Scores]) -> Scores:
    """Return the scores of one criterion from those of several sets of cases."""
    if len(parts) == 1:
        return parts[0]
    cases = sum(part.cases for part in parts)
    thresholds = {part.threshold for part in parts if part.cases}
    return Scores(
        parts[0].name,
        tuple(map(sum, zip(*(part.bins for part in parts), strict=True))),
        math.fsum(part.mean * part.cases for part in parts) / max(cases, 1),
        math.fsum(part.passed for part in parts),
        cases,
        sum(part.undecided for part in parts),
        thresholds.pop() if len(thresholds) == 1 else None,
        any(part.by_function for part in parts),
    )


def _by_criterion(executions: Iterable[Execution]) -> Mapping[str, list[MetricResult]]:
    found: dict[str, list[MetricResult]] = {}
    for record in executions:
        if record.has_verdict:
            for name, result in record.scores.items():
                if result.status not in _LEFT_OUT:
                    found.setdefault(name, []).append(result)
    return found


def _vote(results: Collection[MetricResult]) -> Vote:
    scored = [(score, result) for result in results if (score := _score(result)) is not None]
    passed = sum(result.status == "passed" for _, result in scored)
    thresholds = tuple(dict.fromkeys(result.threshold for _, result in scored))
    return Vote(tuple(score for score, _ in scored), passed, thresholds, any(map(is_function, results)))


def _score(result: MetricResult) -> float | None:
    """Return the score of a verdict that counts. Return None for other verdicts and for NaN."""
    counts = result.status in _COUNTED and result.score is not None and not math.isnan(result.score)
    return result.score if counts else None
