"""Tests of what changed, in the pane "History", at every width."""

from dataclasses import replace
from typing import Any

import pytest

from tests.hostile import HOSTILE, leaks
from tests.results.conftest import Texts
from tests.ui.transcripts import LATE_PARCEL
from workbench.events.events import CaseError, MetricResult, MetricStatus, PlannedCase
from workbench.freshness.changed_files import ChangedFile
from workbench.results.change_causes import Cause
from workbench.results.changed_verdicts import Change
from workbench.results.document import Subject
from workbench.results.history import build
from workbench.results.lines import View
from workbench.results.run_comparison import ChangedCase, ComparedCase
from workbench.store.execution import CaseRecord, CaseState, Turn

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
    made.state, made.turns, made.scores = state, [turn], {metric.name: metric}
    made.error = CaseError("agent_raised", error) if error else None
    return made


def compared(*files: ChangedFile, why: tuple[Cause, ...] = (Cause("prompt", "a file"),)) -> ComparedCase:
    return ComparedCase(ChangedCase("regression", record("passed", ""), record("failed", ""), why), files)


def subject(before: CaseRecord, after: CaseRecord, found: ComparedCase | None = None) -> Subject:
    return Subject(after, change=Change(before), before=before, compared=found)


def test_verdict_before_and_after_and_the_changed_line_are_shown(texts: Texts) -> None:
    file = ChangedFile("desk", "desk/agent.py", "prompt", ("-say yes", "+say no"))
    other = ChangedFile("desk", "desk/data.csv", "data", ("+not a cause",))
    one = subject(record("passed", "yes"), record("failed", "no"), compared(file, other))
    lines = texts(build(one, View(78)).lines)
    text = "\n".join(lines)
    for part in ("✓ pass", "✗ fail", "yes", "no", "desk/agent.py", "say yes", "say no"):
        assert part in text, part
    assert "not a cause" not in text


def test_only_calls_that_differ_are_shown_as_removed_and_added(texts: Texts) -> None:
    before, after = record("passed", "yes"), record("failed", "yes")

    def call(name: str) -> dict[str, Any]:
        return {"author": "desk", "content": {"parts": [{"function_call": {"name": name, "args": {}}}]}}

    for made, names in ((before, ("find", "refund", "mail")), (after, ("find", "label", "mail"))):
        assert made.turns[0].actual is not None
        made.turns[0].actual["intermediate_data"] = {"invocation_events": [call(name) for name in names]}
    lines = [line.rstrip() for line in texts(build(subject(before, after), View(40)).lines)]
    start = lines.index(" call 1= find()")
    assert lines[start : start + 4] == [
        " call 1= find()",
        " call 2− refund()  only before",
        " call 2+ label()  only after",
        " call 3= mail()",
    ]


def test_rates_of_all_repeats_are_shown_above_the_current_repeat(texts: Texts) -> None:
    one = subject(record("passed", "yes"), record("failed", "no"))
    assert "all repeats" not in "".join(texts(build(one, View(60)).lines))
    change = Change(record("passed", "yes"), ("5/5 passed", "0/5 passed"))
    lines = [
        line.strip()
        for line in texts(
            build(Subject(record("failed", "no"), change=change, before=record("passed", "yes")), View(60)).lines
        )
    ]
    assert lines[0] == "all repeats  5/5 passed → 0/5 passed"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "comparing the two runs"),
        (ComparedCase(trouble="run-1 is gone"), "run-1 is gone"),
        (ComparedCase(), "no recorded input differs"),
        (compared(why=()), "no recorded input differs"),
        (compared(ChangedFile("desk", "x.bin", "prompt")), "not stored"),
    ],
)
def test_missing_causes_are_explained(texts: Texts, found: ComparedCase | None, said: str) -> None:
    one = subject(record("passed", "yes"), record("failed", "no"), found)
    assert said in "\n".join(texts(build(one, View(78)).lines))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_safe_in_every_place(text: str, width: int) -> None:
    before = record("passed", text, tool=text[:200])
    after = record("error", text + "!", tool=text[:100], error=text)
    files = ChangedFile("desk", text[:300], "prompt", (f"-{text}", f"+{text}")), ChangedFile("b", text, "prompt")
    one = subject(before, after, compared(*files, why=(Cause("prompt", text),)))
    for line in build(one, View(width)).lines:
        assert not leaks(line.plain)
        assert "\n" not in line.plain
        assert line.cell_len <= width, line.plain


def test_malformed_record_is_reported(texts: Texts) -> None:
    after = record("failed", "no")
    after = replace(after, turns=[replace(after.turns[0], actual={"intermediate_data": 5, "final_response": 7})])
    lines = texts(build(subject(record("passed", "yes"), after), View(78)).lines)
    assert "This turn does not have ADK's format" in "\n".join(lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_known_flaky_case_is_named(texts: Texts, width: int) -> None:
    changed = subject(record("passed", "yes"), record("failed", "no"))
    assert changed.change is not None
    known = replace(changed, change=replace(changed.change, flaky="2/3 passed"))
    lines = texts(build(known, View(width)).lines)
    assert " ".join(" ".join(lines).split()).startswith("Known flaky: 2/3 passed when repeated.")
    assert "flaky" not in " ".join(texts(build(changed, View(width)).lines))
