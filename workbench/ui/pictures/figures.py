"""What pictures are made of: scores by criterion, and which cases took the most time, money and tokens."""

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.store import CaseRecord
from workbench.ui.pictures.costs import Costs

STEPS = 20
BINS = STEPS + 1
"""Scores from 0 to 1 are counted in bins of 0.05; 1 itself, which so many thresholds ask for, is one of its own."""
LONGEST = 8
_COUNTED = ("passed", "failed")


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one criterion over all executions: how many in each bin, and what came of them. `threshold` is
    None where it was not the same for all. Scores outside of 0 to 1 count in the outermost bins."""

    name: str
    bins: tuple[int, ...]
    mean: float
    passed: int
    failed: int
    threshold: float | None

    @property
    def total(self) -> int:
        return sum(self.bins)


@dataclass(frozen=True, slots=True)
class Share:
    """An execution and its share of something: seconds, tokens or money."""

    record: CaseRecord
    amount: float


def scores(records: Iterable[CaseRecord]) -> list[Scores]:
    """By criterion, in the order in which they appear; what is only informational is left out."""
    found: dict[str, list[tuple[float, float | None, str]]] = {}
    for record in records:
        for result in record.scores.values():
            if result.score is not None and result.status in _COUNTED and result.score == result.score:
                found.setdefault(result.name, []).append((result.score, result.threshold, result.status))
    return [_scores(name, given) for name, given in found.items()]


def slowest(records: Iterable[CaseRecord], most: int = LONGEST) -> list[Share]:
    """The cases that took the longest, in seconds, each with its slowest execution."""
    return _largest(((record, record.duration_seconds) for record in records), most)


def dearest(records: Iterable[CaseRecord], costs: Costs, most: int = LONGEST) -> list[Share]:
    """The cases that cost the most, of those whose cost is known, each with its dearest execution."""
    return _largest(((record, costs.amounts.get(record.ref, 0.0)) for record in records), most)


def longest(records: Iterable[CaseRecord], most: int = LONGEST) -> list[Share]:
    """The cases with the most tokens, in and out, of the agent, the simulated user and the judges, each with its
    largest execution."""
    return _largest(((record, float(tokens(record))) for record in records), most)


def tokens(record: CaseRecord) -> int:
    """All tokens of an execution."""
    usage = record.usage
    return usage.input_tokens + usage.output_tokens + usage.judge_input_tokens + usage.judge_output_tokens


def _scores(name: str, given: list[tuple[float, float | None, str]]) -> Scores:
    bins = [0] * BINS
    for score, _, _ in given:
        # 0.15 * 20 is a little less than 3, and 0.15 belongs to the bin that begins there.
        bins[int(min(max(score, 0.0), 1.0) * STEPS + 1e-9)] += 1
    thresholds = {threshold for _, threshold, _ in given}
    states = [status for _, _, status in given]
    mean = sum(min(max(score, -1e12), 1e12) for score, _, _ in given) / len(given)
    threshold = thresholds.pop() if len(thresholds) == 1 else None
    return Scores(name, tuple(bins), mean, states.count("passed"), states.count("failed"), threshold)


def _largest(amounts: Iterable[tuple[CaseRecord, float]], most: int) -> list[Share]:
    """One of each case, its largest: repeats of one would leave no room for others."""
    found: dict[tuple[str, ...], Share] = {}
    for record, amount in amounts:
        ref = record.ref
        case = ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id
        if record.finished and amount > 0 and (case not in found or amount > found[case].amount):
            found[case] = Share(record, amount)
    return sorted(found.values(), key=lambda share: -share.amount)[:most]
