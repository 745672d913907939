"""Stored model answers are reused for the same request: the turns are equal, and no model is called."""

import json
import signal
from typing import Any

import pytest

from tests.worker.client import Agent, Outcome
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork

pytestmark = [needs_adk, needs_fork]

TALKING = '''
import os
import time

from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.genai import types


class Talking(BaseLlm):
    """A model that answers the last message and prints each request."""

    model: str = "talking"

    async def generate_content_async(self, llm_request, stream=False):
        part = llm_request.contents[-1].parts[-1]
        heard = part.text or str(part.function_response.response)
        print(f"asked[{heard}]")
        for response in answers(heard):
            yield response


def says(*parts, **more):
    made = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=2)
    return LlmResponse(content=types.Content(role="model", parts=made), usage_metadata=usage, **more)


def call(name, **args):
    signature = bytes(range(250, 256))
    return types.Part(function_call=types.FunctionCall(name=name, args=args), thought_signature=signature)


def find_order(number: str) -> dict:
    "Finds an order."
    print(f"looking for {number}")
    return {"item": "kettle", "day": os.environ.get("DAY", "Monday")}


def answers(heard):
    if "order" in heard:
        yield says(call("find_order", number="A-7"))
    elif heard == "fail":
        yield LlmResponse(error_code="500", error_message="overloaded")
    elif heard == "twice":
        yield says("one")
        yield says("two")
    elif heard == "pieces":
        yield says("on", partial=True)
        yield says("one")
    else:
        yield says(f"you said {heard}")


def desk(name="desk", **more):
    return LlmAgent(name=name, model=Talking(), tools=[find_order], **more)

'''


def make(make_agent: MakeAgent, source: str = "root_agent = desk()") -> Agent:
    made = make_agent(f"from .talking import *\n\n{source}", files={"talking.py": TALKING, "__init__.py": ""})
    assert made.imported["op"] == "imported", made.imported
    return made


def requests(outcome: Outcome) -> list[str]:
    """Return the requests that reached the model."""
    return [line.split("[", 1)[1][:-1] for line in outcome.stdout.decode().splitlines() if line.startswith("asked[")]


def turns(outcome: Outcome) -> list[Any]:
    """Return the turns without the parts that always differ: IDs and times."""
    text = json.dumps(outcome.actual)
    for turn in outcome.actual:
        text = text.replace(turn["invocation_id"], "")
        for step in turn["intermediate_data"]["invocation_events"]:
            for part in step.get("content", {}).get("parts", ()):
                for made in ("function_call", "function_response"):
                    text = text.replace(part.get(made, {}).get("id", "") or "no id", "")
    found: list[Any] = json.loads(text)
    random = ("creation_timestamp", "duration", "model_duration", "tool_duration")
    return [{name: value for name, value in turn.items() if name not in random} for turn in found]


def notes(outcome: Outcome) -> list[str]:
    stored = [span for event in outcome.of("Spans") for span in json.loads(event["spans"])]
    return [span["note"] if span.get("recalled") else "" for span in stored if span["kind"] == "model"]


SAID = ("where is my order?", "thanks")


def test_resumed_conversation_makes_no_model_call(make_agent: MakeAgent) -> None:
    agent = make(make_agent)
    first = agent.run(*SAID, answers=[])
    stored = first.stored_answers
    assert [(one["agent"], len(one["responses"])) for one in stored] == [("desk", 1)] * 3
    again = agent.run(*SAID, answers=stored)
    assert (len(requests(first)), requests(again)) == (3, [])
    assert turns(again) == turns(first)
    assert b"looking for A-7" in again.stdout, "tools run again"
    assert again.stored_answers == [], "they are stored already"
    assert again.usage == first.usage, "paid once"
    assert notes(first) == ["", "", ""]
    assert notes(again) == ["answered before the interruption, not requested again"] * 3


def test_model_is_called_after_the_stored_answers(make_agent: MakeAgent) -> None:
    agent = make(make_agent)
    first = agent.run(*SAID, answers=[])
    for there in range(3):
        again = agent.run(*SAID, answers=first.stored_answers[:there])
        assert requests(again) == requests(first)[there:]
        assert turns(again) == turns(first)
        assert [one["asked"] for one in again.stored_answers] == [one["asked"] for one in first.stored_answers[there:]]


def test_changed_request_calls_the_model(make_agent: MakeAgent) -> None:
    agent = make(make_agent)
    stored = agent.run(*SAID, answers=[]).stored_answers
    other = agent.run(*SAID, answers=stored, env={"DAY": "Friday"})
    assert len(requests(other)) == 2, "from the tool's different result on"
    assert "Friday" in requests(other)[0]
    assert len(requests(agent.run(*SAID, answers=[{**one, "agent": "other"} for one in stored]))) == 3
    prompted = "root_agent = desk(instruction='Be kind.')"
    assert len(requests(make(make_agent, prompted).run(*SAID, answers=stored))) == 3


def test_nested_and_parallel_agents_reuse_their_own_answers(make_agent: MakeAgent) -> None:
    source = """
clerk = desk("clerk", description="knows orders")

class Asking(Talking):
    async def generate_content_async(self, llm_request, stream=False):
        if any(part.function_response for part in llm_request.contents[-1].parts):
            print("asked[asking]")
            yield says("done")
        else:
            yield says(call("clerk", request="order?"), call("clerk", request="another order?"))

one = LlmAgent(name="one", model=Asking(), tools=[AgentTool(clerk)])
root_agent = ParallelAgent(name="both", sub_agents=[one, desk("two")])
"""
    agent = make(make_agent, source)
    first = agent.run("order?", answers=[])
    stored = first.stored_answers
    assert sorted(one["agent"] for one in stored) == ["clerk"] * 4 + ["one"] * 2 + ["two"] * 2
    again = agent.run("order?", answers=stored)
    assert requests(again) == []
    assert len(again.answers) == 1


@pytest.mark.parametrize(("message", "calls"), [("fail", 1), ("twice", 1), ("pieces", 0)])
def test_errors_and_multiple_answers_are_not_reused(make_agent: MakeAgent, message: str, calls: int) -> None:
    agent = make(make_agent)
    first = agent.run(message, answers=[])
    stored = [one for one in first.stored_answers if one["responses"] is not None]
    is_retracted = any(one["responses"] is None for one in first.stored_answers)
    again = agent.run(message, answers=[] if is_retracted else stored)
    assert len(requests(again)) == calls
    assert turns(again) == turns(first)


def test_callbacks_still_run_and_cases_in_one_process_stay_separate(make_agent: MakeAgent) -> None:
    source = """
def short(callback_context, llm_request):
    print("before")
    return says("short cut") if "short" in str(llm_request.contents) else None

def after(callback_context, llm_response):
    print("after")

root_agent = desk(before_model_callback=short, after_model_callback=after)
"""
    agent = make(make_agent, source)
    first = agent.run("hello", answers=[], share=True)
    assert len(first.stored_answers) == 1
    again = agent.run("hello", answers=first.stored_answers, share=True)
    other = agent.run("hello", answers=[], share=True)
    without = agent.run("hello", share=True)
    assert all(turns(one) == turns(first) for one in (again, other, without))
    assert [len(one.stored_answers) for one in (again, other, without)] == [0, 1, 0]
    assert again.stdout.split() == [b"before", b"after"]
    assert other.stdout.split() == without.stdout.split() == [b"before", b"asked[hello]", b"after"]
    assert agent.run("short", answers=[], share=True).stored_answers == []


def test_damaged_or_outdated_answers_are_requested_again(make_agent: MakeAgent) -> None:
    agent = make(make_agent)
    (stored,) = agent.run("hello", answers=[]).stored_answers
    for wrong in ("", "[]", '{"content": 5}', '{"field_of_tomorrow": 1}'):
        assert requests(agent.run("hello", answers=[{**stored, "responses": [wrong]}])) == ["hello"]


@pytest.mark.parametrize("inside", [False, True])
def test_answer_is_sent_before_its_tool_call_starts(make_agent: MakeAgent, inside: bool) -> None:
    source = """
import threading

def find_order(number: str) -> dict:
    "Blocks, and all of the event loop with it."
    print("looking")
    threading.Event().wait()

clerk = LlmAgent(name="clerk", model=Talking(), tools=[find_order], description="knows orders")

class Asking(Talking):
    async def generate_content_async(self, llm_request, stream=False):
        yield says(call("clerk", request="order?"))

"""
    agents = "LlmAgent(name='desk', model=Asking(), tools=[AgentTool(clerk)])" if inside else "clerk"
    agent = make(make_agent, f"{source}root_agent = {agents}")
    case = agent.start(answers=[])
    case.say(iter(["order?"]))
    stored = case.wait(until=lambda outcome: b"looking" in outcome.stdout).stored_answers
    assert [one["agent"] for one in stored] == (["desk", "clerk"] if inside else ["clerk"])
    agent.kill(case.number, signal.SIGKILL)
    case.wait()
