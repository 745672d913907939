"""Causes of a changed verdict: the first difference, and only inputs that can have had an effect."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    MetricResult,
    MetricScored,
    MetricStatus,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
)
from workbench.files.invocation import content_text
from workbench.freshness.changed_files import changed_files
from workbench.results.change_causes import Side, causes
from workbench.results.run_comparison import compare
from workbench.store.database.database import database
from workbench.store.database.values import add_contents
from workbench.store.history.summary import Summary, summarize_events

REF = CaseRef("desk", "d/r.evalset.json", "r", "late")
JUDGED = {"final_response_match_v2": {"threshold": 0.8, "judge_model_options": {"judge_model": "one"}}}


def _invocation(*steps: dict[str, Any], answer: str = "done") -> dict[str, Any]:
    events = [{"author": "desk", "content": {"parts": [step]}} for step in steps]
    final = {"parts": [{"text": answer}]}
    return {"user_content": {}, "final_response": final, "intermediate_data": {"invocation_events": events}}


def _call(name: str, **args: Any) -> dict[str, Any]:
    return {"function_call": {"name": name, "args": args}}


def _result(name: str, **response: Any) -> dict[str, Any]:
    return {"function_response": {"name": name, "response": response}}


def _started(*refs: CaseRef, **facts: Any) -> RunStarted:
    return RunStarted("x", "/", "", tuple(PlannedCase(ref, None, "") for ref in refs), **facts)


def _run(actual: dict[str, Any], *, criteria: Any = None, sources: Any = None, models: Any = None) -> Summary:
    passed = content_text(actual["final_response"]) == "done"
    status: CaseStatus = "passed" if passed else "failed"
    return summarize_events(
        [
            _started(REF, models={"desk": models or []}, sources={"desk": sources or {}}),
            CaseStarted(REF, 0.0, (), criteria or {"m": 1.0}),
            TurnFinished(REF, 0, actual),
            MetricScored(REF, MetricResult("m", "passed" if passed else "failed", float(passed), 1.0)),
            CaseFinished(REF, status, None, 1.0),
            RunFinished(1.0),
        ]
    )


def _kinds(before: Summary, after: Summary, state: Path) -> list[str]:
    (old,), (new,) = before.executions.values(), after.executions.values()
    return [cause.kind for cause in causes(Side(before, old), Side(after, new), changed_files(before, after, state))]


LOOKED_UP = [_call("look_up", order="A2"), _result("look_up", days=1)]


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        # The tool said something else, and all that follows from it is no cause.
        ([_call("look_up", order="A2"), _result("look_up", days=4), _call("refund", order="A2")], ["tool_output"]),
        ([_call("look_up", order="A3"), _result("look_up", days=4)], ["agent"]),
        ([*LOOKED_UP, _call("refund", order="A2")], ["agent"]),
        ([], ["agent"]),
    ],
)
def test_first_differing_step_is_the_cause(tmp_path: Path, after: list[dict[str, Any]], kinds: list[str]) -> None:
    before = _run(_invocation(*LOOKED_UP))
    assert _kinds(before, _run(_invocation(*after, answer="other")), tmp_path) == kinds


def test_steps_keep_their_order() -> None:
    (execution,) = _run(_invocation(*LOOKED_UP, *LOOKED_UP)).executions.values()
    steps = execution.steps
    assert steps is not None
    assert [step[0] for step in steps] == ["c", "r", "c", "r", "a"]
    assert steps[:2] == steps[2:4]


def test_changed_judge_is_not_a_changed_criterion(tmp_path: Path) -> None:
    other = {"final_response_match_v2": {**JUDGED["final_response_match_v2"], "judge_model_options": {}}}
    stricter = {"final_response_match_v2": {**JUDGED["final_response_match_v2"], "threshold": 0.9}}
    before = _run(_invocation(), criteria=JUDGED)
    assert _kinds(before, _run(_invocation(), criteria=other), tmp_path) == ["judge"]
    assert _kinds(before, _run(_invocation(), criteria=stricter), tmp_path) == ["criteria"]


def keep(state: Path, digest: str, source: str) -> None:
    database(state).write(lambda connection: add_contents(connection, {digest: source.encode()}, 0.0))


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ('Agent(model="rules-1")', 'Agent(model="rules-2")', ["model"]),
        ('Agent(model="rules-1", text="a")', 'Agent(model="rules-2", text="b")', ["prompt", "model"]),
        ('Agent(model="rules-1")', 'Other(model="rules-1")', ["code"]),
        ('Agent(model="rules-1", text="a")', 'Agent(model="rules-1", text="b")', ["prompt"]),
    ],
)
def test_changed_file_is_prompt_code_or_model(tmp_path: Path, before: str, after: str, kinds: list[str]) -> None:
    runs: list[Summary] = []
    for digest, source, answer in (("aa" * 16, before, "done"), ("bb" * 16, after, "other")):
        keep(tmp_path, digest, source)
        models = [name for name in ("rules-1", "rules-2") if name in source]
        runs.append(_run(_invocation(answer=answer), sources={"agent.py": digest}, models=models))
    old, new = runs
    assert _kinds(old, new, tmp_path) == kinds
    found = compare(old, new, tmp_path)
    assert [case.change for case in found.cases] == ["regression"]
    assert found.files[0].lines[1:] == (f"-{before}", f"+{after}")


@pytest.mark.parametrize(
    ("path", "before", "after", "kind"),
    [
        (
            "agent.py",
            'class Mine(BaseLlm):\n    model: str = "tiny-1"',
            'class Mine(BaseLlm):\n    model: str = "tiny-2"',
            "model",
        ),
        ("agent.py", 'Agent(model=Mine("tiny-1"))', 'Agent(model=Mine("tiny-2"))', "model"),
        ("agent.py", 'def f(model_name="tiny-1"): pass', 'def f(model_name="tiny-2"): pass', "model"),
        ("agent.py", 'Agent(model="tiny-1", text="a")', 'Agent(model="tiny-2", text="b")', "prompt"),
        ("orders.json", '{"A2": 1}', '{"A2": 4}', "data"),
        ("stock.csv", "a,1", "a,2", "data"),
        ("prompts/main.json", '{"system": "a"}', '{"system": "b"}', "prompt"),
        ("instruction.md", "Be brief.", "Be kind.", "prompt"),
        ("brief.j2", "Be brief.", "Be kind.", "prompt"),
        ("prices.txt", "tea 3", "tea 4", "data"),
        ("prices.yaml", "tea: 3", "tea: 4", "data"),
        ("root_agent.yaml", "name: a\ninstruction: Be brief.", "name: a\ninstruction: Be kind.", "prompt"),
    ],
)
def test_changed_file_has_the_expected_kind(tmp_path: Path, path: str, before: str, after: str, kind: str) -> None:
    runs: list[Summary] = []
    for digest, source, answer in (("aa" * 16, before, "done"), ("bb" * 16, after, "other")):
        keep(tmp_path, digest, source)
        runs.append(_run(_invocation(answer=answer), sources={path: digest}))
    found = compare(runs[0], runs[1], tmp_path)
    assert [file.kind for file in found.files] == [kind]
    assert [cause.kind for cause in found.cases[0].causes] == [kind]


TRAJECTORY = "tool_trajectory_avg_score"


def _judged(criteria: dict[str, Any], **scores: tuple[float, MetricStatus]) -> Summary:
    """Return a run of the same transcript, judged by these criteria."""
    status: CaseStatus = "passed" if all(result == "passed" for _, result in scores.values()) else "failed"
    return summarize_events(
        [
            _started(REF),
            CaseStarted(REF, 0.0, (), criteria),
            TurnFinished(REF, 0, _invocation()),
            *(MetricScored(REF, MetricResult(name, result, score, 0.5)) for name, (score, result) in scores.items()),
            CaseFinished(REF, status, None, 1.0),
            RunFinished(1.0),
        ]
    )


def test_criteria_differences_are_listed_without_a_changed_verdict(tmp_path: Path) -> None:
    before = _judged({"match": 0.95, TRAJECTORY: 1.0}, match=(1.0, "passed"))
    after = _judged(
        {"match": 1.0, TRAJECTORY: {"threshold": 1.0, "match_type": "IN_ORDER"}, "new": 1}, match=(1.0, "passed")
    )
    found = compare(before, after, tmp_path)
    assert (found.cases, found.unchanged) == ((), 1)
    assert found.differences == (
        "criteria: match threshold 0.95 -> 1.0",
        f"criteria: {TRAJECTORY} match_type default -> IN_ORDER",
        "criteria: new is new",
    )


def test_only_deciding_criteria_are_causes(tmp_path: Path) -> None:
    exact = {"match": 0.95, TRAJECTORY: {"threshold": 1.0, "match_type": "EXACT"}}
    loose = {"match": 0.5, TRAJECTORY: {"threshold": 1.0, "match_type": "IN_ORDER"}}
    before = _judged(exact, match=(1.0, "passed"), tool_trajectory_avg_score=(0.0, "failed"))
    after = _judged(loose, match=(1.0, "passed"), tool_trajectory_avg_score=(1.0, "passed"))
    (case,) = compare(before, after, tmp_path).cases
    assert [(cause.kind, cause.what) for cause in case.causes] == [
        ("criteria", f"{TRAJECTORY} match_type EXACT -> IN_ORDER")
    ]


def test_no_judge_is_blamed_for_a_changed_verdict_of_a_computed_criterion(tmp_path: Path) -> None:
    """Another end state can follow from the same words. Only the agent's code explains it."""
    runs: list[Summary] = []
    for digest, source, score in (("aa" * 16, "a()", 1.0), ("bb" * 16, "b()", 0.0)):
        keep(tmp_path, digest, source)
        state = MetricResult("session_state_match", "passed" if score else "failed", score, 1.0)
        words = MetricResult("safety_v1", "passed", 1.0, 0.8, "", {"judge": {"kind": "gemini", "model": "m"}})
        runs.append(
            _ending(
                RunStarted("x", "/", "", (PlannedCase(REF, None, ""),), sources={"desk": {"agent.py": digest}}),
                CaseStarted(REF, 0.0, (), {"session_state_match": 1.0, "safety_v1": 0.8}),
                TurnFinished(REF, 0, _invocation()),
                MetricScored(REF, state),
                MetricScored(REF, words),
                CaseFinished(REF, "passed" if score else "failed", None, 1.0),
            )
        )
    before, after = runs
    assert _kinds(before, after, tmp_path) == ["code"]


def test_agent_that_differs_only_in_calls_of_inner_agents_is_named(tmp_path: Path) -> None:
    runs: list[Summary] = []
    for inner, score in ((LOOKED_UP[0], 1.0), (_call("guess"), 0.0)):
        result = MetricResult(TRAJECTORY, "passed" if score else "failed", score, 1.0)
        runs.append(
            _ending(
                CaseStarted(REF, 0.0, (), {TRAJECTORY: {"threshold": 1.0, "include_agent_tools": True}}),
                TurnFinished(REF, 0, _invocation(), inner_calls=(inner["function_call"],)),
                MetricScored(REF, result),
                CaseFinished(REF, "passed" if score else "failed", None, 1.0),
            )
        )
    before, after = runs
    assert _kinds(before, after, tmp_path) == ["agent"]


@pytest.mark.parametrize(("score", "names_it"), [(0.9, True), (0.3, False)])
def test_threshold_is_a_cause_only_if_the_score_lies_between_both(tmp_path: Path, score: float, names_it: bool) -> None:
    before = _judged({"match": 0.8}, match=(0.99, "passed"))
    after = _judged({"match": 0.95}, match=(score, "failed"))
    (case,) = compare(before, after, tmp_path).cases
    assert ("criteria" in [cause.kind for cause in case.causes]) == names_it


def test_execution_without_steps_has_no_step_as_cause(tmp_path: Path) -> None:
    before, after = _run(_invocation(*LOOKED_UP)), _run(_invocation(answer="other"))
    next(iter(before.executions.values())).steps = None
    assert _kinds(before, after, tmp_path) == []


def _ending(*ended: Event) -> Summary:
    return summarize_events([_started(REF), *ended])


def _ended(status: CaseStatus, error: CaseError | None = None) -> Summary:
    return _ending(CaseFinished(REF, status, error, 1.0))


CUT = _ended("error", CaseError("cancelled", "cancelled"))
HUNG = CaseError("timeout", "hung")


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (_ended("passed"), _ending(), "unfinished"),
        (_ended("passed"), CUT, "unfinished"),
        (_ended("failed"), _ending(), "unfinished"),
        (_ending(), _ended("passed"), "unfinished"),  # No fix: it is not known that it had not passed.
        (_ending(), CUT, "unfinished"),
        (_ended("passed"), _ended("error", HUNG), "regression"),
        (_ended("error", HUNG), _ended("passed"), "fix"),
    ],
)
def test_case_without_an_end_has_no_changed_verdict(
    tmp_path: Path, before: Summary, after: Summary, change: str
) -> None:
    found = compare(before, after, tmp_path)
    (case,) = found.cases
    assert (case.change, found.is_empty) == (change, change == "unfinished")
    assert change != "unfinished" or not case.causes


@pytest.mark.parametrize("instead", [{"eval_id": ""}, {"agent": ""}])
@pytest.mark.parametrize(("before", "change"), [("passed", "regression"), ("failed", "other"), ("error", None)])
def test_cases_of_a_broken_or_unowned_evalset_are_compared_with_its_error(
    tmp_path: Path, before: CaseStatus, change: str | None, instead: dict[str, Any]
) -> None:
    ref = replace(REF, **instead)
    error = CaseError("broken_file", "brackets are never closed")
    later = summarize_events([_started(ref), CaseFinished(ref, "error", error, 0.0)])
    found = compare(_ended(before), later, tmp_path)
    assert [(case.change, case.ref, case.causes) for case in found.cases] == ([(change, REF, ())] if change else [])
    assert found.unchanged == (change is None)
    assert (found.only_before, found.only_after, found.is_empty) == ((), (), False)


def test_error_of_another_evalset_is_not_compared(tmp_path: Path) -> None:
    ref = replace(REF, evalset_file="d/other.evalset.json", eval_id="")
    later = summarize_events([_started(ref), CaseFinished(ref, "error", None, 0.0)])
    found = compare(_ended("passed"), later, tmp_path)
    assert found.is_empty
    assert len(found.only_before) == len(found.only_after) == 1


def _repeats(*statuses: CaseStatus) -> Summary:
    refs = [replace(REF, repeat=number) for number in range(1, len(statuses) + 1)]
    ends = [CaseFinished(ref, status, None, 1.0) for ref, status in zip(refs, statuses, strict=True)]
    return summarize_events([_started(*refs), *ends])


@given(st.lists(st.sampled_from(["passed", "failed", "error"]), min_size=1, max_size=6), st.data())
def test_same_pass_count_in_other_repeats_is_not_a_change(before: list[CaseStatus], data: st.DataObject) -> None:
    after = data.draw(st.permutations(before))
    found = compare(_repeats(*before), _repeats(*after), Path())
    assert not found.cases
    assert found.unchanged == len(before)


@given(st.integers(0, 6), st.integers(0, 6), st.randoms())
def test_number_of_regressions_is_the_drop_in_passes(before: int, after: int, random: Random) -> None:
    statuses: list[list[CaseStatus]] = [
        ["passed" if one < passes else "failed" for one in range(6)] for passes in (before, after)
    ]
    for one in statuses:
        random.shuffle(one)
    found = compare(_repeats(*statuses[0]), _repeats(*statuses[1]), Path())
    assert found.count("regression") == max(before - after, 0)
    assert found.count("fix") == max(after - before, 0)
    assert len({case.before.ref for case in found.cases}) == len(found.cases)
