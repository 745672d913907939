"""The output of the engine: order, batches, depth and write failures."""

import asyncio
import json
import threading
from collections.abc import Iterable, Mapping

import pytest

from workbench.criteria.secrets import Secrets
from workbench.events.event_json import Line, from_json, to_json
from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    CaseFinished,
    CaseRef,
    CaseStarted,
    Event,
    MetricResult,
    MetricScored,
    Noticed,
    OutputCaptured,
    RunFinished,
)
from workbench.run.recorder import _AHEAD, _WRITTEN_AT_ONCE, Recorder
from workbench.store.history.run_writer import RunWriter

REF = CaseRef("desk", "desk/r.evalset.json", "r", "one")


class Writer(RunWriter):
    """Keeps what it is given; fails on demand."""

    notice = None

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.syncs: list[bool] = []
        self.pieces: dict[str, str] = {}
        self.threads: set[int] = set()
        self.error: OSError | None = None
        self.closed = threading.Event()
        self.written_before_close = 0

    def write(self, lines: Iterable[Line], *, sync: bool) -> None:
        if self.error is not None:
            raise self.error
        self.lines.extend(line.text for line in lines)
        self.syncs.append(sync)
        self.threads.add(threading.get_ident())

    def keep_pieces(self, pieces: Mapping[str, str]) -> tuple[str, dict[str, int]] | None:
        if self.error is not None:
            return None
        self.pieces.update(pieces)
        return "run-1", {digest: number for number, digest in enumerate(pieces)}

    def close(self) -> None:
        self.written_before_close = len(self.lines)
        self.closed.set()


def recorder(writer: Writer, shown: list[Event]) -> Recorder:
    return Recorder(shown.append, writer, Secrets([{"THE_KEY": "abcdefgh"}]))


async def test_events_are_written_before_they_are_published_in_order() -> None:
    writer = Writer()
    shown: list[Event] = []

    def put_written(event: Event) -> None:
        assert json.loads(writer.lines[len(shown)]) == json.loads(json.dumps(to_json(event)))
        shown.append(event)

    out = Recorder(put_written, writer, Secrets([]))
    events = [OutputCaptured(REF, "stdout", str(number)) for number in range(1000)]
    for number, event in enumerate(events):
        out.put(event)
        if number % 100 == 0:
            await asyncio.sleep(0)
    await out.close()
    assert shown == events
    assert [from_json(json.loads(line)) for line in writer.lines] == events
    assert writer.closed.is_set()
    assert threading.get_ident() not in writer.threads
    assert len(writer.syncs) < 100
    assert not any(writer.syncs)


async def test_end_of_a_case_is_synced_to_disk() -> None:
    writer = Writer()
    out = recorder(writer, [])
    out.put(CaseFinished(REF, "passed", None, 1.0))
    await out.close()
    assert writer.syncs == [False, True], "written, shown, and then waited for"


async def test_written_and_published_events_are_equal() -> None:
    writer = Writer()
    shown: list[Event] = []
    out = recorder(writer, shown)
    out.put(OutputCaptured(REF, "stdout", "key abcdefgh \ud800"))
    await out.close()
    assert shown == [OutputCaptured(REF, "stdout", "key [secret THE_KEY] \ud800")]
    assert from_json(json.loads(writer.lines[0])) == shown[0]
    assert writer.lines[0].isascii()


async def test_first_verdict_and_end_of_a_run_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.run.recorder._PAUSE", 3600.0)
    shown: list[Event] = []
    out = recorder(Writer(), shown)
    out.put(OutputCaptured(REF, "stdout", "…"))
    while not shown:
        await asyncio.sleep(0)
    out.put(CaseFinished(REF, "passed", None, 0.1))
    while len(shown) < 2:
        await asyncio.sleep(0)
    out.put(CaseFinished(REF, "passed", None, 0.1))
    out.put(RunFinished(0.2))
    await asyncio.wait_for(out.close(), 60)
    assert len(shown) == 4


PASSED = CaseFinished(REF, "passed", None, 1.0)
FULL = OSError(28, "full", "runs.db")
PIECES = {"1": '{"text": "hello"}', "2": '{"text": "again"}'}


def notices(shown: list[Event]) -> list[str]:
    return [event.message for event in shown if isinstance(event, Noticed)]


async def test_run_goes_on_in_memory_after_a_failure_and_says_so_once() -> None:
    writer = Writer()
    shown: list[Event] = []
    out = recorder(writer, shown)
    writer.error = FULL
    events: list[Event] = [
        CaseStarted(REF, 0.0, (), {}),
        MetricScored(REF, MetricResult("m", "passed")),
        PASSED,
        RunFinished(1.0),
    ]
    for event in events:
        out.put(event)
        await out.flush()
    await out.close()
    assert isinstance(shown[1], Noticed), "not before the first event, which announces the run"
    assert writer.lines == []
    assert notices(shown) == ["the rest of this run is kept in memory only: runs.db cannot be written (full)"]
    assert [event for event in shown if not isinstance(event, Noticed)] == events
    assert writer.closed.is_set()


async def test_calls_of_a_batch_that_cannot_be_written_keep_their_pieces() -> None:
    class Small(Writer):
        def write(self, lines: Iterable[Line], *, sync: bool) -> None:
            lines = tuple(lines)
            if len(self.lines) + len(lines) > 2:
                raise FULL
            super().write(lines, sync=sync)

    writer = Small()
    shown: list[Event] = []
    out = recorder(writer, shown)
    out.put(CallsRecorded(REF, 0, "[]", PIECES))
    await out.flush()
    more = CallsRecorded(REF, 0, "[]", {**PIECES, "3": "{}"})
    out.put(more)
    out.put(PASSED)
    await out.close()
    stored, *rest = shown
    assert isinstance(stored, CallsRecorded)
    assert not stored.pieces
    assert len(writer.lines) == 1
    assert [event for event in rest if not isinstance(event, Noticed)] == [more, PASSED]
    assert len(notices(rest)) == 1


async def test_failed_sync_is_reported_before_the_end_of_the_run() -> None:
    class Unsynced(Writer):
        def write(self, lines: Iterable[Line], *, sync: bool) -> None:
            if sync:
                raise FULL
            super().write(lines, sync=sync)

    shown: list[Event] = []
    writer = Unsynced()
    out = recorder(writer, shown)
    out.put(PASSED)
    out.put(RunFinished(1.0))
    await out.close()
    assert [type(event) for event in shown] == [CaseFinished, Noticed, RunFinished]
    assert not any("RunFinished" in line for line in writer.lines), "it reads as interrupted"


@pytest.mark.parametrize("depth", [250, 5000])
async def test_deeply_nested_data_is_cut(depth: int) -> None:
    deep: dict[str, object] = {}
    for _ in range(depth):
        deep = {"deeper": deep}
    writer = Writer()
    shown: list[Event] = []
    out = recorder(writer, shown)
    metric = MetricResult("m", "failed", details={"rows": [deep]})
    out.put(AgentActed(REF, 0, deep))
    out.put(MetricScored(REF, metric, (metric,)))
    out.put(CaseStarted(REF, 0.0, (deep,), {}))
    await out.close()
    assert len(shown) == 3
    for line, event in zip(writer.lines, shown, strict=True):
        assert "nested deeper than 200 levels" in line
        assert event == from_json(json.loads(line))


async def test_wide_data_is_not_cut() -> None:
    shown: list[Event] = []
    out = recorder(Writer(), shown)
    event = AgentActed(REF, 0, {"rows": [{"a": [number]} for number in range(1000)]})
    out.put(event)
    await out.close()
    assert shown == [event]


async def test_exception_of_the_front_end_is_raised() -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("no such widget")

    out = Recorder(broken, None, Secrets([]))
    out.put(Noticed("info", "x"))
    with pytest.raises(RuntimeError, match="no such widget"):
        await out.close()


async def test_large_backlog_is_written_in_batches_and_delays_new_cases() -> None:
    writer = Writer()
    shown: list[Event] = []
    out = recorder(writer, shown)
    await out.room()
    events = [OutputCaptured(REF, "stdout", str(number)) for number in range(_AHEAD + 2 * _WRITTEN_AT_ONCE)]
    for event in events:
        out.put(event)
    await asyncio.wait_for(out.room(), 60)
    assert _WRITTEN_AT_ONCE <= len(shown) < len(events)
    await out.close()
    assert shown == events
    assert len(writer.syncs) == len(events) / _WRITTEN_AT_ONCE


async def test_broken_front_end_does_not_delay_the_start_of_cases() -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("no such widget")

    out = Recorder(broken, None, Secrets([]))
    for number in range(_AHEAD + 2 * _WRITTEN_AT_ONCE):
        out.put(OutputCaptured(REF, "stdout", str(number)))
    await asyncio.wait_for(out.room(), 60)
    with pytest.raises(RuntimeError, match="no such widget"):
        await out.close()


async def test_forced_end_leaves_no_running_task() -> None:
    writer, writing, go_on = Writer(), threading.Event(), threading.Event()
    write = writer.write

    def slow(lines: Iterable[Line], *, sync: bool) -> None:
        writing.set()
        go_on.wait(60)
        write(lines, sync=sync)

    writer.write = slow  # type: ignore[method-assign]
    before = asyncio.all_tasks()
    recorded = recorder(writer, [])
    recorded.put(CaseFinished(REF, "passed", None, 0.1))
    await asyncio.to_thread(writing.wait, 10)
    recorded.put(RunFinished(0.1))
    closing = asyncio.create_task(recorded.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    left = asyncio.all_tasks() - before
    go_on.set()
    results = await asyncio.gather(*left, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * len(left)
    assert await asyncio.to_thread(writer.closed.wait, 10)
    assert writer.written_before_close == 1  # The batch that was being written, and nothing of the rest.


async def test_forced_end_during_the_pause_between_syncs_leaves_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.run.recorder._BETWEEN_SYNCS", 60)
    writer, held, go_on, synced = Writer(), threading.Event(), threading.Event(), threading.Event()
    write = writer.write

    def slow(lines: Iterable[Line], *, sync: bool) -> None:
        lines = list(lines)
        if any("hold" in line.text for line in lines):
            held.set()
            go_on.wait(60)
        write(lines, sync=sync)
        if sync:
            synced.set()

    writer.write = slow  # type: ignore[method-assign]
    before = asyncio.all_tasks()
    recorded = recorder(writer, [])
    for _ in range(2):  # The second one ends during the pause after the sync of the first one.
        recorded.put(CaseFinished(REF, "passed", None, 0.1))
        await recorded.flush()
        await asyncio.to_thread(synced.wait, 10)
        await asyncio.sleep(0)
    recorded.put(OutputCaptured(REF, "stdout", "hold"))
    await asyncio.to_thread(held.wait, 10)
    closing = asyncio.create_task(recorded.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    left = asyncio.all_tasks() - before
    go_on.set()
    results = await asyncio.gather(*left, return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * len(left)


async def test_notice_of_the_scorer_after_the_end_is_dropped() -> None:
    shown: list[Event] = []
    out = recorder(writer := Writer(), shown)
    out.put(RunFinished(1.0))
    await out.close()
    out.put(Noticed("warning", "answers cannot be cached"))
    await out.flush()
    assert [type(event) for event in shown] == [RunFinished]
    assert len(writer.lines) == 1
