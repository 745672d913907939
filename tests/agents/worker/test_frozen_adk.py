"""Frozen cases of real google-adk agents: equal to live ones, without a call of a tool."""

from pathlib import Path

from tests.agents.worker.client import Outcome
from tests.agents.worker.conftest import MakeAgent, needs_adk, needs_fork
from tests.agents.worker.frozen_agents import HEAD, RECORDING, differences, frozen, shown

pytestmark = [needs_adk, needs_fork]

DESK = '''
import inspect

from pydantic import BaseModel

# Not known to google-adk 1.18.
ALONE = {"include_plugins": False} if "include_plugins" in inspect.signature(AgentTool).parameters else {}


class OrderGone(Exception):
    def __init__(self, number, code):
        super().__init__(f"order {number} is gone")
        self.code = code


class Ticket(BaseModel):
    number: int
    lines: list[str] = []


def find_order(number: str, tool_context: ToolContext) -> dict:
    "Finds an order."
    count(f"find_order {number}")
    tool_context.state["last"] = number
    tool_context.state["temp:seen"] = [*tool_context.state.get("temp:seen", []), number]
    return {"item": "kettle", "price": 12.5, "number": number}


async def print_label(number: str, tool_context: ToolContext) -> dict:
    "Prints a label."
    count("print_label")
    part = types.Part.from_bytes(data=b"\\x00label " + number.encode(), mime_type="application/pdf")
    await tool_context.save_artifact("label.pdf", types.Part(text="draft"))
    version = await tool_context.save_artifact("label.pdf", part)
    tool_context.actions.skip_summarization = False
    return {"version": version}


def refund(number: str, amount: float) -> dict:
    "Refunds."
    count("refund")
    raise OrderGone(number, 7)


def ticket(number: int) -> Ticket:
    "Makes a ticket."
    count("ticket")
    return Ticket(number=number, lines=["a", "b"])


def picture():
    "Takes a picture."
    count("picture")
    return [types.Part.from_bytes(data=bytes(range(8)), mime_type="image/png"), ("a", 1)]


def pay(amount: float) -> dict:
    "Pays."
    count("pay")
    return {"paid": amount}


class Remote(BaseToolset):
    """A toolset that connects when its tools are listed, and whenever one is called."""

    def _connect(self):
        count("connect")
        if not Path(__file__).with_name("server").exists():
            raise ConnectionError("the server is gone")

    async def get_tools(self, readonly_context=None):
        self._connect()
        return [RemoteTool(self, name) for name in ("weather", "traffic")]

    async def close(self):
        pass


class RemoteTool(BaseTool):
    def __init__(self, toolset, name):
        super().__init__(name=name, description=f"Tells the {name}.")
        self._toolset = toolset

    def _get_declaration(self):
        schema = types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")})
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters=schema)

    async def process_llm_request(self, *, tool_context, llm_request):
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        if "Trust no description" not in (llm_request.config.system_instruction or ""):
            llm_request.append_instructions(["Trust no description."])

    async def run_async(self, *, args, tool_context):
        self._toolset._connect()
        count(self.name)
        return {self.name: f"fine in {args['city']}"}


def before_tool(tool, args, tool_context):
    tool_context.state["before"] = tool_context.state.get("before", 0) + 1
    if tool.name == "pay" and args["amount"] > 100:
        return {"refused": args["amount"]}
    if tool.name == "find_order":
        args["number"] = args["number"].upper()


def after_tool(tool, args, tool_context, tool_response):
    tool_context.state[f"after {tool.name}"] = repr(tool_response)
    if tool.name == "weather":
        return {**tool_response, "checked": tool_context.state["before"]}


def on_error(tool, args, tool_context, error):
    tool_context.state["error"] = f"{type(error).__mro__[0].__name__}, {isinstance(error, OrderGone)}: {error}"
    return {"sorry": str(error)}


clerk = agent(call("find_order", number="B-2"), "a clerk's kettle", name="clerk", tools=[find_order],
              description="knows")
loner = agent([call("find_order", number="C-3"), call("weather", city="Rome")], "a loner's kettle", name="loner",
              tools=[find_order, Remote()], description="alone")
stage = agent(call("ticket", number=5), "passed on", name="stage", tools=[ticket], description="another agent")
root_agent = agent(
    [call("find_order", number="a-1"), call("weather", city="Oslo"), call("find_order", number="a-1")],
    [call("print_label", number="A-1"), call("refund", number="A-1", amount=1)],
    [call("clerk", request="B-2?"), call("loner", request="C-3?"), call("picture")],
    [call("pay", amount=50), call("pay", amount=500), call("ticket", number=3)],
    call("transfer_to_agent", agent_name="stage"),
    instruction="Be kind.",
    tools=[find_order, Remote(), print_label, refund, ticket, picture, pay,
           AgentTool(clerk), AgentTool(loner, **ALONE)],
    sub_agents=[stage],
    before_tool_callback=before_tool,
    after_tool_callback=after_tool,
    on_tool_error_callback=on_error,
)
'''


def counted(folder: Path) -> list[str]:
    file = folder / "desk" / "counter"
    return file.read_text().splitlines() if file.exists() else []


def check_equal(live: Outcome, again: Outcome) -> None:
    assert list(differences(shown(live), shown(again))) == []


def test_frozen_case_equals_the_live_one_and_calls_nothing(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + DESK, files={"server": ""})
    live = desk.run("a kettle", "another", **RECORDING)
    assert "Failed" not in {event["event"] for event in live.events}, live.error
    before = counted(tmp_path)
    assert {"connect", "refund", "weather", "print_label", "find_order C-3"} <= set(before)
    (tmp_path / "desk" / "server").unlink()

    again = desk.run("a kettle", "another", **frozen(live))
    check_equal(live, again)
    added = counted(tmp_path)[len(before) :]
    assert set(added) == {"model"}

    silent = desk.run("a kettle", "another", **frozen(live, "all"))
    check_equal(live, silent)
    assert counted(tmp_path)[len(before) :] == added
