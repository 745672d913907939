"""What pictures are made of: scores by criterion, and which cases took the most time, money and tokens."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from workbench.events import CaseName, MetricResult
from workbench.rendering.charts.costs import Costs
from workbench.store import CaseRecord

STEPS = 20
BINS = STEPS + 1
"""Scores from 0 to 1 are counted in bins of 0.05; 1 itself, which so many thresholds ask for, is one of its own."""
LONGEST = 8
_COUNTED = ("passed", "failed")


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one criterion: how many in each bin, and what came of them. Each of the `cases` has one vote, which
    its executions share; so these are fractions where a case was repeated. `undecided` counts cases without a score.
    `threshold` is None where it was not the same for all. Scores outside of 0 to 1 count in the outermost bins."""

    name: str
    bins: tuple[float, ...]
    mean: float
    passed: float
    cases: int
    undecided: int
    threshold: float | None

    @property
    def failed(self) -> float:
        return self.cases - self.passed


@dataclass(frozen=True, slots=True)
class Share:
    """An execution and its share of something: seconds, tokens or money."""

    record: CaseRecord
    amount: float


def scores(records: Iterable[CaseRecord]) -> list[Scores]:
    """Return the scores by criterion, in the order in which they appear. What is only informational is left out, and
    so is what was cancelled."""
    found: dict[str, dict[CaseName, list[MetricResult]]] = {}
    for record in records:
        if record.has_verdict:
            for name, result in record.scores.items():
                if result.status not in ("informational", "not_applicable"):
                    found.setdefault(name, {}).setdefault(record.ref.name, []).append(result)
    return [_scores(name, of_cases.values()) for name, of_cases in found.items()]


def slowest(records: Iterable[CaseRecord]) -> list[Share]:
    """The cases that took the longest, in seconds, each with its slowest execution."""
    return _largest((record, record.duration_seconds) for record in records)


def dearest(records: Iterable[CaseRecord], costs: Costs) -> list[Share]:
    """The cases that cost the most, of those whose cost is known, each with its dearest execution."""
    return _largest((record, costs.amounts.get(record.ref, 0.0)) for record in records)


def longest(records: Iterable[CaseRecord]) -> list[Share]:
    """The cases with the most tokens, in and out, of the agent, the simulated user and the judges, each with its
    largest execution."""
    return _largest((record, float(tokens(record))) for record in records)


def tokens(record: CaseRecord) -> int:
    """All tokens of an execution."""
    usage = record.usage
    return usage.input_tokens + usage.output_tokens + usage.judge_input_tokens + usage.judge_output_tokens


def _scores(name: str, of_cases: Collection[list[MetricResult]]) -> Scores:
    bins = [0.0] * BINS
    thresholds: set[float | None] = set()
    mean = passed = 0.0
    cases = 0
    for results in of_cases:
        scored = [(score, result) for result in results if (score := _score(result)) is not None]
        cases += bool(scored)
        for score, result in scored:
            vote = 1 / len(scored)
            # 0.15 * 20 is a little less than 3, and 0.15 belongs to the bin that begins there.
            bins[int(min(max(score, 0.0), 1.0) * STEPS + 1e-9)] += vote
            mean += min(max(score, -1e12), 1e12) * vote
            passed += vote * (result.status == "passed")
            thresholds.add(result.threshold)
    threshold = thresholds.pop() if len(thresholds) == 1 else None
    return Scores(name, tuple(bins), mean / max(cases, 1), passed, cases, len(of_cases) - cases, threshold)


def _score(result: MetricResult) -> float | None:
    """The score of a verdict that counts; None for any other, and for what is no number."""
    counts = result.status in _COUNTED and result.score is not None and not math.isnan(result.score)
    return result.score if counts else None


def _largest(amounts: Iterable[tuple[CaseRecord, float]]) -> list[Share]:
    """One of each case, its largest: repeats of one would leave no room for others."""
    found: dict[CaseName, Share] = {}
    for record, amount in amounts:
        case = record.ref.name
        if record.finished and amount > 0 and (case not in found or amount > found[case].amount):
            found[case] = Share(record, amount)
    return sorted(found.values(), key=lambda share: -share.amount)[:LONGEST]
