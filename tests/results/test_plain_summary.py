from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.cli.stores import (
    CRASH,
    FAILED,
    PASSED,
    TRAJECTORY_FAILED,
    all_statuses,
    case_events,
    failed_with_errors,
    feed,
    ref,
    started,
)
from tests.hostile import HOSTILE, leaks
from workbench.events.events import CaseError, CaseRef, MetricResult, MetricScored, PlannedCase, RunFinished, RunStarted
from workbench.judges.base import JudgeIdentity
from workbench.results.cells import cell_len
from workbench.results.explain import reasons, score_text, verdict
from workbench.results.plain_summary import brief_lines, count_text, summary_lines
from workbench.store.details import read_details
from workbench.store.execution import Execution
from workbench.store.store import Store


def lines_of(store: Store, *, detailed: bool = False) -> list[str]:
    return [str(line) for line in summary_lines(store, detailed=detailed)]


def test_each_case_that_did_not_pass_has_a_reason(store: Store) -> None:
    assert lines_of(store) == [
        "",
        "Errors:",
        "  desk/refunds/unknown_order",
        "    agent_raised: KeyError: 'A-9'",
        "      at desk/tools.py:12 in find",
        "      Look at the tool",
        "  desk/torn.evalset.json",
        "    broken_file: line 3, column 7: a comma is missing",
        "  desk/refunds/on_time (repeat 2)",
        "    response_match_score error: the metric crashed",
        "",
        "Failures:",
        "  desk/refunds/late_parcel",
        '    tool_trajectory_avg_score 0.5 < 1.0: turn 2: args.amount: number 12.5, got text "12.50"',
        "",
        "Not evaluated:",
        "  desk/refunds/needs_a_key",
        "    safety_v1 not evaluated: needs google-cloud-aiplatform",
        "",
        "Cancelled:",
        "  desk/refunds/two_parcels",
        "    cancelled: the run ended before this case started",
        "",
        "Repeats: 0 of 1 flaky",
        "  desk/refunds/on_time",
        "    1/1 passed, 100% (20–100%), pass^1 1.00, 1 without a verdict",
        "",
        "7 cases in 4.2 s: 1 passed, 1 failed, 3 errors, 1 not evaluated, 1 cancelled",
    ]


def test_summary_on_a_terminal_does_not_repeat_reasons_of_cases(store: Store) -> None:
    lines = [str(line) for line in summary_lines(store, told=True)]
    assert lines[:3] == ["", "Cancelled:", "  desk/refunds/two_parcels"]
    assert not {"Errors:", "Failures:", "Not evaluated:", "Criteria:"} & set(lines)


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize(
    "name",
    ["late_order_where_the_customer_{}_and_wants_to_know_the_day_of_arrival", "返金の" * 8 + "{}お願い" + "返金の" * 8],
)
def test_case_is_one_line_on_a_terminal_with_different_names(width: int, name: str) -> None:
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


def test_summary_of_a_passed_run_is_short() -> None:
    lines = lines_of(feed([started([PASSED])], case_events(PASSED, "passed"), [RunFinished(0.31)]))
    assert lines[-1] == "1 case in 0.3 s: 1 passed"
    assert not any(line.startswith(("Errors", "Failures")) for line in lines)


def test_interrupted_run_is_named() -> None:
    assert count_text(all_statuses(interrupted=True)).startswith("interrupted, 7 cases in 4.2 s: ")


def test_evalsets_with_the_same_criteria_share_a_line() -> None:
    cases = [CaseRef("a", f"a/{number}.evalset.json", "s", "c") for number in range(8)]
    planned = tuple(PlannedCase(case, None, "defaults" if case != cases[0] else "own") for case in cases)
    store = feed([RunStarted("id", "/", "2026-01-01T00:00:00Z", planned)])
    for case in cases:
        read_details(store.records[case]).criteria = {
            "m": {"threshold": 0.5, "contains": ["A-7"], "judge_model_options": {}},
            "n": 1,
        }
    lines = [line for line in lines_of(store, detailed=True) if line.startswith("  ")]
    assert lines[:2] == ['  m 0.5 (contains ["A-7"]), n 1 (own)', "    a/0.evalset.json"]
    assert lines[2] == '  m 0.5 (contains ["A-7"]), n 1 (defaults)'
    assert lines[3].startswith("    a/1.evalset.json, ")
    assert lines[3].endswith(" and 2 more")


def test_code_of_a_blocked_model_is_shown() -> None:
    store = feed([started([FAILED])], case_events(FAILED, "failed", [TRAJECTORY_FAILED]), [RunFinished(1.0)])
    read_details(store.records[FAILED]).turns[0].note = "the model answered with error code SAFETY: \x1b[31mblocked"
    lines = lines_of(store)
    assert lines[lines.index("Failures:") + 3] == "    the model answered with error code SAFETY: ␛[31mblocked"


def test_repeats_with_the_same_failure_share_a_reason() -> None:
    refs = [ref("late_parcel", repeat=number) for number in (1, 2, 3)]
    other = MetricResult("response_match_score", "failed", 0.1, 0.8, "nothing matched")
    runs = [case_events(case, "failed", [TRAJECTORY_FAILED]) for case in refs[:2]]
    lines = lines_of(feed([started(refs)], *runs, case_events(refs[2], "failed", [other]), [RunFinished(1.0)]))
    assert lines[lines.index("Failures:") + 1 : lines.index("Repeats: 0 of 1 flaky") - 1] == [
        "  desk/refunds/late_parcel (repeats 1, 2)",
        '    tool_trajectory_avg_score 0.5 < 1.0: turn 2: args.amount: number 12.5, got text "12.50"',
        "  desk/refunds/late_parcel (repeat 3)",
        "    response_match_score 0.1 < 0.8: nothing matched",
    ]


def test_common_cause_of_many_errors_is_shown_once() -> None:
    refs = [ref(f"case_{number}") for number in range(25)]
    store = feed([started(refs)], *(case_events(case, "error", error=CRASH) for case in refs), [RunFinished(1.0)])
    lines = lines_of(store)
    assert lines.count("    agent_raised: KeyError: 'A-9'") == 1
    assert [line for line in lines if "desk/refunds/case_" in line] == [f"  {case.label}" for case in refs[:20]]
    assert "  and 5 more" in lines


def test_case_without_an_applicable_criterion_has_a_reason() -> None:
    silent = MetricResult("response_match_score", "not_applicable", None, 0.8)
    store = feed([started([PASSED])], case_events(PASSED, "not_evaluated", [silent]), [RunFinished(1.0)])
    assert "    no criterion has anything to judge in this case" in lines_of(store)


def test_crashed_metric_is_named_once() -> None:
    metric = MetricResult("m", "error", None, 0.8, "division by zero")
    error = CaseError("metric_crashed", "m: division by zero")
    store = feed([started([FAILED])], case_events(FAILED, "error", [metric]))
    store.records[FAILED].error = error
    assert reasons(read_details(store.records[FAILED])) == ["metric_crashed: m: division by zero"]


def test_what_broke_stands_below_the_failure() -> None:
    store = feed([started([FAILED, PASSED])], failed_with_errors(FAILED), case_events(PASSED, "failed"))
    assert reasons(read_details(store.records[FAILED])) == [
        'tool_trajectory_avg_score 0.5 < 1.0: turn 2: args.amount: number 12.5, got text "12.50"',
        "judge: final_response_match_v2: turn 1: no connection",
    ]
    assert "      Check the connection" in lines_of(store)
    assert count_text(store).endswith(": 2 failed (1 with errors)")


def test_each_broken_metric_is_named() -> None:
    more = MetricResult("m", "error", None, 0.8, "division by zero")
    *events, end = failed_with_errors(FAILED)
    store = feed([started([FAILED])], events, [MetricScored(FAILED, more), end])
    assert reasons(read_details(store.records[FAILED]))[1:] == [
        "m error: division by zero",
        "judge: final_response_match_v2: turn 1: no connection",
    ]


def test_judge_is_named_with_its_note() -> None:
    function = JudgeIdentity("python:desk.judge:decide", "python", "a Python function", by="function")
    gemini = JudgeIdentity("gemini-2.5-flash \x1b[31m", "gemini", base_url="http://127.0.0.1:8123")
    metrics = [
        MetricResult("final_response_match_v2", "passed", 1.0, 0.8, "", {"judge": function.as_json()}),
        MetricResult("hallucinations_v1", "passed", 1.0, 0.8, "", {"judge": function.as_json()}),
        MetricResult("rubric_based_tool_use_quality_v1", "passed", 1.0, 0.8, "", {"judge": gemini.as_json()}),
    ]
    lines = lines_of(feed([started([PASSED])], case_events(PASSED, "passed", metrics)), detailed=True)
    place = lines.index("Judges:")
    assert lines[place + 1 : place + 3] == [
        "  python:desk.judge:decide: a Python function",
        "    final_response_match_v2, hallucinations_v1",
    ]
    assert "at http://127.0.0.1:8123" in lines[place + 3]
    assert not leaks("".join(lines))
    assert "Judges:" not in lines_of(feed([started([PASSED])], case_events(PASSED, "passed")), detailed=True)


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


def test_other_statuses_show_a_word() -> None:
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


def wrong_amount(number: int) -> tuple[MetricResult, ...]:
    """Return a failed criterion whose reason is another one in each case."""
    reason = f"turn 1: args.amount: number {number}, got text"
    return (MetricResult("tool_trajectory_avg_score", "failed", 0.5, 1.0, reason),)


def test_cases_that_share_a_cause_are_listed_together_with_their_own_reasons() -> None:
    refs = [ref(f"case_{number}") for number in range(23)]
    other = case_events(ref("alone"), "failed", [MetricResult("m", "failed", 0.1, 0.8, "bad")])
    runs = [case_events(case, "failed", wrong_amount(number)) for number, case in enumerate(refs)]
    lines = lines_of(feed([started([ref("alone"), *refs])], other, *runs, [RunFinished(1.0)]))
    place = lines.index("Failures:")
    assert lines[place + 1 : place + 4] == [
        "  tool calls differ: 23 cases",
        "    desk/refunds/case_0",
        "      tool_trajectory_avg_score 0.5 < 1.0: turn 1: args.amount: number 0, got text",
    ]
    assert lines[lines.index("    and 3 more") + 1 :] == [
        "  desk/refunds/alone",
        "    m 0.1 < 0.8: bad",
        "",
        "Why cases fail:",
        "  23  tool calls differ",
        "   1  m failed",
        "",
        "24 cases in 1.0 s: 24 failed",
    ]


def test_causes_are_counted_before_the_last_line_and_say_who_judged() -> None:
    judge = JudgeIdentity("python:desk.judge:decide", "python", "a Python function", by="function").as_json()
    unsafe = MetricResult("safety_v1", "failed", 0.0, 0.8, "no", {"judge": judge})
    refs = [ref(f"case_{number}") for number in range(4)]
    runs = [
        *(case_events(case, "error", error=CaseError("timeout", "no answer within 3 s")) for case in refs[:2]),
        *(case_events(case, "failed", [unsafe]) for case in refs[2:]),
    ]
    lines = lines_of(feed([started(refs)], *runs, [RunFinished(1.0)]))
    assert lines[-5:-2] == [
        "Why cases fail:",
        "  2  no answer within <number> s (error)",
        "  2  answer is not safe (function)",
    ]


def test_causes_are_not_counted_if_none_is_shared() -> None:
    assert "Why cases fail:" not in lines_of(all_statuses())


def test_summary_reads_no_details_of_passed_cases_that_compared_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
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
