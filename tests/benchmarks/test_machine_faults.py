"""What the faults on other machines are judged by: wrong, missing, double and mixed verdicts are all seen."""

from dataclasses import replace

import pytest

from benchmarks.machine_faults import wrong_verdicts
from benchmarks.marked_project import Outcome, outcomes, under_way
from workbench.events import (
    AttemptLost,
    CaseFinished,
    CasePlaced,
    CaseRef,
    CaseStarted,
    Event,
    LostAttempt,
    OutputCaptured,
    PlannedCase,
    RunStarted,
    TurnFinished,
)

REF = CaseRef("desk", "desk/parcels.evalset.json", "parcels", "good_000")
MARKS = ("mark" + "a" * 32, "mark" + "b" * 32)
RIGHT = Outcome("passed", 2, 1, 0, "", "", frozenset(MARKS[:1]), frozenset(), "told")


@pytest.mark.parametrize(
    ("ends", "wrong"),
    [
        ([RIGHT], ""),
        ([replace(RIGHT, status="cancelled"), RIGHT], ""),
        ([], "has 0 verdicts"),
        ([RIGHT, RIGHT], "has 2 verdicts"),
        ([replace(RIGHT, told="another")], "another instead of told"),
        ([replace(RIGHT, marks=frozenset(MARKS))], "mixes 2 attempts"),
        ([replace(RIGHT, attempt=1, lost=2)], "attempt 1 after 2 lost ones"),
        ([replace(RIGHT, attempt=4, lost=3)], "attempt 4 after 3 lost ones"),
        ([replace(RIGHT, attempt=4, lost=3, waited=1)], ""),
        ([replace(RIGHT, status="error", kind="attempt_lost", why="lost one")], ""),
        ([replace(RIGHT, status="error", kind="attempt_lost")], "is an error"),
        ([replace(RIGHT, status="error", kind="crashed", why="killed")], "is an error: crashed: killed"),
    ],
)
def test_wrong_verdicts_are_seen(ends: list[Outcome], wrong: str) -> None:
    found = list(wrong_verdicts({"desk/good_000": ends}, {"desk/good_000": "told"}, ("attempt_lost",)))
    assert [wrong in one for one in found] == ([True] if wrong else [])


def test_missing_cases_are_seen() -> None:
    assert list(wrong_verdicts({}, {"desk/good_000": "told"})) == ["0 of 1 cases"]


def _started(attempt: int) -> Event:
    return CaseStarted(REF, 0.0, (), {}, attempt=attempt)


def _printed(mark: str) -> Event:
    return OutputCaptured(REF, "stdout", mark)


@pytest.mark.parametrize("late", [False, True])
def test_event_after_the_loss_of_its_attempt_is_seen(late: bool) -> None:
    events: list[Event] = [
        RunStarted("2026-11-21T10-30-00-3f2a", "/root", "2026-11-21T10:30:00Z", (PlannedCase(REF, None, "defaults"),)),
        _started(1),
        _printed(MARKS[0]),
        AttemptLost(REF, LostAttempt(1, "one", "cut")),
        *([_printed(MARKS[0])] if late else []),
        _started(2),
        _printed(MARKS[1]),
        CaseFinished(REF, "passed", None, 0.1),
    ]
    (end,) = outcomes(iter(events))["desk/good_000"]
    assert (end.attempt, end.lost) == (2, 1)
    assert end.marks == frozenset(MARKS if late else MARKS[1:])


def test_faults_wait_for_cases_in_the_middle() -> None:
    events: list[Event] = [_started(1), CasePlaced(REF, "10.77.0.12:4000")]
    assert under_way(iter(events), "10.77.0.12") == 0
    events.append(TurnFinished(REF, 0, {}))
    assert under_way(iter(events), "10.77.0.12") == 1
    assert under_way(iter(events), "10.77.0.13") == 0
    assert under_way(iter([*events, AttemptLost(REF, LostAttempt(1, "one", "cut"))]), "10.77.0.12") == 0
    assert under_way(iter([*events, CaseFinished(REF, "passed", None, 0.1)]), "10.77.0.12") == 0
