import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria import json_difference as alignment
from workbench.criteria.json_difference import heaviest_pairs, lcs_pairs

sequences = st.text("abcd", max_size=30)


def _longest(left: str, right: str) -> int:
    """Return the length from the textbook table."""
    row = [0] * (len(right) + 1)
    for item in left:
        before = row
        row = [0]
        for column, other in enumerate(right):
            row.append(before[column] + 1 if item == other else max(row[-1], before[column + 1]))
    return row[-1]


def _assert_common(left: str, right: str, pairs: list[tuple[int, int]]) -> None:
    assert all(left[row] == right[column] for row, column in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(pairs))


@given(sequences, sequences)
def test_pairs_form_a_longest_common_subsequence(left: str, right: str) -> None:
    pairs = lcs_pairs(left, right)
    _assert_common(left, right, pairs)
    assert len(pairs) == _longest(left, right)


@given(sequences, sequences)
def test_greedy_pairs_form_a_common_subsequence(left: str, right: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "MAX_CELLS", 0)
        pairs = lcs_pairs(left, right)
    _assert_common(left, right, pairs)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans())))
def test_greedy_pairs_contain_a_complete_subsequence(items: list[tuple[str, bool]]) -> None:
    right = [item for item, _ in items]
    left = [item for item, kept in items if kept]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "MAX_CELLS", 0)
        assert len(lcs_pairs(left, right)) == len(left)


def test_thousands_of_items_are_aligned_exactly() -> None:
    # Pairing the first items with each other, as the greedy method does, leaves the 2,000 others without a partner.
    moved = [*range(2000, 3000), *range(2000)]
    assert lcs_pairs(moved, range(3000)) == [(number + 1000, number) for number in range(2000)]
    left = [index % 97 for index in range(3000)]
    right = [index % 89 for index in range(3000)]
    pairs = lcs_pairs(left, right)
    assert len(pairs) > 900
    assert all(left[row] == right[column] for row, column in pairs)


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 1.5, 1.75]), min_size=3, max_size=3), min_size=1, max_size=4))
def test_no_other_pairing_has_more_weight(weights: list[list[float]]) -> None:
    pairs = heaviest_pairs(range(len(weights)), range(3), lambda row, column: weights[row][column])
    assert all(weights[row][column] for row, column in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(pairs))
    assert sum(weights[row][column] for row, column in pairs) == _heaviest(weights, 0, 0)


def _heaviest(weights: list[list[float]], row: int, column: int) -> float:
    if row == len(weights) or column == 3:
        return 0.0
    taken = weights[row][column] + _heaviest(weights, row + 1, column + 1)
    return max(taken, _heaviest(weights, row + 1, column), _heaviest(weights, row, column + 1))


def test_hundreds_of_items_use_the_fast_method() -> None:
    asked = 0

    def weight(row: int, column: int) -> float:
        nonlocal asked
        asked += 1
        return float(row == column)

    assert heaviest_pairs(range(500), range(500), weight) == [(index, index) for index in range(500)]
    assert asked == 500
