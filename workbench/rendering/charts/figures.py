"""The data of charts: scores by criterion, and the cases with the most time, cost and tokens."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from workbench.events import CaseName, MetricResult
from workbench.rendering.charts.costs import Costs
from workbench.store import CaseRecord

STEPS = 20
BINS = STEPS + 1
"""The number of bins for scores from 0 to 1. Each is 0.05 wide, and 1 has its own, because many thresholds are 1."""
LONGEST = 8
_COUNTED = ("passed", "failed")


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

    @property
    def failed(self) -> float:
        """The number of cases that did not pass, in shares of repeats."""
        return self.cases - self.passed


@dataclass(frozen=True, slots=True)
class Share:
    """An execution and its share of something: seconds, tokens or money."""

    record: CaseRecord
    amount: float


def scores(records: Iterable[CaseRecord]) -> list[Scores]:
    """Return the scores by criterion, in the order in which they appear.

    Informational metrics and cancelled cases are left out.
    """
    found: dict[str, dict[CaseName, list[MetricResult]]] = {}
    for record in records:
        if record.has_verdict:
            for name, result in record.scores.items():
                if result.status not in ("informational", "not_applicable"):
                    found.setdefault(name, {}).setdefault(record.ref.name, []).append(result)
    return [_scores(name, of_cases.values()) for name, of_cases in found.items()]


def slowest(records: Iterable[CaseRecord]) -> list[Share]:
    """Return the slowest cases, in seconds, each with its slowest execution."""
    return _largest((record, record.duration_seconds) for record in records)


def most_expensive(records: Iterable[CaseRecord], costs: Costs) -> list[Share]:
    """Return the most expensive cases with a known cost, each with its most expensive execution."""
    return _largest((record, costs.amounts.get(record.ref, 0.0)) for record in records)


def most_tokens(records: Iterable[CaseRecord]) -> list[Share]:
    """Return the cases with the most tokens, each with its largest execution.

    The tokens are those of the agent, the simulated user and the judges, in and out.
    """
    return _largest((record, float(tokens(record))) for record in records)


def tokens(record: CaseRecord) -> int:
    """Return the number of all tokens of an execution."""
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
            # 0.15 * 20 is a little less than 3, but 0.15 belongs to the bin that begins there.
            bins[int(min(max(score, 0.0), 1.0) * STEPS + 1e-9)] += vote
            mean += min(max(score, -1e12), 1e12) * vote
            passed += vote * (result.status == "passed")
            thresholds.add(result.threshold)
    threshold = thresholds.pop() if len(thresholds) == 1 else None
    return Scores(name, tuple(bins), mean / max(cases, 1), passed, cases, len(of_cases) - cases, threshold)


def _score(result: MetricResult) -> float | None:
    """Return the score of a verdict that counts. Return None for other verdicts and for NaN."""
    counts = result.status in _COUNTED and result.score is not None and not math.isnan(result.score)
    return result.score if counts else None


def _largest(amounts: Iterable[tuple[CaseRecord, float]]) -> list[Share]:
    """Return the largest execution of each case. Several repeats of one case would leave no room for others."""
    found: dict[CaseName, Share] = {}
    for record, amount in amounts:
        case = record.ref.name
        if record.finished and amount > 0 and (case not in found or amount > found[case].amount):
            found[case] = Share(record, amount)
    return sorted(found.values(), key=lambda share: -share.amount)[:LONGEST]
