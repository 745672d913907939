"""A gate fails only for a loss that chance does not explain, or for new errors."""

from pathlib import Path

import pytest

from tests.results.runs import Cases, run, store_run
from workbench.results.gate import Gate, drop_text, gate, gate_text, notes
from workbench.results.run_comparison import compare

P, F, E = "passed", "failed", "error"


def steady(number: int, status: str = P, runs: int = 1) -> Cases:
    return {f"steady_{at}": [status] * runs for at in range(number)}


def weigh(before: Cases, after: Cases, state: Path, alpha: float = 0.05) -> Gate:
    return gate(compare(run(before), run(after), state), state, alpha=alpha)


def test_gate_passes_with_one_flaky_case(tmp_path: Path) -> None:
    found = weigh({**steady(59), "late": [P]}, {**steady(59), "late": [F]}, tmp_path)
    assert not found.failed
    assert [(drop.ref.eval_id, drop.chance, drop.is_single) for drop in found.drops] == [("late", 0.5, True)]
    assert gate_text(found) == "chance explains the difference of −1.7 points (p = 0.500)"


def test_gate_fails_for_many_lost_cases(tmp_path: Path) -> None:
    found = weigh(steady(60), {**steady(60), **steady(8, F)}, tmp_path)
    assert found.failed
    assert gate_text(found) == "the pass rate fell by 13.3 points, and chance does not explain it (p = 0.004)"
    assert not weigh(steady(60), {**steady(60), **steady(8, F)}, tmp_path, alpha=0.001).failed


def test_gate_passes_if_the_pass_rate_rises(tmp_path: Path) -> None:
    found = weigh({**steady(60), **steady(8, F)}, steady(60), tmp_path)
    assert not found.failed
    assert gate_text(found) == "the pass rate rose by 13.3 points (p = 0.004)"


def test_gate_fails_for_one_broken_case_if_it_has_enough_repeats(tmp_path: Path) -> None:
    def weighed(runs: int) -> Gate:
        same = steady(59, runs=runs)
        return weigh({**same, "late": [P] * runs}, {**same, "late": [F] * runs}, tmp_path)

    assert [weighed(runs).failed for runs in (1, 2, 3, 5)] == [False, False, False, True]
    assert [weighed(runs).losses.drops_p for runs in (1, 2, 3)] == pytest.approx([1 / 2, 1 / 6, 1 / 20])
    found = weighed(5)
    assert found.rates.result == "unclear"
    assert gate_text(found) == "1 case dropped farther than chance explains (p = 0.004)"


def test_gate_fails_for_few_broken_cases_although_the_pass_rate_hardly_moves(tmp_path: Path) -> None:
    flaky = {f"flaky_{at}": [P, F, P] for at in range(6)}
    other = {f"flaky_{at}": [F, F, P] if at % 2 else [P, P, P] for at in range(6)}
    same = steady(51, runs=3)
    lost = {"one": [F] * 3, "two": [F] * 3, "three": [F] * 3}
    found = weigh({**same, **flaky, **{name: [P] * 3 for name in lost}}, {**same, **other, **lost}, tmp_path)
    assert found.rates.result == "unclear"
    assert found.failed
    assert "dropped farther than chance explains (p = 0.00" in gate_text(found)
    assert not weigh({**same, **flaky}, {**same, **other}, tmp_path).failed


@pytest.mark.parametrize(
    ("before", "after", "failed"),
    [
        ([P], [E], True),
        ([F], [E], True),
        ([E], [E], False),
        ([E], [P], False),
        # It broke before, too: no error is new.
        ([P, E], [E, E], False),
        ([P, P], [P, E], True),
        # A cancelled case, or one that cannot be judged, is no error.
        ([P], ["cancelled"], False),
        ([P], ["not_evaluated"], False),
        # Failed, and something broke beside that.
        ([F], ["failed_with_errors"], True),
        (["failed_with_errors"], ["failed_with_errors"], False),
    ],
)
def test_gate_fails_for_new_errors(before: list[str], after: list[str], failed: bool, tmp_path: Path) -> None:
    found = weigh({**steady(5), "late": before}, {**steady(5), "late": after}, tmp_path)
    assert found.failed == failed
    assert [one.ref.eval_id for one in found.new_errors] == ["late"] * failed


def test_unreadable_evalset_is_a_new_error_for_each_of_its_cases(tmp_path: Path) -> None:
    before = run({"one": [P, P], "two": [F, P]})
    broken = run({"": [E]}, agent="", kind="broken_file")
    found = gate(compare(before, broken, tmp_path), tmp_path)
    assert found.failed
    assert sorted(one.ref.eval_id for one in found.new_errors) == ["one", "two"]


def test_new_case_fails_the_gate_with_an_error_but_not_with_a_failure(tmp_path: Path) -> None:
    assert weigh({"one": [P]}, {"one": [P], "new": [E]}, tmp_path).failed
    assert not weigh({"one": [P]}, {"one": [P], "new": [F]}, tmp_path).failed


def test_gate_without_a_comparable_case_neither_passes_nor_fails(tmp_path: Path) -> None:
    found = weigh({"one": [P]}, {"one": ["not_evaluated"]}, tmp_path)
    assert not found.is_comparable
    assert gate_text(found) == "no case was judged in both runs"


def test_runs_with_different_numbers_of_repeats_are_compared(tmp_path: Path) -> None:
    found = weigh({"one": [P] * 5, "two": [P] * 5}, {"one": [F], "two": [P] * 2}, tmp_path)
    assert [(drop.before, drop.after) for drop in found.drops] == [((5, 5), (0, 1))]
    assert found.drops[0].chance == pytest.approx(1 / 6)
    assert drop_text(found.drops[0]) == "5/5 -> 0/1 passed (chance alone: 17%)"


def test_flaky_case_is_named_with_the_run_of_its_mixed_repeats(tmp_path: Path) -> None:
    mixed = weigh({**steady(9), "late": [P, F, P]}, {**steady(9), "late": [F, F, F]}, tmp_path)
    assert {ref.eval_id: words for ref, words in mixed.flaky.items()} == {"late": "2/3 passed in A"}
    assert mixed.drops[0].flaky == "2/3 passed in A"


def test_stored_repeats_show_that_a_case_is_flaky(tmp_path: Path) -> None:
    before, after = {**steady(9), "late": [P]}, {**steady(9), "late": [F]}
    assert weigh(before, after, tmp_path).flaky == {}
    store_run(tmp_path, "2026-11-21T10-30-00-3f2a", {"late": [P, F, F]})
    found = weigh(before, after, tmp_path)
    assert {ref.eval_id: words for ref, words in found.flaky.items()} == {
        "late": "1/3 passed in 2026-11-21T10-30-00-3f2a"
    }


def test_notes_name_broken_cases_even_if_the_pass_rate_is_unclear(tmp_path: Path) -> None:
    same = steady(9, runs=3)
    broken = weigh({**same, "one": [P] * 3, "two": [P] * 3}, {**same, "one": [F] * 3, "two": [F] * 3}, tmp_path)
    assert broken.rates.result == "unclear"
    assert notes(broken) == ["2 cases dropped farther than chance explains (p = 0.003)"]
    noise = weigh({**same, "one": [P, F, F]}, {**same, "one": [F, F, F]}, tmp_path)
    assert notes(noise)[0].startswith("unclear: these 10 cases show no difference. They would show a difference of ")
    assert notes(weigh(same, same, tmp_path)) == []
