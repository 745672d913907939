from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.cli.stores import (
    FAILED,
    PASSED,
    TRAJECTORY_FAILED,
    case_events,
    feed,
    ref,
    started,
)
from tests.hostile import HOSTILE, leaks
from workbench.events.events import CaseError, CaseRef, MetricResult, RunFinished
from workbench.results.cells import cell_len
from workbench.results.explain import reasons, score_text, verdict
from workbench.results.plain_summary import brief_lines, summary_lines
from workbench.store.details import read_details
from workbench.store.execution import Execution
from workbench.store.store import Store


def lines_of(store: Store, *, detailed: bool = False) -> list[str]:
    return [str(line) for line in summary_lines(store, detailed=detailed)]


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(
    "name",
    ["late_order_where_the_customer_{}_and_wants_to_know_the_day_of_arrival", "返金の" * 8 + "{}お願い" + "返金の" * 8],
)
def test_case_has_a_short_distinct_name_on_a_terminal(width: int, name: str) -> None:
    refs = [ref(name.format(middle)) for middle in ("calls_again", "moved_house", "has_two_orders")]
    store = feed([started(refs)], *(case_events(one, "failed", [TRAJECTORY_FAILED]) for one in refs))
    before: dict[tuple[str, ...], str] = {}
    ids = [one.eval_id for one in refs]
    first, *others = (
        [*map(str, brief_lines(read_details(record), "/p", width, before, ids))] for record in store.records.values()
    )
    heads = [first[0], *(lines[0] for lines in others)]
    assert len(set(heads)) == 3
    assert all(line.startswith("FAIL  …/") and cell_len(line) <= width for line in heads)
    assert first[1:] == ['    tool_trajectory_avg_score 0.5 < 1.0: turn 2: args.amount: number 12.5, got text "12.50"']
    assert {line for lines in others for line in lines[1:]} == {f"    same as {before[tuple(first[1:])]}"}


def test_crashed_metric_is_named_once() -> None:
    metric = MetricResult("m", "error", None, 0.8, "division by zero")
    error = CaseError("metric_crashed", "m: division by zero")
    store = feed([started([FAILED])], case_events(FAILED, "error", [metric]))
    store.records[FAILED].error = error
    assert reasons(read_details(store.records[FAILED])) == ["metric_crashed: m: division by zero"]


@pytest.mark.parametrize(
    ("score", "threshold", "text"),
    [
        (0.5, 1.0, "0.5 < 1.0"),
        (2 / 3, 0.8, "0.6666 < 0.8"),
        (0.7999999999999999, 0.8, "0.7999 < 0.8"),
        (0.79996, 0.8, "0.7999 < 0.8"),
        (0.0, 0.0001, "0.0 < 0.0001"),
    ],
)
def test_cut_score_never_contradicts_its_verdict(score: float, threshold: float, text: str) -> None:
    assert score_text(MetricResult("m", "failed", score, threshold)) == text


def test_each_status_has_its_score_text() -> None:
    assert score_text(MetricResult("m", "passed", 1.0, 1.0)) == "1.0 ≥ 1.0"
    assert score_text(MetricResult("m", "informational", 1234.0)) == "1,234"
    assert score_text(MetricResult("m", "not_applicable", None, 0.8)) == "not applicable"
    assert verdict(MetricResult("m", "error", None, 0.8, "no answer")) == "m error: no answer"


@pytest.mark.parametrize("text", HOSTILE, ids=count())
def test_foreign_text_has_no_control_codes(text: str) -> None:
    case = CaseRef(text, text, text, text)
    broken = ref(text, repeat=2)
    events = case_events(case, "failed", [MetricResult(text, "failed", 0.0, 1.0, text)])
    more = case_events(broken, "error", error=CaseError("crashed", text, text, text))
    lines = lines_of(feed([started([case, broken], text)], events, more, [RunFinished(1.0)]))
    assert not leaks("\n".join(lines))
    assert all("\n" not in line for line in lines)


def test_summary_reads_no_details_of_passed_cases_without_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(PASSED, eval_id="other")
    store = feed(
        [started([PASSED, other])], case_events(PASSED, "passed"), case_events(other, "passed"), [RunFinished(0.31)]
    )
    reads: list[Execution] = []
    monkeypatch.setattr("workbench.store.details._read", reads.append)
    for record in list(store.read_current()):
        store.records[record.ref] = record.without_details(Path("a run"), 1)
    assert lines_of(store)[-1] == "2 cases in 0.3 s: 2 passed"
    assert reads == []
