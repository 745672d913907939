"""Attempts at a case that are lost with another machine."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.engine.project import Outcome, Project
from tests.engine.scripted_place import ScriptedPlace
from workbench.agents.channel import Frame
from workbench.engine.plan.plan import Plan
from workbench.engine.processes.children import Children
from workbench.engine.run.run import Run
from workbench.events import AttemptLost, CasePlaced, LostAttempt
from workbench.history.answers import read_answers
from workbench.history.journal import Journal
from workbench.project.transcripts import stored_case

pytestmark = pytest.mark.asyncio(loop_scope="session")


def finished(text: str = "ok") -> Frame:
    actual = {"user_content": {}, "final_response": {"role": "model", "parts": [{"text": text}]}}
    return {"event": "TurnFinished", "actual": actual}


def placed(machine: str) -> Frame:
    return {"event": "Placed", "machine": machine}


def acted(text: str) -> Frame:
    return {"event": "AgentActed", "acted": {"author": "desk", "content": {"parts": [{"text": text}]}}}


def answered(text: str) -> Frame:
    return {"event": "Answered", "answer": {"agent": "desk", "asked": f"digest of {text}", "responses": [f'"{text}"']}}


def lost(machine: str, why: str = "the connection was cut", *, died: bool = False) -> Frame:
    return {"machine": machine, "lost": why, "died": died}


class Attempts(ScriptedPlace):
    """A place on other machines. Each attempt gives the next list of frames; `before` has what each got first."""

    def __init__(self, *attempts: Sequence[Frame]) -> None:
        super().__init__(self._next, remote=True)
        self._attempts = iter(attempts)
        self.before: list[list[Frame]] = []

    def _next(self, case: dict[str, Any], before: list[Frame], text: str) -> Iterator[Frame]:
        self.before.append(before)
        yield from next(self._attempts)


@pytest.fixture
def plan(project: Project) -> Plan:
    project.agent("async def root_agent(message, session):\n    yield 'ok'\n")
    project.cases("hello")
    return project.plan()


async def run(plan: Plan, children: Children, place: ScriptedPlace) -> Outcome:
    outcome = Outcome()
    journal = Journal.open(plan.root / ".workbench", plan.run_id)
    await Run(plan, outcome.take, children, journal, place=place).execute()
    return outcome


async def test_lost_attempt_leaves_nothing_in_the_transcript_of_the_next_one(plan: Plan, children: Children) -> None:
    place = Attempts(
        [placed("m1"), acted("attempt 1"), answered("a"), lost("m1")],
        [placed("m2"), acted("attempt 2"), finished()],
    )
    outcome = await run(plan, children, place)
    record = outcome.record("hello")
    assert (record.state, record.attempt, record.machine) == ("passed", 2, "m2")
    assert record.lost == (LostAttempt(1, "m1", "the connection was cut"),)
    assert "attempt 1" not in str(record.turns)
    events = [event for event in outcome.events if isinstance(event, AttemptLost | CasePlaced)]
    assert [getattr(event, "machine", "lost") for event in events] == ["m1", "lost", "m2"]
    assert stored_case(record).started is not None


async def test_models_answers_that_arrived_are_not_requested_again(plan: Plan, children: Children) -> None:
    partly: Frame = {"event": "Answered", "answer": {"agent": "desk", "asked": "digest of b", "responses": None}}
    place = Attempts(
        [answered("a"), answered("b"), partly, lost("m1")],
        [answered("c"), lost("m2")],
        [finished()],
    )
    await run(plan, children, place)
    known = [[frame["responses"] for frame in before] for before in place.before]
    assert known == [[], [['"a"']], [['"a"'], ['"c"']]]
    assert {case["answers"]["frames"] for case in place.cases} == {True}


async def test_sent_answers_are_stored_for_a_resumed_run(plan: Plan, children: Children) -> None:
    place = Attempts([answered("a"), *[lost("m1")]], [answered("b"), finished()])
    folder = plan.root / ".workbench" / "runs" / plan.run_id
    seen: list[int] = []
    outcome = Outcome()
    journal = Journal.open(plan.root / ".workbench", plan.run_id)
    running = Run(plan, outcome.take, children, journal, place=place)

    def look(event: object) -> None:
        if type(event).__name__ == "CaseFinished":
            running._answers.close()  # type: ignore[union-attr]
            seen.extend(len(answers) for answers in read_answers(folder).values())

    outcome.watchers.append(look)
    await running.execute()
    assert seen == [2]


async def test_case_whose_attempts_are_all_lost_is_an_error_that_names_them(plan: Plan, children: Children) -> None:
    place = Attempts([lost("m1")], [lost("m2", "m2: it was switched off")], [lost("m1")])
    outcome = await run(plan, children, place)
    record = outcome.record("hello")
    assert (record.state, record.attempt) == ("error", 3)
    assert outcome.error("hello") == (
        "attempt_lost",
        "all 3 attempts were lost with their machines: attempt 1 on m1: the connection was cut;"
        " attempt 2 on m2: it was switched off; attempt 3 on m1: the connection was cut",
    )
    assert place.alone == [False, False, False]


async def test_attempt_that_only_waited_for_a_machine_does_not_count(plan: Plan, children: Children) -> None:
    waited = lost("", "no machine is left")
    place = Attempts([lost("m1")], [waited], [lost("m2")], [waited], [placed("m1"), finished()])
    outcome = await run(plan, children, place)
    record = outcome.record("hello")
    assert (record.state, record.attempt) == ("passed", 5)
    assert [one.machine for one in record.lost] == ["m1", "", "m2", ""]


async def test_case_runs_alone_after_two_deaths_and_only_the_third_counts(plan: Plan, children: Children) -> None:
    died = "it was killed by SIGKILL"
    place = Attempts(*[[lost(machine, died, died=True)] for machine in ("m1", "m2", "m1")])
    outcome = await run(plan, children, place)
    assert place.alone == [False, False, True]
    assert outcome.error("hello") == (
        "crashed",
        f"the case ran alone on m1, and the process there died: {died}",
    )


async def test_loss_after_the_last_turn_keeps_the_transcript(plan: Plan, children: Children) -> None:
    outcome = await run(plan, children, Attempts([finished(), lost("m1")]))
    assert outcome.states == {"hello": "passed"}
    assert len(outcome.record("hello").lost) == 0


async def test_cancelled_case_does_not_start_again(plan: Plan, children: Children) -> None:
    place = Attempts([lost("m1")], [placed("m2")], [finished()])
    outcome = Outcome()
    running = Run(plan, outcome.take, children, place=place)
    outcome.watchers.append(lambda event: running.cancel() if isinstance(event, CasePlaced) else None)
    await running.execute()
    assert len(place.cases) == 2
    assert outcome.states == {"hello": "cancelled"}


async def test_case_that_prints_too_much_has_no_verdict_even_if_its_answer_comes(
    plan: Plan, children: Children
) -> None:
    place = Attempts([placed("m1"), {"event": "Flooded", "why": "more than 16 MiB"}, acted("late"), finished()])
    record = (await run(plan, children, place)).record("hello")
    assert record.error is not None
    assert (record.state, record.error.kind) == ("error", "output_flood")
    assert "late" not in str(record.turns)
