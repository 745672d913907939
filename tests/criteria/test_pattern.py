"""Regular expressions of configs: they mean what they mean in Python, and none of them hangs."""

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.criteria import value_rules
from workbench.criteria.base import NotScorableError, ScoreRequest
from workbench.criteria.registry import score
from workbench.criteria.value_rules import check_pattern, matches
from workbench.files.criteria import Criterion

ENDLESS, TEXT = "(a|aa)+$", "a" * 60 + "!"


@pytest.fixture(autouse=True)
def _little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_rules, "_SECONDS", 0.05)


def test_pattern_that_takes_too_long_is_an_error_that_names_it() -> None:
    with pytest.raises(NotScorableError, match=r"the pattern \(a\|aa\)\+\$ takes too long on a text of 61 characters"):
        matches(ENDLESS, TEXT)


def _match_in_vain() -> None:
    with pytest.raises(NotScorableError):
        matches(ENDLESS, TEXT)


def test_other_threads_go_on_while_a_pattern_is_matched() -> None:
    beats = threading.Event()
    waiting = threading.Thread(target=beats.set)
    matching = threading.Thread(target=_match_in_vain)
    matching.start()
    waiting.start()
    assert beats.wait(60)
    matching.join()


@pytest.mark.parametrize(
    "options",
    [
        {"answer_match": {"regex": [ENDLESS]}},
        {"tool_trajectory_avg_score": {"args_match": {"f": {"a": {"regex": ENDLESS}}}}},
        {"session_state_match": {"state_match": {"a": {"regex": ENDLESS}}}},
    ],
)
def test_criterion_with_an_endless_pattern_is_not_scorable(options: dict[str, dict[str, object]]) -> None:
    ((name, given_options),) = options.items()
    calls = {"tool_uses": [{"name": "f", "args": {"a": TEXT}}]}
    turn = {"final_response": {"parts": [{"text": TEXT}]}, "intermediate_data": calls}
    criterion = Criterion(name, 1.0, 1.0, dict(given_options))
    with pytest.raises(NotScorableError, match="takes too long"):
        score(ScoreRequest(criterion, (turn,), (turn,), final_session_state={"a": ""}, end_state={"a": TEXT}))


_PIECES = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "\\d",
        "\\w+",
        "[a-c]",
        "[^a]",
        "(a|b)",
        "(?i)",
        "^",
        "$",
        "a{2}",
        "b*",
        "c?",
        "\\b",
        "\\s",
        "(?=a)",
    ]
)


@given(st.lists(_PIECES, max_size=5).map("".join), st.text("abcA1 \n", max_size=8))
def test_patterns_match_as_in_python(given_pattern: str, text: str) -> None:
    try:
        check_pattern(given_pattern, "a pattern")
    except ValueError:
        return
    assert matches(given_pattern, text) is (re.search(given_pattern, text) is not None)
    assert matches(given_pattern, text, whole=True) is (re.fullmatch(given_pattern, text) is not None)


@pytest.mark.parametrize(
    ("text", "said"), [("a{e}", "write `\\{`"), ("a{1<=e<=3}", "write `\\{`"), ("[[:alpha:]]", "write `\\[`")]
)
def test_pattern_whose_meaning_differs_from_pythons_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        check_pattern(text, "a pattern")
    check_pattern("a\\{e}", "a pattern")
    check_pattern("a{2}[[a][:;]", "a pattern")
