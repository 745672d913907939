import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.stores import BROKEN, FAILED, NO_FILE, PASSED, UNKNOWN, case_events, feed, ref, started
from tests.hostile import HOSTILE, leaks
from tests.ui.judged import FUNCTION, judged_case
from workbench.events.events import CaseError, CaseRef, MetricResult, Noticed
from workbench.judges.base import Reply, reply_record
from workbench.results.plain_lines import case_line, error_text, notice_line
from workbench.store.details import read_details
from workbench.store.store import Store


@pytest.mark.parametrize(
    ("case", "line"),
    [
        (
            PASSED,
            "PASS desk/refunds/on_time response_match_score=0.8571>=0.8 hallucinations_v1=not_applicable",
        ),
        (
            FAILED,
            "FAIL desk/refunds/late_parcel tool_trajectory_avg_score=0.5<1.0 response_match_score=0.8571>=0.8",
        ),
        (BROKEN, "ERROR desk/refunds/unknown_order agent_raised: KeyError: 'A-9'"),
        (UNKNOWN, "NOT_EVALUATED desk/refunds/needs_a_key safety_v1=not_evaluated"),
        (NO_FILE, "ERROR desk/torn.evalset.json broken_file: line 3, column 7: a comma is missing"),
        (
            ref("on_time", repeat=2),
            "ERROR desk/refunds/on_time#2 response_match_score=error response_match_score: the metric crashed",
        ),
    ],
)
def test_each_status_has_a_line(store: Store, case: CaseRef, line: str) -> None:
    assert case_line(read_details(store.records[case])) == line


def test_error_kind_is_not_repeated() -> None:
    assert error_text(CaseError("cancelled", "cancelled")) == "cancelled"
    assert error_text(CaseError("crashed", "killed by SIGSEGV")) == "crashed: killed by SIGSEGV"


def test_score_never_appears_to_reach_its_threshold() -> None:
    metric = MetricResult("response_match_score", "failed", 0.7999999999999999, 0.8)
    store = feed([started([FAILED])], case_events(FAILED, "failed", [metric]))
    assert case_line(read_details(store.records[FAILED])).endswith("response_match_score=0.7999<0.8")


def test_verdict_without_a_score_is_a_word() -> None:
    metric = MetricResult("m", "failed", None, 0.8)
    store = feed([started([FAILED])], case_events(FAILED, "failed", [metric]))
    assert case_line(read_details(store.records[FAILED])).endswith(" m=failed")


def test_judge_marks_follow_the_score() -> None:
    assert case_line(judged_case()) == (
        "FAIL order_desk/judged/late_parcel final_response_match_v2=error(split) "
        "rubric_based_final_response_quality_v1=0.5<0.8(split) hallucinations_v1=0.6666<0.8"
    )
    assert case_line(judged_case(FUNCTION)) == (
        "FAIL order_desk/judged/late_parcel final_response_match_v2=error(function,split) "
        "rubric_based_final_response_quality_v1=0.5<0.8(function,split) "
        "hallucinations_v1=0.6666<0.8(function)"
    )


def test_cached_verdict_is_marked() -> None:
    reply = reply_record(1, Reply("valid", cached=True), "valid")
    fresh = reply_record(2, Reply("valid"), "valid")
    for replies, mark in (([reply, reply], "(cached)"), ([reply, fresh], "")):
        details = {"questions": [{"kind": "final_response_match", "replies": replies}]}
        metric = MetricResult("m", "passed", 1.0, 0.5, "", details)
        store = feed([started([PASSED])], case_events(PASSED, "passed", [metric]))
        assert case_line(read_details(store.records[PASSED])).endswith(f" m=1.0>=0.5{mark}")


@settings(deadline=None, max_examples=50)
@given(st.text() | st.sampled_from(HOSTILE))
def test_foreign_text_stays_on_its_line_without_control_codes(text: str) -> None:
    case = CaseRef(text, text, text, text)
    metric = MetricResult(text, "error", math.nan, math.inf, text)
    events = case_events(case, "error", [metric], CaseError("agent_raised", text, text, text))
    for line in (
        case_line(read_details(feed([started([case])], events).records[case])),
        notice_line(Noticed("warning", text, text)),
        error_text(CaseError("timeout", text, text)),
    ):
        assert "\n" not in line
        assert not leaks(line)


def test_notice_starts_with_its_level() -> None:
    assert notice_line(Noticed("info", "no fork here")) == "no fork here"
    assert notice_line(Noticed("warning", "a key is dropped", "Remove it")) == "warning: a key is dropped. Remove it"


def test_lower_case_hint_follows_a_colon() -> None:
    assert notice_line(Noticed("warning", "it needs a key", "set KEY")) == "warning: it needs a key: set KEY"
    assert notice_line(Noticed("info", "is it there?", "look")) == "is it there? look"
