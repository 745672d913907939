"""Streamed texts in a conversation: the turn equals that of a case, where nothing is streamed."""

from collections import defaultdict
from typing import Any

import pytest

from tests.worker.client import Outcome
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork

pytestmark = [needs_adk, needs_fork]

SCRIPTED = """
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Streaming(BaseLlm):
    model: str = "scripted"
    steps: list
    whole: bool = True

    async def generate_content_async(self, llm_request, stream=False):
        parts = self.steps.pop(0)
        if stream:
            for part in parts:
                for letter in part.text or "":
                    yield response([types.Part(text=letter, thought=part.thought)], partial=True)
        if self.whole or not stream:
            yield response(parts)


def response(parts, **more):
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=2)
    return LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage, **more)


def text(content, thought=None):
    return types.Part(text=content, thought=thought)


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def find_order(number: str) -> dict:
    "Finds an order."
    return {"item": "kettle"}


def agent(*steps, name="desk", whole=True, **more):
    return LlmAgent(name=name, model=Streaming(steps=list(steps), whole=whole), **more)


"""
WITH_A_TOOL = """
root_agent = agent(
    [text("I think", thought=True), text("Let me see."), call("find_order", number="A-7")],
    [text("ご注文は a kettle")],
    tools=[find_order],
)
"""
HANDED_OVER = """
below = agent([text("I know")], name="below", description="Knows.")
root_agent = agent([text("one moment"), call("transfer_to_agent", agent_name="below")], sub_agents=[below])
"""
CHECKED_CASES = """
async def seen(callback_context, llm_response):
    callback_context.state["seen"] = callback_context.state.get("seen", 0) + 1

root_agent = agent([text("whole")], after_model_callback=seen)
"""
BY_A_PLUGIN = """
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin

class Counts(BasePlugin):
    async def after_model_callback(self, *, callback_context, llm_response):
        callback_context.state["seen"] = callback_context.state.get("seen", 0) + 1

root_agent = agent([text("whole")])
app = App(name="desk", root_agent=root_agent, plugins=[Counts(name="counts")])
"""


def run(make_agent: MakeAgent, source: str, *turns: str, chat: bool) -> Outcome:
    made = make_agent(f"from .scripted import *\n\n{source}", files={"scripted.py": SCRIPTED, "__init__.py": ""})
    assert made.imported["op"] == "imported", made.imported
    return made.run(*turns, chat=chat)


def same_every_time(value: Any) -> Any:
    """Return the turn without the parts that always differ."""
    differs = {"invocation_id", "creation_timestamp", "duration", "model_duration", "tool_duration", "id"}
    if isinstance(value, list):
        return [same_every_time(item) for item in value]
    if isinstance(value, dict):
        return {key: same_every_time(item) for key, item in value.items() if key not in differs}
    return value


def streamed(outcome: Outcome) -> dict[tuple[str, bool], str]:
    """Return the streamed texts by author and whether they are thoughts."""
    texts: dict[tuple[str, bool], str] = defaultdict(str)
    for event in outcome.of("Streamed"):
        texts[event["author"], event["thought"]] += event["text"]
    return dict(texts)


@pytest.mark.parametrize("source", [WITH_A_TOOL, HANDED_OVER, CHECKED_CASES, BY_A_PLUGIN])
def test_streamed_turn_equals_the_turn_without_streaming(make_agent: MakeAgent, source: str) -> None:
    watched = run(make_agent, source, "what is A-7?", chat=True)
    alone = run(make_agent, source, "what is A-7?", chat=False)
    assert not alone.of("Streamed")
    assert same_every_time(watched.actual) == same_every_time(alone.actual)
    assert len(alone.actual) == 1
    assert watched.usage == alone.usage
    acted = [same_every_time(event["acted"]) for event in watched.of("AgentActed")]
    assert acted == [same_every_time(event["acted"]) for event in alone.of("AgentActed")]


def test_texts_and_thoughts_arrive_in_parts_before_their_step(make_agent: MakeAgent) -> None:
    outcome = run(make_agent, WITH_A_TOOL, "what is A-7?", chat=True)
    assert streamed(outcome) == {("desk", True): "I think", ("desk", False): "Let me see.ご注文は a kettle"}
    kinds = [event["event"] for event in outcome.events if event["event"] in ("Streamed", "AgentActed")]
    assert kinds == ["Streamed"] * 18 + ["AgentActed"] * 2 + ["Streamed"] * 13 + ["AgentActed"]


def test_each_text_has_its_agent(make_agent: MakeAgent) -> None:
    outcome = run(make_agent, HANDED_OVER, "hello", chat=True)
    assert streamed(outcome) == {("desk", False): "one moment", ("below", False): "I know"}


@pytest.mark.parametrize("source", [CHECKED_CASES, BY_A_PLUGIN])
def test_callbacks_see_each_answer_once(make_agent: MakeAgent, source: str) -> None:
    outcome = run(make_agent, source, "hello", chat=True)
    assert not outcome.of("Streamed")
    assert outcome.of("State")[-1]["state"]["seen"] == 1


def test_streaming_stops_for_a_model_that_never_completes_its_answer(make_agent: MakeAgent) -> None:
    source = 'root_agent = agent([text("lost")], [text("kept")], whole=False)'
    outcome = run(make_agent, source, "one", "two", chat=True)
    (failed,) = outcome.of("TurnFailed")
    assert "streamed its answer but never completed it" in failed["error"]["message"]
    assert outcome.answers == ["kept"]


def test_streaming_stops_for_a_model_that_cannot_stream(make_agent: MakeAgent) -> None:
    source = """
class Whole(Streaming):
    async def generate_content_async(self, llm_request, stream=False):
        if stream:
            raise NotImplementedError("no streaming here")
        yield response([text("whole")])

root_agent = LlmAgent(name="desk", model=Whole(steps=[]))
"""
    outcome = run(make_agent, source, "one", "two", chat=True)
    (failed,) = outcome.of("TurnFailed")
    assert "no streaming here" in failed["error"]["message"]
    assert outcome.answers == ["whole"]


def test_plain_python_answer_is_streamed(make_agent: MakeAgent) -> None:
    source = """
def root_agent(message, session):
    yield "It is "
    yield {"tool_call": {"name": "look", "args": {}}}
    yield "a kettle"
"""
    outcome = make_agent(source).run("what?", chat=True)
    assert [event["text"] for event in outcome.of("Streamed")] == ["It is ", "a kettle"]
    assert outcome.answers == ["It is a kettle"]
    assert not make_agent(source).run("what?").of("Streamed")
