"""Queries typed after `/` are parsed, or reported as unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.tree.query import MetricTest, parse_query


def test_query_has_words_statuses_and_metrics() -> None:
    query = parse_query("Refund :fail :error late Trajectory<0.8 :marked")
    assert query.words == ("refund", "late")
    assert query.statuses == {"failed", "error"}
    assert query.metrics == (MetricTest("trajectory", "<", 0.8),)
    assert query.flags == {"marked"}
    assert not query.faults


def test_empty_query_lets_all_cases_through() -> None:
    assert parse_query("").empty
    assert parse_query("   ").empty
    assert parse_query(":").empty, "a status that is being typed hides nothing yet"
    assert parse_query(":stal").empty, "nor does a flag"
    assert not parse_query(":stal").faults


@pytest.mark.parametrize(
    ("text", "statuses"), [(":f", {"failed"}), (":run", {"running", "queued"}), (":noteval", {"not_evaluated"})]
)
def test_status_can_be_abbreviated(text: str, statuses: set[str]) -> None:
    assert parse_query(text).statuses == statuses


def test_unknown_status_is_reported_with_the_nearest_name() -> None:
    assert parse_query(":failed x").faults == ("unknown filter :failed; did you mean :fail?",)
    assert "known: :pass" in parse_query(":zzz").faults[0]


def test_query_can_combine_causes_and_words() -> None:
    query = parse_query("refund cause:Amount-is-text cause: cause:b")
    assert (query.words, query.causes) == (("refund",), ("amount-is-text", "b"))
    assert parse_query("cause:").empty, "a cause that is being typed hides nothing yet"


@pytest.mark.parametrize("text", ["a<0.5", "a<=1", "a>0", "a>=.5", "a=1"])
def test_metric_conditions_support_all_operators(text: str) -> None:
    (test,) = parse_query(text).metrics
    assert f"{test.name}{test.operator}" == text.rstrip("0123456789.")


@given(st.text())
def test_any_query_text_can_be_parsed(text: str) -> None:
    assert parse_query(text).text == text
