"""Search over items by words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.actions import actions_in
from workbench.ui.dialogs.items import Item, searching


@given(st.text(max_size=8), st.text(max_size=40))
def test_any_text_can_be_searched_for(query: str, text: str) -> None:
    searching([Item(text, 1)])(query)


def test_search_ranks_labels_then_synonyms_then_help() -> None:
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
    assert search("cse") == []
    assert search("cost of living") == []
    assert search("") is items


def test_unavailable_actions_come_after_available_ones_and_before_other_matches() -> None:
    items = [Item("cost", 1, why_not="nothing has run yet"), Item("cost table", 2), Item("chart", 3, also="cost")]
    search = searching(items, lambda query: [Item("asks_for_the_cost", 5)])
    assert [item.value for item in search("cost")] == [2, 3, 1, 5]


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
    assert all(query in fields[item.value] for item in found)
