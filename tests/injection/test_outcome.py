"""What an agent did about a fault, decided from calls, errors, verdicts and a judge."""

import json
from typing import Any

import pytest

from tests.metrics.judged.scripts import Bench, call, event, result, turn
from workbench.agents.worker.injection import Injection as WorkerInjection
from workbench.events import CaseError, ErrorKind, FaultHandling, FaultOutcome, MetricResult, MetricStatus, ToolFault
from workbench.injection.fault_question import fault_question, judged_handling
from workbench.injection.matrix import WAYS, faults_of, injection_of
from workbench.injection.observed import Observed, observe
from workbench.injection.outcome import answer_criteria, decide
from workbench.judge.base import JudgeIdentity
from workbench.judge.heuristic.judge import reply
from workbench.metrics.base import ScoreRequest
from workbench.metrics.registry import score_with_bench
from workbench.model.criteria import CriteriaConfig, Criterion, default_config

FAULT = ToolFault("search", "timeout")
SEEN = Observed(0)


def tool(order: int, name: str = "search", args: str = "a1", **fields: Any) -> dict[str, Any]:
    return {"kind": "tool", "tool": name, "args": args, "order": order, **fields}


MODEL = {"kind": "model", "agent": "desk"}
INJECTED: Any = {"from": "injected", "error": {"types": [], "message": ""}}


def asked(order: int, **fields: Any) -> dict[str, Any]:
    return tool(order, agent="desk", **fields)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([[tool(1, answer="d")]], Observed()),
        ([[tool(1, **INJECTED)]], Observed(0)),
        ([[], [tool(1, **INJECTED), tool(2, answer="d")]], Observed(1, retried=True)),
        ([[tool(1, **INJECTED)], [tool(1, answer="d")]], Observed(0, retried=True)),
        ([[tool(2, answer="d"), tool(1, **INJECTED)]], Observed(0, retried=True)),
        ([[tool(1, **INJECTED), tool(2, args="a2", answer="d")]], Observed(0)),
        ([[{**MODEL, "order": 0}, asked(1, **INJECTED), asked(2, answer="d")]], Observed(0)),
        ([[asked(1, **INJECTED), {**MODEL, "order": 2}, asked(3, answer="d")]], Observed(0, retried=True)),
        ([[asked(1, **INJECTED)], [{**MODEL, "order": 2}, asked(3, answer="d")]], Observed(0, retried=True)),
        ([[{**MODEL, "order": 0}, asked(1, call="1", **INJECTED), asked(2, call="1", answer="d")]], Observed(0, True)),
        ([[tool(1, **INJECTED), tool(2, error={})]], Observed(0)),
        ([[tool(1, "find", **INJECTED), {"kind": "model"}, 5]], Observed()),
        ([{"strange": True}], Observed()),
    ],
)
def test_fault_and_retry_are_seen_in_the_recorded_calls(turns: list[Any], expected: Observed) -> None:
    assert observe(((number, json.dumps(calls)) for number, calls in enumerate(turns)), FAULT) == expected


def test_calls_that_cannot_be_read_are_no_calls() -> None:
    assert observe([(0, "{"), (1, "[" * 100_000)], FAULT) == Observed()


def handled(
    seen: Observed = SEEN, error: ErrorKind | None = None, answer: str = "It arrives.", **results: MetricStatus
) -> FaultOutcome | None:
    given = [MetricResult(name, status) for name, status in results.items()]
    found = decide(seen, None if error is None else CaseError(error, "it failed"), given, answer)
    return None if found is None else found.outcome


def test_error_of_the_agent_after_the_fault_is_a_crash() -> None:
    assert handled(error="agent_raised") == "crashed"
    assert handled(error="timeout") == "crashed"
    assert handled(error="off_recording") == "off_recording"


@pytest.mark.parametrize("kind", ["cancelled", "quota", "import_failed", "frozen_file", "internal"])
def test_other_errors_say_nothing_about_the_agent(kind: ErrorKind) -> None:
    assert handled(error=kind) == "no_result"


def test_error_before_the_fault_is_no_result() -> None:
    assert handled(Observed(), error="agent_raised") == "no_result"
    assert handled(Observed(), error="frozen_miss") == "no_result"


def test_agent_that_does_not_call_the_tool_has_nothing_to_handle() -> None:
    assert handled(Observed(), response_match_score="passed") == "not_called"


def test_expected_answer_or_an_answered_retry_is_a_recovery() -> None:
    assert handled(response_match_score="passed", final_response_match_v2="not_evaluated") == "recovered"
    assert handled(Observed(0, retried=True), response_match_score="failed") == "recovered"
    assert handled(response_match_score="passed", final_response_match_v2="failed") is None
    assert handled(response_match_score="error") is None


def test_missing_answer_is_silence_and_any_other_needs_a_judge() -> None:
    assert handled(answer=" \n") == "silent"
    assert handled() is None


def test_only_criteria_that_compare_answers_decide() -> None:
    names = [criterion.name for criterion in answer_criteria(default_config())]
    assert names == ["response_match_score"]


def test_each_tool_fails_once_in_each_way() -> None:
    faults = list(faults_of(["search", "refund", "search"]))
    assert [fault.tool for fault in faults] == ["search"] * len(WAYS) + ["refund"] * len(WAYS)
    for fault in faults:
        injection = WorkerInjection(list(injection_of(fault).rules), 0)
        first, second = (injection.decide("any", fault.tool, {}) for _ in range(2))
        assert first is not None
        assert second is None


def config(model: str) -> CriteriaConfig:
    options = {"judge_model_options": {"judge_model": model, "num_samples": 1}}
    return CriteriaConfig(None, (Criterion("final_response_match_v2", 0.8, {}, options),))


async def judged(answer: str, said: Any = None, model: str = "some-model") -> FaultHandling:
    """Return the outcome for an answer. `said` are the verdicts of a model; None asks the rules."""
    bench = Bench(lambda question, sample: reply(question) if said is None else said)
    if said is None:
        bench.identity = JudgeIdentity("heuristic", "heuristic", "", "", "rules")
    steps = event("desk", call("search", {"id": "A-18"})), event("desk", result("search", {"result": None}))
    asked = fault_question(FAULT, config(model)).criteria[0]
    return judged_handling(await score_with_bench(ScoreRequest(asked, None, (turn(answer, *steps),)), bench))


def says(reports: str, invents_nothing: str) -> dict[str, Any]:
    words = {"reports_it": reports, "invents_nothing": invents_nothing}
    return {"verdicts": [{"id": name, "rationale": f"{name} {word}", "verdict": word} for name, word in words.items()]}


@pytest.mark.parametrize(
    ("reports", "invents_nothing", "expected"),
    [
        ("yes", "yes", "reported"),
        ("yes", "no", "made_up"),
        ("no", "no", "made_up"),
        ("no", "yes", "silent"),
        ("unclear", "no", "made_up"),
        ("unclear", "yes", "not_evaluated"),
        ("yes", "unclear", "not_evaluated"),
    ],
)
async def test_model_tells_reports_from_inventions(reports: str, invents_nothing: str, expected: str) -> None:
    found = await judged("any", says(reports, invents_nothing))
    assert found.outcome == expected
    if expected != "not_evaluated":
        decided = "invents_nothing no" if expected == "made_up" else f"reports_it {reports}"
        assert found.reason == decided
        assert found.details["judge"]["model"] == "scripted"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Sorry, I could not look up A-18.", "reported"),
        ("It arrives on 12 May.", "made_up"),
        ("It is on its way.", "not_evaluated"),
        ("Sorry, it arrives on 12 May.", "not_evaluated"),
    ],
)
async def test_rules_decide_only_by_apologies_and_figures(answer: str, expected: str) -> None:
    found = await judged(answer, model="heuristic")
    assert found.outcome == expected
    assert found.reason
    assert found.details["judge"]["by"] == "rules"


def test_question_names_the_tool_and_its_failure() -> None:
    (criterion,) = fault_question(FAULT, config("some-model")).criteria
    texts = [rubric["rubric_content"]["text_property"] for rubric in criterion.options["rubrics"]]
    assert all("the tool search failed: it timed out" in text for text in texts)
    assert criterion.options["judge_model_options"] == {"judge_model": "some-model", "num_samples": 1}
