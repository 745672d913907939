"""Tests of the pane "Diff": turns, errors, and cases before a run."""

from collections.abc import Callable, Iterable

from tests.ui.transcripts import CRITERIA, RAISED, execute, late_parcel, recorded, turn
from workbench.events import CaseError, MetricResult, Thawed
from workbench.execution import CaseRecord
from workbench.rendering import diff
from workbench.rendering.document import Document, Subject
from workbench.rendering.lines import Line
from workbench.rendering.rows import View

Texts = Callable[[Iterable[Line]], list[str]]


def build(record: CaseRecord, width: int = 76, *, full: bool = False) -> Document:
    return diff.build(Subject(record), View(width, full))


def test_pane_opens_at_the_first_failed_turn() -> None:
    document = build(late_parcel())
    assert len(document.turns) == 3
    assert document.opening == 1


def test_pane_opens_at_the_top_if_answers_drifted() -> None:
    record = late_parcel()
    change = {"kind": "new", "about": "call", "agent": "desk", "tool": "pay", "call": "pay()", "turn": 1, "where": []}
    record.thawed = Thawed("a.frozen.json", new=1, changes=(change,))
    record.drifted = 1
    assert build(record).opening is None


def test_failed_turn_shows_the_difference_first_and_folds_reasons(texts: Texts) -> None:
    document = build(late_parcel())
    lines = texts(document.lines[document.turns[1] : document.turns[2]])
    assert lines[0].startswith("─ turn 2 of 3 ──")
    assert lines[0].endswith("✗ FAIL ─")
    assert lines[1:4] == [
        " user          Where is my parcel? I want my money back.",
        " calls         2 expected, 3 made",
        ' 1 = same      find_order(id="A-7")',
    ]
    assert lines[-3:-1] == [
        " ✗ tool_trajectory 0.00 < 1.00   ✗ response_match 0.77 < 0.80",
        " ▸ reasons and match type",
    ]
    whole = build(late_parcel(), full=True)
    lines = texts(whole.lines[whole.turns[1] : whole.turns[2]])
    place = lines.index(" ✗ tool_trajectory_avg_score 0.00 < 1.00")
    assert lines[place + 1] == '   args.amount: number 12.5, got text "12.50" (call 2: refund)'
    assert lines[place - 2].startswith(" match type    EXACT; others would score")


def test_passed_turns_of_a_failed_case_are_folded(texts: Texts) -> None:
    document = build(late_parcel())
    assert texts(document.lines[: document.turns[1]]) == [" ▸ turn 1 of 3  ✓ PASS  Hello, who are you?"]
    document = build(late_parcel(), full=True)
    assert texts(document.lines[: document.turns[1]]) == [
        f"─ turn 1 of 3 {53 * '─'} ✓ PASS ─",
        " user          Hello, who are you?",
        " answer = same I am the order desk. How can I help?",
        " ✓ tool_trajectory 1.00 ≥ 1.00   ✓ response_match 1.00 ≥ 0.80",
        "",
    ]


def test_scores_over_the_pane_are_not_repeated(texts: Texts) -> None:
    record = execute([turn("hi", (), "Hello")], [recorded("hi", (), "Bye")])
    wide, narrow = texts(build(record, 100).lines), texts(build(record, 40).lines)
    assert not any("turn 1 of 1" in line or "✗" in line or "1.00" in line for line in wide)
    assert " ✓ tool_trajectory 1.00 ≥ 1.00" in narrow, "there is no room for it over the pane"


def test_turn_has_the_verdict_of_its_own_scores() -> None:
    record = late_parcel()
    assert record.state == "failed"
    document = build(record, full=True)
    headings = ["".join(text for text, _ in document.lines[place]) for place in document.turns]
    assert [heading.split()[-2] for heading in headings] == ["PASS", "FAIL", "PASS"]


def test_error_is_at_the_top_with_its_cause_first(texts: Texts) -> None:
    expected = [turn("hi", [("find_order", {"id": "Z-99"})], "Found."), turn("and now?", (), "Gone.")]
    record = execute(expected, [recorded("hi", [("find_order", {"id": "Z-99"})])], error=RAISED, unfinished=True)
    document = build(record)
    lines = texts(document.lines)
    assert lines[:3] == [
        " ! KeyError: 'Z-99' in find_order",
        " → Let the tool return an error instead of raising one.",
        " ▸ traceback, 3 lines",
    ]
    assert document.opening is None
    assert any("turn 1 of 2" in line and "not scored" in line for line in lines)
    assert any("turn 2 of 2" in line and "did not take place" in line for line in lines)
    assert any("1 = same      find_order" in line for line in lines)
    assert "   − missing   Found." in lines


def test_traceback_unfolds(texts: Texts) -> None:
    record = execute([turn("hi")], [], error=RAISED)
    assert build(record).folded
    lines = texts(build(record, full=True).lines)
    assert '     File "tools.py", line 31, in find_order' in lines


def test_surplus_turn_is_shown(texts: Texts) -> None:
    error = CaseError("turn_count", "2 turns were made, 1 is expected")
    record = execute([turn("hi", (), "Hello")], [recorded("hi", (), "Hello"), recorded("more", (), "Bye")], error=error)
    assert "   + extra     Bye" in texts(build(record).lines)


def test_note_of_a_silent_model_is_shown(texts: Texts) -> None:
    record = execute([turn("hi", (), "Hello")], [recorded("hi")], note="the model was blocked: SAFETY")
    lines = texts(build(record).lines)
    assert " note          the model was blocked: SAFETY" in lines
    assert " answer        the agent gave none" in lines
    assert "   − missing   Hello" in lines


def test_sub_agents_are_aligned_by_author(texts: Texts) -> None:
    expected = turn("plan", (), "Booked.", [("planner", "Flights first."), ("writer", "Here it is.")])
    actual = recorded(
        "plan", (), "Booked.", [("planner", "Hotels first."), ("critic", "Too dear."), ("writer", "Here it is.")]
    )
    lines = texts(build(execute([expected], [actual])).lines)
    start = lines.index(" agents        2 expected, 3 actual")
    assert lines[start + 1 : start + 8] == [
        "               planner",
        "   ≠ expected  −{Flights} first.",
        "     actual    +{Hotels} first.",
        "               critic",
        "   + extra     Too dear.",
        "               writer",
        "   = same      Here it is.",
    ]


def test_actual_calls_are_listed_without_a_reference(texts: Texts) -> None:
    record = execute(None, [recorded("hi", [("find_order", {"id": "A-7"})], "Found.")])
    lines = texts(build(record).lines)
    assert '                1 find_order(id="A-7")'.replace("                1", " calls          1") in lines
    assert " answer        Found." in lines
    assert not any("missing" in line or "extra" in line for line in lines)


def test_criterion_without_a_verdict_has_a_reason(texts: Texts) -> None:
    record = execute([turn("hi", (), "Hello")], [recorded("hi", (), "Hello")])
    why = "safety_v1 needs a project: set GOOGLE_CLOUD_PROJECT in order_desk/.env"
    record.scores = {"safety_v1": MetricResult("safety_v1", "not_evaluated", None, 0.8, why)}
    lines = texts(build(record).lines)
    # The line over the pane has its name and status.
    assert lines[0] == " ? safety: safety_v1 needs a project: set GOOGLE_CLOUD_PROJECT in"
    full = texts(build(record, full=True).lines)
    assert full[:2] == [" ? NOT EVALUATED  safety_v1", f"   {why}"]


def test_running_case_shows_its_finished_steps(texts: Texts) -> None:
    record = late_parcel(ends=False, unfinished=True)
    del record.turns[2]
    record.turns[1].actual = None
    document = build(record)
    lines = texts(document.lines)
    assert document.opening == 1
    assert any("turn 1 of 3" in line and "done" in line for line in lines)
    assert any("turn 2 of 3" in line and "running" in line for line in lines)
    assert '                2 refund(id="A-7", amount="12.50")' in lines
    assert not any("missing" in line for line in lines)
    assert lines[-1].endswith("pending ─")


def test_malformed_turn_is_shown_as_recorded(texts: Texts) -> None:
    record = late_parcel()
    record.turns[0].actual = {"intermediate_data": {"tool_uses": [7]}, "odd": "thing"}
    lines = texts(build(record, full=True).lines)
    assert any("does not have ADK's format" in line for line in lines)
    assert any('"odd": "thing"' in line for line in lines)
    assert any("turn 2 of 3" in line for line in lines)


def test_files_in_a_message_are_named(texts: Texts) -> None:
    record = execute([turn("look", (), "A cat.")], [recorded("look", (), "A cat.")])
    record.turns[0].user["parts"].append({"inline_data": {"mime_type": "image/png", "data": "AAAA"}})
    assert "               file image/png, 4 characters of base64" in texts(build(record).lines)


def test_crashed_metric_of_the_case_is_above_the_turns(texts: Texts) -> None:
    record = execute([turn("hi", (), "Hello")], [recorded("hi", (), "Hello")], criteria=CRITERIA[:1])
    record.metrics["custom"] = MetricResult("custom", "error", None, 0.5, "ZeroDivisionError: division by zero")
    assert texts(build(record).lines)[0] == " ! custom: ZeroDivisionError: division by zero"
