"""Facts of texts: the same date, time, number or id in another spelling is found, and another one is not."""

from datetime import date, time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench.run.facts import Sources, facts_in, facts_of

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
DAYS = st.dates(date(2001, 1, 1), date(2099, 12, 31))
TIMES = st.times().map(lambda at: time(at.hour, at.minute))
AMOUNTS = st.integers(0, 999_999_99).map(lambda cents: cents / 100)
IDS = st.builds(
    lambda letters, number: f"{letters}-{number}", st.sampled_from(["A", "ORD", "XY"]), st.integers(0, 99999)
)


def days(day: date) -> list[str]:
    month, ending = MONTHS[day.month - 1], {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    ending = "th" if 10 < day.day < 14 else ending
    return [
        day.isoformat(),
        f"{day.day} {month} {day.year}",
        f"{day.day} {month}",
        f"{month} {day.day}{ending}",
        f"{month[:3]} {day.day}, {day.year}",
        f"the {day.day}{ending} of {month}",
        f"**{day.day} {month.upper()}**",
        f"{day.day:02}.{day.month:02}.{day.year}",
        f"{day.month}/{day.day}/{day.year}",
        f"{day.isoformat()}T10:00:00Z",
        f"{day.month}月{day.day}日",
    ]


def times(at: time) -> list[str]:
    hour, half = at.hour % 12 or 12, "am" if at.hour < 12 else "pm"
    found = [f"{at:%H:%M}", f"{at:%H:%M:%S}", f"{hour}:{at:%M} {half}", f"{hour}:{at:%M}{half[0]}.m."]
    return found if at.minute else [*found, f"{hour} {half}", f"{hour}{half}", f"{at.hour} Uhr"]


def amounts(value: float) -> list[str]:
    return [
        f"{value:.2f}",
        f"{value:.2f}".replace(".", ","),
        f"${value:,.2f}",
        f"{value:,.2f} EUR".replace(",", "_").replace(".", ",").replace("_", "."),
        f"{value}",
    ]


def ids(name: str) -> list[str]:
    return [name, name.lower(), name.replace("-", ""), f"#{name}", name.replace("-", "‑")]


def known(text: str, *sources: object) -> bool:
    """Return whether all facts of a text, at least one, are in the sources."""
    there, found = Sources(facts_in(list(sources))), facts_of(text)
    return bool(found) and all(fact in there for fact in found)


@given(DAYS, st.data())
def test_a_date_is_the_same_in_each_spelling(day: date, data: st.DataObject) -> None:
    stated, source = (data.draw(st.sampled_from(days(day))) for _ in range(2))
    assume("T10" not in stated)
    assert known(f"It arrives on {stated}.", source)


@given(DAYS, DAYS, st.data())
def test_date_is_not_found_in_a_source_with_another_date(day: date, other: date, data: st.DataObject) -> None:
    assume(
        {(day.month, day.day), (day.day, day.month)}.isdisjoint({(other.month, other.day), (other.day, other.month)})
    )
    stated = data.draw(st.sampled_from(days(day)))
    assert not known(f"It arrives on {stated}.", data.draw(st.sampled_from(days(other))))


@given(TIMES, TIMES, st.data())
def test_times_are_compared_across_spellings(at: time, other: time, data: st.DataObject) -> None:
    stated = f"Be there at {data.draw(st.sampled_from(times(at)))}."
    assert known(stated, data.draw(st.sampled_from(times(at))))
    assume(at != other)
    assert not known(stated, data.draw(st.sampled_from(times(other))))


@given(AMOUNTS, AMOUNTS, st.data())
def test_numbers_are_compared_across_spellings(value: float, other: float, data: st.DataObject) -> None:
    stated = f"You pay {data.draw(st.sampled_from(amounts(value)))}."
    assert known(stated, value)
    assert known(stated, data.draw(st.sampled_from(amounts(value))))
    assume(value != other)
    assert not known(stated, f"{other:.2f}")


@given(IDS, IDS, st.data())
def test_ids_are_compared_across_spellings(name: str, other: str, data: st.DataObject) -> None:
    stated = f"Your order {data.draw(st.sampled_from(ids(name)))}."
    assert known(stated, data.draw(st.sampled_from(ids(name))))
    assume(name != other)
    assert not known(stated, data.draw(st.sampled_from(ids(other))))


@given(st.text())
def test_every_fact_of_a_text_has_its_source_in_this_text(text: str) -> None:
    there = Sources(facts_of(text))
    assert all(fact in there for fact in facts_of(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Order A-7 for 12,50 € arrives on 12 May at 7 pm.", ["A-7", "12,50", "12 May", "7 pm"]),
        ("It takes 3-5 days, 24/7, and weighs 5kg.", ["3", "5", "5kg"]),
        ("1. Call us.\n2. Wait three days.", ["three"]),
        ("You may go. It is in March.", []),
        ("12. Mai 2026", ["12. Mai 2026"]),
        ("ORD-2026-001, v1.2.3, 3f2a9c0", ["ORD-2026-001", "v1.2.3", "3f2a9c0"]),
    ],
)
def test_facts_are_listed_as_they_are_written(text: str, found: list[str]) -> None:
    assert [fact.text for fact in facts_of(text)] == found


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("On 12 May.", {"2026-05-12": "free"}),
        ("It takes three days.", {"days": 3}),
        ("It costs 1,200.", '{"price": 1200}'),
    ],
)
def test_facts_have_sources_in_results(text: str, source: object) -> None:
    assert known(text, source)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("You have 3 orders.", [{"id": "a"}, {"id": "b"}, {"id": "c"}]),
        ("Order 18.", {"id": "A-18"}),
        ("On 12 May.", {"day": 12, "month": 5}),
    ],
)
def test_possible_source_of_a_fact_is_not_a_certain_source(text: str, source: object) -> None:
    assert not known(text, source)
    assert all(Sources(facts_in(source)).may_have(fact) for fact in facts_of(text))


@pytest.mark.parametrize("text", ["In 5 days.", "In 12 days.", "It costs 2026 euros.", "At 10 euros."])
def test_parts_of_dates_and_times_are_not_numbers(text: str) -> None:
    there = Sources(facts_in({"arrives": "2026-05-12T10:30"}))
    assert not any(fact in there or there.may_have(fact) for fact in facts_of(text))


def test_computed_fact_is_not_invented() -> None:
    (total,), (day,), (order,) = map(facts_of, ("25", "15 May", "ORD-18"))
    prices = Sources(facts_in({"price": 12.5}))
    assert total not in prices
    assert prices.may_compute(total)
    assert prices.may_compute(day)
    assert not prices.may_compute(order)
    assert Sources(facts_in({"order": 18})).may_compute(order)
    named = Sources(facts_of("Where is my order A-18?"))
    assert not named.may_compute(total)
    assert not named.may_compute(day)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0))
def test_number_in_data_is_found_with_all_its_digits(number: float) -> None:
    assert number in {value for fact in facts_in([number]) for value in fact.values if fact.kind == "number"}


def test_time_after_24_00_is_not_a_time() -> None:
    assert [fact.kind for fact in facts_of("24:00 and 24:59")] == ["time", "id"]
