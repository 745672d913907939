"""The table of tool faults on every surface without a screen, from the events of a run that never happened."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.cli.stores import case_events, feed, ref
from tests.hostile import FORBIDDEN, HOSTILE
from tests.schemas import validate_report
from workbench.cli.exit_codes import exit_code
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    Event,
    FaultHandling,
    FaultOutcome,
    FaultWay,
    PlannedCase,
    RunFinished,
    RunStarted,
    ToolFault,
)
from workbench.exporting.html import build_html
from workbench.exporting.junit import junit_pieces
from workbench.exporting.report import report_pieces
from workbench.exporting.tables import build_csv, build_markdown
from workbench.results.faults import counts_text, table_lines
from workbench.results.plain_lines import case_line
from workbench.results.plain_summary import summary_lines
from workbench.run.fault_outcome import STATUS
from workbench.store.details import read_details
from workbench.store.store import Store

FUNCTION = {"judge": {"model": "python:desk.judge:decide", "kind": "python", "by": "function"}}
Handled = tuple[CaseRef, ToolFault, FaultHandling | None]


def handled(
    case: str, repeat: int, tool: str, way: FaultWay, outcome: FaultOutcome | None, details: Any = None
) -> Handled:
    handling = None if outcome is None else FaultHandling(outcome, f"because {outcome}", details or {})
    return ref(case, repeat=repeat), ToolFault(tool, way), handling


def store_of(*executions: Handled) -> Store:
    def events() -> Iterator[Event]:
        planned = tuple(PlannedCase(case, None, "", fault=fault) for case, fault, _ in executions)
        yield RunStarted("2026-11-21T10-30-00-3f2a", "/root", "2026-11-21T10:30:00Z", planned)
        for case, _, handling in executions:
            if handling is None:
                continue
            status = STATUS[handling.outcome]
            error = CaseError("agent_raised", "it failed") if handling.outcome == "crashed" else None
            *before, finished = case_events(case, status, (), error)
            assert isinstance(finished, CaseFinished)
            yield from before
            yield replace(finished, handling=handling)
        yield RunFinished(2.0)

    return feed(events())


@pytest.fixture
def store() -> Store:
    return store_of(
        handled("late", 1, "search", "error", "recovered"),
        handled("late", 2, "search", "timeout", "crashed"),
        handled("late", 3, "search", "no_answer", "made_up", FUNCTION),
        handled("lost", 1, "search", "error", "reported"),
        handled("lost", 2, "search", "timeout", "crashed"),
        handled("lost", 3, "注文を探す", "malformed", "not_evaluated"),
    )


def test_cells_count_the_outcomes_of_all_cases_worst_first(store: Store) -> None:
    lines = list(table_lines(store.current_records()))
    # The table is wider than 80 cells, so tools have lines of their own.
    assert [line.text for line in lines] == [
        "      error                        timeout      error answer  no answer   malformed",
        "desk",
        "  search",
        "      ✓ reported 1, ✓ recovered 1  ! crashed 2                ✗ made upƒ",
        "  注文を探す",
        "                                                                          ? not evaluated",
    ]
    assert [(lines[3].text[start:end], status) for start, end, status in lines[3].spans] == [
        ("✓ reported 1, ✓ recovered 1", "passed"),
        ("! crashed 2", "error"),
        ("✗ made upƒ", "failed"),
    ]


def test_tools_are_beside_their_cells_if_there_is_room() -> None:
    store = store_of(
        handled("late", 1, "注文", "error", "recovered"),
        handled("late", 2, "注文", "timeout", "silent"),
        handled("late", 3, "find", "error", "crashed"),
    )
    assert [text for text, _ in table_lines(store.current_records())] == [
        "        error        timeout   error answer  no answer  malformed",
        "desk",
        "  注文  ✓ recovered  ✗ silent",
        "  find  ! crashed",
    ]


def test_plain_line_names_the_fault_and_its_outcome(store: Store) -> None:
    lines = [case_line(read_details(record)) for record in store.current_records()]
    assert lines[0] == "PASS desk/refunds/late [search · error] recovered: because recovered"
    assert lines[1] == "ERROR desk/refunds/late [search · timeout] crashed: because crashed"
    assert lines[2] == "FAIL desk/refunds/late [search · no answer] made up (function): because made_up"


def test_summary_has_the_table_and_no_repeats(store: Store) -> None:
    text = "\n".join(map(str, summary_lines(store)))
    assert "Tool faults:" in text
    assert text.endswith("6 faults in 2.0 s: 2 crashed, 1 made up, 1 reported, 1 recovered, 1 not evaluated")
    assert "Repeats" not in text
    assert "Why cases fail" not in text


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["recovered", "reported"], 0),
        (["recovered", "made_up"], 1),
        (["reported", "silent"], 1),
        (["made_up", "not_evaluated"], 3),
        (["recovered", "crashed"], 3),
        (["recovered", "not_called"], 3),
        (["recovered", None], 3),
    ],
)
def test_exit_code_follows_from_the_statuses(outcomes: list[FaultOutcome | None], code: int) -> None:
    executions = (handled("late", number, "search", "error", each) for number, each in enumerate(outcomes, 1))
    assert exit_code(store_of(*executions)) == code


def test_report_has_each_execution_and_the_table(store: Store) -> None:
    report = json.loads(b"".join(report_pieces(store)))
    validate_report(report)
    assert report["cases"][2]["fault"] == {
        "tool": "search",
        "way": "no_answer",
        "outcome": "made_up",
        "reason": "because made_up",
        "judged_by": "function",
        "facts_without_source": [],
    }
    assert report["repeats"] == []
    assert report["tool_faults"]["outcomes"] == {
        "crashed": 2,
        "made_up": 1,
        "reported": 1,
        "recovered": 1,
        "not_evaluated": 1,
    }
    assert report["tool_faults"]["tools"][0]["outcomes"]["error"] == {"reported": 1, "recovered": 1}


def test_exports_name_faults_and_outcomes(store: Store) -> None:
    html, markdown = build_html(store).decode(), build_markdown(store).decode()
    assert '<td class="status-failed">✗ made upƒ' in html
    assert "| `desk` | `search` | ✓ reported 1, ✓ recovered 1 | ! crashed 2 |  | ✗ made upƒ |  |" in markdown
    rows = list(csv.DictReader(io.StringIO(build_csv(store).decode("utf-8-sig"))))
    assert [row["outcome"] for row in rows][:3] == ["recovered", "crashed", "made_up"]
    junit = b"".join(junit_pieces(store)).decode()
    assert 'name="late [search · no answer] (function)"' in junit
    assert 'value="function: tool fault"' in junit


def test_text_of_agents_is_safe() -> None:
    executions = [
        (CaseRef(text, "e.json", "e", "c", number), ToolFault(text, "error"), FaultHandling("silent", text))
        for number, text in enumerate(HOSTILE, 1)
    ]
    store = store_of(*executions)
    lines = [*(text for text, _ in table_lines(store.current_records())), *map(str, summary_lines(store))]
    assert not FORBIDDEN & set("".join(lines))
    build_html(store), build_markdown(store), build_csv(store)
    validate_report(json.loads(b"".join(report_pieces(store))))


def test_cancelled_execution_is_counted_as_cancelled() -> None:
    store = store_of(handled("late", 1, "search", "error", "recovered"), handled("late", 2, "search", "error", None))
    assert "! " not in "".join(text for text, _ in table_lines(store.current_records()))
    assert counts_text(store.current_records()) == "1 recovered, 1 cancelled"
    report = json.loads(b"".join(report_pieces(store)))
    validate_report(report)
    assert report["tool_faults"]["outcomes"] == {"recovered": 1, "cancelled": 1}
