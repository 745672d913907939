import json

import pytest

from tests.run.forking.recorded import PIECES, REF, original
from workbench.events.events import PlannedCase
from workbench.files.prices import Price, Prices
from workbench.results.forked import Cost, compared, conversation, cost_after, cost_words, first_difference
from workbench.results.lines import View
from workbench.run.forking import Point
from workbench.store.execution import CaseRecord


def tried(*answers: str, ends: bool = True) -> CaseRecord:
    """Return a try that gives these answers, the other parts as in the original."""
    turns = conversation(original())
    for turn, answer in zip(turns, answers, strict=False):
        assert turn.actual is not None
        turn.actual = {**turn.actual, "final_response": {"role": "model", "parts": [{"text": answer}]}}
    record = CaseRecord(PlannedCase(REF, None, ""), "passed" if ends else "running")
    record.turns = turns[: len(answers)]
    return record


def lines_of(record: CaseRecord | None, point: Point, width: int = 79) -> list[str]:
    return [
        line.plain.rstrip() for line in compared(original(), record, 1, point, View(width, full=True, signs=True)).lines
    ]


@pytest.mark.parametrize("width", [24, 44, 60, 100])
def test_no_line_of_a_try_is_wider_than_the_screen(width: int) -> None:
    document = compared(original(), tried("x" * 300, "返金" * 99), 1, Point(0), View(width, full=True))
    assert all(line.cell_len <= width for line in document.lines)


def test_message_that_the_fork_changed_does_not_count_as_a_difference() -> None:
    record = tried("answer 1", "answer 2")
    record.turns[1].user = {"role": "user", "parts": [{"text": "Thanks!"}]}
    assert first_difference(conversation(original()), record, Point(1)) is None
    assert first_difference(conversation(original()), record, Point(0)) == 1
    other = tried("answer 1", "another")
    other.turns[1].user = record.turns[1].user
    assert first_difference(conversation(original()), other, Point(1)) == 1


def test_running_try_differs_only_if_a_step_differs() -> None:
    then = conversation(original())
    assert first_difference(then, tried("answer 1", "answer 2"), Point(0)) is None
    assert first_difference(then, tried("answer 1", "another"), Point(0)) == 1
    going = tried("answer 1", ends=False)
    assert first_difference(then, going, Point(0)) is None
    going.turns[0].actual = None
    assert first_difference(then, going, Point(0)) is None
    assert lines_of(None, Point(1)) == ["  turn 1 =  A kettle", "", " try 1 waits"]


def test_cost_of_a_fork_counts_thoughts_and_prompts_of_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    read = {"prompt_token_count": 10, "tool_use_prompt_token_count": 5}
    usage = {**read, "candidates_token_count": 2, "thoughts_token_count": 100}
    monkeypatch.setitem(PIECES, "said", json.dumps({"usage_metadata": usage}))
    prices = Prices({"gemini": Price(1_000_000, 1_000_000)})
    assert cost_after(original(), Point(1), prices) == Cost(1, 117, 117.0, "USD")


def test_cost_of_a_fork_counts_the_calls_after_its_point() -> None:
    prices = Prices({"gemini": Price(1_000_000, 0)})
    assert cost_after(original(), Point(0, 2), None) == Cost(2, 24)
    cost = cost_after(original(), Point(1), prices)
    assert cost == Cost(1, 12, 10.0, "USD")
    assert cost_words(cost, 3, judged=True) == "about 3 model calls, 36 tokens, $30.00, and judges"
    assert cost_words(Cost(), 3, judged=False) == "no model call after this point"
    assert cost_words(Cost(seen=False), 3, judged=True) == "cost not known"
