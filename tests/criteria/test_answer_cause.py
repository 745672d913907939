"""The cause of a failed comparison of words is the first kind of fact that the answer lacks."""

import time

import pytest

from tests.hostile import HOSTILE
from workbench.criteria.answer_cause import answer_cause
from workbench.criteria.base import ScoreRequest
from workbench.criteria.response_match import MAX_EXPLAINED, score
from workbench.events.events import MetricResult
from workbench.files.criteria import Criterion


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
