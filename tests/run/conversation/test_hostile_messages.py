"""Messages of a case that break the protocol end only this case, as an error, whatever follows them."""

from pathlib import Path
from typing import Any

import pytest

from tests.run.project import Outcome, Project
from tests.run.scripted_place import ScriptedPlace
from workbench.agents.channel import Frame
from workbench.freshness.agent_inputs import Touched
from workbench.run.plan.plan import Plan
from workbench.run.processes.agent_process import Reads, read_error
from workbench.run.processes.children import Children
from workbench.run.run import Run

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def plan(project: Project) -> Plan:
    project.agent("async def root_agent(message, session):\n    yield 'ok'\n")
    project.cases("hello")
    return project.plan()


def finished(text: str = "ok") -> Frame:
    actual = {"user_content": {}, "final_response": {"role": "model", "parts": [{"text": text}]}}
    return {"event": "TurnFinished", "actual": actual}


async def run(plan: Plan, children: Children, place: ScriptedPlace) -> Outcome:
    outcome = Outcome()
    children.place = place
    await Run(plan, outcome.take, children).execute()
    children.place = children.local
    return outcome


def acted(**values: Any) -> Frame:
    return {"event": "AgentActed", "acted": {}, **values}


@pytest.mark.parametrize(
    "frame",
    [
        acted(acted=5),
        acted(usage={"input_tokens": -1}),
        acted(usage={"model_calls": 2**60}),
        acted(usage=[1]),
        {"event": "TurnFinished", "actual": None},
        {"event": "Printed", "stream": "elsewhere", "text": ""},
        {"event": "Printed", "stream": {}, "text": ""},
        {"event": "Failed", "error": 3},
        {"event": "Calls", "calls": "[]", "pieces": {}, "frozen": {"tools": -1, "models": 0, "misses": 0, "live": 0}},
    ],
    ids=str,
)
async def test_invalid_message_is_an_error_even_if_the_rest_is_right(
    plan: Plan, children: Children, frame: Frame
) -> None:
    outcome = await run(plan, children, ScriptedPlace(lambda *_: [frame, finished()]))
    assert outcome.states == {"hello": "error"}
    kind, message = outcome.error("hello")
    assert kind == "internal"
    assert message.startswith("the agent's process sent an invalid message: ")
    assert len(message) < 1000


@pytest.mark.parametrize("turn", [-1, 1, 10**30, True])
async def test_events_of_other_turns_are_not_kept(plan: Plan, children: Children, turn: Any) -> None:
    outcome = await run(plan, children, ScriptedPlace(lambda *_: [acted(turn=turn), finished()]))
    assert outcome.states["hello"] in ("passed", "error")
    assert not any(turn.acted for turn in outcome.record("hello").turns)


@pytest.mark.parametrize("kind", ["cancelled", "attempt_lost", [], None])
async def test_agent_cannot_report_error_kinds_of_the_engine(plan: Plan, children: Children, kind: Any) -> None:
    failed = {"event": "Failed", "error": {"kind": kind, "message": "so it says"}}
    outcome = await run(plan, children, ScriptedPlace(lambda *_: [failed]))
    assert outcome.error("hello") == ("internal", "so it says")
    assert read_error({"kind": "cancelled"}, ours=True).kind == "cancelled"


async def test_names_that_are_not_paths_are_left_out() -> None:
    names = ["/p/a.py", "/p/a\0b", "/p/\ud800", "relative", "", 5, None, f"/{'x' * 5000}"]
    found = Reads.from_frame({"files": names, "folders": {"/p": 1}})
    assert found == Reads(frozenset({Path("/p/a.py")}))
    with pytest.raises(ValueError, match="it names 10,001 files"):
        Reads.from_frame({"files": ["/p"] * 10_001})
    assert Touched().files == set()
