"""A cluster as a place: which workers get cases, and how its loss ends a run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from workbench.agents.channel import Frame
from workbench.events.events import CaseRef, LostAttempt
from workbench.files.run_options import PlaceChoice, UsageFaultError
from workbench.run.conversation.case_run import Execution
from workbench.run.conversation.scenario_user import FixedMessages
from workbench.run.dask import place as module
from workbench.run.dask.dask_part import DaskPart
from workbench.run.dask.files import Files
from workbench.run.dask.place import DaskPlace

NEEDS = {"python": "3.12"}


class Channel:
    def __init__(self, take: Callable[[Frame], None], answers: dict[str, Frame]) -> None:
        self.sent: list[Frame] = []
        self._take, self._answers = take, answers

    def send(self, frame: Frame) -> None:
        self.sent.append(frame)
        if (answer := self._answers.get(frame["op"])) is not None:
            asyncio.get_running_loop().call_soon(self._take, answer)


class Child:
    """The client's process, with an answer for each operation."""

    last_line = ""

    def __init__(self, take: Callable[[Frame], None], answers: dict[str, Frame]) -> None:
        self.channel = Channel(take, answers)
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        if not self.ended.done():
            self.ended.set_result("ended with exit code 0")


def worker(name: str, unfit: str | None = "", seen: float = 0.1) -> Frame:
    return {"address": f"tcp://{name}", "name": name, "threads": 4, "seen": seen, "unfit": unfit, "about": ""}


ANSWERS: dict[str, Frame] = {
    "resolve": {"op": "resolved", "address": "dask://h:1"},
    "connect": {"op": "connected"},
    "needs": {"op": "workers", "workers": [worker("w1"), worker("w2", "Python 3.11, needs 3.12")]},
    "files": {"op": "sent"},
    "end": {"op": "ended"},
}


class Lab:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: Frame | None) -> None:
        self.answers = {**ANSWERS, **answers}
        self.place = DaskPlace(PlaceChoice("dask://h:1"), lambda: 0)
        self.notices: list[str] = []
        self.lost: list[str] = []

        def start(command: Any, lifeline: int, take: Callable[[Frame], None]) -> Child:
            known = {op: answer for op, answer in self.answers.items() if answer is not None}
            self.child = Child(take, known)
            return self.child

        monkeypatch.setattr(module, "ChildProcess", start)

    @property
    def sent(self) -> list[Frame]:
        return self.child.channel.sent

    def workers(self, *workers: Frame) -> None:
        self.place._take({"op": "workers", "workers": list(workers)})

    def begin(self) -> None:
        self.place.begin(lambda text, hint: self.notices.append(text), self.lost.append)

    def part(self) -> "tuple[DaskPart, asyncio.Task[Any]]":
        self.begun: list[tuple[str, LostAttempt | None]] = []
        execution = Execution(
            CaseRef("a", "f", "s", "c"),
            {},
            (),
            (),
            lambda: FixedMessages([]),
            lambda machine, lost: self.begun.append((machine, lost)),
            lambda event: None,
        )
        part = DaskPart(self.place, execution, {"root": "/"}, 300.0)
        return part, asyncio.ensure_future(part.transcript())


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.01)


@pytest.fixture
async def lab(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    made = Lab(monkeypatch)
    await made.place.connect(NEEDS)
    made.begin()
    yield made
    await made.place.close()


def submitted(lab: Lab) -> list[list[str] | None]:
    return [frame["workers"] for frame in lab.sent if frame["op"] == "submit"]


async def test_incompatible_worker_is_named_and_gets_no_case(lab: Lab) -> None:
    assert lab.notices == ["w2 gets no case: Python 3.11, needs 3.12"]
    _, task = lab.part()
    await asyncio.sleep(0)
    assert submitted(lab) == [["tcp://w1"]]
    lab.workers(worker("w1"), worker("w3"))
    _, other = lab.part()
    await asyncio.sleep(0)
    assert submitted(lab)[1] is None, "all workers that are there fit"
    assert [state.phase for state in lab.place.machines()] == ["ready", "lost", "ready"]
    task.cancel()
    other.cancel()


async def test_silent_worker_gets_no_case_as_long_as_there_is_another(lab: Lab) -> None:
    lab.workers(worker("w1", seen=40), worker("w3"))
    _, task = lab.part()
    await asyncio.sleep(0)
    lab.workers(worker("w1", seen=40))
    _, other = lab.part()
    await asyncio.sleep(0)
    assert submitted(lab) == [["tcp://w3"], None]
    state = lab.place.machines()[0]
    assert (state.seen, state.why) == (40, "no sign of life for 40 s")
    task.cancel()
    other.cancel()


async def test_cases_wait_for_a_suitable_worker_if_no_live_worker_fits(looks_often: None, lab: Lab) -> None:
    lab.workers(worker("w2", "Python 3.11, needs 3.12"), worker("w3", None))
    _, task = lab.part()
    await asyncio.sleep(0)
    assert submitted(lab) == [["tcp://w1"]], "it left, and may come back"
    lab.place.refuse("w1", "it has no google-adk")
    _, other = lab.part()
    await asyncio.sleep(0)
    assert submitted(lab)[1:] == [["dask://h:1"]], "none ever fitted"
    lab.workers(worker("w2", "Python 3.11, needs 3.12"), worker("w3"))
    async with asyncio.timeout(60):
        while len(submitted(lab)) < 4:
            await asyncio.sleep(0.01)
    assert submitted(lab)[2:] == [["tcp://w3"], ["tcp://w3"]]
    task.cancel()
    other.cancel()


async def test_progress_counts_what_each_worker_runs_and_has_done(lab: Lab) -> None:
    lab.workers(worker("w1"), worker("w2"))
    _, task = lab.part()
    await asyncio.sleep(0)
    key = lab.sent[-1]["key"]
    for op in ("assigned", "started"):
        lab.place._take(
            {"op": "progress", "messages": [{"key": key, "op": op, "worker": "w1", "address": "tcp://w1"}, 5, {}]}
        )
    assert [(state.name, state.running, state.done) for state in lab.place.machines()] == [("w1", 1, 0), ("w2", 0, 0)]
    assert lab.begun == [("w1", None)]
    text = '{"worker": "w1", "refused": "no room"}'
    for piece, more in ((text[:9], True), (text[9:], False)):
        lab.place._take({"op": "report", "key": key, "text": piece, "more": more})
    assert lab.notices[-1] == "w1 gets no case: no room"
    assert submitted(lab)[-1] == ["tcp://w2"]
    task.cancel()


@pytest.mark.parametrize("how", ["lost", "client"])
async def test_lost_cluster_cancels_unfinished_executions(lab: Lab, how: str) -> None:
    _, task = lab.part()
    await asyncio.sleep(0)
    if how == "lost":
        lab.place._take({"op": "lost", "why": "the scheduler is gone"})
        why = "the scheduler is gone"
    else:
        lab.child.ended.set_result("was killed by SIGKILL")
        why = "the client of Dask was killed by SIGKILL"
    error = (await task).error
    assert (error.kind, error.message) == ("cancelled", f"the connection to the cluster was lost: {why}")
    assert lab.lost == [why]
    _, late = lab.part()
    assert (await late).error.kind == "cancelled"
    before = lab.place.run
    await lab.place.connect(NEEDS)
    assert lab.place.run != before, "the next run has a new connection"
    assert lab.place.why_lost == ""


async def test_files_are_sent_once_until_they_change(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "pack", lambda files, folder: (tmp_path / "x.zip", "digest"))
    for signature in ((1,), (1,), (2,)):
        await lab.place.send(lambda found=signature: Files(tmp_path, {}, {}, found))  # type: ignore[misc]
    assert [frame["op"] for frame in lab.sent].count("files") == 2
    assert lab.place.digest == "digest"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"resolve": {"op": "resolved", "address": ""}}, "names no scheduler"),
        ({"connect": {"op": "failed", "why": "refused"}}, "at dask://h:1 cannot be used: refused"),
        ({"needs": {"op": "workers", "workers": [worker("w1", "Python 2")]}}, "can run the agents: w1: Python 2"),
    ],
)
async def test_place_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Frame], words: str
) -> None:
    lab = Lab(monkeypatch, **answers)
    with pytest.raises(UsageFaultError, match=words):
        await lab.place.connect(NEEDS)
    await lab.place.close()


async def test_missing_dask_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(monkeypatch, connect=None)
    task = asyncio.ensure_future(lab.place.connect(NEEDS))
    while not any(frame["op"] == "connect" for frame in getattr(lab, "child", Child(print, {})).channel.sent):
        await asyncio.sleep(0)
    lab.child.last_line = "ModuleNotFoundError: No module named 'distributed'"
    lab.child.ended.set_result("ended with exit code 1")
    with pytest.raises(UsageFaultError, match="distributed is not installed here"):
        await task
    await lab.place.close()
