"""The page of one case in a review: the difference is on it, in a few lines, at every width."""

from collections.abc import Sequence

import pytest

from tests.hostile import HOSTILE
from tests.ui.judged import CLAIMS, RUBRICS, judged_case, with_text
from tests.ui.transcripts import execute, late_parcel, recorded, turn
from workbench.events import CaseError, MetricResult
from workbench.execution import CaseRecord
from workbench.rendering.cells import cell_len
from workbench.rendering.document import Subject
from workbench.rendering.lines import text_of
from workbench.rendering.review.evidence import evidence, place_in_case
from workbench.rendering.rows import View

FIND = ("find_order", {"id": "A-7"})
TRACK = ("track_parcel", {"id": "A-7"})
REFUND, TEXT_REFUND = ("refund", {"id": "A-7", "amount": 12.5}), ("refund", {"id": "A-7", "amount": "12.50"})
PAID = "Your refund of 12.50 € for order A-7 is on its way."


def page(record: CaseRecord, width: int = 79, *, full: bool = False) -> list[str]:
    return [text_of(line).rstrip() for line in evidence(Subject(record), View(width, full)).lines]


def one_turn(expected: Sequence[object], actual: Sequence[object], answer: str = PAID, said: str = PAID) -> CaseRecord:
    return execute([turn("hi", expected, answer)], [recorded("hi", actual, said)])  # type: ignore[arg-type]


def refund_in_turn_two() -> CaseRecord:
    turns = [("hello", (), (), "Hi."), ("Then I want my money back.", (FIND, REFUND), (FIND, TEXT_REFUND), PAID)]
    turns.append(("thanks", (), (), "Bye."))
    return execute(
        [turn(user, calls, answer) for user, calls, _, answer in turns],
        [recorded(user, calls, answer) for user, _, calls, answer in turns],
    )


def test_turn_that_differs_is_alone_on_the_page() -> None:
    record = refund_in_turn_two()
    assert place_in_case(record) == "turn 2 of 3"
    assert page(record) == [
        "  user      Then I want my money back.",
        "",
        '  call 1 =  find_order(id="A-7")',
        '  call 2 ≠  refund(id="A-7", amount=…)',
        "            − expected  12.5     number",
        '            + actual    "12.50"  text',
        "",
        "  answer =  Your refund of 12.50 € for order A-7 is on its way.",
        "",
        "  ✗ tool_trajectory_avg_score 0.66 < 1.00   ✓ response_match_score 1.00 ≥ 0.80",
        "  ▸ turns 1 and 3 match (enter)   ▸ tool results (pane 3)   ▸ trace (pane 4)",
    ]


def test_small_screen_has_no_blank_lines_and_a_narrow_gutter() -> None:
    assert page(refund_in_turn_two(), 59)[:6] == [
        " user    Then I want my money back.",
        ' call 1= find_order(id="A-7")',
        ' call 2≠ refund(id="A-7", amount=…)',
        "         − 12.5     number",
        '         + "12.50"  text',
        " answer= Your refund of 12.50 € for order A-7 is on its",
    ]


def test_full_view_has_all_turns() -> None:
    lines = page(refund_in_turn_two(), full=True)
    assert sum("turn " in line and "of 3" in line for line in lines) == 3
    assert not any("(enter)" in line for line in lines)


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        ([FIND, TRACK], [FIND], 'call 2 −  track_parcel(id="A-7")  not called'),
        ([FIND], [FIND, TRACK], 'call 2 +  track_parcel(id="A-7")  not expected'),
        ([TRACK, FIND], [FIND, TRACK], "expected as call"),
        ([FIND] * 9 + [REFUND], [FIND] * 9 + [TEXT_REFUND], "calls  =  9 calls match  find_order"),
    ],
)
def test_each_relation_of_calls_is_named(expected: list[object], actual: list[object], words: str) -> None:
    assert any(words in line for line in page(one_turn(expected, actual)))


def test_path_is_named_if_several_values_differ() -> None:
    wanted, got = ("refund", {"amount": 1, "to": {"iban": "DE1"}}), ("refund", {"amount": 2, "to": {"iban": "DE2"}})
    lines = [line.strip() for line in page(one_turn([wanted], [got]))]
    assert "amount" in lines
    assert "to.iban" in lines
    assert any(line.startswith("call 1 ≠  refund(amount=…, to=…)") for line in lines)


def test_words_of_a_failed_answer_are_marked() -> None:
    lines = page(one_turn([], [], "It arrives on 3 November at noon.", "It will come soon, we hope."))
    assert any(line.startswith("  answer ≠  − expected") and "−{" in line for line in lines)
    assert any(line.lstrip().startswith("+ actual") and "+{" in line for line in lines)


def test_answer_that_was_accepted_is_not_compared() -> None:
    lines = page(
        one_turn([FIND], [TRACK], "Your order A-7 is on its way to you.", "Your order A-7 is on the way to you.")
    )
    assert not any("−{" in line for line in lines)


@pytest.mark.parametrize("width", [59, 79, 119])
def test_judged_reasons_are_within_the_first_rows(width: int) -> None:
    record = judged_case()
    lines = page(record, width)
    assert any("contradictory" in line for line in lines)
    assert any(line.strip().startswith("rubric") for line in lines) or RUBRICS not in record.metrics
    assert CLAIMS in record.metrics


def test_reason_of_any_other_criterion_is_shown() -> None:
    record = one_turn([], [])
    record.turns[0].metrics["politeness"] = MetricResult("politeness", "failed", 0.1, 0.5, "no greeting at all")
    record.metrics["politeness"] = MetricResult("politeness", "failed", 0.1, 0.5, "no greeting at all")
    assert any("no greeting at all" in line for line in page(record))
    del record.turns[0].metrics["politeness"]
    assert any("no greeting at all" in line for line in page(record))


def test_error_comes_first_without_what_the_broken_turn_lacks() -> None:
    record = one_turn([FIND], [])
    record.error = CaseError("agent_raised", "KeyError: 'table'", "look at line 3")
    record.turns[0].actual = None
    lines = page(record)
    assert lines[0].strip() == "! KeyError: 'table'"
    assert not any("not called" in line or "gave none" in line for line in lines)


@pytest.mark.parametrize("width", [24, 59, 79, 160])
@pytest.mark.parametrize("full", [False, True])
def test_no_line_is_wider_than_the_page(width: int, full: bool) -> None:
    for record in (refund_in_turn_two(), late_parcel(), judged_case(), one_turn([], [], "返金" * 200, "返品" * 200)):
        assert all(cell_len(line) <= width for line in page(record, width, full=full))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_safe(text: str) -> None:
    for record in (with_text(judged_case(), text), one_turn([(text, {text: text})], [(text, {text: 1})], text, "x")):
        assert "\x1b" not in "".join(page(record))


def test_turn_that_is_not_in_the_format_of_adk_does_not_end_the_page() -> None:
    record = one_turn([FIND], [FIND])
    record.turns[0].actual = {"intermediate_data": 5, "final_response": {"parts": 3}}
    assert any("format" in line for line in page(record))


def test_case_that_failed_as_a_whole_begins_with_its_values() -> None:
    record = one_turn([FIND], [FIND])
    values = [{"path": "state.total", "expected": 12.5, "actual": "12.50"}]
    record.metrics["state"] = MetricResult("state", "failed", 0.0, 1.0, "state.total differs", {"differences": values})
    assert page(record)[:3] == [' ≠ case     state.total: number 12.5 · text "12.50"', "", "  user      hi"]
    record = one_turn([FIND], [TRACK])
    record.metrics["limits"] = MetricResult("limits", "failed", 0.0, 1.0, "3 tool calls, limit 1")
    lines = page(record)
    assert lines[0] == "  user      hi", "a failed turn comes first"
    assert any(line.endswith("3 tool calls, limit 1") for line in lines)
