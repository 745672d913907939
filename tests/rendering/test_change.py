"""Tests of the pane "Change" at every width."""

from dataclasses import replace

import pytest

from tests.hostile import HOSTILE, leaks
from tests.rendering.conftest import Texts
from tests.ui.transcripts import LATE_PARCEL
from workbench.events import CaseError, MetricResult, MetricStatus, PlannedCase
from workbench.rendering.change import applies, build
from workbench.rendering.changed import Change, FileChange
from workbench.rendering.document import Subject
from workbench.rendering.lines import width_of
from workbench.rendering.rows import View
from workbench.store import CaseRecord, CaseState, Turn

WIDTHS = (24, 36, 56, 78)
"""The width of the pane in screens of 60, 80 and 120 columns, and maximised."""


def record(state: CaseState, answer: str, *, tool: str = "find_order", error: str = "") -> CaseRecord:
    made = CaseRecord(PlannedCase(LATE_PARCEL, None, ""), run_id="run")
    call = {"author": "desk", "content": {"parts": [{"function_call": {"name": tool, "args": {"id": answer[:50]}}}]}}
    actual = {
        "final_response": {"role": "model", "parts": [{"text": answer}]},
        "intermediate_data": {"invocation_events": [call]},
    }
    status: MetricStatus = "passed" if state == "passed" else "failed"
    metric = MetricResult("response_match_score", status, 0.5, 0.8, answer[:50])
    turn = Turn({"role": "user", "parts": [{"text": "hi"}]})
    turn.actual = actual
    made.state, made.turns, made.metrics = state, [turn], {metric.name: metric}
    made.error = CaseError("agent_raised", error) if error else None
    return made


def subject(before: CaseRecord, after: CaseRecord, *files: FileChange, watched: bool = True) -> Subject:
    return Subject(after, change=Change(before, files if watched else None))


def test_pane_applies_only_after_a_changed_verdict() -> None:
    after = record("failed", "no")
    assert not applies(Subject(after), frozenset())
    assert applies(subject(record("passed", "yes"), after), frozenset())


def test_verdict_before_and_after_and_the_changed_line_are_shown(texts: Texts) -> None:
    change = FileChange("desk/agent.py", "a\nsay yes\nb\n", "a\nsay no\nb\n")
    lines = texts(build(subject(record("passed", "yes"), record("failed", "no"), change), View(78)).lines)
    text = "\n".join(lines)
    for part in ("✓ pass", "✗ fail", "yes", "no", "desk/agent.py", "say yes", "say no"):
        assert part in text, part


def test_rates_of_all_repeats_are_shown_above_the_current_repeat(texts: Texts) -> None:
    one = subject(record("passed", "yes"), record("failed", "no"))
    assert "all repeats" not in "".join(texts(build(one, View(60)).lines))
    change = Change(record("passed", "yes"), None, ("5/5 passed", "0/5 passed"))
    lines = [line.strip() for line in texts(build(Subject(record("failed", "no"), change=change), View(60)).lines)]
    assert lines[:3] == ["all repeats", "− 5/5 passed", "+ 0/5 passed"]


@pytest.mark.parametrize(
    ("files", "watched", "said"),
    [((), False, "no watch was running"), ((), True, "varies"), ((FileChange("x.bin", None, None),), True, "x.bin")],
)
def test_missing_file_changes_have_a_reason(
    texts: Texts, files: tuple[FileChange, ...], watched: bool, said: str
) -> None:
    one = subject(record("passed", "yes"), record("failed", "no"), *files, watched=watched)
    assert said in "\n".join(texts(build(one, View(78)).lines))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_safe_in_every_place(text: str, width: int) -> None:
    before = record("passed", text, tool=text[:200])
    after = record("error", text + "!", tool=text[:100], error=text)
    one = subject(before, after, FileChange(text[:300], text, text + "\nmore"), FileChange("b", "", text))
    for line in build(one, View(width)).lines:
        said = "".join(segment.text for segment in line)
        assert not leaks(said)
        assert "\n" not in said
        assert width_of(line) <= width, said


def test_malformed_record_is_reported(texts: Texts) -> None:
    after = record("failed", "no")
    after = replace(after, turns=[replace(after.turns[0], actual={"intermediate_data": 5, "final_response": 7})])
    assert texts(build(subject(record("passed", "yes"), after), View(78)).lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_known_flaky_case_is_named(texts: Texts, width: int) -> None:
    changed = subject(record("passed", "yes"), record("failed", "no"))
    assert changed.change is not None
    known = replace(changed, change=replace(changed.change, flaky="2/3 passed"))
    lines = texts(build(known, View(width)).lines)
    assert " ".join(" ".join(lines).split()).startswith("Known flaky: 2/3 passed when repeated.")
    assert "flaky" not in " ".join(texts(build(changed, View(width)).lines))
