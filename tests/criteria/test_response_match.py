import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import HOSTILE
from workbench.criteria import response_match
from workbench.criteria.base import NotScorableError, Scored, ScoreRequest
from workbench.criteria.response_match import MAX_EXPLAINED, answer_cause, explain, rouge_1, score
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion

Turn = dict[str, Any]
MakeTurn = Callable[..., Turn]

sentences = st.lists(
    st.sampled_from(
        ["refund", "refunds", "refunded", "running", "12.50", "€", "café", "返金", "½", "İ", "\n", "a_b", "X"]
    )
).map(" ".join)


def _score(pairs: list[tuple[str | None, str | None]], make: MakeTurn, threshold: float = 0.8) -> Scored:
    criterion = Criterion("response_match_score", threshold, threshold, {})
    expected, actual = zip(*pairs, strict=True)
    return score(
        ScoreRequest(criterion, tuple(make(text=text) for text in expected), tuple(make(text=text) for text in actual))
    )


@given(st.text(st.characters(max_codepoint=127)) | sentences, st.text(st.characters(max_codepoint=127)) | sentences)
def test_ascii_texts_score_like_rouge_score(expected: str, actual: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    expected, actual = (text.encode("ascii", "replace").decode() for text in (expected, actual))
    wanted = RougeScorer(["rouge1"], use_stemmer=True).score(expected, actual)["rouge1"]
    assert tuple(rouge_1(expected, actual)) == tuple(wanted), "to the last bit"


@given(sentences | st.text(), sentences | st.text())
def test_marks_join_to_the_text_and_match_the_score(expected: str, actual: str) -> None:
    rouge = rouge_1(expected, actual)
    found = explain(expected, actual)
    assert "".join(piece for piece, _ in found["expected_marks"]) == expected
    assert "".join(piece for piece, _ in found["actual_marks"]) == actual
    assert {mark for _, mark in found["expected_marks"]} <= {"same", "missing", "space"}
    assert {mark for _, mark in found["actual_marks"]} <= {"same", "extra", "space"}
    assert all(piece for side in ("expected_marks", "actual_marks") for piece, _ in found[side])
    matched, missing, extra = (len(found[key]) for key in ("matched", "missing", "extra"))
    assert rouge.recall == matched / max(matched + missing, 1)
    assert rouge.precision == matched / max(matched + extra, 1)


@given(sentences)
def test_every_text_matches_itself_completely(text: str) -> None:
    assert rouge_1(text, text).f == (1.0 if explain(text, text)["matched"] else 0.0)
    assert explain(text, text)["missing"] == explain(text, text)["extra"] == []


def test_repeated_words_count_as_often_as_both_texts_have_them() -> None:
    found = explain("no no no yes", "yes no maybe no")
    assert Counter(found["matched"]) == {"no": 2, "yes": 1}
    assert (found["missing"], found["extra"]) == (["no"], ["maybe"])
    assert found["expected_marks"][0] == ["no", "same"]


def test_repeated_word_is_matched_at_the_best_position() -> None:
    marks = explain("the parcel and the money", "send the money")["expected_marks"]
    assert [piece for piece, mark in marks if mark == "same"] == ["the", "money"]
    assert marks[0] == ["the", "missing"]
    assert marks[-3:] == [["the", "same"], [" ", "space"], ["money", "same"]]


def test_case_score_is_the_mean_and_names_the_lowest_turn(turn: MakeTurn) -> None:
    found = _score([("your refund is on its way", "your refunds are on the way"), ("good bye", "good bye")], turn)
    assert [result.score for result in found.turns] == [4 / 6, 1.0]
    assert found.result.score == (4 / 6 + 1.0) / 2
    assert found.result.status == "passed"
    assert found.result.details == {"turns": 2, "lowest_turn": 0}
    assert found.result.reason == (
        "turn 1: 4 of 6 expected words found, 2 missing (is, its), 2 not expected (are, the)"
    )
    assert found.turns[1].reason == ""
    json.dumps(found.turns[0].details)


@pytest.mark.parametrize(
    ("expected", "actual", "reason"),
    [
        (None, "Done.", "the expected answer has no words, so the score is always 0"),
        (None, None, "the expected answer has no words, so the score is always 0"),
        ("Done and dusted.", None, "the agent's answer has no words; expected 3"),
        ("a b c d e f", "g", "0 of 6 expected words found, 6 missing (a, b, c, d, e, …), 1 not expected (g)"),
    ],
)
def test_texts_without_words_score_zero(turn: MakeTurn, expected: str | None, actual: str | None, reason: str) -> None:
    found = _score([(expected, actual)], turn)
    assert (found.result.score, found.result.status, found.result.reason) == (0.0, "failed", reason)


def test_thoughts_count_as_in_adk(turn: MakeTurn) -> None:
    thinking = {"final_response": {"parts": [{"text": "hmm", "thought": True}, {"text": "Done"}]}}
    criterion = Criterion("response_match_score", 0.5, 0.5, {})
    found = score(ScoreRequest(criterion, (turn(text="Done"),), (thinking,)))
    assert found.result.score == 2 / 3
    assert found.turns[0].details["extra"] == ["hmm"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_answers_are_scored(turn: MakeTurn, text: str) -> None:
    found = _score([("a word", text)], turn)
    assert "".join(piece for piece, _ in found.turns[0].details["actual_marks"]) == text
    assert len(found.result.reason) < 500


def test_huge_texts_are_scored_without_word_details(turn: MakeTurn) -> None:
    found = _score([("a word", "word " * 200_000)], turn)
    assert found.result.score == rouge_1("a word", "word " * 200_000).f > 0
    assert "not explained" in found.result.reason
    assert len(json.dumps(found.turns[0].details)) < 1000


def test_stem_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_match, "MAX_STEMS", 10)
    assert rouge_1(" ".join(f"word{index}" for index in range(50)), "word7 other").recall == 1 / 50
    assert len(response_match._STEMS) <= 10


def test_conversations_of_different_length_are_refused(turn: MakeTurn) -> None:
    criterion = Criterion("response_match_score", 0.5, 0.5, {})
    with pytest.raises(NotScorableError, match="expected 0 turns, got 1"):
        score(ScoreRequest(criterion, (), (turn(text="a"),)))


def cause(*pairs: tuple[str, str], threshold: float = 1.0) -> str:
    wanted, got = (
        tuple({"final_response": {"parts": [{"text": text}]}} for text in side) for side in zip(*pairs, strict=True)
    )
    criterion = Criterion("response_match_score", threshold, threshold, {})
    scored = score(ScoreRequest(criterion, wanted, got))
    return answer_cause(scored.result, scored.turns)


@pytest.mark.parametrize(
    ("expected", "actual", "text"),
    [
        ("Your parcel arrives on 24 November.", "Your parcel arrives soon.", "answer lacks a date"),
        ("Your parcel arrives on 24 November.", "Your parcel arrives on 25 November.", "answer has another date"),
        ("Your parcel arrives on 2026-11-24.", "Your parcel arrives soon.", "answer lacks a date"),
        ("Your parcel arrives on November 24th.", "Your parcel arrives soon.", "answer lacks a date"),
        ("Your parcel arrives tomorrow.", "Your parcel arrives.", "answer lacks a date"),
        ("お荷物は11月24日に届きます", "お荷物はまもなく届きます", "answer lacks a date"),
        ("Your table is booked for 19:30.", "Your table is booked.", "answer lacks a time"),
        ("Your table is booked for 7 pm.", "Your table is booked for 8 pm.", "answer has another time"),
        ("You get 12.50 € back.", "You get it back.", "answer lacks an amount"),
        ("You get $12.50 back.", "You get $13 back.", "answer has another amount"),
        ("You get 20 percent back.", "You get something back.", "answer lacks an amount"),
        ("Your order is A-17 now.", "Your order is on now.", "answer lacks an id"),
        ("There are 17 rooms left.", "There are rooms left.", "answer lacks a number"),
        ("There are 17 rooms left.", "There are 18 rooms left.", "answer has another number"),
        ("See https://shop.example/help for help.", "See the page for help.", "answer lacks a link"),
        ("You can not cancel this order.", "You can cancel this order.", "answer lacks a negation"),
        ("You can't cancel this order.", "You can cancel this order.", "answer lacks a negation"),
        ("The museum in Lisbon is open.", "The museum is open.", "answer lacks a name"),
        ("The museum in Lisbon is open.", "The museum in Porto is open.", "answer has another name"),
        ("Ihr Paket ist auf dem Weg zum Kunden.", "Ihr Paket ist auf dem Weg.", "answer lacks “zum”, “kunden”"),
        ("We are sorry, it is late.", "We are here, it is late.", "answer lacks “sorry”"),
        ("The lamp is blue and new.", "The lamp is and.", "answer lacks “blue”, “new”"),
        ("The lamp is blue and new.", "The is and.", "answer says less than expected"),
        ("It is.", "", "answer is empty"),
        ("", "It is.", "expected answer is empty"),
        (
            "One thing only here.",
            "Completely different words now, sorry.",
            "answer shares few words with the expected one",
        ),
        ("It is fine.", "It is fine. Anything else that you want from me?", "answer says more than expected"),
    ],
)
def test_first_kind_of_missing_fact_is_named(expected: str, actual: str, text: str) -> None:
    assert cause((expected, actual)) == text


def test_first_failed_turn_decides() -> None:
    turns = ("It is fine.", "It is fine."), ("Come at 19:30.", "Come."), ("Room 7 is free.", "It is free.")
    assert cause(*turns, threshold=0.9) == "answer lacks a time"


def test_very_long_answers_are_not_compared_by_word() -> None:
    assert cause(("a b", "a " * MAX_EXPLAINED)) == "answer is too long to compare by word"


@pytest.mark.parametrize("piece", ["1", "1,", "x", "x.", "x-", "1 a ", "http://", "n't ", "/a", "a@", "$1 "])
def test_work_is_linear_in_the_length_of_the_answer(piece: str) -> None:
    long = piece * (MAX_EXPLAINED // len(piece) - 20)
    marks = [[long, "same"], ["end", "missing"]]
    details = {"matched": ["a"] * 9, "missing": ["end"], "extra": ["b"], "expected_marks": marks, "actual_marks": marks}
    turn = MetricResult("response_match_score", "failed", 0.5, 0.8, "", details)
    began = time.process_time()
    assert answer_cause(turn, [turn])
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_can_be_compared(text: str) -> None:
    assert "\n" not in cause((f"{text} 24 November", "soon"), (text, f"other {text}"))
