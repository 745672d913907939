"""Tests of repeats in the pane "History"."""

import pytest

from tests.hostile import HOSTILE
from workbench.events.events import CaseError, CaseRef, MetricResult, PlannedCase
from workbench.results.document import Subject
from workbench.results.history import build
from workbench.results.lines import View
from workbench.results.panes import panes_of
from workbench.results.repeats import summarize
from workbench.results.title import notes, title, verdict
from workbench.store.execution import CaseRecord, CaseState, Turn

CALLS = "tool_trajectory_avg_score"


def execution(repeat: int, state: CaseState, tools: tuple[str, ...] = ("find",), text: str = "sent") -> CaseRecord:
    """Return an execution with one turn."""
    record = CaseRecord(PlannedCase(CaseRef("desk", "f", "refunds", "parcel", repeat), None, ""), state)
    if state == "error":
        record.error = CaseError("agent_raised", text)
        return record
    if state == "queued":
        return record
    uses = [{"name": name, "args": {text: text}} for name in tools]
    said = {"role": "model", "parts": [{"text": text}]}
    record.turns = [Turn({}, actual={"final_response": said, "intermediate_data": {"tool_uses": uses}})]
    result = MetricResult(CALLS, "passed" if state == "passed" else "failed", float(state == "passed"), 1.0)
    record.scores = {CALLS: result, text: MetricResult(text, "passed", 1.0, 1.0)}
    return record


def flaky(text: str = "sent") -> list[CaseRecord]:
    return [
        execution(1, "passed", text=text),
        execution(2, "failed", ("find", text), text),
        execution(3, "failed", ("find", text), text),
        execution(4, "error", text=text),
        execution(5, "passed", text=text),
    ]


def seen(records: list[CaseRecord], width: int = 80, until: float | None = None) -> list[str]:
    subject = Subject(records[0], repeats=summarize(records, until))
    return [line.plain.rstrip() for line in build(subject, View(width)).lines]


def test_flaky_case_shows_cause_rate_and_trajectories() -> None:
    lines = seen(flaky(), until=0.5)
    assert lines[0] == " ∿ FLAKY  agent"
    assert " passed        2 of 5; 1 with an agent error" in lines
    assert " rate          40%  11–77%" in lines
    assert " target        not sure yet whether 50% pass" in lines
    assert " pass^k        1 0.40 · 2 0.10 · 3 0.00 · 4 0.00 · 5 0.00" in lines
    assert " repeats       ✓1  ✗2  ✗3  !4  ✓5" in lines
    assert f" ∿ {CALLS}  2 of 4 passed  agent" in lines
    assert " trajectories  2 distinct, 1 distinct answer" in lines
    assert [line.split()[:2] for line in lines if "×" in line] == [["2×", "✓"], ["2×", "✗"]]


def test_stable_and_unfinished_cases_show_one_line() -> None:
    assert seen([execution(1, "passed"), execution(2, "passed")])[0] == " ✓ PASS  every time"
    assert seen([execution(1, "failed"), execution(2, "failed")])[0] == " ✗ FAIL  every time"
    assert seen([execution(1, "passed"), execution(2, "queued")])[0] == " 1 of 2 repeats not finished yet."


@pytest.mark.parametrize("width", [24, 48, 76, 134])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_pane_fits_with_any_content(text: str, width: int) -> None:
    subject = Subject(flaky(text)[0], repeats=summarize(flaky(text), 0.9))
    for full in (False, True):
        for line in build(subject, View(width, full=full)).lines:
            assert line.cell_len <= width
            assert "\x1b" not in line.plain


def test_title_shows_flaky_and_the_repeat_of_other_panes() -> None:
    records = flaky()
    subject = Subject(records[1], repeats=summarize(records))
    assert verdict(subject).plain == "∿ FLAKY"
    assert title(subject, 80) == "desk › refunds › parcel"
    assert notes(subject, 80).plain == "repeat 2"
    history = panes_of(subject)[-1]
    assert history.opens(subject)
    assert not history.opens(Subject(records[1]))
