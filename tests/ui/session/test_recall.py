"""Screen texts while verdicts of earlier runs are still loading."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.ui.conftest import MakeWorkspace, OpenScreen
from tests.ui.feed import Feed
from tests.ui.history.test_history_screen import keep
from workbench.events.event_json import as_line
from workbench.events.events import CaseFinished, CaseRef, Event, RunFinished, RunResumed
from workbench.store.database.database import run_path
from workbench.store.history.latest import LatestRun
from workbench.store.history.reading import load_summary
from workbench.store.history.run_writer import RunWriter
from workbench.ui.session import recall as module
from workbench.ui.session.session import Session


async def test_screen_does_not_say_that_nothing_has_run_while_verdicts_are_loading(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["on_time", "late_parcel"]}})
    keep(workspace, "2026-01-02T10-00-00-bbbb", {"on_time": "passed", "late_parcel": "failed"})
    may_read, recall = threading.Event(), module.recall

    def late(*words: Any) -> Iterator[module.Recalled]:
        may_read.wait(60)
        yield from recall(*words)

    monkeypatch.setattr(module, "recall", late)
    screen = open_screen(workspace)
    async with screen.open(size=(120, 30)) as pilot:
        await screen.until(pilot, lambda: "loading results" in screen.text.splitlines()[0])
        for key in ("n", "F", "]"):
            await pilot.press(key)
            await screen.until(pilot, lambda: "results are still loading" in screen.text.splitlines()[-1])
            await pilot.press("j")
        assert not screen.started
        await pilot.press("slash", *":fail")
        await screen.until(pilot, lambda: "results are still" in screen.text)
        assert "clears the filter" not in screen.text
        may_read.set()
        await screen.until(pilot, lambda: "✗ late_parcel" in screen.text and "on_time" not in screen.text)
        # The answer to "/" would stay for seconds.
        screen.main.clear_message()
        await screen.until(pilot, lambda: "loading" not in screen.text)


def test_previous_verdict_is_found_across_cancelled_runs(make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["on_time", "late_parcel"]}})
    state = workspace.root / ".workbench"
    keep(workspace, "2026-01-02T10-00-00-aaaa", {"on_time": "failed", "late_parcel": "passed"})
    keep(workspace, "2026-01-03T10-00-00-bbbb", {"on_time": "passed", "late_parcel": "passed"})
    keep(workspace, "2026-01-04T10-00-00-cccc", {"on_time": "cancelled", "late_parcel": "failed"})
    keep(workspace, "2026-01-05T10-00-00-dddd", {"on_time": "cancelled", "late_parcel": "cancelled"})
    parts = list(module.recall(state, workspace))
    found = {
        record.ref.eval_id: (record.run_id[-4:], record.state)
        for record in module.recall_previous(state, workspace, parts)
    }
    assert found == {"late_parcel": ("bbbb", "passed"), "on_time": ("aaaa", "failed")}


def test_run_of_another_program_adds_no_repeats_to_a_newer_verdict(make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["on_time", "late_parcel"]}})
    keep(workspace, "2026-01-02T10-00-00-aaaa", {"on_time": "passed", "on_time#2": "passed", "late_parcel": "passed"})
    session = Session(workspace.target)
    session.set_workspace(workspace)
    session.verdicts.bind(workspace.evalsets)
    feed = Feed(session.store, workspace)
    (ref,) = feed.start(("refunds", "on_time"), run_id="2026-01-03T10-00-00-bbbb")
    feed.begin(ref)
    feed.end(ref, "failed", 0.2)
    feed.finish()
    (older,) = module.recall(workspace.root / ".workbench", workspace)
    session.adopt(older, ended=True, continues=False)
    assert session.verdicts.state(0, 0) == "failed"
    assert session.verdicts.state(0, 1) == "passed"


def test_last_run_counts_its_own_verdict_while_another_program_runs_the_case(make_workspace: MakeWorkspace) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["on_time"]}})
    session = Session(workspace.target)
    session.set_workspace(workspace)
    session.verdicts.bind(workspace.evalsets)
    feed = Feed(session.store, workspace)
    (ref,) = feed.start(("refunds", "on_time"), run_id="2026-01-03T10-00-00-bbbb")
    feed.begin(ref)
    feed.end(ref, "failed", 0.2)
    feed.finish()
    keep(workspace, "2026-01-04T10-00-00-cccc", {"on_time": "passed"})
    (newer,) = module.recall(workspace.root / ".workbench", workspace)
    for _ in range(2):
        session.adopt(newer, ended=False, continues=False)
        assert session.verdicts.state(0, 0) == "passed"
        assert session.store.counts() == {"failed": 1}
    session.adopt(newer, ended=True, continues=True)
    assert session.store.counts() == {"passed": 1}


def test_verdict_of_a_run_that_another_program_resumed_replaces_one_made_before(
    make_workspace: MakeWorkspace,
) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["on_time", "late_parcel"]}})
    state, file = workspace.root / ".workbench", workspace.evalsets[0].relative
    keep(workspace, "2026-01-02T10-00-00-aaaa", {"on_time": "failed", "late_parcel": "cancelled"})
    keep(workspace, "2026-01-03T10-00-00-bbbb", {"on_time": "passed", "late_parcel": "passed"})
    session = Session(workspace.target)
    session.set_workspace(workspace)
    session.verdicts.bind(workspace.evalsets)
    for part in module.recall(state, workspace):
        session.recall(part)
    writer = RunWriter.reopen(run_path(state, "2026-01-02T10-00-00-aaaa"))
    assert writer is not None
    ref = CaseRef("order_desk", file, "refunds", "late_parcel", 1)
    events: list[Event] = [RunResumed("2026-01-04T10:00:00Z"), CaseFinished(ref, "failed", None, 0.1), RunFinished(1.0)]
    writer.write(map(as_line, events), sync=False)
    writer.close()
    summary, _ = load_summary(state, "2026-01-02T10-00-00-aaaa")
    ended = tuple(one for one in summary.executions.values() if one.decides_case)
    resumed = module.recall_run(LatestRun(summary, run_path(state, summary.run_id), ended), workspace)
    assert resumed is not None
    session.adopt(resumed, ended=True, continues=False)
    assert [session.verdicts.state(0, case) for case in (0, 1)] == ["passed", "failed"]
    assert session.store.run.run_id == summary.run_id


async def test_bar_counts_the_cancelled_cases_of_a_stored_run(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["on_time", "late_parcel"]}})
    keep(workspace, "2026-01-02T10-00-00-aaaa", {"on_time": "passed", "late_parcel": "passed"})
    keep(workspace, "2026-01-03T10-00-00-bbbb", {"on_time": "passed", "late_parcel": "cancelled"})
    screen = open_screen(workspace)
    async with screen.open(size=(120, 30)) as pilot:
        await screen.until(pilot, lambda: "last run   ■ 1/2   ✓1 ⊘1" in screen.text)
        assert "2 of 2 passed" in screen.text


async def test_case_is_not_shown_as_not_run_while_verdicts_are_loading(
    open_screen: OpenScreen, make_workspace: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace({"order_desk": {"refunds": ["on_time"]}})
    may_read = threading.Event()

    def late(*_: Any) -> Iterator[module.Recalled]:
        may_read.wait(60)
        yield from ()

    monkeypatch.setattr(module, "recall", late)
    screen = open_screen(workspace)
    async with screen.open(size=(120, 30)) as pilot:
        await pilot.press("G")
        await screen.until(pilot, lambda: "results are still loading" in screen.text)
        assert "NOT RUN" not in screen.text
        may_read.set()
        await screen.until(pilot, lambda: "NOT RUN" in screen.text)
        await pilot.press("n")
        await screen.until(pilot, lambda: "nothing has run yet" in screen.text)
