from pathlib import Path
from typing import Any

import pytest

from workbench.criteria.base import ScoreRequest
from workbench.criteria.registry import check_criteria, score
from workbench.criteria.session_state import cause
from workbench.events.events import MetricResult
from workbench.files.criteria import CriteriaConfig, parse_config


def _config(options: str) -> CriteriaConfig:
    return parse_config(Path("test_config.json"), f'{{"criteria": {{"session_state_match": {options}}}}}'.encode())


def _score(options: str, expected: Any, actual: Any) -> MetricResult:
    (criterion,) = _config(f'{{"threshold": 1{options}}}').criteria
    request = ScoreRequest(criterion, None, ({},), scenario={}, final_session_state=expected, end_state=actual)
    return score(request).result


@pytest.mark.parametrize(
    ("options", "actual", "passes"),
    [
        ("", {"cart": {"total": 3}}, True),
        ("", {"cart": {"total": 3, "items": []}, "last_seen": 5}, True),
        (', "mode": "exact"', {"cart": {"total": 3}}, True),
        (', "mode": "exact"', {"cart": {"total": 3}, "last_seen": 5}, False),
        (', "mode": "exact", "ignore": ["last_seen"]', {"cart": {"total": 3}, "last_seen": 5}, True),
        (', "ignore": ["cart.total"]', {"cart": {"total": "x"}}, True),
        (', "state_match": {"cart.total": {"abs": 1}}', {"cart": {"total": 4}}, True),
        (', "state_match": {"cart.total": {"abs": 1}}', {"cart": {"total": 5}}, False),
        ("", {"cart": {}}, False),
        ("", {}, False),
    ],
)
def test_state_at_the_end_is_compared(options: str, actual: dict[str, Any], passes: bool) -> None:
    result = _score(options, {"cart": {"total": 3}}, actual)
    assert (result.status, result.score) == (("passed", 1.0) if passes else ("failed", 0.0))


def test_difference_is_named_with_its_types() -> None:
    result = _score("", {"cart": {"total": 12.5, "paid": True}}, {"cart": {"total": "12.50"}})
    assert result.reason == 'state.cart.total: number 12.5, got text "12.50", and 1 more'
    assert cause(result, ()) == "end state: cart.total is text, expected number"


def test_accepted_values_are_kept_with_their_rule() -> None:
    result = _score(', "ignore": ["seen"]', {"a": 1}, {"a": 1, "seen": 9, "more": 1})
    assert [(each["path"], each["rule"]) for each in result.details["accepted"]] == [("state.seen", "any value")]


def test_case_without_an_expected_state_is_not_applicable() -> None:
    assert _score("", None, {"a": 1}).status == "not_applicable"


def test_empty_expected_state_passes_nothing_unless_an_option_decides() -> None:
    assert _score("", {}, {"a": 1}).status == "not_applicable"
    assert _score(', "mode": "exact"', {}, {}).status == "passed"


@pytest.mark.parametrize(
    ("rule", "actual", "status"),
    [
        ('{"regex": "T-[0-9]+"}', {"more": 1}, "not_applicable"),
        ('{"one_of": [1]}', {}, "not_applicable"),
        ('"any"', {"ticket": 1}, "not_applicable"),
        ('{"regex": "T-[0-9]+"}', {"ticket": "T-1"}, "passed"),
        ('{"regex": "T-[0-9]+"}', {"ticket": "x"}, "failed"),
    ],
)
def test_rule_without_a_value_to_judge_passes_nothing(rule: str, actual: dict[str, Any], status: str) -> None:
    assert _score(f', "state_match": {{"ticket": {rule}}}', {}, actual).status == status
    assert _score(', "state_match": {"a": {"regex": "x"}}', {}, {"a": "y"}).status == "failed"


def test_unknown_state_is_not_evaluated() -> None:
    assert _score("", {"a": 1}, None).status == "not_evaluated"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('"mode": "subset"', "contains"),
        ('"ignore": [""]', "must be a key or a dotted path"),
        ('"ignore": "last_seen"', "a list"),
        ('"ignore": ["a"], "state_match": {"a": "any"}', "both `ignore` and `state_match`"),
        ('"state_match": {"a": "all"}', '"any"'),
    ],
)
def test_wrong_options_are_config_errors(options: str, said: str) -> None:
    found = check_criteria(_config(f'{{"threshold": 1, {options}}}'))
    faults = [fault.sentence() for fault in found if fault.severity == "error"]
    assert [said in sentence for sentence in faults][:1] == [True], faults
