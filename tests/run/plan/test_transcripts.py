"""Stored events: whether a transcript is complete, and if not, why."""

from collections.abc import Iterable
from typing import Any

import pytest

from workbench.events.events import (
    AgentActed,
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    MetricResult,
    MetricScored,
    Noticed,
    OutputCaptured,
    PlannedCase,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
    UserSimulated,
)
from workbench.store.transcripts import StoredCase, collect

REF = CaseRef("desk", "desk/a.evalset.json", "a", "one")
USER: dict[str, Any] = {"role": "user", "parts": [{"text": "hello"}]}
SCENARIO = {"starting_prompt": "hi", "conversation_plan": "ask"}


def stored(*events: Event) -> StoredCase:
    started = RunStarted("run", "/root", "", (PlannedCase(REF, None, "defaults"),))
    return collect([started, *events]).cases[REF]


def begun(turns: int | None = 1) -> CaseStarted:
    expected = None if turns is None else tuple({"user_content": USER} for _ in range(turns))
    return CaseStarted(REF, 0.0, expected, {}, SCENARIO if turns is None else None)


def turn(number: int = 0) -> list[Event]:
    return [
        TurnStarted(REF, number, USER),
        AgentActed(REF, number, {"author": "desk"}),
        TurnFinished(REF, number, {"user_content": USER, "number": number}),
    ]


def ended(kind: Any = None) -> CaseFinished:
    return CaseFinished(REF, "error" if kind else "passed", CaseError(kind, "why") if kind else None, 1.0)


def simulated(number: int, how: Any = "") -> UserSimulated:
    return UserSimulated(REF, number, how, {})


WHOLE: dict[str, Iterable[Event]] = {
    "passed": [begun(), *turn(), ended()],
    "no turns at all": [begun(0), ended()],
    "a criterion crashed": [begun(), *turn(), ended("metric_crashed")],
    "a judge failed": [begun(), *turn(), ended("judge")],
    "cancelled while it was judged": [begun(2), *turn(0), *turn(1), ended("cancelled")],
    "killed while it was judged": [begun(), *turn()],
    "a scenario": [begun(None), simulated(0), *turn(), simulated(1, "stop_signal"), ended()],
    "a scenario killed while it was judged": [begun(None), *turn(), simulated(1, "turn_limit")],
    "begun anew": [begun(), TurnStarted(REF, 0, USER), AgentActed(REF, 0, {}), begun(), *turn(), ended()],
    "begun anew, which is lost": [begun(2), *turn(0), TurnStarted(REF, 1, USER), *turn(0), *turn(1), ended()],
}
BROKEN: dict[str, tuple[Iterable[Event], str, str]] = {
    "the agent raised": ([begun(), TurnStarted(REF, 0, USER), ended("agent_raised")], "agent_raised", "why"),
    "another number of turns": ([begun(2), *turn(), ended("turn_count")], "turn_count", "why"),
    "a file that is none": ([ended("broken_file")], "broken_file", "why"),
    "cancelled in a turn": ([begun(2), *turn(), ended("cancelled")], "cancelled", "why"),
    "never started": ([], "cancelled", "before this case started"),
    "killed in a turn": ([begun(), TurnStarted(REF, 0, USER)], "cancelled", "while this case was running"),
    "a scenario killed between two turns": ([begun(None), *turn()], "cancelled", "while this case was running"),
    "a scenario whose simulator had no more quota": ([begun(None), *turn(), ended("quota")], "quota", "why"),
    "a scenario whose end is lost": ([begun(None), *turn(), ended()], "broken_file", "a turn of the transcript"),
    "a scenario whose last turn is lost": (
        [begun(None), *turn(), simulated(2, "turn_limit"), ended()],
        "broken_file",
        "a turn of the transcript",
    ),
    "its start is lost": ([*turn(), ended()], "broken_file", "the start of this case"),
    "a turn is lost": ([begun(2), *turn(1), ended()], "broken_file", "a turn of the transcript"),
    "the last turn is lost": ([begun(2), *turn(0), ended()], "broken_file", "a turn of the transcript"),
}


@pytest.mark.parametrize("events", WHOLE.values(), ids=WHOLE)
def test_complete_transcript_can_be_scored(events: Iterable[Event]) -> None:
    case = stored(*events)
    assert case.why_incomplete() is None
    assert [finished.turn for finished in case.turns] == list(range(len(case.turns)))


@pytest.mark.parametrize(("events", "kind", "message"), BROKEN.values(), ids=BROKEN)
def test_incomplete_transcript_has_a_reason(events: Iterable[Event], kind: str, message: str) -> None:
    case = stored(*events)
    error = case.why_incomplete()
    assert error is not None
    assert error.kind == kind
    assert message in error.message
    assert case.status == "error"


@pytest.mark.parametrize(("kind", "whole"), [(None, True), ("judge", True), ("quota", False), ("cancelled", False)])
def test_without_simulator_events_the_verdict_shows_whether_the_conversation_ended(kind: Any, whole: bool) -> None:
    case = stored(begun(None), *turn(), ended(kind))
    case.has_simulation = False
    assert (case.why_incomplete() is None) == whole


def test_case_not_evaluated_without_transcript_keeps_its_status() -> None:
    case = stored(begun(None), CaseFinished(REF, "not_evaluated", CaseError("simulator", "cannot"), 0.0))
    assert (case.status, case.why_incomplete()) == ("not_evaluated", CaseError("simulator", "cannot"))


def test_steps_exclude_verdicts_and_agent_events_of_finished_turns() -> None:
    output, scored = OutputCaptured(REF, "stdout", "x"), MetricScored(REF, MetricResult("m", "passed"))
    case = stored(begun(), *turn()[:2], output, turn()[2], scored, ended())
    assert case.steps == [TurnStarted(REF, 0, USER), output, turn()[2]]
    broken = stored(begun(), *turn()[:2], ended("timeout"))
    assert broken.steps == turn()[:2]


def test_events_of_unplanned_cases_are_ignored() -> None:
    other = CaseRef("desk", "desk/a.evalset.json", "a", "two")
    run = collect(
        [Noticed("info", "x"), RunStarted("r", "/x", "", (), "before"), TurnStarted(other, 0, {}), RunFinished(1)]
    )
    assert (run.run_id, run.root, run.scored_from, run.cases) == ("r", "/x", "before", {})
    assert stored().empty
    assert not stored(begun()).empty
