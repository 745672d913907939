"""The evidence of a case, on the screen, in a review and in reports: the difference first, at every width."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.hostile import HOSTILE
from tests.ui.judged import CLAIMS, FUNCTION, RUBRICS, judged_case, only, record_of, scenario_events, with_text
from tests.ui.transcripts import RAISED, execute, late_parcel, recorded, turn
from workbench.events.events import CaseError, MetricResult, SpansRecorded, Thawed
from workbench.files.evalset import EvalCase
from workbench.files.invocation import content_text
from workbench.freshness.changed_files import ChangedFile
from workbench.results.cells import cell_len
from workbench.results.change_causes import Cause
from workbench.results.changed import Change
from workbench.results.compare import ChangedCase, ComparedCase
from workbench.results.compared import is_as_expected
from workbench.results.document import Subject
from workbench.results.error import error_lines
from workbench.results.evidence import build, place_in_case
from workbench.results.lines import View
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


def test_turn_that_differs_is_open_and_others_are_one_line() -> None:
    record = refund_in_turn_two()
    assert place_in_case(record) == "turn 2 of 3"
    assert page(record) == [
        "  turn 1 =  hello ▸",
        "",
        "  turn 2 ≠  Then I want my money back.",
        "",
        '  call 1 =  find_order(id="A-7")',
        '  call 2 ≠  refund(id="A-7", amount=…)',
        "            − expected  12.5     number",
        '            + actual    "12.50"  text',
        "",
        "  answer =  Your refund of 12.50 € for order A-7 is on its way.",
        "",
        "  turn 3 =  thanks ▸",
        "",
        "  ✗ tool_trajectory_avg_score  0.66 < 1.00",
        "  ✓ response_match_score       1.00 ≥ 0.80",
    ]


def test_sides_of_a_difference_are_named_except_on_a_narrow_screen() -> None:
    view = View(47)
    lines = [line.plain.rstrip() for line in build(Subject(refund_in_turn_two()), view).lines]
    assert lines[4:6] == ["         − expected  12.5     number", '         + actual    "12.50"  text']
    narrow = [line.plain.rstrip() for line in build(Subject(refund_in_turn_two()), replace(view, narrow=True)).lines]
    assert narrow[4:6] == ["         − 12.5     number", '         + "12.50"  text']


def test_small_screen_has_no_blank_lines_and_a_narrow_gutter() -> None:
    assert page(refund_in_turn_two(), 59)[:7] == [
        " turn 1= hello ▸",
        " turn 2≠ Then I want my money back.",
        ' call 1= find_order(id="A-7")',
        ' call 2≠ refund(id="A-7", amount=…)',
        "         − expected  12.5     number",
        '         + actual    "12.50"  text',
        " answer= Your refund of 12.50 € for order A-7 is on its",
    ]


def test_full_view_has_all_turns() -> None:
    lines = page(refund_in_turn_two(), full=True)
    assert [line.split()[2] for line in lines if line.startswith("  turn ")] == ["=", "≠", "="]
    assert not any("▸" in line for line in lines)
    assert "  answer =  Bye." in lines


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        ([FIND, TRACK], [FIND], 'call 2 −  track_parcel(id="A-7")  not called'),
        ([FIND], [FIND, TRACK], 'call 2 +  track_parcel(id="A-7")  not expected'),
        ([TRACK, FIND], [FIND, TRACK], 'call 2 ↕  track_parcel(id="A-7")  expected as call 1'),
        ([TRACK, FIND], [FIND, TRACK], 'call 1 =  find_order(id="A-7")'),
        ([FIND, TRACK], [TRACK], 'call 1 −  find_order(id="A-7")  not called'),
        ([FIND] * 9 + [REFUND], [FIND] * 9 + [TEXT_REFUND], "calls  =  9 calls match  find_order"),
    ],
)
def test_each_relation_of_calls_is_named(expected: list[object], actual: list[object], words: str) -> None:
    assert any(words in line for line in page(one_turn(expected, actual)))


def returning(calls: Sequence[object], result: object) -> CaseRecord:
    """Return a case whose calls each return this result."""
    record = one_turn(calls, calls)
    actual = record.turns[0].actual
    assert actual is not None
    events = actual["intermediate_data"]["invocation_events"]
    made = [part["function_call"] for event in events for part in event.get("content", {}).get("parts", [])]
    for call in made:
        response = {"id": call.get("id"), "name": call["name"], "response": result}
        events.append({"author": "desk", "content": {"role": "user", "parts": [{"function_response": response}]}})
    return record


def test_result_of_a_tool_is_beside_its_call() -> None:
    record = returning([TRACK], {"status": "in transit", "eta": "Tuesday"})
    call = '  call 1 =  track_parcel(id="A-7")'
    assert page(record)[2] == f'{call}  → {{"status": "in transit", "eta": "Tuesda…'
    assert page(record, 100)[2] == f'{call}  → {{"status": "in transit", "eta": "Tuesday"}}'
    assert page(record, full=True)[2:7] == [
        call,
        "            → {",
        '                "status": "in transit",',
        '                "eta": "Tuesday"',
        "              }",
    ]
    assert build(Subject(record), View(79)).folded
    assert "→" not in "\n".join(page(one_turn([TRACK], [TRACK]))), "this tool returned nothing"


def test_result_without_room_leaves_a_sign() -> None:
    call = ("track_parcel", {"id": "A-7", "note": "x" * 9})
    assert page(returning([call], {"status": "sent"}), 59)[1].endswith(f'"{"x" * 9}")  → …')


def test_differing_values_of_huge_arguments_come_first() -> None:
    wanted = {"order": {f"key_{number}": "x" * 30 for number in range(40)}}
    got = {"order": {**wanted["order"], "key_20": "y"}}
    for full in (False, True):
        lines = page(one_turn([("book", wanted)], [("book", got)]), full=full)
        assert lines[2] == "  call 1 ≠  book(order=…)"
        assert lines[3].split() == ["−", "expected", f'"{"x" * 30}"', "text"]
        assert lines[4].split() == ["+", "actual", '"y"', "text"]
        assert any("key_39" in line for line in lines) is full


def test_full_view_has_every_argument_that_a_criterion_shortened() -> None:
    items = [{"sku": f"S-{number}", "note": "x" * 40} for number in range(200)]
    lines = page(one_turn([("book", {"items": items})], [("book", {"items": [*items[:-1], {"sku": "T"}]})]), full=True)
    assert any('"S-100"' in line for line in lines)
    assert any('"T"' in line for line in lines)


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
    assert page(record)[:5] == [
        "  case   ≠  state.total",
        "            − expected  12.5     number",
        '            + actual    "12.50"  text',
        "",
        "  user      hi",
    ]
    record = one_turn([FIND], [TRACK])
    record.metrics["limits"] = MetricResult("limits", "failed", 0.0, 1.0, "3 tool calls, limit 1")
    lines = page(record)
    assert lines[0] == "  user      hi", "a failed turn comes first"
    assert any(line.endswith("3 tool calls, limit 1") for line in lines)


def test_pane_opens_at_the_first_failed_turn() -> None:
    document = build(Subject(late_parcel()), View(76))
    assert len(document.turns) == 3
    assert document.opening == 1


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


def test_nothing_can_be_accepted_if_the_agent_did_what_is_expected() -> None:
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


def test_error_is_at_the_top_with_its_cause_first() -> None:
    expected = [turn("hi", [FIND], "Found."), turn("and now?", (), "Gone.")]
    record = execute(expected, [recorded("hi", [FIND])], error=RAISED, unfinished=True)
    lines = page(record)
    assert lines[:3] == [
        " ! KeyError: 'Z-99' in find_order",
        " → Let the tool return an error instead of raising one.",
        "   the agent raised an exception at tools.py:31 in find_order",
    ]
    assert lines[3] == " ▸ traceback, 3 lines"
    assert build(Subject(record), View(76)).opening is None
    assert "  turn 2 −  did not take place  and now? ▸" in lines
    assert "  answer −  − expected  Gone." not in lines


TRACEBACK = """Traceback (most recent call last):
  File "/shop/order_desk/agent.py", line 40, in answer
    return refund(order)
  File "/shop/order_desk/tools.py", line 12, in refund
    raise RuntimeError("no such order")
  File "/usr/lib/python3.12/json/decoder.py", line 3, in decode
    pass
  File "/shop/.venv/lib/python3.12/site-packages/google/adk/flow.py", line 9, in run
    pass
RuntimeError: no such order
"""


def test_error_names_the_places_of_the_user_and_folds_the_rest() -> None:
    error = CaseError("agent_raised", "RuntimeError: no such order", "", TRACEBACK)
    shown = [line.plain.rstrip() for line in error_lines(error, View(79), root="/shop")]
    assert shown == [
        " ! RuntimeError: no such order",
        "   the agent raised an exception at order_desk/tools.py:12 in refund",
        '     raise RuntimeError("no such order")',
        "   called from order_desk/agent.py:40 in answer",
        " ▸ traceback, 10 lines",
    ]
    full = [line.plain.rstrip() for line in error_lines(error, View(79, full=True))]
    assert full[1] == "   the agent raised an exception at /shop/order_desk/tools.py:12 in refund"
    assert any("site-packages" in line for line in full)


def test_error_without_a_place_of_the_user_names_its_kind() -> None:
    error = CaseError("timeout", "no answer within 300 s", "raise --timeout")
    shown = [line.plain.rstrip() for line in error_lines(error, View(79))]
    assert shown == [" ! no answer within 300 s", " → raise --timeout", "   timed out"]


def test_traceback_unfolds() -> None:
    record = execute([turn("hi")], [], error=RAISED)
    assert build(Subject(record), View(79)).folded
    assert '     File "tools.py", line 31, in find_order' in page(record, full=True)


def test_surplus_turn_is_marked() -> None:
    error = CaseError("turn_count", "2 turns were made, 1 is expected")
    record = execute([turn("hi", (), "Hello")], [recorded("hi", (), "Hello"), recorded("more", (), "Bye")], error=error)
    assert "  answer +  Bye" in page(record)


def test_note_of_a_silent_model_is_shown() -> None:
    record = execute([turn("hi", (), "Hello")], [recorded("hi")], note="the model was blocked: SAFETY")
    lines = page(record)
    assert "  note      the model was blocked: SAFETY" in lines
    assert "  answer −  − expected  Hello" in lines
    assert "            the agent gave none" in lines


def test_sub_agents_are_aligned_by_author() -> None:
    expected = turn("plan", (), "Booked.", [("planner", "Flights first."), ("writer", "Here it is.")])
    actual = recorded(
        "plan", (), "Booked.", [("planner", "Hotels first."), ("critic", "Too dear."), ("writer", "Here it is.")]
    )
    lines = page(execute([expected], [actual]))
    start = lines.index("  agent  ≠  planner")
    assert lines[start + 1 : start + 7] == [
        "            − expected  −{Flights} first.",
        "            + actual    +{Hotels} first.",
        "  agent  +  critic",
        "            Too dear.",
        "  agent  =  writer",
        "            Here it is.",
    ]


def test_actual_calls_are_listed_without_a_reference() -> None:
    lines = page(execute(None, [recorded("hi", [FIND], "Found.")]))
    assert '  call 1    find_order(id="A-7")' in lines
    assert "  answer    Found." in lines


def test_criterion_without_a_verdict_has_a_reason() -> None:
    record = execute([turn("hi", (), "Hello")], [recorded("hi", (), "Hello")])
    why = "safety_v1 needs a project: set GOOGLE_CLOUD_PROJECT in order_desk/.env"
    record.scores = {"safety_v1": MetricResult("safety_v1", "not_evaluated", None, 0.8, why)}
    record.state = "passed"
    last = " ".join(page(record)[-2:])
    assert last.split() == ["case", "?", *why.split()], "it decides nothing, so it is at the end"
    record.state = "not_evaluated"
    assert " ".join(page(record)[:2]).split() == ["case", "?", *why.split()]


def test_running_case_shows_its_finished_steps() -> None:
    record = late_parcel(ends=False, unfinished=True)
    del record.turns[2]
    record.turns[1].actual = None
    document = build(Subject(record), View(79))
    lines = page(record)
    assert document.opening == 1
    assert '  call 2    refund(id="A-7", amount="12.50")' in lines
    assert "  answer    …" in lines
    assert not any("not called" in line for line in lines)


def test_malformed_turn_is_shown_as_recorded() -> None:
    record = late_parcel()
    record.turns[0].actual = {"intermediate_data": {"tool_uses": [7]}, "odd": "thing"}
    lines = page(record, full=True)
    assert any("does not have ADK's format" in line for line in lines)
    assert any('"odd": "thing"' in line for line in lines)
    assert any(line.startswith("  turn 2 ≠") for line in lines)


def test_files_in_a_message_are_named() -> None:
    record = execute([turn("look", (), "A cat.")], [recorded("look", (), "A cat.")])
    record.turns[0].user["parts"].append({"inline_data": {"mime_type": "image/png", "data": "AAAA"}})
    assert "            file image/png, 4 characters of base64" in page(record)


def test_claims_are_marks_in_the_answer_with_their_passages() -> None:
    lines = page(judged_case())
    start = lines.index("  answer    ✓ Your order A-7 was shipped on Monday.")
    assert lines[start + 1 : start + 5] == [
        "            ✗ It will arrive tomorrow before noon, and you need not be at home",
        "              for it.  contradictory",
        '              − "expected": "2026-11-20 (Friday)"',
        "                find_order, a tool result in turn 1",
    ]
    assert any(line.startswith("  ✗ hallucinations_v1") and "3 of 7 sentences" in line for line in lines)


def test_message_of_a_simulated_user_carries_its_verdict() -> None:
    lines = page(record_of(scenario_events()))
    start = lines.index("  turn 2 ≠  Thank you!")
    assert lines[start + 1].startswith("            ✗ invalid · 4 of 5 votes")
    assert lines[start + 2] == "            it did not ask for the money back"


def test_what_changed_since_the_case_passed_is_below_the_criteria() -> None:
    before, after = one_turn([FIND], [FIND]), one_turn([FIND], [])
    before.state, after.state = "passed", "failed"
    file = ChangedFile("desk", "desk/agent.py", "prompt", ("-say yes", "+say no"))
    found = ComparedCase(ChangedCase("regression", before, after, (Cause("prompt", "desk/agent.py"),)), (file,))
    lines = [
        line.plain.rstrip() for line in build(Subject(after, change=Change(before), compared=found), View(79)).lines
    ]
    start = lines.index(" changed since it passed")
    assert lines.index("  ✗ tool_trajectory_avg_score  0.00 < 1.00") < start
    assert any("− say yes" in line for line in lines[start:])
    passing = Subject(before, change=Change(after), compared=found)
    assert not any("since it passed" in line.plain for line in build(passing, View(79)).lines)
