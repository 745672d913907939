"""Statistics of a change: each test and interval against scipy, by properties, and at its edges."""

import math
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.results import statistics
from workbench.results.statistics import (
    CasePair,
    case_pair,
    chance_of_drop,
    chance_of_drops,
    clear_drops,
    compare_rates,
    compare_scores,
    corrected,
    holm,
    losses,
    mcnemar_mid_p,
    sign_flip_p,
)

SIDES = st.integers(0, 4).flatmap(lambda judged: st.tuples(st.integers(0, judged), st.just(judged)))
PAIRS = st.lists(st.builds(CasePair, SIDES, SIDES), max_size=30)


def scipys() -> Any:
    """Return scipy's statistics. If they were imported to collect these tests, each start would take a second more."""
    from scipy import stats

    return stats


def sum_of(sample: Any, axis: int = -1) -> Any:
    return sample.sum(axis=axis)


def repeats(before: int, after: int, runs: int) -> CasePair:
    return CasePair((before, runs), (after, runs))


@given(st.integers(0, 60), st.integers(0, 60))
def test_mid_p_equals_scipys_binomial_test_minus_the_observed_probability(rose: int, fell: int) -> None:
    changed = rose + fell
    exact = scipys().binomtest(rose, changed).pvalue if changed else 1.0
    itself = scipys().binom.pmf(rose, changed, 0.5)
    # Both tails meet in the middle, where scipy cuts at 1.
    assert mcnemar_mid_p(rose, fell) == pytest.approx(1.0 if rose == fell else exact - itself)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=10))
def test_sign_flips_of_few_cases_equal_scipys_permutation_test(thirds: list[int]) -> None:
    # scipy compares floats, so sums that are equal apart from rounding may count or not: it gets whole numbers.
    found = scipys().permutation_test(
        (thirds,), sum_of, permutation_type="samples", n_resamples=math.inf, alternative="two-sided"
    )
    # scipy doubles the smaller tail, which is the same for flips: their sums are symmetric.
    assert sign_flip_p([third / 3 for third in thirds]) == pytest.approx(min(found.pvalue, 1.0))


def test_random_flips_approximate_counted_flips(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(13)
    differences = [draw.choice((-2, -1, 0, 1, 2, 1)) / 3 for _ in range(60)]
    counted = sign_flip_p(differences)
    monkeypatch.setattr(statistics, "_EXACT_STEPS", 0)
    drawn = sign_flip_p(differences)
    assert 0.01 < counted < 0.2
    assert drawn == pytest.approx(counted, abs=4 * math.sqrt(counted / 10_000))
    assert drawn != counted


@given(PAIRS, st.randoms(use_true_random=False))
def test_order_of_cases_does_not_matter(pairs: list[CasePair], shuffle: random.Random) -> None:
    other = list(pairs)
    shuffle.shuffle(other)
    one, two = compare_rates(pairs), compare_rates(other)
    assert (one.p, one.result, one.better, one.worse) == (two.p, two.result, two.better, two.worse)
    assert one.change == pytest.approx(two.change)
    assert one.interval == pytest.approx(two.interval)


@given(PAIRS)
def test_swapped_runs_give_the_opposite_change(pairs: list[CasePair]) -> None:
    one = compare_rates(pairs)
    two = compare_rates([CasePair(pair.after, pair.before) for pair in pairs])
    assert two.p == one.p
    assert two.change == pytest.approx(-one.change)
    assert two.interval == pytest.approx((-one.interval[1], -one.interval[0]))
    assert {one.result, two.result} in ({"unclear"}, {"better", "worse"})
    assert two.would_show == one.would_show


@given(PAIRS)
def test_all_figures_are_in_their_range(pairs: list[CasePair]) -> None:
    found = compare_rates(pairs)
    assert 0 < found.p <= 1
    assert -1 <= found.interval[0] <= found.change + 1e-9 <= found.interval[1] + 2e-9 <= 1 + 3e-9
    assert found.better + found.worse <= found.cases <= len(pairs)
    assert found.cases + found.cases_left_out == len(pairs)
    assert found.after - found.before == pytest.approx(found.change)
    assert found.would_show is None or 0 < found.would_show <= 1


def test_ten_thousand_cases_are_compared_in_two_seconds() -> None:
    draw = random.Random(7)
    pairs = [repeats(draw.randint(0, 3), draw.randint(0, 3), 3) for _ in range(10_000)]
    scores = [([draw.random()], [draw.random()]) for _ in range(10_000)]
    start = time.process_time()
    compare_rates(pairs)
    compare_scores(scores)
    assert time.process_time() - start < 2


def test_executions_without_a_verdict_are_left_out_and_named() -> None:
    pairs = [
        case_pair(["passed", "error", "passed"], ["failed", "failed", "cancelled"]),
        case_pair(["error"], ["passed"]),
        case_pair(["passed"], ["not_evaluated"]),
    ]
    assert pairs[0] == CasePair((2, 2), (0, 2), ("error", "cancelled"))
    found = compare_rates(pairs)
    assert (found.cases, found.cases_left_out) == (1, 2)
    assert found.left_out == {"error": 2, "cancelled": 1, "not_evaluated": 1}
    assert found.change == -1


def test_comparison_without_cases_is_unclear() -> None:
    found = compare_rates([case_pair(["error"], ["passed"])])
    assert (found.cases, found.p, found.result, found.would_show, found.interval) == (0, 1, "unclear", None, (-1, 1))
    assert found.cases_needed(0.1) is None
    assert compare_scores([([], [1.0])]).result == "unclear"


def test_holm_equals_its_definition() -> None:
    # S. Holm's procedure by hand: 0.01 * 4, 0.02 * 3, max(0.03 * 2, 0.06), max(0.04, 0.06).
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_p_values_and_keeps_their_order(ps: list[float]) -> None:
    raised = holm(ps)
    assert all(p <= more <= min(1, p * len(ps)) for p, more in zip(ps, raised, strict=True))
    assert [raised[index] for index in sorted(range(len(ps)), key=ps.__getitem__)] == sorted(raised)


def test_one_of_several_variants_needs_a_larger_difference() -> None:
    clear = [repeats(0, 3, 3)] * 7 + [repeats(3, 3, 3)] * 50
    slight = [repeats(2, 3, 3)] * 8 + [repeats(3, 2, 3)] + [repeats(3, 3, 3)] * 50
    alone = compare_rates(slight)
    beside = corrected([compare_rates(clear), alone, alone])
    assert alone.result == "better"
    assert [one.result for one in beside] == ["better", "unclear", "unclear"]
    assert alone.would_show is not None
    assert beside[1].would_show is not None
    assert beside[1].would_show > alone.would_show
    assert (beside[1].cases_needed(0.05) or 0) > (alone.cases_needed(0.05) or 0) > 0


@given(SIDES, SIDES)
def test_chance_of_a_drop_equals_scipys_exact_test(before: tuple[int, int], after: tuple[int, int]) -> None:
    table = [[before[0], before[1] - before[0]], [after[0], after[1] - after[0]]]
    expected = scipys().fisher_exact(table, alternative="greater").pvalue if before[1] and after[1] else 1.0
    assert chance_of_drop(CasePair(before, after)) == pytest.approx(expected)


def test_drop_between_two_single_executions_is_never_clear() -> None:
    assert chance_of_drop(repeats(1, 0, 1)) == 0.5
    assert clear_drops([repeats(1, 0, 1)] * 60) == []


def test_drop_of_one_case_is_clear_among_many_steady_cases() -> None:
    steady, flaky = [repeats(5, 5, 5)] * 59, [repeats(3, 2, 5)] * 59
    assert clear_drops([*steady, repeats(5, 0, 5)]) == [59]
    assert clear_drops([*flaky, repeats(5, 0, 5)]) == []


@given(SIDES, SIDES)
def test_chance_of_drops_in_one_case_equals_the_chance_of_its_drop(
    before: tuple[int, int], after: tuple[int, int]
) -> None:
    pair = CasePair(before, after)
    assert chance_of_drops([pair]) == pytest.approx(chance_of_drop(pair) if pair.change < 0 else 1.0)


def test_chance_of_drops_equals_random_draws_of_executions(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [repeats(3, 1, 3), repeats(2, 2, 3), repeats(1, 3, 3), CasePair((2, 2), (1, 3)), repeats(3, 3, 3)]

    def dropped(cases: list[CasePair]) -> float:
        return sum(max(-case.change, 0.0) for case in cases)

    draw, hits = random.Random(3), 0
    for _ in range(20_000):
        cases = []
        for (passed, judged), (later, of_later) in ((pair.before, pair.after) for pair in pairs):
            executions = [True] * (passed + later) + [False] * (judged + of_later - passed - later)
            draw.shuffle(executions)
            cases.append(CasePair((sum(executions[:judged]), judged), (sum(executions[judged:]), of_later)))
        hits += dropped(cases) >= dropped(pairs) - 1e-9
    assert chance_of_drops(pairs) == pytest.approx(hits / 20_000, abs=0.015)
    many = [repeats(2, 1, 3), repeats(1, 2, 3), repeats(3, 2, 3)] * 30
    exact = chance_of_drops(many)
    monkeypatch.setattr(statistics, "_EXACT_STEPS", 0)
    assert 0.01 < exact < 0.99
    assert chance_of_drops(many) == pytest.approx(exact, abs=0.01)


@given(st.lists(st.floats(-1, 1).map(lambda value: round(value, 3)), min_size=2, max_size=9))
def test_sign_flips_of_scores_equal_scipys_permutation_test(differences: list[float]) -> None:
    whole = [round(one * 1000) for one in differences]
    found = scipys().permutation_test(
        (whole,), sum_of, permutation_type="samples", n_resamples=math.inf, alternative="two-sided"
    )
    assert sign_flip_p(differences) == pytest.approx(min(found.pvalue, 1.0))


@pytest.mark.parametrize("cases", [20, 200])
def test_interval_of_scores_is_close_to_students_t(cases: int) -> None:
    draw = random.Random(cases)
    pairs = [([draw.gauss(0.5, 0.2)], [draw.gauss(0.6, 0.2), draw.gauss(0.6, 0.2)]) for _ in range(cases)]
    found = compare_scores(pairs)
    expected = scipys().ttest_1samp([sum(now) / 2 - then[0] for then, now in pairs], 0).confidence_interval()
    width = expected.high - expected.low
    assert found.interval == pytest.approx((expected.low, expected.high), abs=width * 4 / cases)
    assert found.change == pytest.approx((expected.low + expected.high) / 2)
    assert found.cases == cases


@pytest.mark.parametrize("freedom", [2, 3, 10, 100, 10_000])
def test_point_of_students_t_is_within_a_percent(freedom: int) -> None:
    assert statistics._t(freedom) == pytest.approx(scipys().t.ppf(0.975, freedom), rel=0.01)


def test_scores_that_do_not_vary_prove_nothing() -> None:
    found = compare_scores([([1.0, 1.0], [1.0, 1.0])] * 12)
    assert (found.change, found.p, found.result) == (0, 1, "unclear")
    assert (found.interval, found.would_show) == ((-math.inf, math.inf), None)
    assert corrected([found, found])[0].would_show is None


def test_scores_outside_of_0_to_1_are_compared() -> None:
    draw = random.Random(4)
    pairs = [([draw.gauss(9_000, 300)], [draw.gauss(9_300, 300)]) for _ in range(40)]
    found = compare_scores(pairs)
    assert found.result == "better"
    assert found.would_show is not None
    assert 50 < found.would_show < 400
    # The unit does not matter.
    small = compare_scores([([then / 1e7], [now / 1e7]) for (then,), (now,) in pairs])
    assert small.p == pytest.approx(found.p, abs=0.002)
    assert small.would_show == pytest.approx(found.would_show / 1e7)


def test_more_cases_show_a_smaller_difference() -> None:
    shown = [compare_rates([repeats(2, 2, 3), repeats(1, 1, 3)] * cases).would_show for cases in (5, 20, 200)]
    assert None not in shown
    assert shown == sorted(shown, reverse=True)  # type: ignore[type-var]
    found = compare_rates([repeats(2, 2, 3), repeats(1, 1, 3)] * 20)
    assert found.would_show is not None
    needed = found.cases_needed(found.would_show)
    assert needed is not None
    assert 39 <= needed <= 40
    with pytest.raises(ValueError, match="above 0"):
        found.cases_needed(0.0)


@given(PAIRS, st.integers(0, 40))
def test_many_stable_cases_do_not_hide_a_clear_drop(pairs: list[CasePair], steady: int) -> None:
    found = clear_drops(pairs, alpha=0.3)
    assert all(pairs[at].change < 0 for at in found)
    assert clear_drops([*pairs, *[repeats(4, 4, 4)] * steady, *[repeats(0, 0, 2)] * steady], alpha=0.3) == found


@given(PAIRS)
def test_gains_are_never_reported_as_losses(pairs: list[CasePair]) -> None:
    swapped = [CasePair(pair.after, pair.before) for pair in pairs]
    found = losses(pairs)
    assert 0 < found.drops_p <= 1
    assert found.found or (found.rates.result != "worse" and not found.clear)
    if not any(pair.change < 0 for pair in pairs):
        assert not found.found
        assert losses(swapped).rates.p == found.rates.p
