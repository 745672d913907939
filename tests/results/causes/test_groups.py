"""Failing cases are grouped by cause, the biggest group first."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from workbench.results.causes import MAX_SINGLE, group_by_cause, matching_slugs, single_slugs
from workbench.store.reasons import ONE_OF_A_KIND, cause_from_json, make_cause

TEXTS = st.sampled_from([f"cause {letter}" for letter in "abcdefghijklmnop"])


@given(st.lists(TEXTS))
def test_groups_partition_the_failing_cases(texts: list[str]) -> None:
    groups = group_by_cause((place, make_cause("calls", text)) for place, text in enumerate(texts))
    assert sorted(place for group in groups for place in group.cases) == list(range(len(texts)))
    shared = [group for group in groups if group.cause != ONE_OF_A_KIND]
    sizes = [len(group.cases) for group in shared]
    assert sizes == sorted(sizes, reverse=True)
    for group in shared:
        assert {texts[place] for place in group.cases} == {group.cause.text}
        assert list(group.cases) == sorted(group.cases), "in the given order"


@given(st.lists(TEXTS), st.randoms())
def test_order_of_cases_does_not_change_the_groups(texts: list[str], dice: object) -> None:
    cases = [(place, make_cause("calls", text)) for place, text in enumerate(texts)]
    again = cases[:]
    dice.shuffle(again)  # type: ignore[attr-defined]
    assert {group.cause.slug: set(group.cases) for group in group_by_cause(cases)} == {
        group.cause.slug: set(group.cases) for group in group_by_cause(again)
    }


def test_groups_of_one_are_folded_into_the_last_group() -> None:
    causes = [make_cause("error", text) for text in ("a", "b", "shared", "c", "shared")]
    groups = group_by_cause(enumerate(causes))
    assert [(group.cause.text, group.cases) for group in groups] == [("shared", (2, 4)), ("one of a kind", (0, 1, 3))]


def test_the_only_single_cause_keeps_its_name() -> None:
    causes = [make_cause("error", text) for text in ("shared", "alone", "shared")]
    assert [group.cause.text for group in group_by_cause(enumerate(causes))] == ["shared", "alone"]


def test_few_causes_keep_their_names_if_none_is_shared() -> None:
    causes = [make_cause("error", f"cause {chr(97 + place)}") for place in range(MAX_SINGLE + 1)]
    assert len(group_by_cause(enumerate(causes[:-1]))) == MAX_SINGLE
    assert [group.cause for group in group_by_cause(enumerate(causes))] == [ONE_OF_A_KIND]


def test_verdicts_of_functions_are_a_group_of_their_own() -> None:
    causes = [make_cause("judged", "rubric x not met", by_function=found) for found in (True, False, True, False)]
    assert Counter(group.cause.by_function for group in group_by_cause(enumerate(causes))) == {True: 1, False: 1}


def test_filter_selects_the_equal_cause_or_else_all_that_contain_the_text() -> None:
    known = ["amount-differs", "amount-differs-by-function", "track-not-called"]
    assert matching_slugs(["amount-differs"], known) == {"amount-differs"}
    assert matching_slugs(["amount"], known) == set(known[:2])
    assert matching_slugs(["called", "amount-differs"], known) == {"track-not-called", "amount-differs"}
    assert not matching_slugs(["zzz"], known)


def test_single_causes_have_exactly_one_case() -> None:
    assert single_slugs(map(make_cause, ("calls", "calls", "error"), ("a", "b", "b"))) == {"a"}


@given(st.text(), st.booleans())
def test_stored_causes_are_read_back_unchanged(text: str, by_function: bool) -> None:
    cause = make_cause("judged", text, by_function=by_function)
    assert cause_from_json(cause.as_json()) == cause
    assert cause.slug == cause.slug.lower()
    assert not set(cause.slug) & set(" :<>=")
