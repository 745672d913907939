"""Rules that accept what an agent did differently."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ui.transcripts import recorded, turn
from workbench.criteria.call_rows import CallRules
from workbench.criteria.value_rules import ValueRule, read_rule
from workbench.editing.accept import Comparison, Offer, accepted_by, obstacle, offers, rules_of, with_rules
from workbench.editing.accept_turn import Hunk
from workbench.editing.criteria_change import ConfigDraft, draft_of, edit_of, new_draft
from workbench.files.criteria import parse_config

FILE = Path("test_config.json")


def hunk(expected: dict[str, Any], actual: dict[str, Any]) -> Hunk:
    turns = [turn("Hi", [("refund", expected)], "x")]
    (found,) = Comparison({"eval_id": "x", "conversation": turns}, [recorded("Hi", [("refund", actual)], "x")]).hunks
    return found


def offered(expected: dict[str, Any], actual: dict[str, Any], **rules: Any) -> list[str]:
    args_match = {"refund": {path: read_rule(rule) for path, rule in rules.items()}}
    return [f"{one.path}: {one.text}" for one in offers(hunk(expected, actual), CallRules(False, args_match))]


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ({"a": "EUR"}, {"a": "eur"}, ["any value", 'text "EUR" in any case', 'one of "EUR", "eur"']),
        ({"a": "EUR"}, {"a": "USD"}, ["any value", 'one of "EUR", "USD"']),
        ({"a": 12.5}, {"a": 12.504}, ["any value", "number 12.5 ± 0.01", "number 12.5 ± 1%", "one of 12.5, 12.504"]),
        ({"a": 2}, {"a": 9}, ["any value", "number 2 ± 10", "one of 2, 9"]),
        ({"a": 1}, {"a": 10**400}, ["any value", f"one of 1, {10**400}"[:79] + "…"]),
        ({"a": 12.5}, {"a": "12.50"}, ["any value", 'one of 12.5, "12.50"']),
        ({"a": 1}, {}, ["any value"]),
        ({}, {"a": 1}, ["any value", "one of 1"]),
        ({"a": [1]}, {"a": [2, 1]}, ["any value", "the expected value, or more", "one of [1], [2, 1]"]),
    ],
)
def test_only_rules_that_accept_the_value_are_offered(
    expected: dict[str, Any], actual: dict[str, Any], found: list[str]
) -> None:
    assert offered(expected, actual) == [f"a: {words}" for words in found]


def test_rule_for_a_single_changed_value_is_offered_first() -> None:
    filters = {"to": 2, "since": {"day": 1}}
    found = offered({"f": filters}, {"f": {**filters, "since": {"day": 4}}})
    assert found[0] == "f.since.day: any value"
    assert "f: any value" in found
    assert offered({"f": filters}, {"f": {}})[0] == "f: any value", "two values differ: one rule is not enough"


def test_offered_rule_keeps_the_known_values() -> None:
    assert "a: one of 1, 2, 3" in offered({"a": 1}, {"a": 3}, a={"one_of": [1, 2]})


def test_difference_that_a_rule_accepts_is_known() -> None:
    rules = CallRules(False, {"*": {"a": read_rule({"abs": 1})}})
    assert accepted_by(hunk({"a": 1}, {"a": 2}), rules) == "number 1 ± 1"
    assert accepted_by(hunk({"a": 1}, {"a": 3}), rules) == ""
    assert accepted_by(hunk({}, {"a": 3}), CallRules()) == ""


def _saved(draft: ConfigDraft, *rules: tuple[str, str, Any]) -> str:
    chosen = [Offer(tool, path, read_rule(rule), None) for tool, path, rule in rules]
    return edit_of(draft, with_rules(draft, chosen))[1].decode()


def test_rules_change_nothing_else_in_the_file() -> None:
    text = """{
  "criteria": {"response_match_score": 0.80,
    "tool_trajectory_avg_score": {"threshold": 1.00, "matchType": "IN_ORDER",
                                  "argsMatch": {"refund": {"amount": {"abs": 0.010}}}}},
  "note": [1,2]
}"""
    after = _saved(draft_of(FILE, text.encode()), ("refund", "note", "any"), ("find", "id", {"regex": "A"}))
    assert json.loads(after)["criteria"]["tool_trajectory_avg_score"]["argsMatch"] == {
        "refund": {"amount": {"abs": 0.01}, "note": "any"},
        "find": {"id": {"regex": "A"}},
    }
    for kept in ('"response_match_score": 0.80,', '"threshold": 1.00, "matchType"', '{"abs": 0.010}', '"note": [1,2]'):
        assert kept in after


def test_criterion_that_is_a_number_becomes_an_object() -> None:
    text = '{"criteria": {"tool_trajectory_avg_score": 0.5, "response_match_score": 0.8}}'
    criteria = json.loads(_saved(draft_of(FILE, text.encode()), ("refund", "note", "any")))["criteria"]
    assert criteria["tool_trajectory_avg_score"] == {"threshold": 0.5, "args_match": {"refund": {"note": "any"}}}


def test_new_config_keeps_the_default_criteria() -> None:
    after = _saved(new_draft(FILE), ("refund", "note", "any"))
    config = parse_config(FILE, after.encode())
    assert [(one.name, one.threshold) for one in config.criteria] == [
        ("tool_trajectory_avg_score", 1.0),
        ("response_match_score", 0.8),
    ]
    assert rules_of(config.criteria).for_tool("refund") == {"note": ValueRule("any")}


@pytest.mark.parametrize(
    ("criteria", "why"),
    [
        ({"response_match_score": 0.8}, "is not in the criteria"),
        ({"tool_trajectory_avg_score": {"threshold": 1, "ignore_args": True}}, "ignores arguments"),
        ({"tool_trajectory_avg_score": 1}, ""),
    ],
)
def test_rules_are_refused_where_they_have_no_effect(criteria: dict[str, Any], why: str) -> None:
    found = obstacle(parse_config(FILE, json.dumps({"criteria": criteria}).encode()))
    assert why in found
    assert bool(found) == bool(why)
