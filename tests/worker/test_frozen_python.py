"""Frozen cases of plain-Python agents that call their tools with `session.tool`."""

from pathlib import Path
from typing import Any

import pytest

from tests.worker.client import Outcome
from tests.worker.conftest import MakeAgent, needs_fork
from tests.worker.frozen_agents import RECORDING, calls, frozen, shown, tool_calls

pytestmark = needs_fork

DESK = """
import asyncio
import threading
from pathlib import Path

COUNTER = Path(__file__).with_name("counter")


def count(what):
    with COUNTER.open("a") as file:
        file.write(f"{what}\\n")


class GoneError(Exception):
    pass


def find(number):
    count(f"find {number}")
    if number == "gone":
        raise GoneError("no such order")
    return {"item": "kettle", "tags": ("a", 1)}


async def ship(number):
    count(f"ship {number}")
    await asyncio.sleep(0)
    return f"shipped {number}"


def swallowing(call):
    while True:
        try:
            return call()
        except BaseException as error:
            count(f"swallowed {type(error).__name__}")
            if type(error) is GoneError:
                return f"sorry, {error}"
"""
SYNC = (
    DESK
    + """
def root_agent(message, session):
    def store(number):
        session.state["last"] = number
        return find(number)

    found = session.tool("find", {"number": str(message)}, store)
    gone = swallowing(lambda: session.tool("find", {"number": "gone"}, find))
    return f"{found} {gone} {session.state}"
"""
)
ASYNC = (
    DESK
    + """
async def root_agent(message, session):
    both = [session.tool("ship", {"number": number}, ship) for number in (str(message), "B")]
    return str(await asyncio.gather(*both))
"""
)
THREADS = (
    DESK
    + """
def root_agent(message, session):
    results = []
    thread = threading.Thread(
        target=lambda: results.append(swallowing(lambda: session.tool("find", {"number": str(message)}, find))),
        daemon=True,
    )
    thread.start()
    thread.join()
    return str(results)
"""
)


def counted(folder: Path) -> list[str]:
    file = folder / "desk" / "counter"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("source", [SYNC, ASYNC, THREADS])
def test_frozen_case_equals_the_live_one_and_a_miss_cannot_be_swallowed(
    make_agent: MakeAgent, tmp_path: Path, source: str, share: bool
) -> None:
    desk = make_agent(source)
    live = desk.run("A-1", share=share, **RECORDING)
    assert len(live.answers) == 1, live.error
    before = counted(tmp_path)
    again = desk.run("A-1", share=share, **frozen(live))
    assert shown(again) == shown(live)
    missed = desk.run("B-2", share=share, **frozen(live))
    assert missed.error["kind"] == "frozen_miss"
    assert 'number was "A-1", now "B-2"' in missed.error["message"]
    after = [line for line in counted(tmp_path)[len(before) :] if "swallowed Gone" not in line]
    assert set(after) <= {"swallowed CancelledError"}


def test_answers_errors_and_state_of_calls_are_recorded(make_agent: MakeAgent) -> None:
    found, gone = tool_calls(make_agent(SYNC).run("A-1", **RECORDING))
    assert (found["agent"], found["tool"], found["args"]) == ("desk", "find", {"number": "A-1"})
    assert found["answer"] == {"item": "kettle", "tags": {"$form": "tuple", "value": ["a", 1]}}
    assert found["effects"] == {"state": {"last": "A-1"}}
    assert gone["error"] == {"types": ["desk.agent.GoneError", "builtins.Exception"], "message": "no such order"}


def test_tools_run_live_without_recording_settings(make_agent: MakeAgent) -> None:
    assert "kettle" in str(make_agent(SYNC).run("A-1").answers)


def rule(**more: Any) -> dict[str, Any]:
    return {"calls": {"record": True, "inject": [{"tool": "find", "only": 1, **more}], "seed": 1}}


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        ({"error": {"types": ["desk.agent.GoneError"], "message": "planted"}}, "sorry, planted"),
        ({"answer": {"item": "toaster"}}, "toaster"),
        ({"dropped": "no_answer"}, "None"),
        ({"malformed": "wrong_types"}, "{'item': 0"),
        ({"latency_seconds": 0.01}, "kettle"),
    ],
)
def test_injected_fault_reaches_the_agent(make_agent: MakeAgent, fault: dict[str, Any], answer: str) -> None:
    outcome: Outcome = make_agent(THREADS).run("A-1", **rule(**fault))
    assert answer in str(outcome.answers)
    (call,) = tool_calls(outcome)
    assert call.get("from") == (None if "latency_seconds" in fault else "injected")


ESCAPING = (
    DESK
    + """
def root_agent(message, session):
    def track(number):
        return session.tool("find", {"number": number}, find)

    for name, gated in (("track", True), ("find", True), ("find", False)):
        yield {"tool_call": {"name": name, "args": {"number": "A-1"}}}
        if name == "track":
            session.tool("track", {"number": "A-1"}, track)
        elif gated:
            session.tool("find", {"number": "A-1"}, find)
        elif "honest" not in message:
            find("A-1")
    yield "Found."
    if "fails" in message:
        raise GoneError("no such order")
"""
)


@pytest.mark.parametrize("share", [False, True])
def test_calls_that_did_not_reach_the_gate_end_a_frozen_case(make_agent: MakeAgent, share: bool) -> None:
    desk = make_agent(ESCAPING.replace('("find", False)', '("lose", False)'))
    live = desk.run("A-1", share=share, **RECORDING)
    assert [call["tools"] for call in calls(live) if call["kind"] == "escaped"] == [["lose"]]
    again = desk.run("A-1", share=share, **frozen(live))
    assert again.error["kind"] == "frozen_miss"
    assert "the agent called lose itself" in again.error["message"]
    assert "session.tool" in again.error["hint"]
    assert again.of("Calls")[-1]["frozen"] == {"tools": 2, "models": 0, "live": 0, "misses": 1}
    allowed = desk.run("A-1", share=share, **frozen(live, on_miss="live"))
    assert allowed.answers == ["Found."]
    assert allowed.of("Calls")[-1]["frozen"] == {"tools": 2, "models": 0, "live": 1, "misses": 0}


def test_nested_calls_and_last_calls_of_failed_turns_have_not_escaped(make_agent: MakeAgent) -> None:
    # `track` made a call of `find`, which stands for the one that is shown last.
    desk = make_agent(ESCAPING)
    assert not [call for call in calls(desk.run("A-1", **RECORDING)) if call["kind"] == "escaped"]
    failed = make_agent(ESCAPING.replace('("find", False)', '("lose", False)')).run("honest, fails", **RECORDING)
    assert failed.error["kind"] == "agent_raised"
    assert not [call for call in calls(failed) if call["kind"] == "escaped"]


FORKING = (
    DESK
    + """
import os


def root_agent(message, session):
    child = os.fork()
    if child == 0:
        swallowing(lambda: session.tool("find", {"number": "A-1"}, find))
        os._exit(0)
    os.waitpid(child, 0)
    return "Done."
"""
)


def test_miss_in_a_fork_of_the_agent_ends_the_case(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(FORKING)
    live = desk.run("A-1", **RECORDING)
    assert live.answers == ["Done."]
    missed = desk.run("A-1", **frozen(live))
    assert missed.error["kind"] == "frozen_miss"
    assert counted(tmp_path) == ["find A-1"]


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("kind", ["", "async "])
def test_missed_call_fails_only_its_turn_of_a_chat(make_agent: MakeAgent, share: bool, kind: str) -> None:
    tool = f"{kind}def find(n): return n\n"
    tool += f"{kind}def root_agent(m, s): return {'await ' if kind else ''}s.tool('find', {{'n': m}}, find)"
    live = make_agent(tool, name="live").run("A", "C", share=share, **RECORDING)
    desk = make_agent(tool.replace("return n", "raise OSError"), name="desk")
    recorded = frozen(live)
    for call in recorded["recorded"]:
        call["agent"] = "desk"
    chat = desk.run("A", "B", "D", "C", share=share, chat=True, **recorded)
    assert chat.answers == ["A", "C"]
    said = [failed["error"]["message"] for failed in chat.of("TurnFailed")]
    assert [message.partition(",")[0] for message in said] == ['desk called find(n="B")', 'desk called find(n="D")']
    assert chat.of("Failed") == []
    assert len(chat.of("Ended")) == 1


IMPATIENT = """
import asyncio
from pathlib import Path

async def slow():
    Path(__file__).with_name("counter").open("a").write("slow")
    await asyncio.sleep(1000)

async def root_agent(message, session):
    try:
        return await asyncio.wait_for(session.tool("slow", {}, slow), 0.05)
    except asyncio.TimeoutError:
        return "It took too long."
"""


@pytest.mark.parametrize("share", [False, True])
def test_cancelled_call_waits_for_the_same_cancellation(make_agent: MakeAgent, tmp_path: Path, share: bool) -> None:
    desk = make_agent(IMPATIENT)
    live = desk.run("hi", share=share, **RECORDING)
    again = desk.run("hi", share=share, **frozen(live))
    assert live.answers == again.answers == ["It took too long."]
    assert [call["from"] for call in tool_calls(again)] == ["frozen"]
    assert counted(tmp_path) == ["slow"]


def test_state_that_is_no_dict_does_not_disturb_a_replay(make_agent: MakeAgent) -> None:
    source = "def root_agent(m, s):\n    s.state = [m]\n    return s.tool('echo', {'x': m}, lambda x: x)"
    desk = make_agent(source)
    live = desk.run("A", **RECORDING)
    assert live.answers == desk.run("A", **frozen(live)).answers == ["A"]


def test_replay_deletes_what_a_call_deleted_from_the_state(make_agent: MakeAgent) -> None:
    source = """
    def root_agent(message, session):
        def clear():
            session.state.pop("cart", None)

        def renew():
            session.state = {"new": message}

        session.state = {"cart": [message], "old": 1}
        before = session.tool("clear", {}, clear) or dict(session.state)
        return f"{before} {session.tool('renew', {}, renew) or session.state}"
    """
    desk = make_agent(source)
    live = desk.run("A", **RECORDING)
    assert live.answers == ["{'old': 1} {'new': 'A'}"]
    assert desk.run("A", **frozen(live)).answers == live.answers
