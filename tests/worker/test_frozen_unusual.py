"""Frozen cases of ADK agents that call or define their tools in unusual ways."""

from pathlib import Path

import pytest

from tests.worker.conftest import MakeAgent, needs_adk, needs_fork
from tests.worker.frozen_agents import HEAD, RECORDING, calls, differences, frozen, shown, tool_calls

pytestmark = [needs_adk, needs_fork]

UNUSUAL = '''
import asyncio
import functools
from types import SimpleNamespace
from unittest.mock import MagicMock


def work(number: int) -> dict:
    "Works."
    count("work")
    return {"number": number}


class Named(BaseTool):
    def _get_declaration(self):
        return types.FunctionDeclaration(name=self.name, description=self.description)


class Late(Named):
    async def run_async(self, *, args, tool_context):
        count("replaced")


@functools.wraps(Late.run_async)
async def late(self, *, args, tool_context):
    count("late")
    return {"late": True}


Late.run_async = late


class Bound:
    """A method that is no function, like those of instrumentations."""

    def __init__(self, function):
        self.function = function

    def __get__(self, instance, owner=None):
        return functools.partial(self.function, instance)


class Wrapped(Named):
    @Bound
    async def run_async(self, *, args, tool_context):
        count("wrapped")
        return {"wrapped": True}


async def single(*, args, tool_context):
    count("single")
    return {"single": True}


class Direct(Named):
    async def run_async(self, args, tool_context=None):
        count("direct")
        return {"direct": args["number"]}


tool = FunctionTool(work)
direct = Direct(name="direct", description="Called by code.")
one = Named(name="one", description="An object with its own method.")
one.run_async = single


def in_thread(call):
    return asyncio.get_running_loop().run_in_executor(None, lambda: asyncio.run(call()))


async def before(callback_context):
    context = ToolContext(callback_context._invocation_context)
    callback_context.state["seen"] = [
        await direct.run_async({"number": 1}, context),
        await direct.run_async({"number": 2}),
        *[await tool.run_async(args={"number": 3}, tool_context=other)
          for other in (None, SimpleNamespace(state={}), MagicMock())],
        await in_thread(lambda: tool.run_async(args={"number": 4}, tool_context=context)),
    ]


root_agent = agent(call("late"), call("wrapped"), call("one"), "Done.", before_agent_callback=before,
                   instruction="Seen: {seen}",
                   tools=[Late(name="late", description="l"), Wrapped(name="wrapped", description="w"), one])
'''


@pytest.mark.parametrize("share", [False, True])
def test_tool_is_frozen_however_it_is_called(make_agent: MakeAgent, tmp_path: Path, share: bool) -> None:
    desk = make_agent(HEAD + UNUSUAL)
    live = desk.run("work", share=share, **RECORDING)
    counter = tmp_path / "desk" / "counter"
    made = counter.read_text().split()
    assert made == [*["direct"] * 2, *["work"] * 4, "model", "late", "model", "wrapped", "model", "single", "model"]
    assert len(tool_calls(live)) == 9
    for mode, models in (("tools", 4), ("all", 0)):
        counter.unlink()
        again = desk.run("work", share=share, **frozen(live, mode))
        counter.touch()
        assert list(differences(shown(live), shown(again))) == []
        assert counter.read_text().split() == ["model"] * models


CUSTOM = """
from google.adk.agents import BaseAgent
from google.adk.events import Event


class Custom(BaseAgent):
    "An agent that makes its calls itself, some of them with tools of ADK."

    async def _run_async_impl(self, ctx):
        def event(part):
            return Event(author=self.name, invocation_id=ctx.invocation_id,
                         content=types.Content(role="model", parts=[part]))

        yield event(call("work", number=1))
        await tool.run_async(args={"number": 1}, tool_context=ToolContext(ctx))
        yield event(call("adk_request_credential"))
        if ESCAPES:
            yield event(call("hidden", number=2))
            work(2)
        yield event(types.Part(text="Done."))


def answer(tool, args, tool_context):
    return {"answered": "by the callback"}


model = agent(call("work", number=5), "Asked.", name="model", tools=[tool], before_tool_callback=answer)
root_agent = SequentialAgent(name="desk", sub_agents=[model, Custom(name="custom")])
"""


@pytest.mark.parametrize("escapes", [False, True])
def test_calls_without_an_adk_tool_are_reported_as_escaped(make_agent: MakeAgent, escapes: bool) -> None:
    desk = make_agent(HEAD + UNUSUAL + f"ESCAPES = {escapes}" + CUSTOM)
    live = desk.run("work", **RECORDING)
    assert [call["tools"] for call in calls(live) if call["kind"] == "escaped"] == [["hidden"]] * escapes
    again = desk.run("work", **frozen(live, "all"))
    if escapes:
        assert again.error["kind"] == "frozen_miss"
        assert "hidden" in again.error["message"]
    else:
        assert shown(again) == shown(live)


def test_call_of_an_unknown_conversation_ends_all_frozen_conversations(make_agent: MakeAgent) -> None:
    source = """
async def before(callback_context):
    def alone():
        try:
            return asyncio.run(tool.run_async(args={"number": 4}, tool_context=None))
        except Exception:
            return "swallowed"

    await asyncio.sleep(0)
    callback_context.state["seen"] = await asyncio.get_running_loop().run_in_executor(None, alone)


root_agent = agent("Done.", before_agent_callback=before)
"""
    desk = make_agent(HEAD + UNUSUAL + source)
    live = desk.run("work", share=True, **RECORDING)
    cases = [desk.start(share=True, **frozen(live)) for _ in range(2)]
    for case in cases:
        case.send({"op": "turn", "content": {"role": "user", "parts": [{"text": "work"}]}})
        case.send({"op": "end"})
    for case in cases:
        outcome = case.wait(lambda outcome: bool(outcome.of("Failed") + outcome.answers))
        assert outcome.error["kind"] == "frozen_miss"
        assert outcome.error["hint"] == "use --isolation case"


def test_tool_that_is_a_generator_is_marked(make_agent: MakeAgent) -> None:
    source = """
async def tail():
    "Tails."
    yield {"line": 1}

root_agent = agent([call("tail"), call("work", number=1)], "Done.", tools=[tail, work])
"""
    made = tool_calls(make_agent(HEAD + UNUSUAL + source).run("work", **RECORDING))
    assert [call.get("streams") for call in made] == [True, None]


ASKED = """
class Base(BaseToolset):
    async def get_tools(self, readonly_context=None):
        count("connect")
        return [FunctionTool(work)]

    async def close(self):
        pass


class Remote(Base):
    async def get_tools(self, readonly_context=None):
        return await super().get_tools(readonly_context)


remote = Remote(tool_name_prefix="remote")
other = Remote()


async def before(callback_context):
    tools = [*await remote.get_tools(), *await remote.get_tools(callback_context)]
    callback_context.state["names"] = [tool.name for tool in tools]
    callback_context.state["seen"] = await tools[0].run_async(
        args={"number": 1}, tool_context=ToolContext(callback_context._invocation_context))
    if OTHER:
        callback_context.state["other"] = [tool.name for tool in await other.get_tools()]


helper = agent(call("remote_work", number=2), "Done.", name="helper", instruction="{names} {seen}",
               tools=[work, remote])
root_agent = agent(call("helper", request="work"), "Done.", before_agent_callback=before, tools=[AgentTool(helper)])
"""


@pytest.mark.parametrize("other", [False, True])
def test_toolset_listed_by_the_agents_code_does_not_connect(make_agent: MakeAgent, tmp_path: Path, other: bool) -> None:
    desk = make_agent(HEAD + UNUSUAL + f"OTHER = {other}" + ASKED)
    live = desk.run("work", **RECORDING)
    counter = tmp_path / "desk" / "counter"
    for mode in ("tools", "all"):
        counter.unlink(missing_ok=True)
        again = desk.run("work", **frozen(live, mode))
        counter.touch()
        assert set(counter.read_text().split()) <= {"model"}
        if other:
            assert again.error["kind"] == "frozen_miss"
            assert again.error["message"] == "the tools of Remote are not in the recording"
        else:
            assert list(differences(shown(live), shown(again))) == []
    made = desk.run("work", **frozen(live, on_miss="live"))
    assert shown(made) == shown(live)
    assert made.of("Calls")[-1]["frozen"]["live"] == int(other)


IN_PLACE = """
def begin(tool_context: ToolContext):
    "Begins."
    count("begin")
    tool_context.state["seen"] = {1}


def add(number: int, tool_context: ToolContext):
    "Adds to what no version of ADK watches, and to a list."
    count("add")
    tool_context.state["seen"].add(number)
    tool_context.state["cart"].append(number)


def after(tool, args, tool_context, tool_response):
    return {"seen": sorted(tool_context.state["seen"]), "cart": list(tool_context.state["cart"])}


def end(callback_context):
    seen, cart = (callback_context.state[name] for name in ("seen", "cart"))
    return types.Content(role="model", parts=[types.Part(text=f"{sorted(seen)} {cart}")])


root_agent = agent(call("begin"), call("add", number=2), call("add", number=3), "Done.", "Done.",
                   instruction="{cart}", tools=[begin, add], after_tool_callback=after, after_agent_callback=end)
"""


def test_replay_repeats_changes_of_the_state_in_place(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + IN_PLACE)
    session = {"state": {"cart": [0]}}
    live = desk.run("work", "again", session=session, **RECORDING)
    assert live.answers[0] == "[1, 2, 3] [0, 2, 3]"
    assert [call["effects"]["in_place"]["seen"]["value"] for call in tool_calls(live)[1:]] == [[1, 2], [1, 2, 3]]
    counter = tmp_path / "desk" / "counter"
    for mode in ("tools", "all"):
        counter.unlink()
        again = desk.run("work", "again", session=session, **frozen(live, mode))
        counter.touch()
        assert list(differences(shown(live), shown(again))) == []
        assert set(counter.read_text().split()) <= {"model"}
