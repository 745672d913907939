"""A case counts under its first cause: error, calls, answer, judged criteria, others."""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.stores import case_events, feed, ref, started
from workbench.criteria import registry
from workbench.criteria.base import Scored, ScoreRequest
from workbench.criteria.description import CriterionDescription
from workbench.criteria.registry import case_cause, criterion_cause
from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    MetricResult,
    MetricScored,
    RunFinished,
    TurnStarted,
)
from workbench.files.criteria import Criterion
from workbench.results.causes import failing_groups, group_by_cause
from workbench.run.scoring.verdict import metric_error
from workbench.store.history.execution_rows import RunRows, add_executions
from workbench.store.history.summary import Summary
from workbench.store.reasons import UNKNOWN

CALLS, ANSWER = "tool_trajectory_avg_score", "response_match_score"
FUNCTION = {"judge": {"model": "python:desk.judge:decide", "kind": "python", "by": "function"}}
MODEL = {"judge": {"model": "gemini-2.5-flash", "kind": "gemini", "by": "model"}}


def invocation(answer: str, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    uses = [{"name": name, "args": args} for name, args in calls]
    return {"final_response": {"parts": [{"text": answer}]}, "intermediate_data": {"tool_uses": uses}}


def compared(expected: dict[str, Any], actual: dict[str, Any]) -> list[Scored]:
    """Return the results of both comparing criteria for a case of two turns, the first of which is right."""
    sides = (invocation("hello"), expected), (invocation("hello"), actual)
    criteria = Criterion(CALLS, 1.0, 1.0, {}), Criterion(ANSWER, 1.0, 1.0, {})
    return [registry.score(ScoreRequest(criterion, *sides)) for criterion in criteria]


def judged(name: str, details: dict[str, Any], judge: dict[str, Any]) -> Scored:
    turn = MetricResult(name, "failed", 0.0, 1.0, "no", details)
    return Scored(MetricResult(name, "failed", 0.0, 1.0, "no", judge), (turn,))


def rubric(number: int, judge: dict[str, Any]) -> Scored:
    rows = [
        {"rubric_id": "polite", "verdict": "yes"},
        {"rubric_id": "no_jargon", "verdict": "no", "rationale": f"ticket {number}"},
    ]
    return judged("rubric_based_final_response_quality_v1", {"rubrics": rows}, judge)


def claims(number: int, label: str) -> Scored:
    sentences = [{"text": f"{number} days", "label": each, "counts": True} for each in ("supported", label)]
    return judged("hallucinations_v1", {"texts": [{"sentences": sentences}]}, MODEL)


def planted(number: int) -> dict[str, CaseError | list[Scored]]:
    """Return one case of each planted cause, with values that differ from case to case."""
    order, price, date = f"A-{number}", 10 + number / 4, f"{number % 28 + 1} November"
    fine, late = f"Order {order} arrives on {date}.", f"Order {order} is on its way."
    find, track = ("find_order", {"id": order}), ("track_parcel", {"id": order})
    paid = invocation(fine, find, ("refund", {"id": order, "amount": price}))
    # The calls of some cases also lead to another answer, which must not count.
    answer = late if number % 2 else fine
    return {
        "LookupError: no order <id> in <path>": CaseError(
            "agent_raised", f"LookupError: no order '{order}' in /srv/{number}/orders.db"
        ),
        "no answer within <number> s": CaseError("timeout", f"no answer within {number} s"),
        "refund: amount is text, expected number": compared(
            paid, invocation(answer, find, ("refund", {"id": order, "amount": f"{price:.2f}"}))
        ),
        "track_parcel not called": compared(invocation(fine, find, track), invocation(answer, find)),
        "find_order called too often": compared(invocation(fine, find), invocation(answer, find, find)),
        "track_parcel called before find_order": compared(
            invocation(fine, find, track), invocation(answer, track, find)
        ),
        "answer lacks a date": compared(invocation(fine, find), invocation(late, find)),
        "answer has another amount": compared(
            invocation(f"You get {price} euros back."), invocation(f"You get {price + 1} euros back.")
        ),
        "rubric no_jargon not met": [*compared(paid, paid), rubric(number, FUNCTION), claims(number, "unsupported")],
        "claim contradicts what the agent knew": [*compared(paid, paid), claims(number, "contradictory")],
    }


def events_of(case: CaseRef, outcome: CaseError | Sequence[Scored]) -> list[Event]:
    begun: list[Event] = [CaseStarted(case, 0.0, (), {}), *(TurnStarted(case, turn, {}) for turn in (0, 1))]
    if isinstance(outcome, CaseError):
        return [*begun, CaseFinished(case, "error", outcome, 1.0)]
    scored = [MetricScored(case, one.result, one.turns) for one in outcome]
    return [*begun, *scored, CaseFinished(case, "failed", None, 1.0)]


def run(cases: dict[CaseRef, CaseError | list[Scored]], dice: random.Random) -> list[Event]:
    """Return the events of a run in which cases end in any order, and their judges answer in any order."""
    each = []
    for case, outcome in cases.items():
        if not isinstance(outcome, CaseError):
            outcome = dice.sample(outcome, len(outcome))
        each.append(events_of(case, outcome))
    mixed = [number for number, events in enumerate(each) for _ in events]
    dice.shuffle(mixed)
    left = [iter(events) for events in each]
    return [started(cases), *(next(left[number]) for number in mixed), RunFinished(1.0)]


CASES = {
    ref(f"case_{number}_{place}"): (text, outcome)
    for number in range(20)
    for place, (text, outcome) in enumerate(planted(number).items())
}


@pytest.mark.parametrize("seed", range(3))
def test_200_failures_of_ten_planted_causes_are_ten_groups(seed: int) -> None:
    events = run({case: outcome for case, (_, outcome) in CASES.items()}, random.Random(seed))
    store = feed(events)
    groups = failing_groups(store.current_records())
    assert [len(group.cases) for group in groups] == [20] * 10
    assert {record.ref: group.cause.text for group in groups for record in group.cases} == {
        case: text for case, (text, _) in CASES.items()
    }
    assert [group.cause.text for group in groups if group.cause.by_function] == ["rubric no_jargon not met"]
    counts = store.counts()
    assert sum(len(group.cases) for group in groups) == counts["failed"] + counts["error"] == 200


@given(st.randoms(use_true_random=False), st.sets(st.sampled_from(sorted(CASES)), max_size=12))
def test_stored_causes_equal_those_of_the_running_run(dice: random.Random, chosen: set[CaseRef]) -> None:
    events = run({case: CASES[case][1] for case in sorted(chosen)}, dice)
    store, summary, file = feed(events), Summary(), Path("no database is read")
    rows = RunRows(1, file)
    for number, event in enumerate(events, 1):
        rows.take(event, number, 1)
    add_executions(summary, rows.rows(rows.places.values()), file)
    live = {record.ref: record.cause for record in store.current_records()}
    assert {case: execution.cause for case, execution in summary.executions.items()} == live


def test_error_of_a_case_is_its_cause_before_any_failed_criterion() -> None:
    failed = criterion_cause(MetricResult(CALLS, "failed", 0.0, 1.0))
    assert failed is not None
    assert failed.layer == "calls"
    found = case_cause("error", "it broke", [(MetricResult(CALLS, "failed", 0.0, 1.0), ())])
    assert (found and found.layer, found and found.text) == ("error", "it broke")


def test_error_of_a_criterion_is_the_cause_of_an_error_without_a_message() -> None:
    results = [MetricResult(CALLS, "failed", 0.0, 1.0), MetricResult("m", "error", None, 0.8, "turn 2: no 7 quota")]
    found = case_cause("error", None, [(result, ()) for result in results])
    assert found is not None
    assert (found.layer, found.text) == ("error", "m: no <number> quota")


def test_error_of_a_criterion_has_the_same_cause_in_any_turn() -> None:
    found = set()
    for turn, unlabelled, of in ((1, 1, 1), (2, 3, 7), (12, 10, 31)):
        reason = f"turn {turn}: {unlabelled} of {of} sentences have no label"
        for name in ("hallucinations_v1", "my-metric2"):
            results = [(MetricResult(name, "error", None, 0.8, reason), ())]
            case = metric_error([Scored(*result) for result in results])
            assert case is not None
            with_message, without = case_cause("error", case.message, results), case_cause("error", None, results)
            assert with_message == without
            found.add(with_message)
    texts = {cause and cause.text for cause in found}
    assert texts == {f"{name}: some sentences have no label" for name in ("hallucinations_v1", "my-metric2")}


def test_failed_criterion_is_the_cause_even_if_another_criterion_had_an_error() -> None:
    results = [MetricResult("m", "error", None, 0.8, "no connection"), MetricResult(CALLS, "failed", 0.0, 1.0)]
    found = case_cause("failed", "m: no connection", [(result, ()) for result in results])
    assert found is not None
    assert found.layer == "calls"


@pytest.mark.parametrize("status", ["passed", "not_evaluated", "cancelled"])
def test_case_without_failure_or_error_has_no_cause(status: str) -> None:
    assert case_cause(status, "stopped", [(MetricResult(CALLS, "failed", 0.0, 1.0), ())]) is None


@pytest.mark.parametrize("status", ["informational", "not_applicable", "passed", "not_evaluated"])
def test_criterion_that_did_not_fail_is_no_cause(status: Any) -> None:
    result = MetricResult(CALLS, status, 0.0, 1.0)
    assert criterion_cause(result) is None
    assert case_cause("failed", None, [(result, ())]) == UNKNOWN


@pytest.mark.parametrize(
    ("name", "layer", "text"),
    [
        (CALLS, "calls", "tool calls differ"),
        (ANSWER, "answer", "answer differs"),
        ("hallucinations_v1", "judged", "hallucinations_v1 below its threshold"),
        ("my_metric", "other", "my_metric failed"),
    ],
)
@pytest.mark.parametrize("details", [{}, {"rows": [1], "texts": "x"}, {"rows": [{"mark": "moved"}], "matched": 3}])
def test_details_of_an_unknown_form_give_a_general_cause(name: str, layer: str, text: str, details: Any) -> None:
    result = MetricResult(name, "failed", 0.0, 1.0, "some reason", details)
    found = criterion_cause(result, [result])
    assert found is not None
    assert (found.layer, found.text) == (layer, text)


@pytest.mark.parametrize(
    ("names", "first", "ending"),
    [
        (["a_metric", "b_metric"], "a_metric", "failed"),
        (
            ["rubric_based_tool_use_quality_v1", "hallucinations_v1"],
            "rubric_based_tool_use_quality_v1",
            "below its threshold",
        ),
    ],
)
def test_first_cause_does_not_depend_on_which_criterion_ended_first(names: list[str], first: str, ending: str) -> None:
    results = [MetricResult(name, "failed", 0.0, 1.0) for name in names]
    found = {case_cause("failed", None, [(one, ()) for one in order]) for order in (results, results[::-1])}
    assert [cause and cause.text for cause in found] == [f"{first} {ending}"]


def test_custom_function_that_replaces_a_criterion_does_not_use_its_causes() -> None:
    found = criterion_cause(MetricResult(CALLS, "failed", 0.0, 1.0, "", {"function": "a.b", "adk_status": "FAILED"}))
    assert found is not None
    assert (found.layer, found.text) == ("other", f"{CALLS} failed")


def test_case_that_runs_again_has_the_cause_of_its_last_attempt() -> None:
    case = ref("again")
    error = case_events(case, "error", error=CaseError("crashed", "it died"))
    failed = case_events(case, "failed", [MetricResult(CALLS, "failed", 0.0, 1.0)])
    store = feed([started([case])], error, failed)
    assert store.records[case].cause == criterion_cause(MetricResult(CALLS, "failed", 0.0, 1.0))
    store = feed([started([case])], failed, case_events(case, "passed"))
    assert store.records[case].cause is None


def test_verdict_without_details_has_a_general_cause() -> None:
    case = ref("brief")
    scored = MetricScored(case, MetricResult(CALLS, "failed", 0.0))
    end = CaseFinished(case, "failed", None, 1.0)
    for before, text in (([scored], "tool calls differ"), ([], UNKNOWN.text)):
        cause = feed([started([case])], before, [end]).records[case].cause
        assert cause is not None
        assert cause.text == text


def test_group_keeps_the_given_order_of_its_cases() -> None:
    causes = [UNKNOWN] * 3
    assert group_by_cause(zip("cab", causes, strict=True))[0].cases == ("c", "a", "b")


def shortcoming(result: MetricResult, turns: Sequence[MetricResult]) -> Any:
    """The function that a criterion of another package names; what it returns is in the result's reason."""
    if result.reason == "raises":
        raise LookupError("details of another version")
    return None if result.reason == "nothing" else result.reason


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("answer is too\nlong \x1b[31m", "answer is too long ␛[31m"),
        ("", "brevity below its threshold"),
        ("nothing", "brevity below its threshold"),
        ("raises", "brevity below its threshold"),
    ],
)
def test_criterion_of_another_package_names_its_causes(
    returned: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The module is looked up by its name, as one of an installed package would be.
    monkeypatch.setitem(sys.modules, "brevity_example", SimpleNamespace(shortcoming=shortcoming))
    named = CriterionDescription(
        name="brevity",
        title="short answers",
        measures="",
        when_to_use="",
        how_to_read="",
        score="",
        cause="brevity_example:shortcoming",
    )
    monkeypatch.setattr("workbench.criteria.registry.descriptions", lambda: {"brevity": named})
    found = criterion_cause(MetricResult("brevity", "failed", 0.0, 1.0, returned))
    assert found is not None
    assert (found.layer, found.text) == ("other", text)
