"""Tests of the pane "Simulator": task, messages, verdicts and end."""

from dataclasses import replace

import pytest

from tests.rendering.conftest import Texts
from tests.ui.judged import REF, USER, record_of, scenario_events
from workbench.events import CaseError, CaseRef, PlannedCase
from workbench.execution import CaseRecord
from workbench.rendering.document import Subject, Target
from workbench.rendering.panes import panes_of
from workbench.rendering.rows import View
from workbench.rendering.simulator import build


def lines_of(record: CaseRecord, texts: Texts, width: int = 76) -> list[str]:
    return texts(build(Subject(record), View(width)).lines)


def test_setting_is_above_in_a_narrow_view(texts: Texts) -> None:
    lines = lines_of(record_of(scenario_events()), texts)
    plan, turn = lines.index(" plan"), next(i for i, line in enumerate(lines) if line.startswith("─ turn 1 "))
    assert plan < lines.index(" starts with") < lines.index(" persona") < turn
    assert lines[plan + 1].startswith("   Ask for order A-7.")
    assert any("NOVICE  Knows little of the shop's words" in line for line in lines)
    assert any("· short: Writes one sentence." in line for line in lines)


def test_setting_is_beside_each_message_in_a_wide_view(texts: Texts) -> None:
    document = build(Subject(record_of(scenario_events())), View(100, aside=True))
    assert " plan" not in texts(document.lines)
    for item in document.items:
        assert item.aside is not None
        assert "plan" in texts(item.aside(40))


def test_each_message_has_its_verdict(texts: Texts) -> None:
    lines = lines_of(record_of(scenario_events()), texts)
    turns = [line for line in lines if line.startswith("─ turn ")]
    assert turns[0].endswith("✓ valid ─")
    assert turns[1].endswith("✗ invalid  ◐ split ─")
    assert "        compared with the starting prompt" in lines
    assert "        4 of 5 votes · ◐ split: 4 invalid, 1 valid" in lines
    assert "        it did not ask for the money back" in lines


def test_cursor_starts_at_the_first_invalid_message_and_links_to_the_judge() -> None:
    document = build(Subject(record_of(scenario_events())), View(76))
    item = document.items[document.opening_item]
    assert item.key == "simulated/1"
    assert item.opens
    assert item.targets == (Target("Judge", (f"question/{USER}/1/0",)),)


def test_question_unfolds(texts: Texts) -> None:
    document = build(Subject(record_of(scenario_events())), View(76, opened=frozenset(["simulated/1"])))
    item = document.items[1]
    lines = texts(document.lines[item.start : item.end])
    assert any("You are the user." in line for line in lines)
    assert any("gemini-2.5-flash-SCRIPTED" in line for line in lines)


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        ("stop_signal", " ■ ended by the user's stop signal"),
        ("turn_limit", " ■ turn limit reached"),
        ("error", " ended by      the judge of the simulated user is out of quota"),
    ],
)
def test_end_of_the_conversation_is_named(ended: str, told: str, texts: Texts) -> None:
    lines = lines_of(record_of(scenario_events(ended=ended)), texts)
    assert told in lines
    assert (" end judged    ✓ valid · 3 of 3 votes (up to 5)" in lines) is (ended != "error")


def test_running_conversation_is_shown_turn_by_turn(texts: Texts) -> None:
    happened = list(scenario_events(ends=False))
    seen = []
    for count in (3, 4, 6, 7):
        record = record_of(iter(happened[:count]))
        lines = lines_of(record, texts)
        seen.append((sum(line.startswith("─ turn ") for line in lines), " agent  …" in lines))
        assert lines[-1] == " Still running."
    assert seen == [(0, False), (1, True), (1, False), (2, True)]


def test_pane_exists_before_the_first_message(texts: Texts) -> None:
    record = CaseRecord(PlannedCase(CaseRef("a", "b", "c", "d"), None, ""))
    assert lines_of(record, texts)[-1] == " The conversation has not started."


def test_only_simulated_cases_have_the_pane() -> None:
    titles = [pane.title for pane in panes_of(Subject(record_of(scenario_events())))]
    assert titles == ["Diff", "Scores", "Log", "Trace", "Judge", "Simulator"]
    assert record_of(scenario_events()).ref == REF


def test_bad_end_does_not_make_the_last_message_invalid(texts: Texts) -> None:
    record = record_of(scenario_events())
    last = record.turns[1].metrics[USER]
    details = {**last.details, "votes": {"valid": 3, "invalid": 0, "unread": 0}, "split": False}
    reason = "stopping after the last turn: 3 of 3 votes say invalid"
    record.turns[1].metrics[USER] = replace(last, details=details, reason=reason)
    lines = lines_of(record, texts)
    assert next(line for line in lines if line.startswith("─ turn 2 ")).endswith("✓ valid ─")
    assert f"        {reason}" in lines


def test_judge_question_is_shown_even_without_a_message(texts: Texts) -> None:
    record = record_of(scenario_events())
    asked = next(event for event in record.simulated if event.question and not event.ended)
    failed = replace(asked, turn=len(record.turns))
    error = CaseError("simulator", "the simulated user said nothing: the reply was empty")
    left = [event for event in record.simulated if not event.ended]
    record = replace(record, simulated=[*left, failed], error=error, state="error")
    lines = lines_of(record, texts)
    assert any("the simulated user said nothing" in line for line in lines)
    assert any("▸ question" in line for line in lines[-5:])
    opened = build(Subject(record), View(76, opened=frozenset(["simulated/end"])))
    last = opened.items[-1]
    assert last.key == "simulated/end"
    assert any("You are the user." in line for line in texts(opened.lines[last.start : last.end]))


def test_long_setting_unfolds_separately(texts: Texts) -> None:
    record = record_of(scenario_events())
    assert record.scenario is not None
    record.scenario = {**record.scenario, "conversation_plan": "Ask again. " * 100}
    brief = build(Subject(record), View(60))
    assert brief.items[0].key == "simulated/setting"
    assert brief.items[brief.opening_item].key == "simulated/1"
    assert any("more lines" in line for line in texts(brief.lines))
    whole = build(Subject(record), View(60, opened=frozenset(["simulated/setting"])))
    assert not any("more lines" in line for line in texts(whole.lines))
    assert len(whole.lines) > len(brief.lines) + 5


def test_model_of_the_simulated_user_is_named(texts: Texts) -> None:
    lines = lines_of(record_of(scenario_events()), texts, 120)
    assert any("▸ question · gemini-2.5-flash · answered by gemini-2.5-flash-SCRIPTED" in line for line in lines)
