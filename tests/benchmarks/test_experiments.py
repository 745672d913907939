"""Simulated experiments, fewer than the benchmark makes: the comparison is seldom wrong, and finds what it promises."""

import random

import pytest

from benchmarks.experiments import (
    WITHOUT_STEADY,
    Setup,
    calls_better,
    calls_different,
    fails,
    mcnemar_rates,
    share,
    shown,
)
from workbench.results.statistics import compare_rates


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("variants", [1, 3])
def test_variants_without_a_difference_are_seldom_called_different(runs: int, variants: int) -> None:
    # Of 600 experiments, more than 45 would be a surprise (1 in 100) if 5% were the truth.
    assert share(Setup(runs=runs, variants=variants, errors=0.05), 600, calls_different) <= 0.075


def test_three_variants_without_correction_are_called_different_more_often() -> None:
    draw, setup = random.Random(31), Setup(runs=3, variants=3)
    alone = [[compare_rates(pairs) for pairs in setup.pairs(draw)] for _ in range(600)]
    assert sum(map(calls_different, alone)) / 600 > 0.075


@pytest.mark.parametrize(("runs", "wanted"), [(1, 0.62), (3, 0.95)])
def test_planted_gain_of_20_points_is_found(runs: int, wanted: float) -> None:
    assert share(Setup(WITHOUT_STEADY, runs, gain=0.2), 400, calls_better) >= wanted


@pytest.mark.parametrize("rates", [WITHOUT_STEADY, (0.0, 0.0, 0.0, 0.5)])
def test_smallest_detectable_difference_is_found_in_about_8_of_10_experiments(rates: tuple[float, ...]) -> None:
    median, found = shown(Setup(rates, 3), 300)
    assert 0.05 < median < 0.2
    assert 0.7 <= found <= 0.92


def test_gate_seldom_fails_without_a_difference_and_finds_broken_cases() -> None:
    assert fails(Setup(runs=3, errors=0.05), 400) <= 0.06
    assert fails(Setup((1.0,) * 9 + (0.75,), 5, cases=57), 100, broken=3) >= 0.95


def test_mcnemar_error_rates_equal_those_published_for_lm_evaluation_harness() -> None:
    exact, mid_p = mcnemar_rates(200, 0.0, 4_000)
    # Published from 4,000 experiments: 0.036 and 0.049, with standard errors of 0.003.
    assert exact == pytest.approx(0.036, abs=0.009)
    assert mid_p == pytest.approx(0.049, abs=0.009)
    assert exact < mid_p
