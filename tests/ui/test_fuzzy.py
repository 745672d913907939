"""Fuzzy search by some letters."""

from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.fuzzy import best, positions, score
from workbench.ui.items import Item, searching

NAMES = ["run", "run failed", "repeat", "criteria", "late_parcel", "translate_parcels"]


def test_pieces_come_before_scattered_letters_and_starts_before_middles() -> None:
    assert [NAMES[number] for number in best("run", NAMES, 9)][:2] == ["run", "run failed"]
    assert [NAMES[number] for number in best("late", NAMES, 9)] == ["late_parcel", "translate_parcels"]
    assert [NAMES[number] for number in best("lpc", NAMES, 1)] == ["late_parcel"]


def test_letters_must_be_there_in_order() -> None:
    assert score("nur", "run") is None
    assert positions("rn", "run") == (0, 2)
    assert positions("RUN", "a run") == (2, 3, 4)


def test_empty_query_matches_everything() -> None:
    assert len(best("  ", NAMES, 9)) == len(NAMES)


@given(st.text(max_size=8), st.text(max_size=40))
def test_any_text_can_be_searched_for(query: str, text: str) -> None:
    places = positions(query, text)
    assert places is None or all(0 <= place <= len(text) for place in places)
    assert (score(query, text) is None) == (bool(query.strip()) and places is None)


def test_long_text_takes_no_longer_than_a_name() -> None:
    assert best("xyz", ["x" * 1_000_000] * 200, 5) == []


def test_help_is_searched_if_no_label_has_the_text() -> None:
    search = searching([Item("head", heading=True), Item("next run", help="Set recordings."), Item("record", help="x")])
    assert [item.label for item in search("record")] == ["record"]
    assert [item.label for item in search("RECORDINGS set")] == ["next run"]
    assert search("recordings now") == []
