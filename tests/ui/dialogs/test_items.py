"""Search over items: by words, else by some letters."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.actions import actions_in
from workbench.ui.dialogs.items import Item, best, marked, score, searching

NAMES = ["run", "run failed", "repeat", "criteria", "late_parcel", "translate_parcels"]


def test_adjacent_letters_rank_above_scattered_ones_and_word_starts_above_middles() -> None:
    assert [NAMES[number] for number in best("run", NAMES, 9)][:2] == ["run", "run failed"]
    assert [NAMES[number] for number in best("late", NAMES, 9)] == ["late_parcel", "translate_parcels"]
    assert [NAMES[number] for number in best("lpc", NAMES, 1)] == ["late_parcel"]


def test_letters_of_the_query_must_occur_in_order() -> None:
    assert score("nur", "run") is None
    assert marked("rn", "run", scattered=True) == (0, 2)
    assert marked("RUN", "a run", scattered=True) == (2, 3, 4)
    assert marked("run a cost", "a run", scattered=False) == (0, 2, 3, 4)
    assert marked("rn", "run", scattered=False) == ()


def test_empty_query_matches_everything() -> None:
    assert len(best("  ", NAMES, 9)) == len(NAMES)


@given(st.text(max_size=8), st.text(max_size=40))
def test_any_text_can_be_searched_for(query: str, text: str) -> None:
    for scattered in (False, True):
        assert all(0 <= place < len(text) for place in marked(query, text, scattered=scattered))
    found = searching([Item(text, 1)])(query)
    assert found or score(query, text) is None


def test_very_long_texts_are_searched_within_a_second() -> None:
    begun = time.process_time()
    assert best("xyz", ["x" * 1_000_000] * 200, 5) == []
    assert time.process_time() - begun < 1


def test_search_ranks_labels_then_synonyms_then_help_then_scattered_letters() -> None:
    items = [
        Item("head of costs", heading=True),
        Item("close the old set", 1),
        Item("costly", 2),
        Item("spent", 3, help="What it cost."),
        Item("charts", 4, also="cost money"),
        Item("cost", 5),
        Item("past costs", 6),
    ]
    search = searching(items)
    assert [item.value for item in search("cost")] == [5, 4, 3, 2, 6]
    assert [item.value for item in search("MONEY cost")] == [4]
    assert [item.value for item in search("cse")] == [1]
    assert search("cost of living") == []
    assert search("") is items


def test_unavailable_actions_come_after_available_ones_and_before_other_matches() -> None:
    items = [Item("cost", 1, why_not="nothing has run yet"), Item("cost table", 2), Item("chart", 3, also="cost")]
    search = searching(items, lambda query: [Item("customer_with_two_orders", 4), Item("asks_for_the_cost", 5)])
    assert [item.value for item in search("cost")] == [2, 3, 1, 5]


def test_best_match_of_scattered_letters_comes_first_from_any_source() -> None:
    search = searching([Item("late and early", 1)], lambda query: [Item("lately", 2), Item("l a t y", 3)])
    assert [item.value for item in search("laty")] == [2, 3, 1]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("cost", {"table"}),
        ("tokens", {"table"}),
        ("flaky", {"flaky_cases", "repeat"}),
        ("prompt", {"fork", "compare"}),
        ("model", {"options", "criteria"}),
        ("yesterday", {"compare"}),
        ("why", {"review", "compare"}),
    ],
)
def test_search_finds_actions_by_the_words_that_users_type(query: str, ids: set[str]) -> None:
    rows = actions_in("main")
    found = searching([Item(row.label, row.id, help=row.help, also=row.also) for row in rows])(query)
    assert ids <= {item.value for item in found}
    fields = {row.id: f"{row.label} {row.help} {row.also}".lower() for row in rows}
    assert all(query in fields[item.value] for item in found), "no scattered letters"
