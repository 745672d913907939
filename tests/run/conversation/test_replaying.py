"""Cases replayed from their recordings: what the agent's process gets, and what the verdicts depend on."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.run.project import Outcome, Project
from tests.run.scripted_place import ScriptedPlace
from workbench.agents.channel import Frame
from workbench.events.events import CallsRecorded, FilesRead, Frozen, RunStarted
from workbench.files.frozen_path import frozen_path
from workbench.files.run_options import RunOptions
from workbench.freshness.current import PastInputs
from workbench.freshness.staleness import compare
from workbench.run.input_recorder import plan_inputs
from workbench.run.plan.plan import Plan
from workbench.run.plan.selection import Target
from workbench.run.plan.source import AgentSource
from workbench.run.processes.agent_process import CaseProcess
from workbench.run.processes.children import Children
from workbench.run.recordings.frozen_schema import frozen_contents
from workbench.run.recordings.recording import Declaration, Origin, Recording, ToolCall, digest
from workbench.run.run import Run
from workbench.store.database.database import run_path
from workbench.store.digests import project_digests
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.stored_events import read_run
from workbench.store.inputs import Record, RunInputs, describe
from workbench.worker.frames import FrameTooLargeError

pytestmark = pytest.mark.asyncio(loop_scope="session")
FROZEN = RunOptions(frozen="tools")
EVALSET = "desk/all.evalset.json"


def finished(text: str = "ok") -> Frame:
    actual = {"user_content": {}, "final_response": {"role": "model", "parts": [{"text": text}]}}
    return {"event": "TurnFinished", "actual": actual}


def answer(case: dict[str, Any], before: list[Frame], text: str) -> Iterator[Frame]:
    """Answer as a worker does that finds all calls in the recording, except for the cases `lost` and `reworded`."""
    replayed = case["calls"]["replay"] is not None
    missed = replayed and text == "lost"
    counts = {"tools": len(before), "models": 0, "live": 0, "misses": int(missed)}
    find = {"name": "find", "declaration": digest({"now": text}), "source": "now"}
    declared = [find, {"name": "", "toolset": 1, "declaration": None}]
    tools = [{"kind": "tools", "agent": "desk", "tools": declared}]
    calls = {"event": "Calls", "calls": json.dumps(tools), "pieces": {"aa": '"answer"'}}
    yield {**calls, "frozen": counts if replayed else None}
    if missed:
        yield {"event": "Failed", "error": {"kind": "frozen_miss", "message": "find() is not in the recording"}}
        return
    if replayed and text == "reworded":
        differs = json.dumps({"agent": "desk", "part": "system", "then": "", "now": '"Be rude."'})
        yield {"event": "Failed", "error": {"kind": "frozen_miss", "message": "another text", "differs": differs}}
        return
    yield finished()


def freeze(project: Project, eval_id: str, declared: str = "", *, found: Any = True, source: str = "") -> Path:
    """Write a recording with one call for a case of the project."""
    call = ToolCall(1, "desk", "find", {"id": 7}, answer={"found": found})
    find = Declaration("find", {"now": declared or eval_id}, source=source)
    tools = {"desk": (find, Declaration("", None, 1))}
    recording = Recording("all", eval_id, "desk", Origin("run-1", "2026-11-20T10:00:00Z"), tools=tools, calls=(call,))
    file = frozen_path(project.root / EVALSET, eval_id)
    file.parent.mkdir(exist_ok=True)
    for path, content in frozen_contents(file, recording).items():
        path.write_bytes(content)
    return file


@pytest.fixture
def place() -> ScriptedPlace:
    return ScriptedPlace(answer)


@pytest.fixture
def shop(project: Project) -> Project:
    project.agent("async def root_agent(message, session):\n    yield 'ok'\n")
    return project


async def run(plan: Plan, children: Children, place: ScriptedPlace, *, store: bool = False) -> Outcome:
    outcome = Outcome()
    journal = RunWriter.open(plan.root / ".workbench", plan.run_id) if store else None
    children.place = place
    await Run(plan, outcome.take, children, journal).execute()
    children.place = children.local
    return outcome


async def test_case_gets_its_recorded_calls_before_its_first_turn(
    shop: Project, children: Children, place: ScriptedPlace
) -> None:
    shop.cases("hello")
    freeze(shop, "hello")
    frames: list[list[Frame]] = []

    def keep(case: dict[str, Any], before: list[Frame], text: str) -> Iterator[Frame]:
        frames.append(before)
        yield from answer(case, before, text)

    place.answer = keep
    outcome = await run(shop.plan(FROZEN), children, place)
    (case,) = place.cases
    assert case["calls"]["replay"] == {
        "mode": "tools",
        "on_miss": "error",
        "ignore": {},
        "tools": {
            "desk": [tool.as_json() for tool in (Declaration("find", {"now": "hello"}), Declaration("", None, 1))]
        },
    }
    assert [frame["call"]["answer"] for frame in frames[0]] == [{"found": True}]
    record = outcome.record("hello")
    file = "desk/all.evalset.frozen/hello.frozen.json"
    assert (record.state, record.frozen) == ("passed", Frozen("tools", file, "2026-11-20T10:00:00Z", tools=1))


async def test_live_run_ignores_recordings(shop: Project, children: Children, place: ScriptedPlace) -> None:
    shop.cases("hello")
    freeze(shop, "hello")
    outcome = await run(shop.plan(), children, place)
    assert place.cases[0]["calls"]["replay"] is None
    assert outcome.record("hello").frozen is None


async def test_case_without_a_recording_does_not_run(shop: Project, children: Children, place: ScriptedPlace) -> None:
    shop.cases("hello", "it's new")
    freeze(shop, "hello")
    outcome = await run(shop.plan(FROZEN), children, place)
    assert [case["eval_id"] for case in place.cases] == ["hello"]
    error = outcome.record("it's new").error
    assert error is not None
    assert error.kind == "frozen_miss"
    assert error.message.endswith("desk/all.evalset.frozen/it%27s%20new.frozen.json does not exist")
    assert error.hint.endswith("agent-workbench freeze last --case 'it'\"'\"'s new'")
    assert outcome.record("it's new").frozen == Frozen("tools", "desk/all.evalset.frozen/it%27s%20new.frozen.json")
    assert "1 of 2 cases has no recording and will end with an error" in outcome.notices


async def test_recording_whose_folder_cannot_exist_counts_as_missing(
    shop: Project, children: Children, place: ScriptedPlace
) -> None:
    shop.cases("hello")
    file = (shop.root / "desk/all.evalset.json").rename(shop.root / "desk" / ("x" * 250))
    outcome = await run(shop.plan(FROZEN, Target(str(file), file)), children, place)
    assert "1 of 1 case has no recording and will end with an error" in outcome.notices


async def test_case_without_a_recording_may_run_live(shop: Project, children: Children, place: ScriptedPlace) -> None:
    shop.cases("hello")
    outcome = await run(shop.plan(RunOptions(frozen="tools", on_miss="live")), children, place)
    assert place.cases[0]["calls"]["replay"] is None
    assert (outcome.record("hello").state, outcome.record("hello").frozen) == ("passed", None)
    assert "1 of 1 case has no recording and will run live" in outcome.notices


async def test_damaged_recording_is_an_error_of_its_case_only(
    shop: Project, children: Children, place: ScriptedPlace
) -> None:
    shop.cases("bad", "good")
    freeze(shop, "good")
    freeze(shop, "bad").write_text('{"schema": "agent-workbench/frozen/1",\n "calls": 5}')
    outcome = await run(shop.plan(FROZEN), children, place)
    kind, message = outcome.error("bad")
    assert kind == "frozen_file"
    assert message.startswith("desk/all.evalset.frozen/bad.frozen.json:")
    assert outcome.states == {"bad": "error", "good": "passed"}


async def test_miss_is_an_error_with_its_counts(shop: Project, children: Children, place: ScriptedPlace) -> None:
    shop.cases("lost")
    freeze(shop, "lost")
    outcome = await run(shop.plan(FROZEN), children, place)
    assert outcome.error("lost") == ("frozen_miss", "find() is not in the recording")
    frozen = outcome.record("lost").frozen
    assert frozen is not None
    assert (frozen.tools, frozen.misses) == (1, 1)


async def test_missed_request_shows_its_first_difference(
    shop: Project, children: Children, place: ScriptedPlace
) -> None:
    shop.cases("reworded")
    freeze(shop, "reworded")
    outcome = await run(shop.plan(FROZEN), children, place)
    assert outcome.error("reworded") == ("frozen_miss", 'another text: was not given, now "Be rude."')


async def test_calls_are_stored_with_the_run(shop: Project, children: Children, place: ScriptedPlace) -> None:
    shop.cases("hello")
    plan = shop.plan()
    await run(plan, children, place, store=True)
    assert place.cases[0]["calls"]["record"] is True
    events = list(read_run(run_path(shop.root / ".workbench", plan.run_id)))
    (calls,) = (event for event in events if isinstance(event, CallsRecorded))
    assert calls.kept_in == plan.run_id
    assert not calls.pieces


class Verdict:
    """The inputs of a case's verdict in a stored run."""

    def __init__(self, plan: Plan, outcome: Outcome) -> None:
        (started,) = outcome.of(RunStarted)
        inputs = RunInputs(started.inputs)
        for event in outcome.of(FilesRead):
            inputs.extend(event.bundles)
        self.plan, self.outcome, self.inputs = plan, outcome, inputs

    def changes(self, options: RunOptions) -> list[str]:
        """Return the inputs that differ from those of a run with `options` now."""
        entry = self.plan.entries[0]
        assert isinstance(entry.source, AgentSource)
        record = self.outcome.record(entry.ref.eval_id)
        then = Record(EVALSET, tuple(record.inputs))
        plan = Project(self.plan.root).plan(options)
        now = plan_inputs(plan, project_digests(plan.root / ".workbench"), lambda value: value)
        found = compare(then, now.record(entry.source.evalset, 0, PastInputs(then)))
        return [describe(change) for change in found if change.name and change.input in ("frozen", "options")]


async def verdict(shop: Project, children: Children, place: ScriptedPlace, options: RunOptions) -> Verdict:
    plan = shop.plan(options)
    return Verdict(plan, await run(plan, children, place, store=True))


async def test_frozen_verdict_depends_on_its_recording(shop: Project, children: Children, place: ScriptedPlace) -> None:
    shop.cases("hello")
    file = freeze(shop, "hello")
    made = await verdict(shop, children, place, FROZEN)
    assert made.changes(FROZEN) == []
    assert made.changes(RunOptions(frozen="tools", on_miss="live")) == [], "nothing was missed"
    assert made.changes(RunOptions(frozen="all")) == ["--frozen"]
    assert made.changes(RunOptions()) == ["--frozen"]
    file.write_bytes(file.read_bytes() + b"\n")
    assert made.changes(FROZEN) == ["frozen: recording"]
    assert made.changes(RunOptions()) == ["--frozen"]


async def test_live_verdict_does_not_depend_on_a_recording(
    shop: Project, children: Children, place: ScriptedPlace
) -> None:
    shop.cases("hello")
    made = await verdict(shop, children, place, RunOptions())
    freeze(shop, "hello")
    assert made.changes(RunOptions()) == []
    assert made.changes(FROZEN) == ["--frozen"]


async def test_changed_declaration_keeps_a_verdict_stale(
    shop: Project, children: Children, place: ScriptedPlace
) -> None:
    shop.cases("hello")
    freeze(shop, "hello", declared="with another argument")
    assert (await verdict(shop, children, place, FROZEN)).changes(FROZEN) == ["frozen: declaration of find"]


@pytest.mark.parametrize(
    ("source", "declared", "stale"),
    [("now", "hello", []), ("then", "hello", ["frozen: code of find"]), ("then", "else", ["frozen: code of find"])],
)
async def test_changed_source_keeps_a_verdict_stale(
    source: str, declared: str, stale: list[str], shop: Project, children: Children, place: ScriptedPlace
) -> None:
    shop.cases("hello")
    freeze(shop, "hello", declared, source=source)
    assert (await verdict(shop, children, place, FROZEN)).changes(FROZEN) == stale


async def test_new_recording_makes_a_verdict_of_a_live_case_stale(
    shop: Project, children: Children, place: ScriptedPlace
) -> None:
    shop.cases("hello")
    options = RunOptions(frozen="tools", on_miss="live")
    made = await verdict(shop, children, place, options)
    assert made.changes(options) == []
    assert made.changes(RunOptions()) == [], "it is a live verdict"
    assert made.changes(FROZEN) == ["--frozen"]
    live = await verdict(shop, children, place, RunOptions())
    assert live.changes(options) == []
    freeze(shop, "hello")
    assert made.changes(options) == live.changes(options) == ["--frozen"]
    assert made.changes(RunOptions()) == []


async def test_recording_that_changes_during_a_run_makes_its_verdict_stale(
    shop: Project, children: Children, place: ScriptedPlace
) -> None:
    shop.cases("hello")
    file = freeze(shop, "hello")

    def edit(case: dict[str, Any], before: list[Frame], text: str) -> Iterator[Frame]:
        file.write_bytes(file.read_bytes() + b"\n")
        yield from answer(case, before, text)

    place.answer = edit
    made = await verdict(shop, children, place, FROZEN)
    assert made.changes(FROZEN) == ["frozen: recording"]


async def test_too_large_recorded_call_is_an_error(
    shop: Project, children: Children, place: ScriptedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.cases("hello")
    freeze(shop, "hello")
    send = CaseProcess.send

    def refuse(process: CaseProcess, *frames: Frame) -> None:
        if any(frame["op"] == "recorded" for frame in frames):
            raise FrameTooLargeError(20 * 2**20)
        send(process, *frames)

    monkeypatch.setattr(CaseProcess, "send", refuse)
    outcome = await asyncio.wait_for(run(shop.plan(FROZEN), children, place), 60)
    kind, message = outcome.error("hello")
    assert kind == "frozen_file"
    assert message.startswith("a recorded call cannot be sent: 20,971,520 bytes")


@pytest.mark.parametrize("criterion", ["session_state_match", "response_match_score"])
async def test_end_state_is_requested_only_if_a_criterion_compares_it(
    shop: Project, children: Children, place: ScriptedPlace, criterion: str
) -> None:
    """So that a run without an expected end state can be kept with one."""
    shop.cases("hello")
    shop.write("desk/test_config.json", {"criteria": {criterion: 1.0}})
    await run(shop.plan(), children, place)
    (case,) = place.cases
    assert case["state"] is (criterion == "session_state_match")
