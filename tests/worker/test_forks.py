"""Forks of conversations with real google-adk agents and with plain Python agents."""

from pathlib import Path

import pytest

from tests.worker.conftest import MakeAgent, needs_adk, needs_fork
from tests.worker.forked import changed, fork, original
from tests.worker.frozen_agents import HEAD, RECORDING, calls
from tests.worker.test_frozen_adk import DESK as BIG_DESK
from workbench.run.forking import CannotForkError, Fork

pytestmark = [needs_fork]

DESK = '''
from google.adk.models.registry import LLMRegistry


class Told(Scripted):
    """A scripted model that tells its instruction in its last answer."""

    async def generate_content_async(self, llm_request, stream=False):
        async for response in super().generate_content_async(llm_request, stream):
            for part in response.content.parts:
                if part.text:
                    told = str(llm_request.config.system_instruction).split(chr(10))[0]
                    part.text = f"{part.text} as told: {told} by {llm_request.model} ({self.model})"
            yield response


def find_order(number: str, tool_context: ToolContext) -> dict:
    "Finds an order."
    count(f"find_order {number}")
    tool_context.state["last"] = number
    return {"item": "kettle", "number": number}


async def print_label(number: str, tool_context: ToolContext) -> dict:
    "Prints a label."
    count("print_label")
    await tool_context.save_artifact("label.txt", types.Part(text=f"for {number}"))
    return {"printed": LABEL}


def after_tool(tool, args, tool_context, tool_response):
    tool_context.state["seen"] = tool_context.state.get("seen", 0) + ADDED


LABEL = Path(__file__).with_name("label").read_text()
ADDED = int(Path(__file__).with_name("added").read_text())
root_agent = LlmAgent(
    name="desk",
    model=Told(answers=[call("find_order", number="A-1"), call("print_label", number="A-1"), "done"]),
    instruction="Be kind about {last?}.",
    tools=[find_order, print_label],
    after_tool_callback=after_tool,
)
'''
FILES = {"label": "yes", "added": "1"}


def counted(folder: Path) -> list[str]:
    file = folder / "desk" / "counter"
    return file.read_text().splitlines() if file.exists() else []


@needs_adk
def test_fork_calls_nothing_before_its_point_and_changes_the_instruction_after_it(
    make_agent: MakeAgent, tmp_path: Path
) -> None:
    desk = make_agent(HEAD + DESK, files=FILES)
    live = desk.run("a kettle", **RECORDING)
    assert counted(tmp_path) == ["model", "find_order A-1", "model", "print_label", "model"]
    known = original(live, "a kettle")
    assert [call.tool or "model" for call in known.calls] == ["model", "find_order", "model", "print_label", "model"]

    third = Fork(known, 0, 2, changed("instruction", "Be short about {last}."))
    tried = fork(desk, third)
    assert counted(tmp_path)[5:] == ["model", "print_label", "model"]
    assert tried.answers == ["done as told: Be short about A-1. by scripted (scripted)"]
    assert [call.get("from") for call in calls(tried) if call["kind"] != "tools"][:3] == ["frozen", "frozen", None]


@needs_adk
def test_fork_changes_one_thing_and_repeats_the_rest(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + DESK, files=FILES)
    live = desk.run("a kettle", "another", **RECORDING)
    known = original(live, "a kettle", "another")
    before = len(counted(tmp_path))

    same = fork(desk, Fork(known, 1, None))
    assert same.answers == live.answers
    assert counted(tmp_path)[before:] == ["model"]

    model = fork(desk, Fork(known, 0, 4, changed("model", "better")), "another")
    assert model.answers[0] == "done as told: Be kind about A-1. by better (better)"
    whole = fork(desk, Fork(known, 0, 4, changed("instruction", "Only this {last}", whole=True)), "another")
    assert whole.answers[0] == "done as told: Only this {last} by scripted (scripted)"
    answer = fork(desk, Fork(known, 0, 3, changed("answer", {"printed": "no"})), "another")
    responses = [part for event in answer.of("AgentActed") for part in event["acted"]["content"]["parts"]]
    assert [part["function_response"]["response"] for part in responses if "function_response" in part][1] == {
        "printed": "no"
    }
    before = len(counted(tmp_path))
    message = fork(desk, Fork(known, 1, None, changed("message", "a pan")))
    assert counted(tmp_path)[before:] == ["model"]
    assert message.actual[1]["user_content"]["parts"] == [{"text": "a pan"}]
    frozen = fork(desk, Fork(known, 0, 2, frozen=True), "another")
    assert counted(tmp_path)[before + 1 :] == ["model", "model", "model"]
    assert frozen.answers[0] == live.answers[0]


@needs_adk
@pytest.mark.parametrize(
    ("edit", "files", "message"),
    [
        (("", ""), {"added": "2"}, "turn 1: the session's state differs when desk asks its model"),
        (
            (" + ADDED", " + 1\n    return {**tool_response, 'item': 'pot'}"),
            {},
            'turn 1, event 2: content.parts[0].function_response.response.item was "kettle", now "pot"',
        ),
    ],
)
def test_fork_that_differs_before_its_point_ends_and_calls_nothing(
    make_agent: MakeAgent, tmp_path: Path, edit: tuple[str, str], files: dict[str, str], message: str
) -> None:
    desk = make_agent(HEAD + DESK, files=FILES)
    known = original(desk.run("a kettle", **RECORDING), "a kettle")
    before = len(counted(tmp_path))
    other = make_agent((HEAD + DESK).replace(*edit), files={**FILES, **files})
    tried = fork(other, Fork(known, 0, 2, changed("instruction", "Be short.")))
    assert tried.error["kind"] == "fork_diverged"
    assert message in tried.error["message"]
    assert counted(tmp_path)[before:] == []


@needs_adk
def test_fork_repeats_parallel_calls_and_calls_of_all_agents(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + BIG_DESK, files={"server": ""})
    live = desk.run("a kettle", **RECORDING)
    known = original(live, "a kettle")
    names = [call.tool or "model" for call in known.calls]
    agents = [call.call.agent for call in known.calls]
    refund, picture, inner = names.index("refund"), names.index("picture"), agents.index("loner") + 1
    for point in (None, refund, picture, inner):
        assert fork(desk, Fork(known, 0, point)).answers == live.answers
    # Toolsets do not connect before the point.
    (tmp_path / "desk" / "server").unlink()
    before = len(counted(tmp_path))
    assert fork(desk, Fork(known, 0, len(names) - 2)).answers == live.answers
    assert counted(tmp_path)[before:] == ["ticket", "model"]


PLAIN = """
from pathlib import Path


def find(number):
    with Path(__file__).with_name("counter").open("a") as file:
        file.write(f"find {number}\\n")
    return {"item": "kettle"}


def root_agent(message, session):
    found = session.tool("find", {"number": str(message)}, find)
    session.state["found"] = found
    return f"{found['item']} {message} {Path(__file__).with_name('label').read_text()}"
"""


def test_plain_agent_forks_at_turns(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(PLAIN, files=FILES)
    known = original(desk.run("1", "2", "3", **RECORDING), "1", "2", "3")
    with pytest.raises(CannotForkError, match="forked only at turns"):
        Fork(known, 0, 0)
    tried = fork(desk, Fork(known, 1, None, changed("message", "5")), "3")
    assert tried.answers == ["kettle 1 yes", "kettle 5 yes", "kettle 3 yes"]
    assert counted(tmp_path)[3:] == ["find 5", "find 3"]
    (tmp_path / "desk" / "label").write_text("no")
    other = fork(desk, Fork(known, 1, None, changed("message", "5")), "3")
    assert other.error["kind"] == "fork_diverged"
    assert 'turn 1, event 1: content.parts[0].text was "kettle 1 yes", now "kettle 1 no"' in other.error["message"]
    assert counted(tmp_path)[5:] == []


def test_plain_agent_that_yields_its_usage_or_answers_twice_can_be_forked(make_agent: MakeAgent) -> None:
    usage, step = {"usage": {"input_tokens": 5}}, {"text": "ok", "author": "helper"}
    source = f"def root_agent(message, session):\n    yield {usage}\n    yield {step}\n    yield 'ok'\n"
    desk = make_agent(f"{source}    yield session.tool('nothing', {{}}, str)\n")
    known = original(desk.run("1", "2", **RECORDING), "1", "2")
    assert fork(desk, Fork(known, 1)).answers == ["ok", "ok"]
