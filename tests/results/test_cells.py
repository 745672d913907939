"""Cutting and padding by terminal cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.results.cells import cell_len, cut_name, cut_sibling, fit

LATE = [f"late_order_where_the_customer_{what}_and_wants_to_know_the_day" for what in ("calls_again", "moved_house")]
TWICE = [*LATE, *(name.replace("customer", "neighbour") for name in LATE)]
NAMES = st.text("abc_ -返金é\u0301😀", max_size=40)


@pytest.mark.parametrize(
    ("name", "width", "others", "expected"),
    [
        ("late_parcel", 11, (), "late_parcel"),
        ("late_parcel_that_was_paid_twice", 22, (), "late_parcel…paid_twice"),
        # `…gain_and` and `…ouse_and` differ, but say nothing.
        (LATE[0], 60, LATE, "late_order_where_the_c…calls_again_and_wants_to_know_the_day"),
        ("返金の確認をする長い名前", 15, (), "返金の確…い名前"),
        ("返金の確認をする長い名前", 14, (), "返金の…い名前"),
        ("late_parcel", 6, (), "late_…"),
        ("late_parcel", 0, (), ""),
        (LATE[0], 20, LATE, "late_…calls_again_a…"),
        (LATE[1], 20, LATE, "late_…moved_house_a…"),
        (LATE[1], 11, LATE, "la…moved_h…"),
        (LATE[1], 27, TWICE, "late_o…customer_moved_hous…"),
        (LATE[1], 45, TWICE, "late_order_…customer_moved_house_and_wants_t…"),
        (TWICE[3], 27, TWICE, "late_o…neighbour_moved_hou…"),
        ("返金のお願いがあります長い名前", 15, ["返金のお願いがあります短い名前"], "返金の…長い名前"),
    ],
)
def test_name_loses_its_middle_but_differs_from_the_others(
    name: str, width: int, others: list[str], expected: str
) -> None:
    assert cut_name(name, width, others) == expected
    assert cell_len(fit(name, width)) == width


@given(NAMES, NAMES, st.integers(0, 30))
def test_any_name_fits_any_width(name: str, other: str, width: int) -> None:
    found = cut_name(name, width, (other, other + name, name + other))
    assert cell_len(found) <= width
    assert found == name or cell_len(name) > width


SIBLINGS = ("late_parcel_two_items", "late_parcel_one_item", "late_parcel_paid_twice", "paraphrased", "late_start")


@pytest.mark.parametrize(
    ("name", "width", "siblings", "expected"),
    [
        ("late_parcel_two_items", 21, SIBLINGS, "late_parcel_two_items"),
        ("late_parcel_two_items", 18, SIBLINGS, "…parcel_two_items"),
        ("late_parcel_two_items", 16, SIBLINGS, "…two_items"),
        ("late_parcel_paid_twice", 9, SIBLINGS, "…paid_tw…"),
        ("alone_with_a_long_name", 12, SIBLINGS, "alone_with_…"),
        ("late_parcel", 8, SIBLINGS, "…parcel"),
        ("paraphrased_twice", 10, ("paraphrased", "paraphrased_often"), "…twice"),
        ("late_parcel_two_items", 18, ("lamp_that_is_broken",), "late_parcel_two_i…"),
        ("返金の確認をする長い名前のテスト", 14, ("返金の拒否をする",), "…確認をする長…"),
        (LATE[0], 20, TWICE, "…customer_calls_aga…"),
        # Both would end alike, so the beginning stays and the end goes.
        ("late_two_items", 11, ("late_one_item", "soon_two_items", "soon_one_item"), "late_two_i…"),
        ("late_parcel_two_items", 0, SIBLINGS, ""),
    ],
)
def test_siblings_lose_their_common_beginning(name: str, width: int, siblings: tuple[str, ...], expected: str) -> None:
    assert cut_sibling(name, width, iter(siblings)) == expected


@given(st.lists(NAMES, min_size=1, max_size=6, unique=True), st.integers(0, 50))
def test_sibling_fits_into_its_width(names: list[str], width: int) -> None:
    assert all(cell_len(cut_sibling(name, width, names)) <= width for name in names)
