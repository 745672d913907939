"""Simulated experiments: how often the comparison of variants is wrong, and what it finds. Seeded; runs no agent.

    python -m benchmarks.experiments [--count N]

1. Without a difference: how often any of the variants is called better or worse. Cases are flaky, and some executions
   end in an error.
2. With a planted gain: how often it is called better.
3. How often a gate fails without a difference, and if a few cases are broken.
4. The difference that an unclear comparison says it would show, planted: how often it is called better.
5. How often the 95% interval holds the true change.
6. The table of EleutherAI/lm-evaluation-harness#3831: McNemar's exact test and mid-p.
"""

import argparse
import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.figures import Figure, record
from workbench.results.statistics import (
    CasePair,
    PairedChange,
    case_pair,
    compare_rates,
    corrected,
    losses,
    mcnemar_mid_p,
)
from workbench.text.counting import counted

FLAKY = (0.3, 0.6, 0.75, 1.0)
"""Pass rates of cases, each as often as the others."""
WITHOUT_STEADY = (0.3, 0.6, 0.75)
CASES = 60


@dataclass(frozen=True)
class Setup:
    """One experiment: cases with these pass rates, a baseline, and variants that pass more often by `gain`."""

    rates: Sequence[float] = FLAKY
    runs: int = 1
    variants: int = 1
    errors: float = 0.0
    gain: float = 0.0
    cases: int = CASES

    def compare(self, draw: random.Random) -> list[PairedChange]:
        """Return the comparison of each variant with the baseline, corrected for their number."""
        return corrected([compare_rates(pairs) for pairs in self.pairs(draw)])

    def pairs(self, draw: random.Random) -> list[list[CasePair]]:
        """Return the cases of each variant, paired with those of the same baseline."""
        before = [self._statuses(rate, draw) for rate in self._rates()]
        after = [[self._statuses(rate + self.gain, draw) for rate in self._rates()] for _ in range(self.variants)]
        return [list(map(case_pair, before, variant)) for variant in after]

    def change(self) -> float:
        """Return the true change of the pass rate; no rate exceeds 1."""
        gains = (min(rate + self.gain, 1.0) - rate for rate in self._rates())
        return math.fsum(gains) / self.cases

    def _rates(self) -> list[float]:
        return [self.rates[at % len(self.rates)] for at in range(self.cases)]

    def _statuses(self, rate: float, draw: random.Random) -> list[str]:
        return [
            "error" if draw.random() < self.errors else "passed" if draw.random() < rate else "failed"
            for _ in range(self.runs)
        ]


def share(setup: Setup, count: int, is_hit: Callable[[list[PairedChange]], bool], seed: int = 31) -> float:
    """Return the share of `count` experiments for which `is_hit` is true."""
    draw = random.Random(seed)
    return sum(is_hit(setup.compare(draw)) for _ in range(count)) / count


def fails(setup: Setup, count: int, broken: int = 0, seed: int = 31) -> float:
    """Return the share of `count` experiments in which a gate finds a loss. `broken` more cases never pass any more."""
    draw = random.Random(seed)
    lost = [CasePair((setup.runs, setup.runs), (0, setup.runs))] * broken
    return sum(losses([*setup.pairs(draw)[0], *lost]).found for _ in range(count)) / count


def calls_different(found: list[PairedChange]) -> bool:
    """Return whether any variant is called better or worse."""
    return any(one.result != "unclear" for one in found)


def calls_better(found: list[PairedChange]) -> bool:
    """Return whether the first variant is called better."""
    return found[0].result == "better"


def shown(setup: Setup, count: int) -> tuple[float, float]:
    """Return the median difference that unclear comparisons of `setup` would show, and how often it is found."""
    draw = random.Random(7)
    said = sorted(one.would_show or 1.0 for _ in range(count) for one in setup.compare(draw))
    median = said[len(said) // 2]
    planted = Setup(setup.rates, setup.runs, setup.variants, setup.errors, median, setup.cases)
    return median, share(planted, count, calls_better)


def exact_p(rose: int, fell: int) -> float:
    """Return the p-value of McNemar's exact test."""
    changed = rose + fell
    tail = sum(math.comb(changed, count) for count in range(min(rose, fell) + 1))
    return min(2 * tail / (1 << changed), 1.0)


def mcnemar_rates(items: int, gain: float, count: int = 4_000) -> tuple[float, float]:
    """Return how often the exact test and mid-p find a difference: half of the items hard (0.45), half easy (0.85)."""
    draw = random.Random(3831)
    exact = mid = 0
    for _ in range(count):
        rose = fell = 0
        for item in range(items):
            rate = 0.45 if item % 2 else 0.85
            before, after = draw.random() < rate, draw.random() < rate + gain
            rose += after and not before
            fell += before and not after
        exact += exact_p(rose, fell) <= 0.05
        mid += mcnemar_mid_p(rose, fell) <= 0.05
    return exact / count, mid / count


def false_alarms(count: int) -> Iterator[Figure]:
    """Yield how often variants are called different without a difference."""
    for runs, variants, errors in itertools.product((1, 3), (1, 3), (0.0, 0.05)):
        setup = Setup(runs=runs, variants=variants, errors=errors)
        name = f"no difference: {counted(variants, 'variant')}, {counted(runs, 'run')}, {errors:.0%} errors"
        yield Figure("variants", name, share(setup, count, calls_different), goal=0.06)


def gates(count: int) -> Iterator[Figure]:
    """Yield how often a gate fails without a difference, and if three cases of 60 are broken."""
    for runs, errors in itertools.product((1, 3, 5), (0.0, 0.05)):
        name = f"gate, no difference: {counted(runs, 'run')}, {errors:.0%} errors"
        yield Figure("variants", name, fails(Setup(runs=runs, errors=errors), count), goal=0.06)
    for runs in (3, 5):
        # Nearly all cases are steady, as in a suite that somebody looks after.
        setup = Setup((1.0, 1.0, 1.0, 1.0, 1.0, 0.75), runs, cases=57)
        name = f"gate, 3 of 60 cases broken: {counted(runs, 'run')}"
        yield Figure("variants", name, fails(setup, count, broken=3), more_is_better=True)


def finds(count: int) -> Iterator[Figure]:
    """Yield how often a planted gain of 20 points is found."""
    for runs, wanted in ((1, 0.65), (3, 0.95)):
        found = share(Setup(WITHOUT_STEADY, runs, gain=0.2), count, calls_better)
        yield Figure("variants", f"20 points: {counted(runs, 'run')}", found, goal=wanted, more_is_better=True)


def would_show(count: int) -> Iterator[Figure]:
    """Yield how often the difference is found that an unclear comparison says it would show."""
    for rates, runs, cases in itertools.product(
        (WITHOUT_STEADY, (0.1, 0.5), (0.0, 0.0, 0.0, 0.5)), (1, 3), (30, 60, 300)
    ):
        median, found = shown(Setup(rates, runs, cases=cases), count // 4)
        name = f"would show {median * 100:.1f} points: {cases} cases with rates {rates}, {counted(runs, 'run')}"
        yield Figure("variants", name, found)


def intervals(count: int) -> Iterator[Figure]:
    """Yield how often the interval holds the true change."""
    for rates, runs, cases in itertools.product((FLAKY, (0.05, 0.95), (0.95, 1.0)), (1, 3), (8, 20, 60)):
        setup = Setup(rates, runs, gain=0.1, cases=cases)
        name = f"interval holds the change: {cases} cases with rates {rates}, {counted(runs, 'run')}"
        yield Figure("variants", name, share(setup, count, holds(setup.change())))


def holds(change: float) -> Callable[[list[PairedChange]], bool]:
    """Return a function that tells whether the first interval holds this change."""
    return lambda found: found[0].interval[0] <= change <= found[0].interval[1]


def mcnemar(count: int) -> Iterator[Figure]:
    """Yield the table of lm-evaluation-harness#3831."""
    published = {(200, 0.0): (0.036, 0.049), (200, 0.05): (0.175, 0.202), (500, 0.03): (0.178, 0.200)}
    for (items, gain), there in published.items():
        for test, value, said in zip(("exact", "mid-p"), mcnemar_rates(items, gain, 10 * count), there, strict=True):
            name = f"McNemar {test}: {items} items, {gain * 100:.0f} points (published: {said})"
            yield Figure("variants", name, value)


def main() -> int:
    """Run the experiments. Return 1 if a figure misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2_000, help="experiments for each figure")
    count = parser.parse_args().count
    missed = 0
    for part in (false_alarms, finds, gates, would_show, intervals, mcnemar):
        for figure in part(count):
            sign = ">=" if figure.more_is_better else "<="
            goal = "" if figure.goal is None else f"  {sign} {figure.goal}: {'yes' if figure.reached else 'NO'}"
            print(f"{figure.value:.3f}  {figure.name}{goal}", flush=True)
            record(figure.goal_id, figure.name, figure.value, goal=figure.goal, more_is_better=figure.more_is_better)
            missed += figure.reached is False
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
