"""The same value in many spellings, and different values in similar ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.judge.heuristic.quantities import Known, Quantity, quantities, without_quantities


def one(text: str) -> Quantity:
    (found,) = quantities(text)
    return found


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("12.50 €", "EUR 12,5 €".removeprefix("EUR ")),
        ("€12.50", "12,50 Euro"),
        ("1,200 people", "1.200"),
        ("three days", "3日"),
        ("2 weeks", "14 days"),
        ("an hour and a half", "90 min"),
        ("8 km", "8000 m"),
        ("32 °F", "0 °C"),
        ("4.2 million euros", "€4.2M"),
        ("午後3時", "3 pm"),
        ("half past nine", "21:30"),
        ("8h05", "08:05"),
        ("3 May 2024", "2024-05-03"),
        ("12. März 2025", "March 12th, 2025"),
        ("2025年3月12日", "12/03/2025"),
        ("order SN-42", "sn-42"),
        ("１２ €", "12 €"),
        ("1400万", "14 million"),
    ],
)
def test_spellings_of_one_value(here: str, there: str) -> None:
    assert one(here).same(one(there))


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("12.50 €", "12.05 €"),
        ("3 days", "3 weeks"),
        ("5 km", "5 kg"),
        ("7 am", "7 pm"),
        ("3 May", "5 March"),
        ("12 March 2024", "12 March 2025"),
        ("A-7", "A-70"),
        ("-5 °C", "5 °C"),
        ("10 €", "10 $"),
    ],
)
def test_values_that_differ(here: str, there: str) -> None:
    assert not one(here).same(one(there))


def test_a_number_without_unit_agrees_with_one_that_has_it() -> None:
    assert one("40 €") in Known(quantities("price: 40.0"))
    assert one("40") in Known(quantities("40 €"))
    assert one("40 km") not in Known(quantities("40 €"))


@pytest.mark.parametrize("text", ["one moment", "it may come", "a parcel", "version", "…", "test_parse_date", ""])
def test_words_that_are_no_quantities(text: str) -> None:
    assert quantities(text) == []


def test_what_is_left_without_them() -> None:
    assert without_quantities("Order B-12 costs 40 €.").split() == ["order", "costs", "."]


@given(st.integers(0, 10**9), st.sampled_from(["{:,}", "{}", "{}.0", "{} €"]))
def test_integers_are_found_as_they_are(number: int, form: str) -> None:
    (found,) = quantities("it is " + form.format(number))
    assert f"n:{float(number):.9g}" in found.bare


@given(st.text(alphabet="0123456789.,:-/ €%hapm年月日三十時", max_size=40))
def test_anything_can_be_read(text: str) -> None:
    for found in quantities(text):
        assert found.same(found)
