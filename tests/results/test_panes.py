"""Tests of all panes with any data: nothing raises, overflows or controls the terminal."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile import HOSTILE, leaks
from tests.ui.judged import CLAIMS, MATCH, REF, RUBRICS, USER, judged_case, record_of, scenario_events, with_text
from tests.ui.transcripts import RAISED, execute, recorded, turn
from workbench.events.events import (
    CaseError,
    CaseRef,
    CaseStatus,
    MetricResult,
    PlannedCase,
    SpansRecorded,
    UserSimulated,
)
from workbench.results import trace
from workbench.results.cells import cell_len
from workbench.results.document import Subject
from workbench.results.faces import LABELS
from workbench.results.lines import View
from workbench.results.panes import PANES, plain_case
from workbench.results.title import notes, title, verdict
from workbench.store.execution import CaseRecord, Turn

WIDTHS = (24, 30, 46, 60, 76, 100, 140)
TEXT = st.sampled_from([text for text in HOSTILE if len(text) < 300]) | st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=5,
)
CALL = st.fixed_dictionaries({"name": TEXT}, optional={"args": st.dictionaries(TEXT, JSON, max_size=4) | JSON})
PART = st.fixed_dictionaries({"text": TEXT}) | st.fixed_dictionaries({"function_call": CALL}) | JSON
CONTENT = st.fixed_dictionaries({"parts": st.lists(PART, max_size=3)}) | JSON
DATA = (
    st.fixed_dictionaries(
        {"tool_uses": st.lists(CALL, max_size=3)},
        optional={"intermediate_responses": st.lists(st.tuples(TEXT, st.lists(PART, max_size=2)), max_size=3)},
    )
    | st.fixed_dictionaries(
        {"invocation_events": st.lists(st.fixed_dictionaries({"author": TEXT, "content": CONTENT}), max_size=3)}
    )
    | JSON
)
INVOCATION = st.fixed_dictionaries(
    {}, optional={"user_content": CONTENT, "final_response": CONTENT, "intermediate_data": DATA}
)
MARKS = st.lists(st.tuples(TEXT, st.sampled_from(["same", "missing", "extra", "space"])), max_size=4)
DETAILS = st.dictionaries(
    st.sampled_from(
        ["rows", "match_type", "other_match_types", "ignore_args", "expected_marks", "missing", "f", "odd"]
    ),
    JSON | MARKS,
    max_size=4,
)
COUNTS = st.dictionaries(st.sampled_from(["valid", "invalid", "yes", "no", "unread"]) | TEXT, st.integers(-1, 5) | JSON)
VERDICT = st.sampled_from(["valid", "yes", "no", "unread"]) | JSON
REPLY = st.dictionaries(
    st.sampled_from(["text", "verdict", "unread", "fault", "model_version", "seconds", "input_tokens", "cached"]), JSON
)
QUESTION = st.fixed_dictionaries({}, optional={"kind": JSON, "prompt": JSON, "judge": JSON, "replies": st.lists(REPLY)})
SENTENCE = st.fixed_dictionaries(
    {"text": TEXT | JSON, "label": st.sampled_from([*LABELS, "odd"]) | JSON},
    optional={
        "rationale": JSON,
        "supporting": TEXT,
        "contradicting": JSON,
        "source": st.fixed_dictionaries({"kind": st.sampled_from(["result", "user"]), "event": JSON, "call_id": JSON})
        | JSON,
    },
)
JUDGED = st.fixed_dictionaries(
    {},
    optional={
        "judge": st.fixed_dictionaries({"model": TEXT, "kind": TEXT, "note": TEXT, "base_url": TEXT}) | JSON,
        "tally": COUNTS | JSON,
        "questions": st.lists(QUESTION | JSON, max_size=2) | JSON,
        "votes": COUNTS | JSON,
        "asked": JSON,
        "of": JSON,
        "split": JSON,
        "share": JSON,
        "texts": st.lists(
            st.fixed_dictionaries(
                {"author": JSON, "step": JSON, "final": JSON, "score": JSON, "unread": TEXT | JSON},
                optional={"sentences": st.lists(SENTENCE | JSON, max_size=3) | JSON},
            ),
            max_size=2,
        )
        | JSON,
        "rubrics": st.lists(
            st.fixed_dictionaries(
                {"rubric_id": JSON, "text": TEXT, "verdict": VERDICT, "votes": COUNTS, "rationale": TEXT, "score": JSON}
            )
            | JSON,
            max_size=2,
        )
        | JSON,
        "stop": st.fixed_dictionaries({"verdict": VERDICT, "votes": COUNTS, "questions": JSON}) | JSON,
        "explanation": JSON,
        "error": JSON,
        "compared": JSON,
    },
)
DIFFERENCE = st.fixed_dictionaries({"path": TEXT}, optional={"expected": JSON, "actual": JSON, "rule": TEXT | JSON})
RULED = st.fixed_dictionaries(
    {},
    optional={
        "checks": st.lists(st.fixed_dictionaries({"kind": TEXT | JSON, "text": TEXT, "met": JSON})) | JSON,
        "figures": st.dictionaries(TEXT, st.fixed_dictionaries({"limit": JSON, "used": JSON})) | JSON,
        "differences": st.lists(DIFFERENCE | JSON, max_size=3) | JSON,
        "accepted": st.lists(DIFFERENCE | JSON, max_size=3) | JSON,
        "more_differences": JSON,
        "args_match": JSON,
    },
)
STATUS: st.SearchStrategy[Any] = st.sampled_from(
    ["passed", "failed", "error", "not_evaluated", "not_applicable", "informational"]
)
RESULT = st.builds(
    MetricResult,
    st.sampled_from(
        ["tool_trajectory_avg_score", "response_match_score", "token_usage_v1", CLAIMS, RUBRICS, MATCH, USER]
    )
    | TEXT,
    STATUS,
    st.none() | st.floats(),
    st.none() | st.floats(),
    TEXT,
    DETAILS | JUDGED | RULED,
)
SIMULATED = st.builds(
    UserSimulated, st.just(REF), st.integers(0, 3), st.sampled_from(["", "stop_signal", "turn_limit"]), QUESTION
)
SCENARIO = st.dictionaries(st.sampled_from(["starting_prompt", "conversation_plan", "user_persona"]), TEXT | JSON)
RESULTS = st.lists(RESULT, max_size=3).map(lambda found: {result.name: result for result in found})
SPAN = st.fixed_dictionaries(
    {"id": st.integers(0, 4), "kind": st.sampled_from(["turn", "agent", "model", "tool", "lost"]) | JSON, "name": TEXT},
    optional={
        "parent": st.integers(0, 4) | JSON,
        "start": st.floats(0, 9) | JSON,
        "end": st.floats(allow_nan=False, allow_infinity=False) | JSON,
        "error": TEXT | JSON,
        "events": st.lists(st.integers(-1, 3)) | JSON,
        "tokens": st.lists(st.integers(0, 10**7), min_size=2, max_size=2) | JSON,
        "call": TEXT | JSON,
        "agent": TEXT | JSON,
        "args": st.just("aa") | JSON,
        "response": st.just("aa") | JSON,
        "request": st.fixed_dictionaries(
            {"more": st.lists(st.just("aa")) | JSON},
            optional={
                "base": st.integers(0, 4) | JSON,
                "same": st.integers(0, 4) | JSON,
                "tools": JSON | st.just("aa"),
            },
        )
        | JSON,
    },
)
SPANS = st.builds(
    lambda spans, piece: SpansRecorded(REF, 0, json.dumps(spans), {"aa": json.dumps(piece)}),
    st.lists(SPAN | JSON, max_size=6) | JSON,
    JSON,
)
TURN = st.builds(
    Turn,
    CONTENT,
    st.lists(INVOCATION | JSON, max_size=2),
    st.none() | INVOCATION,
    TEXT,
    st.none() | st.dictionaries(TEXT, JSON),
    RESULTS,
    st.none() | SPANS,
)


@st.composite
def records(draw: st.DrawFn) -> CaseRecord:
    ref = CaseRef(draw(TEXT), draw(TEXT), draw(TEXT), draw(TEXT), draw(st.integers(1, 12)))
    record = CaseRecord(PlannedCase(ref, None, draw(TEXT)))
    states: st.SearchStrategy[Any] = st.sampled_from(
        ["queued", "running", "passed", "failed", "error", "not_evaluated"]
    )
    record.state = draw(states)
    record.expected = draw(st.none() | st.lists(INVOCATION, max_size=3).map(tuple))
    record.turns = draw(st.lists(TURN, max_size=3))
    record.scores = draw(RESULTS)
    record.simulated = draw(st.lists(SIMULATED, max_size=3))
    record.scenario = draw(st.none() | SCENARIO)
    record.output = draw(st.dictionaries(st.sampled_from(["stdout", "stderr"]), TEXT))
    record.error = draw(st.none() | st.builds(CaseError, st.just("agent_raised"), TEXT, TEXT, TEXT))
    return record


def lines_of(subject: Subject, width: int, *, full: bool) -> Iterator[str]:
    for pane in PANES:
        document = pane.build(subject, View(width, full))
        opened = frozenset(item.key for item in document.items)
        document = pane.build(subject, View(width, full, opened=opened))
        told = (item.aside(width) for item in document.items if item.aside is not None)
        for line in (*document.lines, *(line for lines in told for line in lines)):
            assert line.cell_len <= width, (pane.title, line.plain)
            yield line.plain
        for item in document.items:
            assert item.start < item.end <= len(document.lines)
            assert all(line.plain[:1] in ("", " ") for line in document.lines[item.start : item.end])
    for line in (notes(subject, width), verdict(subject)):
        yield line.plain
    yield title(subject, width)


def check(lines: Iterator[str], width: int) -> None:
    for line in lines:
        assert cell_len(line) <= width
        assert "\n" not in line
        assert not leaks(line)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(records(), st.sampled_from(WIDTHS), st.booleans())
def test_any_record_fits_any_width(record: CaseRecord, width: int, full: bool) -> None:
    check(lines_of(Subject(record), width, full=full), width)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [30, 120])
def test_hostile_text_is_safe_in_every_place(text: str, width: int) -> None:
    text, short = text[:1_000], text[:200]
    ref = CaseRef(short, short, short, short)
    expected = [turn(text, [(short, {short: text})], text, [(short, text)])]
    actual = [recorded(text, [(short, {short: f"{text}!"})], f"{text} more", [(short, f"{text}.")])]
    record = execute(expected, actual, ref=ref, output={"stdout": text, "stderr": text}, note=text)
    for full in (False, True):
        check(lines_of(Subject(record), width, full=full), width)
    check(plain_case(record, width), width)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [30, 120])
def test_hostile_judges_and_simulated_users_are_safe(text: str, width: int) -> None:
    some = text[:200]
    for record in (with_text(judged_case(), some), with_text(record_of(scenario_events()), some)):
        check(lines_of(Subject(record), width, full=width == 30), width)
        check(plain_case(record, width), width)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_errors_are_safe(text: str) -> None:
    text = text[:10_000]
    error = CaseError("crashed", text, text, text)
    record = execute([turn("hi")], [], error=error)
    check(lines_of(Subject(record), 46, full=True), 46)


@pytest.mark.parametrize("pane", PANES)
def test_empty_subject_shows_at_most_one_line(pane: Any) -> None:
    assert len(pane.build(Subject(), View(60)).lines) <= 1


def test_each_verdict_has_a_glyph_and_a_word() -> None:
    statuses: list[CaseStatus] = ["passed", "failed", "error", "not_evaluated"]
    words = {
        verdict(Subject(CaseRecord(PlannedCase(CaseRef("", "", "", ""), None, ""), state))).plain for state in statuses
    }
    assert words == {"✓ PASS", "✗ FAIL", "! ERROR", "? NOT EVALUATED"}


def test_error_without_a_message_shows_its_kind() -> None:
    record = execute([turn("hi")], [], error=CaseError("timeout", ""))
    assert "timed out" in "".join(lines_of(Subject(record), 60, full=False))


def test_trace_names_the_second_attempt() -> None:
    record = execute([turn("hi")], [], error=RAISED)
    assert "Attempt" not in trace.build(Subject(record), View(80)).lines[0].plain
    record.attempt = 2
    assert trace.build(Subject(record), View(80)).lines[0].plain.strip().startswith("Attempt 2")


def test_trace_ends_with_the_output_and_the_error() -> None:
    record = execute([turn("hi")], [], error=RAISED, output={"stdout": "looking up", "stderr": "odd"})
    lines = [line.plain for line in trace.build(Subject(record), View(80)).lines]
    places = [next(i for i, line in enumerate(lines) if part in line) for part in ("looking up", "odd", "! KeyError")]
    assert places == sorted(places)
    assert any("Traceback" in line for line in lines[places[2] :])


def test_conditions_limits_and_values_are_listed_in_words() -> None:
    checks = [
        {"kind": "not_contains", "text": "sorry", "met": False},
        {"kind": "regex", "text": "A-[0-9]+", "met": True},
    ]
    figures = {"tokens": {"limit": 500, "used": 620.0}, "tool_calls": {"limit": 3, "used": 2}, "cost": {"limit": 1}}
    state = {
        "differences": [{"path": "state.total", "expected": 12.5, "actual": "12.50"}],
        "accepted": [{"path": "state.seen", "actual": 1, "rule": "any value"}],
    }
    record = CaseRecord(PlannedCase(REF, None, "defaults"), state="failed")
    for name, details in (("answer_match", {"checks": checks}), ("limits", {"figures": figures}), ("state", state)):
        record.metrics[name] = MetricResult(name, "failed", 0.0, 1.0, "why", details)
    scores = [line.strip() for line in lines_of(Subject(record), 60, full=True)]
    for line in (
        '✗ does not contain "sorry"',
        "✓ matches A-[0-9]+",
        "✗ tokens 620 of 500",
        "✓ tool calls 2 of 3",
        "? cost unknown of 1",
        "state.total",
        "− expected  12.5     number",
        '+ actual    "12.50"  text',
        "state.seen: number 1 · accepted: any value",
    ):
        assert line in scores
