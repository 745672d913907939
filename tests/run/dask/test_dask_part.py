"""The attempts of one execution on a cluster: which report counts, and what happens without one."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from workbench.events.events import CaseError, CaseRef, Event, LostAttempt, TurnFinished, TurnStarted, Usage
from workbench.run.conversation.case_run import Execution
from workbench.run.conversation.scenario_user import FixedMessages, MessageSource, NextMessage
from workbench.run.conversation.transcript import Transcript
from workbench.run.dask import dask_part
from workbench.run.dask.dask_part import DaskPart, encode_report, messages_of
from workbench.worker.frames import FrameTooLargeError

REF = CaseRef("desk", "desk/a.evalset.json", "a", "one")


class Cluster:
    """A cluster that keeps what it is told."""

    def __init__(self) -> None:
        self.submitted: list[dict[str, str]] = []
        self.forgotten: list[str] = []
        self.answers: list[tuple[str, str, Any]] = []
        self.refused: list[tuple[str, str]] = []
        self.counts: list[tuple[str, bool]] = []

    def submit(self, part: DaskPart, order: str, *, again: bool, without: str = "", only: str = "") -> str:
        assert again is bool(self.submitted)
        self.submitted.append({"without": without, "only": only})
        return f"key-{len(self.submitted)}"

    def forget(self, key: str) -> None:
        self.forgotten.append(key)

    def answer(self, key: str, talk: str, text: str) -> None:
        self.answers.append((key, talk, json.loads(text)))

    def refuse(self, worker: str, why: str) -> None:
        self.refused.append((worker, why))

    def counted(self, worker: str, *, lost: bool = False) -> None:
        self.counts.append((worker, lost))


class Lab:
    """One execution with a cluster, and what it told."""

    def __init__(self, user: Callable[[], MessageSource] = lambda: FixedMessages([{}]), timeout: float = 300.0) -> None:
        self.cluster = Cluster()
        self.begun: list[tuple[str, LostAttempt | None]] = []
        self.events: list[Event] = []
        execution = Execution(
            REF, {}, (), (), user, lambda machine, lost: self.begun.append((machine, lost)), self.events.append
        )
        self.part = DaskPart(self.cluster, execution, {"root": "/root"}, timeout)
        self.task = asyncio.ensure_future(self.part.transcript())

    def says(self, op: str, worker: str = "w1", **more: str) -> None:
        self.part.progressed({"op": op, "worker": worker, "address": f"tcp://{worker}", "turn": "", **more})

    def reports(self, worker: str = "w1", answer: str = "ok", error: CaseError | None = None) -> None:
        turn: list[Event] = [TurnStarted(REF, 0, {}), TurnFinished(REF, 0, {"answer": answer}, "", Usage(), None)]
        self.part.reported(encode_report(worker, Transcript(error=error), turn, []))


async def lab(**values: Any) -> Lab:
    made = Lab(**values)
    await asyncio.sleep(0)
    return made


async def test_report_brings_the_transcript_and_all_events_at_once() -> None:
    made = await lab()
    made.says("assigned")
    assert made.begun == []
    made.says("started")
    made.says("turn", turn="2")
    assert (made.begun, made.events, made.part.turn) == ([("w1", None)], [], 2)
    made.reports()
    transcript = await made.task
    assert (transcript.turns, transcript.machine, transcript.error) == ([{"answer": "ok"}], "w1", None)
    assert len(made.events) == 2
    assert made.cluster.counts == [("w1", False)]


async def test_attempt_of_a_dead_worker_is_lost_and_the_next_worker_reports() -> None:
    made = await lab()
    made.says("assigned")
    made.says("started")
    made.says("assigned", "w2")
    made.says("started", "w2")
    made.reports("w2", "second")
    assert (await made.task).turns == [{"answer": "second"}]
    assert made.begun == [("w1", None), ("w2", LostAttempt(1, "w1", "the worker was lost"))]
    assert made.cluster.counts == [("w1", True), ("w2", False)]


async def test_attempt_restarted_by_the_same_worker_is_not_lost() -> None:
    made = await lab()
    made.says("assigned")
    made.says("started")
    made.says("started")
    made.reports()
    await made.task
    assert made.begun == [("w1", None), ("w1", None)]


async def test_report_without_progress_still_begins_an_attempt() -> None:
    made = await lab()
    made.reports("w3")
    await made.task
    assert made.begun == [("w3", None)]


async def test_hanging_worker_is_avoided_and_the_case_given_up_after_three_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[float] = []
    expire: list[Callable[[], None]] = []

    class Clock:
        def __init__(self, seconds: float, over: Callable[[], None]) -> None:
            limits.append(seconds)
            expire.append(over)

        def start(self) -> None: ...

        def stop(self) -> None: ...

    monkeypatch.setattr(dask_part, "AgentClock", Clock)
    made = await lab(timeout=10.0)
    for number in (1, 2, 3):
        made.says("assigned", f"w{number}")
        made.says("started", f"w{number}")
        expire[-1]()
    transcript = await made.task
    assert limits[:2] == [10.0 + 120 + 30, 10.0 + 30]
    assert [one["without"] for one in made.cluster.submitted] == ["", "tcp://w1", "tcp://w2"]
    assert made.cluster.forgotten[:2] == ["key-1", "key-2"]
    assert transcript.error is not None
    assert transcript.error.kind == "attempt_lost"
    assert "last on w3: it did not report for 40 s" in transcript.error.message
    assert [lost and lost.why for _, lost in made.begun] == [None, *["it did not report for 40 s"] * 2]


async def test_attempts_that_dask_itself_repeats_are_counted() -> None:
    made = await lab()
    for worker in ("w1", "w2", "w3"):
        made.says("assigned", worker)
        made.says("started", worker)
    made.part.broke("gone")
    error = (await made.task).error
    assert error is not None
    assert error.message == "each of 3 attempts was lost, the last on w3: Dask could not run it: gone"


async def test_worker_that_refuses_gets_no_more_cases_and_no_attempt_is_counted() -> None:
    made = await lab()
    made.says("assigned")
    made.part.reported(b'{"worker": "w1", "refused": "OSError: no space left"}')
    assert made.cluster.refused == [("w1", "OSError: no space left")]
    assert made.cluster.submitted[1]["without"] == "tcp://w1"
    made.says("assigned", "w2")
    made.says("started", "w2")
    made.reports("w2")
    await made.task
    assert made.begun == [("w2", None)]


@pytest.mark.parametrize("kind", ["died", "lost", "garbage", "cancelled"])
async def test_end_without_a_report_is_never_a_pass(kind: str) -> None:
    made = await lab()
    made.says("started")
    if kind == "died":
        made.part.died("KilledWorker: w1")
    elif kind == "lost":
        made.part.lost_place("the scheduler is gone", "again")
    elif kind == "garbage":
        made.part.reported(b"{")
    else:
        made.part.cancel(CaseError("cancelled", "by the user"), kill=False)
        made.reports()
    error = (await made.task).error
    assert error is not None
    expected = {"died": "attempt_lost", "lost": "cancelled", "garbage": "internal", "cancelled": "cancelled"}
    assert error.kind == expected[kind]
    assert made.events == []


@pytest.mark.parametrize("fails", [True, False])
async def test_task_that_could_not_run_starts_again_after_a_pause(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    monkeypatch.setattr(dask_part, "_PAUSE", 0.001)
    made = await lab()
    made.says("assigned")
    made.says("started")
    if fails:
        made.part.reported(b'{"worker": "w1", "failed": "RuntimeError: it has ended"}')
    else:
        made.part.broke("lost dependencies")
    assert made.cluster.refused == []
    assert len(made.cluster.submitted) == 1
    while len(made.cluster.submitted) == 1:
        await asyncio.sleep(0)
    made.says("started", "w2")
    made.reports("w2")
    assert (await made.task).error is None
    why = "w1: RuntimeError: it has ended" if fails else "Dask could not run it: lost dependencies"
    assert made.begun[1] == ("w2", LostAttempt(1, "w1", why))


async def test_case_that_is_too_large_to_be_sent_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **values: object) -> str:
        raise FrameTooLargeError(2**30)

    monkeypatch.setattr(Cluster, "submit", refuse)
    error = (await (await lab()).task).error
    assert error is not None
    assert error.kind == "too_large"


async def test_stop_ends_only_executions_without_a_worker() -> None:
    waiting, running = await lab(), await lab()
    running.says("assigned")
    for one in (waiting, running):
        one.part.stop_waiting()
    error = (await waiting.task).error
    assert error is not None
    assert error.kind == "cancelled"
    running.reports()
    assert (await running.task).error is None


async def test_task_is_submitted_again_if_no_live_worker_can_run_it() -> None:
    made = await lab()
    made.part.restricted_to = frozenset({"tcp://w1"})
    made.part.look({"tcp://w1", "tcp://w2"}, silent=True)
    assert len(made.cluster.submitted) == 1
    made.part.look({"tcp://w2"}, silent=False)
    assert (len(made.cluster.submitted), made.cluster.forgotten) == (2, ["key-1"])
    made.says("assigned", "w2")
    made.part.look(set(), silent=True)
    assert len(made.cluster.submitted) == 2
    made.part.cancel(CaseError("cancelled", ""), kill=True)
    await made.task


async def test_execution_ends_if_the_only_worker_that_may_run_it_is_gone() -> None:
    cluster = Cluster()
    execution = Execution(REF, {}, (), (), lambda: FixedMessages([{}]), lambda machine, lost: None, print)
    part = DaskPart(cluster, execution, {"root": "/root"}, 300.0, only="tcp://w1")
    task = asyncio.ensure_future(part.transcript())
    await asyncio.sleep(0)
    part.restricted_to = frozenset({"tcp://w1"})
    part.look({"tcp://w1", "tcp://w2"}, silent=False)
    assert not part._done.done()
    part.look({"tcp://w2"}, silent=False)
    error = (await asyncio.wait_for(task, 60)).error
    assert error is not None
    assert (error.kind, len(cluster.submitted)) == ("attempt_lost", 1)


class Asked:
    """A simulated user who repeats how many turns there were."""

    def __init__(self) -> None:
        self.usage = Usage(judge_calls=1)
        self.closed = False

    async def _move(self, turns: Sequence[dict[str, Any]]) -> NextMessage:
        return NextMessage({"turns": len(turns)})

    def next(self, turns: Sequence[dict[str, Any]]) -> Any:
        if any("bad" in turn for turn in turns):
            raise ValueError("broken")
        return self._move(turns)

    def close(self) -> None:
        self.closed = True


class Slow(Asked):
    """A simulated user who never answers."""

    async def _move(self, turns: Sequence[dict[str, Any]]) -> NextMessage:
        await asyncio.Event().wait()
        raise AssertionError


async def test_next_attempt_is_answered_although_the_lost_one_still_waits() -> None:
    users: list[Asked] = [Slow(), Asked()]
    waiting = iter(users)
    made = await lab(user=lambda: next(waiting))
    made.says("started")
    made.part.asked({"talk": "t1", "turns": []})
    await asyncio.sleep(0)
    made.says("assigned", "w2")
    made.says("started", "w2")
    made.part.asked({"talk": "t2", "turns": []})
    for _ in range(10):
        await asyncio.sleep(0)
    assert [talk for _, talk, _ in made.cluster.answers] == ["t2"]
    assert users[0].closed
    made.reports("w2")
    await made.task


async def test_each_attempt_has_its_own_simulated_user() -> None:
    users: list[Asked] = []

    def user() -> MessageSource:
        users.append(Asked())
        return users[-1]

    made = await lab(user=user)
    made.says("started")
    for talk, turns in (("t1", []), ("t1", [{}]), ("t2", []), ("t2", [{}, {"bad": 1}])):
        made.part.asked({"talk": talk, "turns": turns})
        while len(made.cluster.answers) < len(users) or (made.part._asking and not made.part._asking.done()):
            await asyncio.sleep(0)
    said = [(talk, answer.get("content"), answer["move"]) for _, talk, answer in made.cluster.answers]
    assert said == [
        ("t1", {"turns": 0}, "NextMessage"),
        ("t1", {"turns": 1}, "NextMessage"),
        ("t2", {"turns": 0}, "NextMessage"),
        ("t2", None, "UserFailure"),
    ]
    assert [one.closed for one in users] == [True, False]
    made.reports()
    await made.task
    assert users[1].closed
    assert messages_of(Execution(REF, {}, (), (), user, lambda *_: None, print)) is None
