"""Frozen cases of ADK agents whose toolsets do more than list tools."""

from pathlib import Path

import pytest

from tests.worker.conftest import MakeAgent, needs_adk, needs_fork
from tests.worker.frozen_agents import HEAD, RECORDING, calls, differences, frozen, shown
from workbench.worker.missing import installed_adk

pytestmark = [needs_adk, needs_fork]

COMPUTER = """
import inspect

from google.adk.tools.computer_use.base_computer import BaseComputer, ComputerEnvironment, ComputerState
from google.adk.tools.computer_use.computer_use_toolset import ComputerUseToolset


class Computer(BaseComputer):
    async def initialize(self):
        count("open")

    async def screen_size(self):
        count("size")
        return 500, 400

    async def environment(self):
        count("environment")
        return ComputerEnvironment.ENVIRONMENT_BROWSER

    async def close(self):
        pass


def method(name):
    async def run(self, *args, **named):
        count(name)
        return ComputerState(screenshot=b"picture", url="https://shop.example")

    run.__name__ = name
    run.__signature__ = inspect.signature(getattr(BaseComputer, name))
    return run


for name in BaseComputer.__abstractmethods__ - {"screen_size", "environment"}:
    setattr(Computer, name, method(name))
Computer.__abstractmethods__ = frozenset()
unsafe = {"decision": "require_confirmation", "explanation": "It pays."}
root_agent = agent(call("open_web_browser"), call("click_at", x=500, y=500),
                   call("click_at", x=1, y=5, safety_decision=unsafe), "Done.", "Done.",
                   tools=[ComputerUseToolset(computer=Computer())])
"""


@pytest.mark.skipif(int((installed_adk() or "0").split(".")[0]) < 2, reason="google-adk before 2 has other tools")
def test_frozen_computer_use_is_declared_without_opening_the_computer(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + COMPUTER)
    live = desk.run("work", "again", **RECORDING)
    counter = tmp_path / "desk" / "counter"
    assert {"open", "size", "environment", "open_web_browser", "click_at"} <= set(counter.read_text().split())
    (declared,) = [call["tools"] for call in calls(live) if call["kind"] == "tools"]
    assert [entry["config"][0]["computer_use"]["environment"] for entry in declared if not entry["name"]] == [
        "ENVIRONMENT_BROWSER"
    ]
    assert all(entry["hidden"] for entry in declared if entry["name"])
    for mode in ("tools", "all"):
        counter.unlink()
        again = desk.run("work", "again", **frozen(live, mode))
        counter.touch()
        assert list(differences(shown(live), shown(again))) == []
        assert set(counter.read_text().split()) <= {"model"}
        (same,) = [call["tools"] for call in calls(again) if call["kind"] == "tools"]
        assert same == declared


KINDS = """
class Remote(BaseToolset):
    async def get_tools(self, readonly_context=None):
        count("connect")
        return [Special(look), FunctionTool(find)]

    async def close(self):
        pass


class Special(FunctionTool):
    def __init__(self, function):
        count("made")
        super().__init__(function)


def look():
    "Looks."


def find():
    "Finds."


def after(tool, args, tool_context, tool_response):
    kinds = (Special, FunctionTool, BaseTool, LlmAgent)
    return {"kinds": [isinstance(tool, kind) for kind in kinds], "name": tool.__class__.__name__}


root_agent = agent(call("look"), call("find"), "Done.", tools=[Remote()], after_tool_callback=after)
"""


def test_replayed_tool_is_an_instance_of_the_recorded_class(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + KINDS)
    live = desk.run("work", **RECORDING)
    counter = tmp_path / "desk" / "counter"
    for mode in ("tools", "all"):
        counter.unlink()
        again = desk.run("work", **frozen(live, mode))
        counter.touch()
        assert list(differences(shown(live), shown(again))) == []
        assert set(counter.read_text().split()) <= {"model"}


GROWING = """
class Growing(BaseToolset):
    async def get_tools(self, readonly_context=None):
        count("connect")
        more = readonly_context is not None and readonly_context.state.get("more")
        return [FunctionTool(look), *([FunctionTool(find)] if more else [])]

    async def close(self):
        pass


def look(tool_context: ToolContext):
    "Looks."
    tool_context.state["more"] = True


def find():
    "Finds."


root_agent = agent(call("look"), "Done.", call("find"), "Done.", tools=[Growing()])
"""


def test_replayed_toolset_lists_new_tools_as_late_as_the_live_one(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + GROWING)
    live = desk.run("work", "again", **RECORDING)
    counter = tmp_path / "desk" / "counter"
    declared = [entry for call in calls(live) if call["kind"] == "tools" for entry in call["tools"] if entry["name"]]
    assert {entry["name"] for entry in declared if entry.get("since", 1) > 1} == {"find"}
    for mode in ("tools", "all"):
        counter.unlink()
        again = desk.run("work", "again", **frozen(live, mode))
        counter.touch()
        assert list(differences(shown(live), shown(again))) == []
        assert set(counter.read_text().split()) <= {"model"}
