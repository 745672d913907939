from pathlib import Path
from typing import Any

import pytest

from workbench.criteria.answer_match import cause
from workbench.criteria.base import NotScorableError, Scored, ScoreRequest
from workbench.criteria.registry import check_criteria, score
from workbench.files.criteria import CriteriaConfig, parse_config


def _config(text: str) -> CriteriaConfig:
    return parse_config(Path("test_config.json"), f'{{"criteria": {{"answer_match": {text}}}}}'.encode())


def _turn(*texts: str, thought: str = "") -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text} for text in texts]
    return {"final_response": {"parts": [*parts, *([{"text": thought, "thought": True}] if thought else [])]}}


def _score(options: str, *turns: dict[str, Any]) -> Scored:
    (criterion,) = _config(f'{{"threshold": 1, {options}}}').criteria
    return score(ScoreRequest(criterion, None, turns, scenario={}))


@pytest.mark.parametrize(
    ("options", "answer", "reason"),
    [
        ('"contains": ["refund"]', "Your refund of 12 €", ""),
        ('"contains": "refund"', "Your refund of 12 €", ""),
        ('"contains": ["Refund"]', "your refund", 'answer lacks "Refund"'),
        ('"not_contains": ["sorry"]', "I am sorry", 'answer contains "sorry"'),
        ('"not_contains": ["sorry"]', "", ""),
        ('"regex": ["A-[0-9]+"]', "the order A-7 came", ""),
        ('"regex": ["(?i)REFUND$"]', "my refund", ""),
        ('"regex": ["^A-[0-9]+$"]', "the order A-7", "answer does not match ^A-[0-9]+$"),
        ('"contains": ["a", "b", "c", "d", "e"]', "", 'answer lacks "a"; answer lacks "b"; answer lacks "c"; 2 more'),
    ],
)
def test_answer_must_meet_every_condition(options: str, answer: str, reason: str) -> None:
    scored = _score(options, _turn(answer))
    assert (scored.result.reason, scored.result.score) == (reason, 0.0 if reason else 1.0)
    assert scored.result.status == ("failed" if reason else "passed")


def test_texts_of_all_parts_count_but_thoughts_do_not() -> None:
    assert _score('"contains": ["one", "two"]', _turn("one", "two")).result.score == 1.0
    assert _score('"contains": ["secret plan"]', _turn("hello", thought="secret plan")).result.score == 0.0


def test_missing_answer_contains_nothing() -> None:
    assert _score('"contains": ["x"]', {"final_response": None}).result.status == "failed"


@pytest.mark.parametrize(
    ("turns", "statuses", "overall"),
    [
        ('"all"', ["failed", "passed"], 0.5),
        ('"last"', ["not_applicable", "passed"], 1.0),
        ("1", ["failed", "not_applicable"], 0.0),
    ],
)
def test_only_selected_turns_are_checked(turns: str, statuses: list[str], overall: float) -> None:
    scored = _score(f'"contains": ["x"], "turns": {turns}', _turn("a"), _turn("x"))
    assert ([turn.status for turn in scored.turns], scored.result.score) == (statuses, overall)


def test_turn_that_the_conversation_lacks_cannot_be_judged() -> None:
    with pytest.raises(NotScorableError, match="`turns` is 3, but the conversation has 1 turn"):
        _score('"contains": ["x"], "turns": 3', _turn("x"))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1.0", "`answer_match` needs `contains`, `not_contains` or `regex`"),
        ('{"threshold": 1}', "`answer_match` needs `contains`, `not_contains` or `regex`"),
        ('{"threshold": 1, "regex": ["("]}', "must be a regular expression (missing ), unterminated subpattern"),
        ('{"threshold": 1, "contains": [1]}', "must be text, not the number 1"),
        ('{"threshold": 1, "contains": "x", "turns": 0}', '"all", "last" or the number of a turn, from 1'),
        ('{"threshold": 1, "contains": "x", "turns": "first"}', '"all", "last" or the number of a turn, from 1'),
        ('{"threshold": 1, "contains": ""}', "must be a text of at least one character"),
        ('{"threshold": 1, "regex": ["x", ""]}', "must be a text of at least one character"),
        ('{"threshold": 1, "contain": "x"}', "Did you mean `contains`?"),
    ],
)
def test_wrong_options_are_config_errors(value: str, said: str) -> None:
    faults = [fault.sentence() for fault in check_criteria(_config(value)) if fault.severity == "error"]
    assert [said in sentence for sentence in faults][:1] == [True], faults


def test_check_says_that_adk_skips_answer_match() -> None:
    (fault,) = check_criteria(_config('{"threshold": 1, "contains": "x"}'))
    assert (fault.severity, "does not know `answer_match` and skips it" in fault.message) == ("note", True)


def test_cause_is_the_first_condition_that_is_not_met() -> None:
    scored = _score('"contains": ["refund", "euro"]', _turn("refund"))
    assert cause(scored.result, scored.turns) == 'answer lacks "euro"'
