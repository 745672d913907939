"""The overview, and the summary that a run prints, as text."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

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
from tests.results.golden_texts import compare, joined, names, written
from tests.results.overview.test_layout import overview
from workbench.events.events import (
    CaseError,
    CaseRef,
    Frozen,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunFinished,
    RunStarted,
)
from workbench.judges.base import JudgeIdentity
from workbench.results.overview import overview_document
from workbench.results.plain_summary import summary_lines
from workbench.results.tally import Overview, Tally, added, tally
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord, CaseState
from workbench.store.history.run_list import RunRate, Trend
from workbench.store.store import Store


def shown(found: Overview, width: int) -> str:
    return written(overview_document(found, width))


def sizes() -> str:
    return "".join(shown(overview(), width) for width in (48, 60, 150))


def calls_of_judges() -> str:
    """A function may judge, so these are not called model calls."""
    found = replace(
        overview(), changes=None, trend=None, tally=replace(overview().tally, model_calls=0, judge_calls=34)
    )
    both = replace(found, tally=replace(found.tally, model_calls=1_318))
    return shown(found, 60) + shown(both, 60) + shown(both, 40)


def few_verdicts() -> str:
    few = replace(overview(), tally=Tally(Counter({"passed": 24, "failed": 48, "error": 7})), cases=79)
    none = replace(few, tally=Tally(Counter({"error": 7})), cases=7)
    nearly = replace(few, tally=Tally(Counter({"passed": 9_999, "failed": 1})), cases=10_000)
    broken = CaseRecord(PlannedCase(CaseRef("a", "a.evalset.json", "a", "one"), None, ""), "failed")
    broken.error = CaseError("judge", "no connection")
    with_errors = Overview(added([tally({"failed": 1}, [[broken]]), tally({"failed": 1}, [])]), 2)
    founds = [(few, 60), (few, 30), (none, 60), (nearly, 49), (with_errors, 60)]
    return "".join(shown(replace(found, groups=[], changes=None, trend=None), width) for found, width in founds)


def all_passed_once() -> str:
    """Only a run in which everything passed has a full block."""
    rates = (RunRate("1", "", 0, 100), RunRate("2", "", 99, 100), RunRate("3", "", 100, 100))
    return shown(replace(overview(0), changes=None, trend=Trend(rates, 100)), 60)


def frozen_and_live() -> str:
    def case(name: str, state: CaseState, score: float, frozen: Frozen | None = None) -> list[CaseRecord]:
        record = CaseRecord(PlannedCase(CaseRef("a", "a.evalset.json", "a", name), None, ""), state, frozen=frozen)
        record.scores = {"match": MetricResult("match", state, score, 0.8)}  # type: ignore[arg-type]
        return [record]

    replayed = Frozen("tools", "a.evalset.frozen/one.frozen.json", tools=4, live=1)
    cases = [case("one", "passed", 1.0, replayed), case("two", "failed", 0.5), case("three", "passed", 1.0)]
    both = added([tally({"passed": 1}, cases[:1]), tally({"passed": 1, "failed": 1}, cases[1:])])
    return shown(Overview(both, 3), 60) + shown(Overview(tally({"passed": 1}, cases[:1]), 1), 60)


def summary(store: Store, *, detailed: bool = False, told: bool = False) -> str:
    return joined(summary_lines(store, detailed=detailed, listed=told))


def criteria() -> str:
    """Evalsets with the same criteria share a line."""
    cases = [CaseRef("a", f"a/{number}.evalset.json", "s", "c") for number in range(8)]
    planned = tuple(PlannedCase(case, None, "defaults" if case != cases[0] else "own") for case in cases)
    store = feed([RunStarted("id", "/", "2026-01-01T00:00:00Z", planned)])
    for case in cases:
        own = {"threshold": 0.5, "contains": ["A-7"], "judge_model_options": {}}
        read_details(store.records[case]).criteria = {"m": own, "n": 1}
    return summary(store, detailed=True)


def failed(metrics: list[MetricResult], *, note: str = "") -> Store:
    store = feed([started([FAILED])], case_events(FAILED, "failed", metrics), [RunFinished(1.0)])
    read_details(store.records[FAILED]).turns[0].note = note
    return store


def repeats() -> str:
    refs = [ref("late_parcel", repeat=number) for number in (1, 2, 3)]
    other = MetricResult("response_match_score", "failed", 0.1, 0.8, "nothing matched")
    runs = [case_events(case, "failed", [TRAJECTORY_FAILED]) for case in refs[:2]]
    return summary(feed([started(refs)], *runs, case_events(refs[2], "failed", [other]), [RunFinished(1.0)]))


def common_errors() -> str:
    refs = [ref(f"case_{number}") for number in range(25)]
    return summary(feed([started(refs)], *(case_events(case, "error", error=CRASH) for case in refs), [RunFinished(1)]))


def broken() -> str:
    more = MetricResult("m", "error", None, 0.8, "division by zero")
    *first, end = failed_with_errors(FAILED)
    silent = MetricResult("response_match_score", "not_applicable", None, 0.8)
    other = case_events(PASSED, "not_evaluated", [silent])
    return summary(feed([started([FAILED, PASSED])], first, [MetricScored(FAILED, more), end], other))


def judges() -> str:
    function = JudgeIdentity("python:desk.judge:decide", "python", "a Python function", by="function")
    gemini = JudgeIdentity("gemini-2.5-flash \x1b[31m", "gemini", base_url="http://127.0.0.1:8123")
    metrics = [
        MetricResult("final_response_match_v2", "passed", 1.0, 0.8, "", {"judge": function.as_json()}),
        MetricResult("hallucinations_v1", "passed", 1.0, 0.8, "", {"judge": function.as_json()}),
        MetricResult("rubric_based_tool_use_quality_v1", "passed", 1.0, 0.8, "", {"judge": gemini.as_json()}),
    ]
    judged = summary(feed([started([PASSED])], case_events(PASSED, "passed", metrics)), detailed=True)
    return judged + summary(feed([started([PASSED])], case_events(PASSED, "passed")), detailed=True)


def causes() -> str:
    """Cases that share a cause are listed together with their own reasons, and the causes say who judged."""
    judge = JudgeIdentity("python:desk.judge:decide", "python", "a Python function", by="function").as_json()
    unsafe = MetricResult("safety_v1", "failed", 0.0, 0.8, "no", {"judge": judge})
    refs = [ref(f"case_{number}") for number in range(27)]
    runs = [
        *(case_events(case, "error", error=CaseError("timeout", "no answer within 3 s")) for case in refs[:2]),
        *(case_events(case, "failed", [unsafe]) for case in refs[2:4]),
        *(case_events(case, "failed", [wrong_amount(number)]) for number, case in enumerate(refs[4:])),
    ]
    alone = case_events(ref("alone"), "failed", [MetricResult("m", "failed", 0.1, 0.8, "bad")])
    return summary(feed([started([ref("alone"), *refs])], alone, *runs, [RunFinished(1.0)]))


def wrong_amount(number: int) -> MetricResult:
    """Return a failed criterion whose reason is another one in each case."""
    reason = f"turn 1: args.amount: number {number}, got text"
    return MetricResult("tool_trajectory_avg_score", "failed", 0.5, 1.0, reason)


SCENES: dict[str, Callable[[], str]] = {
    "overview-sizes": sizes,
    "overview-unread": lambda: shown(replace(overview(), changes=None, trend=None), 49),
    "overview-judges": calls_of_judges,
    "overview-few": few_verdicts,
    "overview-trend": all_passed_once,
    "overview-frozen": frozen_and_live,
    "summary": lambda: summary(all_statuses()),
    "summary-interrupted": lambda: summary(all_statuses(interrupted=True), told=True),
    "summary-passed": lambda: summary(feed([started([PASSED])], case_events(PASSED, "passed"), [RunFinished(0.31)])),
    "summary-criteria": criteria,
    "summary-blocked": lambda: summary(failed([TRAJECTORY_FAILED], note="error code SAFETY: \x1b[31mblocked")),
    "summary-repeats": repeats,
    "summary-common-errors": common_errors,
    "summary-broken": broken,
    "summary-judges": judges,
    "summary-causes": causes,
}


@pytest.mark.parametrize("name", SCENES)
def test_text_equals_its_golden_file(name: str) -> None:
    compare(name, SCENES[name]())


def test_each_golden_file_has_its_scene() -> None:
    assert names("overview-") | names("summary") == set(SCENES)
