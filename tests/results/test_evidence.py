"""The evidence of a case, on the screen, in a review and in reports: the difference first, at every width."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.hostile import HOSTILE
from tests.ui.judged import FUNCTION, RUBRICS, judged_case, only, with_text
from tests.ui.transcripts import execute, late_parcel, recorded, turn
from workbench.events.events import SpansRecorded, Thawed
from workbench.files.evalset import EvalCase
from workbench.files.invocation import content_text
from workbench.results.cells import cell_len
from workbench.results.document import Subject
from workbench.results.evidence import build, place_in_case
from workbench.results.lines import View
from workbench.results.side_by_side import is_as_expected
from workbench.store.execution import CaseRecord

FIND = ("find_order", {"id": "A-7"})
TRACK = ("track_parcel", {"id": "A-7"})
REFUND, TEXT_REFUND = ("refund", {"id": "A-7", "amount": 12.5}), ("refund", {"id": "A-7", "amount": "12.50"})
PAID = "Your refund of 12.50 € for order A-7 is on its way."


def page(record: CaseRecord, width: int = 79, *, full: bool = False) -> list[str]:
    return [line.plain.rstrip() for line in build(Subject(record), View(width, full, signs=True)).lines]


def one_turn(expected: Sequence[object], actual: Sequence[object], answer: str = PAID, said: str = PAID) -> CaseRecord:
    return execute([turn("hi", expected, answer)], [recorded("hi", actual, said)])  # type: ignore[arg-type]


def refund_in_turn_two() -> CaseRecord:
    turns = [("hello", (), (), "Hi."), ("Then I want my money back.", (FIND, REFUND), (FIND, TEXT_REFUND), PAID)]
    turns.append(("thanks", (), (), "Bye."))
    return execute(
        [turn(user, calls, answer) for user, calls, _, answer in turns],
        [recorded(user, calls, answer) for user, _, calls, answer in turns],
    )


def test_full_view_has_every_argument_that_a_criterion_shortened() -> None:
    items = [{"sku": f"S-{number}", "note": "x" * 40} for number in range(200)]
    lines = page(one_turn([("book", {"items": items})], [("book", {"items": [*items[:-1], {"sku": "T"}]})]), full=True)
    assert any('"S-100"' in line for line in lines)
    assert any('"T"' in line for line in lines)


@pytest.mark.parametrize("width", [24, 59, 79, 160])
@pytest.mark.parametrize("full", [False, True])
def test_no_line_is_wider_than_the_page(width: int, full: bool) -> None:
    for record in (refund_in_turn_two(), late_parcel(), judged_case(), one_turn([], [], "返金" * 200, "返品" * 200)):
        assert all(cell_len(line) <= width for line in page(record, width, full=full))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_safe(text: str) -> None:
    for record in (with_text(judged_case(), text), one_turn([(text, {text: text})], [(text, {text: 1})], text, "x")):
        assert "\x1b" not in "".join(page(record))


def test_turn_that_is_not_in_adks_format_does_not_break_the_pane() -> None:
    record = one_turn([FIND], [FIND])
    record.turns[0].actual = {"intermediate_data": 5, "final_response": {"parts": 3}}
    assert any("format" in line for line in page(record))


def test_cursor_of_a_judged_case_is_on_the_criterion_that_failed() -> None:
    record = only(judged_case(), RUBRICS)
    for index, made in enumerate(record.turns):
        made.spans = SpansRecorded(record.ref, index, "[]", {})
    document = build(Subject(record), View(76))
    assert document.opening_item is not None
    item = document.items[document.opening_item]
    assert item.key == "evidence/0/scores"
    assert document.lines[item.start].plain.startswith("  rubric ✗")


def test_reason_that_repeats_the_answer_is_left_out() -> None:
    record = only(judged_case(), RUBRICS)
    rubric = record.turns[0].metrics[RUBRICS].details["rubrics"][1]
    answer = content_text((record.turns[0].so_far or {})["final_response"])
    rubric["rationale"] = "It only hopes."
    assert any("It only hopes." in line for line in page(record))
    rubric["rationale"] = f"{answer}\n"
    beginning = answer.split(".")[0]
    assert sum(beginning in line for line in page(record)) == 1


@pytest.mark.parametrize("width", [47, 59, 79, 110])
def test_sign_of_a_function_is_explained_once_and_never_alone_on_a_line(width: int) -> None:
    lines = [line.strip() for line in page(judged_case(FUNCTION), width)]
    assert lines.count("ƒ function: a function judged, not a model") == 1
    assert "ƒ function" not in lines
    assert not any("a function judged" in line for line in page(judged_case(), width))


@pytest.mark.parametrize("width", [47, 59, 79, 110])
def test_number_of_rubrics_met_is_shown_in_each_width(width: int) -> None:
    assert sum("1 of 3 rubrics" in line for line in page(judged_case(), width)) == 1


def test_case_is_as_expected_only_if_message_calls_and_answer_match() -> None:
    def alike(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> bool:
        case = cast(EvalCase, SimpleNamespace(turns=tuple(expected)))
        return is_as_expected(Subject(execute(expected, actual), case=case))

    assert alike([turn("hi", [FIND], "Found.")], [recorded("hi", [FIND], "Found.")])
    assert not alike([turn("hi", [FIND], "Found.")], [recorded("hi", [TRACK], "Found.")])
    assert not alike([turn("hi", [FIND], "Found.")], [recorded("hi", [FIND], "found")])
    assert not alike([turn("hi", [FIND], "Found.")], [recorded("hello", [FIND], "Found.")])
    assert not is_as_expected(Subject())


def test_pane_opens_at_the_top_if_answers_drifted() -> None:
    record = late_parcel()
    change = {"kind": "new", "about": "call", "agent": "desk", "tool": "pay", "call": "pay()", "turn": 1, "where": []}
    record.thawed = Thawed("a.frozen.json", new=1, changes=(change,))
    record.drifted = 1
    assert build(Subject(record), View(76)).opening is None


def test_place_of_the_first_failed_turn_is_named() -> None:
    assert place_in_case(refund_in_turn_two()) == "turn 2 of 3"
