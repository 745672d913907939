import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria import value_rules
from workbench.criteria.base import NotScorableError, Scored, ScoreRequest
from workbench.criteria.call_rows import CallRules, Calls, call_rows
from workbench.criteria.json_difference import ABSENT, sentence
from workbench.criteria.registry import check_criteria
from workbench.criteria.trajectory import score
from workbench.criteria.value_rules import agrees, compare, described, read_rule
from workbench.files.criteria import parse_config
from workbench.files.invocation import ToolCall


def _rules(rules: dict[str, Any]) -> dict[str, Any]:
    return {path: read_rule(rule) for path, rule in rules.items()}


def _agrees(rule: Any, expected: Any, actual: Any) -> bool:
    return agrees({"k": expected}, {"k": actual} if actual is not ABSENT else {}, _rules({"k": rule}))


@pytest.mark.parametrize(
    ("rule", "expected", "accepted", "refused"),
    [
        ("any", 1, [1, "x", None, {}, ABSENT], []),
        ({"regex": "A-[0-9]+"}, "A-1", ["A-1", "A-77"], ["A-", "xA-7", "A-7\n", "a-7", 7, None, ABSENT]),
        ({"regex": "A-[0-9]+"}, "no match", ["A-1"], ["no match"]),
        ({"abs": 0.01}, 12.5, [12.5, 12.51, 12.49], [12.52, "12.50", True, None, ABSENT]),
        ({"rel": 0.1}, -100, [-90, -110, -100.0], [-89, 100, "-100"]),
        ({"abs": 1}, True, [True, 1], [2, 0]),
        ({"abs": 1}, 10**400, [10**400], [10**400 + 1, 1, 0.5]),
        ({"rel": 0.5}, 1, [1.5], [10**400]),
        ({"abs": 1}, float("inf"), [float("inf")], [1e308, float("-inf")]),
        ({"one_of": [1, "x", None, [1]]}, 5, [1, "x", None, [1], 1.0], [5, "X", [1, 1], ABSENT]),
        ("ignore_case", "Straße", ["STRASSE", "straße"], ["strase", None, ABSENT, ["Straße"]]),
        ("ignore_case", 1, [1], [2]),
        ("contains", {"a": 1}, [{"a": 1}, {"a": 1, "b": 2}], [{}, {"a": 2}, {"b": 2}, [], None, ABSENT]),
        ("contains", [1, {"b": 2}], [[1, {"b": 2}], [{"b": 2, "c": 3}, 9, 1]], [[1], [1, {"b": 3}], [1, 1]]),
        ("contains", [1, 1], [[1, 1], [1, 2, 1]], [[1], [1, 2]]),
        ("contains", "text", ["text"], ["more text"]),
    ],
)
def test_each_value_rule_accepts_only_matching_values(
    rule: Any, expected: Any, accepted: list[Any], refused: list[Any]
) -> None:
    assert [value for value in accepted if not _agrees(rule, expected, value)] == []
    assert [value for value in refused if _agrees(rule, expected, value)] == []


def test_contains_pairs_list_elements_so_that_all_fit() -> None:
    """The first element fits both; taking the wrong one would leave the second without a partner."""
    assert _agrees("contains", [{}, {"a": 1}], [{"a": 1}, {"b": 2}])


def test_rules_apply_below_their_path_and_inside_lists() -> None:
    rules = _rules({"filters.since": "any", "items.*.price": {"abs": 1}, "items.1.name": "any", "a.b": "any"})
    assert agrees({"filters": {"since": 1, "to": 2}}, {"filters": {"to": 2}}, rules)
    assert not agrees({"filters": {"since": 1, "to": 2}}, {"filters": {"to": 3}}, rules)
    items = [{"price": 1, "name": "x"}, {"price": 5, "name": "y"}]
    assert agrees({"items": items}, {"items": [{"price": 2, "name": "x"}, {"price": 4, "name": "z"}]}, rules)
    assert not agrees({"items": items}, {"items": [{"price": 1, "name": "z"}, items[1]]}, rules)
    assert agrees({"a.b": 1}, {"a.b": 2}, rules), "a key may contain a dot"


def test_a_rule_inside_a_contained_object_still_decides() -> None:
    rules = _rules({"o": "contains", "o.id": {"regex": "[0-9]+"}})
    assert agrees({"o": {"x": 1}}, {"o": {"x": 1, "id": "7", "more": 0}}, rules)
    assert not agrees({"o": {"x": 1}}, {"o": {"x": 1, "id": "seven"}}, rules)


def test_a_rule_decides_inside_an_object_that_is_not_expected_but_allowed() -> None:
    rules = _rules({"": "contains", "o.p.id": {"regex": "[0-9]+"}})
    assert agrees({"x": 1}, {"x": 1, "o": {"p": {"id": "7", "more": 0}}}, rules)
    assert not agrees({"x": 1}, {"x": 1, "o": {"p": {"id": "seven"}}}, rules)


def test_path_with_a_star_and_a_position_applies_to_that_position_of_each_element() -> None:
    rules = _rules({"rows.*.0": "any", "rows.*.*": {"abs": 1}, "": "contains", "more.*.0.id": {"regex": "[0-9]+"}})
    assert agrees({"rows": [[1, 2], [3, 4]]}, {"rows": [[9, 3], ["x", 4]]}, rules)
    assert not agrees({"rows": [[1, 2]]}, {"rows": [[9, 4]]}, rules)
    assert not agrees({"more": [[{}]]}, {"more": [[{"id": "seven"}]]}, rules)


def _nested(depth: int, numbers: Iterator[int]) -> Any:
    return [_nested(depth - 1, numbers) for _ in range(5)] if depth else next(numbers)


def test_deeply_nested_lists_under_contains_are_compared_with_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (_nested(4, itertools.count(start)) for start in (0, 1))
    monkeypatch.setattr(value_rules, "MAX_COMPARISONS", 50_000)
    assert not agrees({"k": one}, {"k": other}, _rules({"": "contains"}))
    monkeypatch.setattr(value_rules, "MAX_COMPARISONS", 100)
    with pytest.raises(NotScorableError, match="takes too long"):
        agrees({"k": one}, {"k": other}, _rules({"": "contains"}))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=3),
    max_leaves=6,
)


def _contains(expected: Any, actual: Any) -> bool:
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(key in actual and _contains(item, actual[key]) for key, item in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        ways = itertools.permutations(actual, len(expected))
        return any(all(map(_contains, expected, way)) for way in ways)
    return bool(expected == actual)


@given(values, values)
def test_contains_equals_a_search_of_all_pairings(expected: Any, actual: Any) -> None:
    assert _agrees("contains", expected, actual) == _contains(expected, actual)


@given(values, values)
def test_values_agree_without_rules_exactly_if_they_are_equal(expected: Any, actual: Any) -> None:
    assert agrees(expected, actual, {}) == (expected == actual)


@pytest.mark.parametrize(
    ("rule", "actual", "said"),
    [
        ({"regex": "A-[0-9]+"}, "B-7", 'args.k: text matching A-[0-9]+, got text "B-7"'),
        ({"abs": 0.01}, 13, "args.k: number 12.5 ± 0.01, got number 13"),
        ({"rel": 0.01}, 13, "args.k: number 12.5 ± 1%, got number 13"),
        ({"one_of": ["a", 2]}, 13, 'args.k: one of "a", 2, got number 13'),
        ({"regex": "\x1b"}, 1, "args.k: text matching ␛, got number 1"),
    ],
)
def test_difference_names_the_rule_instead_of_the_value(rule: Any, actual: Any, said: str) -> None:
    (difference,) = compare({"k": 12.5}, {"k": actual}, _rules({"k": rule}), "args")
    assert sentence(described(difference)) == said


@pytest.mark.parametrize(
    ("rule", "expected", "actual", "words"),
    [
        ("contains", {}, {"k": 1}, "more is allowed"),
        ({"k": {"abs": 1}}, {}, {"k": 1}, None),
        ({"k": "ignore_case"}, {"k": 1}, {"k": 2}, None),
        ({"k": {"regex": "B"}}, {"k": "A"}, {"k": "A"}, "text matching B"),
    ],
)
def test_rule_is_named_only_where_it_has_an_effect(rule: Any, expected: Any, actual: Any, words: str | None) -> None:
    rules = _rules(rule if isinstance(rule, dict) else {"": rule})
    (difference,) = compare(expected, actual, rules, "args")
    found = described(difference)
    assert found.get("rule") == words
    assert "(ends after" not in found["actual_shown"], "equal texts have no first difference"


def _config(args_match: Any, **options: Any) -> Any:
    content = {"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "args_match": args_match, **options}}}
    return parse_config(Path("test_config.json"), json.dumps(content).encode())


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("anyy", 'must be "any", "ignore_case"'),
        ({"regex": "("}, "must be a regular expression after `regex` (missing ), unterminated subpattern"),
        ({"regex": 1}, "must be a regular expression after `regex`, as text"),
        ({"abs": -1}, 'must be a number of at least 0 after `abs`, not {"abs": -1}'),
        ({"rel": True}, "must be a number of at least 0 after `rel`"),
        ({"rel": 10**400}, "must be a number of at least 0 after `rel`"),
        ({"abs": 1, "rel": 1}, 'must be "any", "ignore_case"'),
        ({"one_of": []}, "must be a non-empty list of values after `one_of`"),
        (None, 'must be "any", "ignore_case"'),
    ],
)
def test_bad_rule_is_a_config_error_at_its_place(rule: Any, said: str) -> None:
    faults = [fault for fault in check_criteria(_config({"refund": {"note": rule}})) if fault.severity == "error"]
    assert [said in fault.message for fault in faults] == [True]
    assert faults[0].json_path == "criteria.tool_trajectory_avg_score.args_match.refund.note"


def test_args_match_beside_ignore_args_is_a_config_error() -> None:
    faults = check_criteria(_config({"refund": {"note": "any"}}, ignore_args=True))
    assert "remove one of them" in next(fault.message for fault in faults if fault.severity == "error")


def test_check_says_that_adk_compares_exactly() -> None:
    (fault,) = check_criteria(_config({"refund": {"note": "any"}}))
    assert (fault.severity, "ADK ignores `args_match`" in fault.message) == ("note", True)


def _calls(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"intermediate_data": {"tool_uses": [{"name": name, "args": args} for name, args in calls]}}


def _score(config: Any, expected: dict[str, Any], actual: dict[str, Any]) -> Scored:
    return score(ScoreRequest(config.criteria[0], (expected,), (actual,)))


def test_own_rule_of_a_tool_wins_over_the_rule_for_every_tool() -> None:
    config = _config({"refund": {"id": {"regex": "A-[0-9]+"}}, "*": {"id": "any", "note": "any"}})
    expected = _calls(("refund", {"id": "A-1", "note": "x"}), ("find", {"id": 1}))
    assert _score(config, expected, _calls(("refund", {"id": "A-2"}), ("find", {"id": 9}))).result.score == 1.0
    failed = _score(config, expected, _calls(("refund", {"id": "B-2"}), ("find", {"id": 9})))
    assert (failed.result.score, failed.result.reason) == (
        0.0,
        'args.id: text matching A-[0-9]+, got text "B-2" (call 1: refund)',
    )


def test_accepted_difference_is_kept_with_its_rule() -> None:
    config = _config({"refund": {"amount": {"abs": 0.01}}})
    passed = _score(config, _calls(("refund", {"amount": 12.5})), _calls(("refund", {"amount": 12.51})))
    (row,) = passed.turns[0].details["rows"]
    assert (row["mark"], row["differences"]) == ("same", [])
    assert [each["rule"] for each in row["accepted"]] == ["number 12.5 ± 0.01"]


amounts = st.lists(st.integers(0, 4), max_size=4)


@given(amounts, amounts)
def test_match_types_equal_a_search_of_all_pairings(expected: list[int], actual: list[int]) -> None:
    """Within 1: a relation that is not transitive."""
    sides = [[ToolCall("pay", {"amount": amount}) for amount in side] for side in (expected, actual)]
    rules = CallRules(args_match={"pay": _rules({"amount": {"abs": 1}})})
    calls = Calls(sides[0], sides[1], rules)

    def near(ways: Any) -> bool:
        return any(all(abs(one - other) <= 1 for one, other in zip(expected, way, strict=True)) for way in ways)

    assert calls.match("EXACT") == (len(expected) == len(actual) and near([actual]))
    assert calls.match("IN_ORDER") == near(itertools.combinations(actual, len(expected)))
    assert calls.match("ANY_ORDER") == near(itertools.permutations(actual, len(expected)))
    rows = call_rows(sides[0], sides[1], rules)
    fine = [row for row in rows if row["mark"] in ("same", "moved") and not row["differences"]]
    assert (sum(row["expected"] is not None for row in fine) == len(expected)) == calls.match("ANY_ORDER")
    if calls.match("EXACT"):
        assert [row["mark"] for row in rows] == ["same"] * len(expected)
