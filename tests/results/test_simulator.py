"""Tests of simulated users in the pane "Judges": task, verdicts, questions and end."""

from dataclasses import replace

import pytest

from tests.results.conftest import Texts
from tests.ui.judged import USER, record_of, scenario_events
from workbench.events.events import CaseError
from workbench.results import evidence
from workbench.results.document import Subject
from workbench.results.judges import build
from workbench.results.lines import View
from workbench.store.execution import CaseRecord


def lines_of(record: CaseRecord, texts: Texts, width: int = 76) -> list[str]:
    return texts(build(Subject(record), View(width)).lines)


def test_setting_is_shown_with_the_plan_first(texts: Texts) -> None:
    lines = lines_of(record_of(scenario_events()), texts)
    plan = lines.index(" plan")
    assert plan < lines.index(" starts with") < lines.index(" persona")
    assert lines[plan + 1].startswith("   Ask for order A-7.")
    assert any("NOVICE  Knows little of the shop's words" in line for line in lines)
    assert any("· short: Writes one sentence." in line for line in lines)


def test_each_message_has_its_verdict(texts: Texts) -> None:
    lines = lines_of(record_of(scenario_events()), texts)
    turns = [line for line in lines if line.startswith("─ turn ")]
    assert turns[0].endswith("✓ 1.00 ≥ 0.70 ─")
    assert turns[1].endswith("✗ invalid  ◐ split ─")
    assert " verdict       ✓ valid · compared with the starting prompt" in lines
    assert " verdict       ✗ invalid · 4 of 5 votes · ◐ split: 4 invalid, 1 valid" in lines
    assert " why           it did not ask for the money back" in lines


def test_cursor_starts_at_the_question_about_the_invalid_message() -> None:
    document = build(Subject(record_of(scenario_events())), View(76))
    assert document.items[document.opening_item].key == f"question/{USER}/1/0"


def test_question_that_made_a_message_unfolds(texts: Texts) -> None:
    document = build(Subject(record_of(scenario_events())), View(76, opened=frozenset(["simulated/1"])))
    item = next(item for item in document.items if item.key == "simulated/1")
    lines = texts(document.lines[item.start : item.end])
    assert any("You are the user." in line for line in lines)
    assert any("gemini-2.5-flash-SCRIPTED" in line for line in lines)


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        ("stop_signal", "  end       ■ ended by the user's stop signal"),
        ("turn_limit", "  end       ■ turn limit reached"),
    ],
)
def test_end_of_the_conversation_is_named(ended: str, told: str, texts: Texts) -> None:
    record = record_of(scenario_events(ended=ended))
    assert told in texts(evidence.build(Subject(record), View(76)).lines)
    lines = lines_of(record, texts)
    assert " end judged    ✓ valid · 3 of 3 votes (up to 5)" in lines


def test_bad_end_does_not_make_the_last_message_invalid(texts: Texts) -> None:
    record = record_of(scenario_events())
    last = record.turns[1].metrics[USER]
    details = {**last.details, "votes": {"valid": 3, "invalid": 0, "unread": 0}, "split": False}
    reason = "stopping after the last turn: 3 of 3 votes say invalid"
    record.turns[1].metrics[USER] = replace(last, details=details, reason=reason)
    lines = lines_of(record, texts)
    assert any(line.startswith(" verdict       ✓ valid · 3 of 5 votes") for line in lines)
    assert f" why           {reason}" in lines


def test_judge_question_is_shown_even_without_a_message(texts: Texts) -> None:
    record = record_of(scenario_events())
    asked = next(event for event in record.simulated if event.question and not event.ended)
    failed = replace(asked, turn=len(record.turns))
    error = CaseError("simulator", "the simulated user said nothing: the reply was empty")
    left = [event for event in record.simulated if not event.ended]
    record = replace(record, simulated=[*left, failed], error=error, state="error")
    lines = lines_of(record, texts)
    assert sum("▸ question" in line for line in lines) > 1
    key = f"simulated/{len(record.turns)}"
    opened = build(Subject(record), View(76, opened=frozenset([key])))
    last = opened.items[-1]
    assert last.key == key
    assert any("You are the user." in line for line in texts(opened.lines[last.start : last.end]))


def test_long_setting_unfolds_separately(texts: Texts) -> None:
    record = record_of(scenario_events())
    assert record.scenario is not None
    record.scenario = {**record.scenario, "conversation_plan": "Ask again. " * 100}
    brief = build(Subject(record), View(60))
    assert "simulated/setting" in [item.key for item in brief.items]
    assert any("more lines" in line for line in texts(brief.lines))
    whole = build(Subject(record), View(60, opened=frozenset(["simulated/setting"])))
    assert not any("more lines" in line for line in texts(whole.lines))
    assert len(whole.lines) > len(brief.lines) + 5


def test_model_of_the_simulated_user_is_named(texts: Texts) -> None:
    lines = lines_of(record_of(scenario_events()), texts, 120)
    assert any(
        line.startswith(" turn 2        gemini-2.5-flash · answered by gemini-2.5-flash-SCRIPTED") for line in lines
    )
