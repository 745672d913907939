"""Frozen cases of real google-adk agents: equal to live ones, without a call of a tool."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.worker.client import Outcome
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork
from tests.worker.frozen_agents import HEAD, RECORDING, differences, frozen, shown, tool_calls
from workbench.worker.missing import installed_adk

pytestmark = [needs_adk, needs_fork]
needs_workflows = pytest.mark.skipif(
    int((installed_adk() or "0").split(".")[0]) < 2, reason="google-adk before 2 has no workflows"
)

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
    known = isinstance(error, OrderGone) and error.code
    tool_context.state["error"] = f"{type(error).__mro__[0].__name__}, {known}: {error}"
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
    spans = json.loads(again.of("Spans")[0]["spans"])
    assert {span["name"] for span in spans if span.get("frozen")} >= {"find_order", "weather", "refund"}

    silent = desk.run("a kettle", "another", **frozen(live, "all"))
    check_equal(live, silent)
    assert counted(tmp_path)[len(before) :] == added


SHOP = """
def find_order(number: str) -> dict:
    "Finds an order."
    count("find_order")
    return {"item": "kettle", "number": number}


def swallow(tool, args, tool_context, error):
    count("swallowed")
    return {"swallowed": str(error)}


root_agent = agent(call("find_order", number="$user"), "Found.", tools=[find_order],
                   on_tool_error_callback=swallow)
"""


def test_missed_call_ends_the_case_before_an_error_callback_runs(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + SHOP)
    live = desk.run("A-1", **RECORDING)
    before = counted(tmp_path)
    missed = desk.run("B-2", **frozen(live))
    assert missed.error["kind"] == "frozen_miss"
    assert missed.error["message"] == (
        'desk called find_order(number="B-2"), which has no recording; '
        'nearest recording: find_order(number="A-1") in turn 1; number was "A-1", now "B-2"'
    )
    assert missed.exit_code == 0
    assert counted(tmp_path)[len(before) :] == ["model"]
    assert [event["event"] for event in missed.events][-4:] == ["Spans", "Calls", "Touched", "Failed"]
    assert missed.of("Calls")[-1]["frozen"] == {"tools": 0, "models": 0, "live": 0, "misses": 1}


def test_call_without_recording_runs_live_if_live_calls_are_allowed(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + SHOP)
    live = desk.run("A-1", **RECORDING)
    made = desk.run("B-2", **frozen(live, on_miss="live"))
    assert made.answers == ["Found."]
    assert counted(tmp_path).count("find_order") == 2
    (call,) = tool_calls(made)
    assert (call["from"], call["answer"]["number"]) == ("live", "B-2")
    assert made.of("Calls")[-1]["frozen"] == {"tools": 0, "models": 0, "live": 1, "misses": 0}


def test_changed_request_is_a_miss_that_names_the_difference(make_agent: MakeAgent, tmp_path: Path) -> None:
    kind = 'instruction=lambda context: os.environ.get("TEXT", "Be kind."), tools=[find_order],'
    desk = make_agent(HEAD + SHOP.replace("tools=[find_order],", kind))
    live = desk.run("a kettle", "another", **RECORDING)
    before = counted(tmp_path)
    assert desk.run("a kettle", "another", **frozen(live, "all")).answers == ["Found.", "Found."]
    other = desk.run("a kettle", env={"TEXT": "Be rude."}, **frozen(live, "all"))
    assert "its request 1 has another instruction" in other.error["message"]
    differs = json.loads(other.error["differs"])
    assert (differs["agent"], differs["part"], json.loads(differs["now"])[:8]) == ("desk", "system", "Be rude.")
    error = desk.run("a kettle", "x", **frozen(live, "all")).error
    assert "its request 3 has another message 5 of 5" in error["message"]
    differs = json.loads(error["differs"])
    assert (differs["part"], differs["at"]) == ("contents", 4)
    assert json.loads(differs["now"])["parts"] == [{"text": "x"}]
    more = desk.run("a kettle", "another", "third", **frozen(live, "all"))
    assert "only 3 of its requests are recorded" in more.error["message"]
    assert counted(tmp_path) == before


def test_missed_call_ends_only_its_own_case_in_a_shared_process(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + SHOP)
    live = desk.run("a kettle", share=True, **RECORDING)
    options = frozen(live)
    missing = {**options, "recorded": [{**options["recorded"][0], "args": {"number": "C-3"}}]}
    cases = [desk.start(share=True, **given) for given in (missing, options, {})]
    for case in cases:
        case.send({"op": "turn", "content": {"role": "user", "parts": [{"text": "a kettle"}]}})
        case.send({"op": "end"})
    missed, again, plain = (case.wait(lambda outcome: bool(outcome.of("Failed") + outcome.answers)) for case in cases)
    assert missed.error["kind"] == "frozen_miss"
    assert again.answers == plain.answers == ["Found."]
    assert again.of("Calls")[-1]["frozen"]["tools"] == 1
    assert counted(tmp_path).count("find_order") == 2


def test_recording_that_the_agent_cannot_read_ends_only_its_case(make_agent: MakeAgent) -> None:
    desk = make_agent(HEAD + SHOP)
    live = desk.run("a kettle", **RECORDING)
    good = frozen(live)
    (call,) = good["recorded"]
    strange = {"$form": "model", "type": "os.system", "value": []}
    for recorded, replay in (
        ([{**call, "answer": strange}], {}),
        ([{**call, "effects": {"actions": {"escalate": "perhaps"}}}], {}),
        ([{**call, "effects": {"artifacts": [{"name": "a", "content": {"text": 7}}]}}], {}),
        ([call], {"tools": {"desk": [{"name": "find", "declaration": {"parameters": "text"}}]}}),
    ):
        settings = {**good["calls"], "replay": {**good["calls"]["replay"], **replay}}
        outcome = desk.run("a kettle", calls=settings, recorded=recorded)
        assert outcome.error["kind"] == "frozen_file", (recorded, replay, outcome.error)
    assert desk.run("a kettle", **good).answers == ["Found."]


PAIR = """
import asyncio

NUMBERS = iter(range(100))


async def roll(sides: int, tool_context: ToolContext) -> dict:
    "Rolls a die."
    number = next(NUMBERS)
    # The second of two parallel calls is done first, and the first one sees what it did.
    for _ in range(20 if number % 2 == 0 else 5):
        await asyncio.sleep(0)
    tool_context.state["rolls"] = [*tool_context.state.get("rolls", []), number]
    return {"rolled": number}


async def slow_first(tool, args, tool_context):
    # The first call of the model's answer reaches its tool last.
    for _ in range(50 if not tool_context.state.get("slow") else 1):
        tool_context.state["slow"] = True
        await asyncio.sleep(0)


def fail(number: int) -> dict:
    "Fails."
    count("fail")
    raise ValueError(f"no {number}")


left = agent(call("roll", sides=6), "left", name="left", tools=[roll])
right = agent(call("roll", sides=6), "right", name="right", tools=[roll])
desk = agent([call("roll", sides=6), call("roll", sides=6)], [call("roll", sides=6), call("roll", sides=6)], "Rolled.",
             tools=[roll], name="roller", before_tool_callback=slow_first)
root_agent = SequentialAgent(name="desk", sub_agents=[desk, ParallelAgent(name="both", sub_agents=[left, right])])
"""


def test_parallel_calls_get_their_own_answers_and_effects(make_agent: MakeAgent) -> None:
    desk = make_agent(HEAD + PAIR)
    live = desk.run("roll", **RECORDING)
    again = desk.run("roll", **frozen(live))
    rolled = [call["answer"]["rolled"] for call in tool_calls(live)]
    assert sorted(rolled) == list(range(6))
    assert [call["answer"]["rolled"] for call in tool_calls(again)] == rolled
    assert {call["branch"] for call in tool_calls(live)} >= {"", "both.left", "both.right"}
    assert responses(live) == responses(again)


RACE = """
import asyncio

quick_has_ended = asyncio.Event()


async def slow(n: int, tool_context: ToolContext) -> dict:
    "Is slow."
    await quick_has_ended.wait()
    await asyncio.sleep(0.2)
    tool_context.state["last"] = "slow"
    return {"n": n}


async def quick(n: int, tool_context: ToolContext) -> dict:
    "Is quick."
    tool_context.state["last"] = "quick"
    quick_has_ended.set()
    return {"n": n}


class Late(Scripted):
    "Its answers take long, but not in a frozen run."
    async def generate_content_async(self, llm_request, stream=False):
        await quick_has_ended.wait()
        await asyncio.sleep(1)
        async for response in Scripted.generate_content_async(self, llm_request):
            yield response


first = agent(call("slow", n=1), "late", name="first", tools=[slow])
second = agent(call("quick", n=1), "early", name="second", tools=[quick])
third = LlmAgent(name="third", model=Late(answers=["last of all"]))
root_agent = ParallelAgent(name="both", sub_agents=[{branches}])
"""


@pytest.mark.parametrize(
    ("branches", "mode", "answer"),
    [
        ("first, second", "tools", "late"),
        ("first, second", "all", "late"),
        ("third, first, second", "all", "last of all"),
    ],
)
def test_frozen_parallel_agent_ends_with_the_branch_of_the_recorded_run(
    branches: str, mode: str, answer: str, make_agent: MakeAgent
) -> None:
    desk = make_agent(HEAD + RACE.replace("{branches}", branches))
    live = desk.run("go", **RECORDING)
    assert live.answers == [answer]
    for _ in range(5):
        again = desk.run("go", **frozen(live, mode))
        assert list(differences(shown(live), shown(again))) == []
        assert "reordered" not in again.of("Calls")[-1]["frozen"]


PRICES = """
from pathlib import Path

LATER = Path(__file__).with_name("later")


def price(item: str, tool_context: ToolContext) -> dict:
    "Sets the price."
    tool_context.state["price"] = 3
    return {"price": 3}


def quote(item: str, tool_context: ToolContext) -> dict:
    "Quotes."
    return {"quote": tool_context.state.get("price")}


names = ["quote", "price"] if LATER.exists() else ["price", "quote"]
root_agent = agent(*(call(name, item="kettle") for name in names), "Done.", tools=[price, quote])
"""


def test_calls_that_are_replayed_in_another_order_are_reported(make_agent: MakeAgent, tmp_path: Path) -> None:
    live = make_agent(HEAD + PRICES).run("go", **RECORDING)
    (tmp_path / "desk" / "later").touch()
    again = make_agent(HEAD + PRICES).run("go", **frozen(live))
    assert again.answers == ["Done."]
    assert again.of("Calls")[-1]["frozen"]["reordered"] == ["price", "quote"]


def responses(outcome: Outcome) -> list[Any]:
    """Return the authors and responses of all tool calls, by author, because parallel agents take turns by chance."""
    events = [event for turn in outcome.actual for event in turn["intermediate_data"]["invocation_events"]]
    parts = [(event["author"], part) for event in events for part in event.get("content", {}).get("parts", ())]
    found = [(author, part["function_response"]["response"]) for author, part in parts if "function_response" in part]
    return sorted(found, key=lambda pair: pair[0])


def test_error_of_a_tool_also_ends_the_frozen_case(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(
        HEAD + PAIR + 'root_agent = agent([call("roll", sides=6), call("fail", number=1)], "x", tools=[roll, fail])'
    )
    live = desk.run("roll", **RECORDING)
    again = desk.run("roll", **frozen(live))
    assert live.error["message"] == again.error["message"] == "ValueError: no 1"
    assert counted(tmp_path).count("fail") == 1


UNKNOWN = """
root_agent = agent("Hello.", tools=[Remote()] if os.environ.get("REMOTE") else [])
"""


def test_toolset_that_is_not_recorded_is_a_miss_and_does_not_connect(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + DESK + "\nroot_agent = agent('Hello.')")
    live = desk.run("hello", **RECORDING)
    options = frozen(live)
    factory = make_agent(HEAD + DESK + "\nroot_agent = agent('Hello.', tools=[Remote()])", name="other")
    missed = factory.run("hello", **options)
    assert missed.error["kind"] == "frozen_miss"
    assert "the tools of Remote of the agent desk are not in the recording" in missed.error["message"]
    assert (
        "connect" not in (tmp_path / "other" / "counter").read_text()
        if (tmp_path / "other" / "counter").exists()
        else 1
    )


def test_toolset_without_calls_is_frozen_too(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + DESK + "\nroot_agent = agent('Hello.', tools=[Remote()])", files={"server": ""})
    live = desk.run("hello", **RECORDING)
    connected = counted(tmp_path).count("connect")
    (tmp_path / "desk" / "server").unlink()
    assert desk.run("hello", **frozen(live)).answers == ["Hello."]
    assert counted(tmp_path).count("connect") == connected


def test_toolset_that_failed_while_recording_fails_again_without_connecting(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    desk = make_agent(HEAD + DESK + "\nroot_agent = agent('Hello.', tools=[Remote(), pay])")
    live = desk.run("hello", **RECORDING)
    connected = counted(tmp_path).count("connect")
    (tmp_path / "desk" / "server").touch()
    replayed = desk.run("hello", **frozen(live))
    assert counted(tmp_path).count("connect") == connected
    if live.of("Failed"):  # Before google-adk 2, such an agent did not go on.
        assert replayed.error["message"] == live.error["message"]
    else:
        assert replayed.answers == live.answers == ["Hello."]


def test_model_call_without_a_digest_answers_the_next_request_of_its_agent(make_agent: MakeAgent) -> None:
    desk = make_agent(HEAD + DESK + "\nroot_agent = agent('Hello.')")
    options = frozen(desk.run("hello", **RECORDING), mode="all")
    for model in options["recorded"]:
        model["asked"] = ""
    assert desk.run("another message", **options).answers == ["Hello."]


def test_part_of_requests_that_differs_each_time_can_be_ignored(make_agent: MakeAgent, tmp_path: Path) -> None:
    source = "\nimport time\nroot_agent = agent(call('pay', amount=1.5), 'Paid.', tools=[pay])"
    desk = make_agent(HEAD + DESK + source + "\nroot_agent.instruction = f'It is {time.time_ns()}.'")
    live = desk.run("hello", **RECORDING)
    before = counted(tmp_path)
    other = make_agent(HEAD + DESK + source + "\nroot_agent.instruction = f'It is {time.time_ns()} now.'", name="other")
    missed = other.run("hello", **frozen(live, mode="all"))
    assert "its request 1 has another instruction" in missed.error["message"]
    assert '"ignore": {"$model": ["instruction"]}' in missed.error["hint"]
    assert {"kind": "miss", "agent": "desk", "parts": ["instruction"]} in json.loads(missed.of("Calls")[-1]["calls"])
    assert other.run("hello", **frozen(live, mode="all", ignore={"$model": ["instruction"]})).answers == ["Paid."]
    other_message = other.run("hello?", **frozen(live, mode="all", ignore={"$model": ["instruction"]}))
    assert "its request 1 has another message 1 of 1" in other_message.error["message"]
    assert counted(tmp_path) == before


def test_toolset_connects_for_a_missed_call_if_live_calls_are_allowed(make_agent: MakeAgent, tmp_path: Path) -> None:
    source = "\nroot_agent = agent(call('weather', city='$user'), 'Fine.', tools=[Remote()])"
    desk = make_agent(HEAD + DESK + source, files={"server": ""})
    live = desk.run("Oslo", **RECORDING)
    before = counted(tmp_path)
    made = desk.run("Rome", **frozen(live, on_miss="live"))
    assert made.answers == ["Fine."]
    assert counted(tmp_path)[len(before) :] == ["model", "connect", "connect", "weather", "model"]


def test_toolset_that_connects_while_the_agent_is_imported_is_named(make_agent: MakeAgent) -> None:
    source = HEAD + DESK + "\nimport asyncio\nroot_agent = agent('Hello.', tools=asyncio.run(Remote().get_tools()))"
    gone = make_agent(source).imported["error"]
    assert gone["message"] == "ConnectionError: the server is gone"
    assert "Remote connects while the agent is made, so it cannot be frozen" in gone["hint"]
    desk = make_agent(source, name="there", files={"server": ""})
    live = desk.run("hello", **RECORDING)
    assert b"Remote connects" not in live.stderr
    assert b"warning: Remote connects while the agent is made" in desk.run("hello", **frozen(live)).stderr


def test_missed_call_fails_only_its_turn_of_a_chat_in_a_shared_process(make_agent: MakeAgent) -> None:
    desk = make_agent(HEAD + SHOP)
    live = desk.run("A-1", share=True, **RECORDING)
    chat = desk.run("B-2", share=True, chat=True, **frozen(live))
    (failed,) = chat.of("TurnFailed")
    assert failed["error"]["kind"] == "frozen_miss"
    assert chat.of("Failed") == []
    assert len(chat.of("Ended")) == 1


FLOW = """
from google.adk.workflow import START, FunctionNode, Workflow
from pydantic import BaseModel


class Asked(BaseModel):
    number: str


def look(number: str, tool_context: ToolContext) -> dict:
    "Looks."
    count("look")
    tool_context.state["looked"] = number
    return {"number": number, "item": "kettle"}


def stream(number: str):
    "Streams."
    count("stream")
    yield {"streamed": number}


def leaf(number: str) -> dict:
    "A leaf."
    count("leaf")
    return {"leaf": number}


def prepare(node_input):
    return {"number": node_input.parts[0].text}


def sum_up(node_input: dict) -> str:
    return f"It is a {node_input['item']}."


tool = FunctionTool(look)
flow = Workflow(name="flow", description="A flow.", input_schema=Asked, edges=[(START, tool, sum_up)])
helper = agent(call("look", number="H"), "helped", name="helper", tools=[look], mode="single_turn", description="x")
clerk = agent(call("look", number="W"), call("finish_task", result="done"), "ok", name="clerk", tools=[look],
              mode="task", description="y")
calling = agent([call("flow", number="A"), call("leaf", number="L"), call("stream", number="S")],
                call("helper", request="h"), call("clerk", request="w"), "All done.", name="calling",
                tools=[flow, FunctionNode(func=leaf, name="leaf", parameter_binding="node_input"), stream],
                sub_agents=[helper, clerk])
inner = agent(call("look", number="X"), "Looked.", name="inner", tools=[look], mode="single_turn")
root_agent = Workflow(name="desk", edges=[(START, prepare, tool, sum_up, inner)])
"""


@needs_workflows
@pytest.mark.parametrize(("root", "number"), [("root_agent", 2), ("calling", 5)])
def test_calls_inside_nodes_and_tools_that_run_nodes_are_frozen(
    make_agent: MakeAgent, tmp_path: Path, root: str, number: int
) -> None:
    desk = make_agent(HEAD + FLOW + f"\nroot_agent = {root}")
    live = desk.run("A-1", **RECORDING)
    before = counted(tmp_path)
    again = desk.run("A-1", **frozen(live))
    assert len(live.answers) == 1, live.error
    check_equal(live, again)
    assert set(counted(tmp_path)[len(before) :]) == {"model"}
    assert again.of("Calls")[-1]["frozen"]["tools"] == number
    assert {"desk", "inner"} == {call["agent"] for call in tool_calls(live)} or root == "calling"
