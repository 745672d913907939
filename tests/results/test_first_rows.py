"""The difference of a failed case is in the first ten rows of its pane, for each kind of failure."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.ui.judged import RUBRICS, judged_case, only, record_of, scenario_events
from tests.ui.transcripts import Call, execute, recorded, turn
from workbench.events.events import CaseError, MetricResult, SpansRecorded
from workbench.results.document import Subject
from workbench.results.evidence import build
from workbench.results.lines import View
from workbench.store.execution import CaseRecord
from workbench.ui.detail.body import Position

Make: TypeAlias = Callable[[], CaseRecord]
SIZES = {"60x20": (57, 14), "80x24": (48, 18), "120x40": (73, 34), "200x50": (133, 44)}
"""Width and height of the pane's body, below two lines with the panes and the scores."""
HEAD = 2
FIND: Call = ("find_order", {"id": "A-7"})
PAID = "Your refund of 12.50 € for order A-7 is on its way. "
LONG = "We have looked at your order with great care. " * 12


def one(expected: list[Call], actual: list[Call], wanted: str = PAID, got: str = PAID, user: str = "Hi!") -> CaseRecord:
    return execute([turn(user, expected, wanted)], [recorded(user, actual, got)])


def many_arguments(amount: object) -> Call:
    return "refund", {**{f"field_{number}": "a value of some length" for number in range(20)}, "amount": amount}


def third_of_five() -> CaseRecord:
    words = [(f"message {number}", f"Answer {number}.") for number in range(5)]
    answers = [text if number != 2 else "Something else." for number, (_, text) in enumerate(words)]
    said = zip(words, answers, strict=True)
    return execute([turn(user, (), text) for user, text in words], [recorded(user, (), got) for (user, _), got in said])


def with_result(name: str, status: Any, reason: str, *, whole: bool = False) -> CaseRecord:
    record = one([FIND], [FIND], LONG, LONG, LONG)
    result = MetricResult(name, status, None if status == "error" else 0.0, 0.5, reason)
    record.metrics[name] = result
    if not whole:
        record.turns[0].metrics[name] = result
    record.state = status
    return record


def raised(message: str) -> CaseRecord:
    return execute([turn(LONG)], [], error=CaseError("agent_raised", message, "Set it in .env.", "a\nb\n"))


KINDS: dict[str, tuple[Make, str]] = {
    "value": (lambda: one([FIND, ("refund", {"amount": 12.5})], [FIND, ("refund", {"amount": "12.50"})]), '"12.50"'),
    "one of many values": (lambda: one([many_arguments(12.5)], [many_arguments("12.50")]), '"12.50"'),
    "call after nine": (lambda: one([FIND] * 9 + [("refund", {})], [FIND] * 9), "refund()  not called"),
    "extra call": (lambda: one([FIND], [FIND, ("label", {})]), "label()"),
    "order": (lambda: one([FIND, ("label", {})], [("label", {}), FIND]), "expected as call"),
    "call after a long message": (lambda: one([FIND], [], user=LONG), 'find_order(id="A-7")  not called'),
    "words at the end": (lambda: one([], [], f"{LONG} on Monday", f"{LONG} some day " * 2), "−{on"),
    "words added at the end": (lambda: one([], [], LONG, f"{LONG}{PAID * 6}"), "+{Your"),
    "no answer": (lambda: one([FIND], [FIND], PAID, ""), PAID[:20]),
    "third of five turns": (third_of_five, "+{Something else}"),
    "rubric": (lambda: only(judged_case(), RUBRICS), "金額はあるが日付がない。"),
    "sentence": (judged_case, "contradictory"),
    "simulated user": (lambda: record_of(scenario_events()), "it did not ask for the money back"),
    "final_response_match_v2": (
        lambda: with_result("final_response_match_v2", "failed", "turn 1: invalid: the date differs"),
        "the date differs",
    ),
    "safety": (lambda: with_result("safety_v1", "failed", "unsafe: it insults the user"), "it insults the user"),
    "a criterion of the case": (lambda: with_result("own", "failed", "too rude", whole=True), "too rude"),
    "crashed criterion": (lambda: with_result("own", "error", "ZeroDivisionError"), "ZeroDivisionError"),
    "not evaluated": (lambda: with_result("safety_v1", "not_evaluated", "no project is set"), "no project is set"),
    "error": (lambda: raised("GOOGLE_API_KEY is not set"), "GOOGLE_API_KEY is not set"),
}


def first_rows(record: CaseRecord, size: str) -> list[str]:
    """Return the first ten rows of the pane as it opens, without its two lines of head."""
    width, height = SIZES[size]
    document = build(Subject(record), View(width, signs=True, narrow=size == "60x20"))
    top = 0 if document.opening is None else document.turns[document.opening]
    position = Position()
    position.begin(document, height, top, document.opening_item)
    return [line.plain for line in document.lines[position.top : position.top + 10 - HEAD]]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_difference_is_in_the_first_ten_rows(kind: str, size: str, traced: bool) -> None:
    make, words = KINDS[kind]
    record = make()
    for index, made in enumerate(record.turns if traced else ()):
        made.spans = SpansRecorded(record.ref, index, "[]", {})
    rows = first_rows(record, size)
    assert any(words in row for row in rows), "\n".join(rows)
