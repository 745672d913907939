"""Tests of the name of a case, its verdict, and what qualifies it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.events.events import CaseError, CaseRef, Frozen, MetricResult, PlannedCase
from workbench.results.cells import cell_len
from workbench.results.document import Subject
from workbench.results.faces import chips, score_text
from workbench.results.title import ending, notes, title
from workbench.store.execution import CaseRecord
from workbench.text.counting import amount

LONG = CaseRef("a_rather_long_agent", "x.evalset.json", "an_evalset_with_a_name", "the_case_itself", 2)


def subject(ref: CaseRef = LONG) -> Subject:
    return Subject(CaseRecord(PlannedCase(ref, None, "")))


def test_title_names_agent_evalset_case_and_repeat() -> None:
    assert title(subject(), 100) == "a_rather_long_agent › an_evalset_with_a_name › the_case_itself #2"


def test_part_of_a_title_that_would_become_too_short_is_left_out() -> None:
    short = subject(CaseRef("order_desk", "refunds.evalset.json", "refunds", "wrong_answer"))
    assert title(short, 35) == "order_desk › refunds › wrong_answer"
    assert title(short, 34) == title(short, 22) == "refunds › wrong_answer"
    assert title(short, 21) == "wrong_answer"
    assert title(subject(), 60) == "a_rather_…ng_agent › an_evalse…h_a_name › the_case_itself #2"


@pytest.mark.parametrize("width", range(1, 70))
def test_case_name_is_cut_last(width: int) -> None:
    found = title(subject(), width)
    assert cell_len(found) <= width
    if width >= 18:
        assert "the_case_itself #2" in found


def test_cut_name_differs_from_other_cases_of_the_evalset() -> None:
    names = [f"late_order_where_the_customer_{what}_and_wants_the_day" for what in ("calls_again", "moved_house")]
    cases = [SimpleNamespace(eval_id=name) for name in names]
    entry: Any = SimpleNamespace(document=SimpleNamespace(cases=cases))
    found = [title(replace(subject(replace(LONG, eval_id=name)), entry=entry), 30) for name in names]
    assert "calls" in found[0]
    assert "moved" in found[1]
    assert all(name.endswith(" #2") for name in found)


def test_word_of_the_verdict_is_cut_before_the_name_of_the_case() -> None:
    failed = Subject(CaseRecord(PlannedCase(LONG, None, ""), "failed"))
    assert ending(failed, 26).plain == "✗ FAIL"
    assert ending(failed, 25).plain == "✗"


def test_replayed_case_has_a_mark_beside_its_verdict() -> None:
    frozen = Frozen("tools", "a.frozen.json", tools=4, live=1, misses=0)
    failed = Subject(CaseRecord(PlannedCase(LONG, None, ""), "failed", frozen=frozen))
    assert ending(failed, 60).plain == "❅ FROZEN ✗ FAIL"
    assert ending(failed, 30).plain == "❅✗"
    missed = replace(frozen, tools=0, misses=1)
    record = CaseRecord(PlannedCase(LONG, None, ""), "error", frozen=missed, error=CaseError("frozen_miss", "gone"))
    assert notes(Subject(record), 70).plain == "❅ 0 replayed, 1 live"


def test_unreadable_file_is_named_by_its_path() -> None:
    assert title(subject(CaseRef("desk", "desk/broken.evalset.json", "", "")), 80) == "desk › desk/broken.evalset.json"


def result(name: str, score: float | None, threshold: float = 0.8) -> MetricResult:
    status = "error" if score is None else "passed" if score >= threshold else "failed"
    return MetricResult(name, status, score, threshold)  # type: ignore[arg-type]


def test_worst_verdict_comes_first() -> None:
    results = [result("one_score", 1.0), result("two_score", 0.5), result("three_score", None)]
    assert chips(results, 60).plain == "✗ two 0.50 < 0.80   ! three error   ✓ one 1.00 ≥ 0.80"
    assert chips(results, 12).plain == "✗ two 0.50 …"


@pytest.mark.parametrize(
    ("score", "threshold", "text"),
    [
        (0.5, 1.0, "0.50 < 1.00"),
        (1.0, 1.0, "1.00 ≥ 1.00"),
        (0.7999, 0.8, "0.79 < 0.80"),
        (0.1 + 0.2, 0.3, "0.30 ≥ 0.30"),
        (float("nan"), 0.8, "nan < 0.80"),
        (None, 0.8, ""),
    ],
)
def test_score_never_looks_equal_to_a_missed_threshold(score: float | None, threshold: float, text: str) -> None:
    assert score_text(MetricResult("m", "failed", score, threshold)) == text


@pytest.mark.parametrize(
    ("value", "text"), [(3.0, "3"), (1200.0, "1,200"), (1.23456, "1.2345"), (0.5, "0.5"), (1e300, "1e+300")]
)
def test_amounts_have_readable_digits(value: float, text: str) -> None:
    assert amount(value) == text


@pytest.mark.parametrize(
    ("state", "words"),
    [("queued", "waiting to run; expected:"), ("running", "running, no scores yet"), ("passed", "nothing was scored")],
)
def test_case_without_scores_has_a_reason(state: str, words: str) -> None:
    found = subject()
    assert found.record is not None
    found.record.state = state  # type: ignore[assignment]
    assert notes(found, 60).plain == words


def test_score_without_a_threshold_is_shown_without_a_verdict() -> None:
    record = CaseRecord(PlannedCase(LONG, None, ""), "not_evaluated", criteria={"quality": None, "safety": None})
    record.scores = {
        "quality": MetricResult("quality", "informational", 5.0, None),
        "safety": MetricResult("safety", "not_applicable", None, None),
        "token_usage_v1": MetricResult("token_usage_v1", "informational", 60.0, None),
    }
    assert notes(Subject(record), 70).plain == "quality 5: no threshold, so no verdict"
