"""Interrupted runs: results, transcripts, answers of models, and usage."""

from typing import Any

from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    MetricResult,
    MetricScored,
    PlannedCase,
    RunStarted,
    TurnFinished,
    TurnStarted,
    Usage,
    UserSimulated,
)
from workbench.run.plan.source import Answer, InterruptedRun, interrupted_run

ONE = CaseRef("desk", "desk/all.evalset.json", "all", "one")
USER: dict[str, Any] = {"role": "user", "parts": [{"text": "hello"}]}
SCENARIO = {"starting_prompt": "hello", "conversation_plan": "x"}


def interrupted(*events: Event) -> InterruptedRun:
    found = interrupted_run([RunStarted("run-1", "/root", "now", (PlannedCase(ONE, None, ""),)), *events])
    assert found is not None
    return found


def started(turns: int | None) -> CaseStarted:
    expected = None if turns is None else tuple({"user_content": USER} for _ in range(turns))
    return CaseStarted(ONE, 0.0, expected, {}, SCENARIO if turns is None else None)


def finished(turn: int, calls: int) -> list[Event]:
    usage = Usage(model_calls=calls, judge_calls=turn)
    return [TurnStarted(ONE, turn, USER), TurnFinished(ONE, turn, {"user_content": USER}, "", usage)]


def question(*cached: bool) -> dict[str, Any]:
    return {"replies": [{"cached": one, "input_tokens": 10, "output_tokens": None} for one in cached]}


def test_last_question_of_the_simulated_user_is_part_of_the_usage() -> None:
    events = [started(None), *finished(0, 1), UserSimulated(ONE, 1, "", question(False)), *finished(1, 2)]
    (case,) = interrupted(*events).cases.values()
    assert not case.has_transcript
    (case,) = interrupted(*events, UserSimulated(ONE, 2, "stop_signal", question(False, True))).cases.values()
    assert case.has_transcript
    assert case.usage == Usage(model_calls=2, judge_calls=2, judge_calls_cached=1, judge_input_tokens=10)


def test_judge_calls_of_a_case_that_only_needs_scores_count_against_the_limit() -> None:
    verdict = MetricScored(ONE, MetricResult("safety_v1", "passed", 1.0, details={"tally": {"calls": 3}}))
    run = interrupted(started(1), *finished(0, 1), verdict)
    assert (run.transcripts, run.judge_calls) == (1, 3)
    assert interrupted(started(1), verdict).judge_calls == 0, "it starts again"
    ended = CaseFinished(ONE, "passed", None, 1.0, Usage(judge_calls=4))
    assert interrupted(started(1), *finished(0, 1), verdict, ended).judge_calls == 4


def test_frozen_case_that_did_not_end_runs_again() -> None:
    """Only its end says how it was replayed."""
    for mode, is_scored in (("", True), ("tools", False)):
        announced = RunStarted(
            "run-1", "/root", "now", (PlannedCase(ONE, None, ""),), inputs={"options": {"frozen": mode}}
        )
        found = interrupted_run([announced, started(1), *finished(0, 1)])
        assert found is not None
        assert found.cases[ONE].has_transcript is is_scored


def test_answers_count_only_for_cases_that_start_again() -> None:
    answers = {ONE: [Answer(ONE, "desk", "d1", ("{}",)), Answer(ONE, "desk", "d2", ("{}",))]}
    cancelled = CaseFinished(ONE, "error", CaseError("cancelled", "cancelled"), 1.0)
    for events, count in (
        ([started(2), *finished(0, 1)], 2),
        ([started(1), TurnStarted(ONE, 0, USER), cancelled], 2),
        ([started(1), *finished(0, 1)], 0),
        ([started(1), *finished(0, 1), CaseFinished(ONE, "passed", None, 1.0)], 0),
        ([], 2),
    ):
        found = interrupted(*events)
        for ref, case in found.cases.items():
            case.answers = answers.get(ref, [])
        assert found.answers == count
