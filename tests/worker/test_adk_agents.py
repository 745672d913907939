"""Real google-adk agents with a scripted model: their records, their sessions, and how they fail."""

from typing import Any

import pytest

from tests.worker.client import Outcome, user
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork

pytestmark = [needs_adk, needs_fork]

SCRIPTED = """
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    model: str = "scripted"
    steps: list

    async def generate_content_async(self, llm_request, stream=False):
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        yield step if isinstance(step, LlmResponse) else says(step)


def says(*parts, tokens=10, **more):
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=tokens, candidates_token_count=2, thoughts_token_count=1
    )
    made = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    content = types.Content(role="model", parts=made)
    return LlmResponse(content=content, usage_metadata=usage, model_version="m-1", **more)


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def agent(*steps, name="desk", **more):
    return LlmAgent(name=name, model=Scripted(steps=list(steps)), **more)


"""


def run(make_agent: MakeAgent, source: str, *turns: str | dict[str, Any], **options: Any) -> Outcome:
    made = make_agent(f"from .scripted import *\n\n{source}", files={"scripted.py": SCRIPTED, "__init__.py": ""})
    assert made.imported["op"] == "imported", made.imported
    assert made.imported["framework"] == "adk"
    return made.run(*turns, **options)


def parts(outcome: Outcome, turn: int = -1) -> list[tuple[str, Any]]:
    """Return author and parts of each recorded step; None if the content was removed."""
    events = outcome.actual[turn]["intermediate_data"]["invocation_events"]
    return [(event["author"], event.get("content", {}).get("parts")) for event in events]


def test_turn_with_a_tool_is_recorded(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
def find_order(number: str) -> dict:
    "Finds an order."
    print("looking")
    return {"item": "kettle"}

asks = says("let me see", call("find_order", number="A-7"))
root_agent = agent(asks, "a kettle", tools=[find_order], instruction="Be kind.")
""",
        "what is A-7?",
    )
    first, second, third = parts(outcome)
    assert first[1][0] == {"text": "let me see"}
    assert (first[1][1]["function_call"]["name"], first[1][1]["function_call"]["args"]) == (
        "find_order",
        {"number": "A-7"},
    )
    assert second[1][0]["function_response"]["response"] == {"item": "kettle"}
    assert second[1][0]["function_response"]["id"] == first[1][1]["function_call"]["id"]
    assert third == ("desk", None)
    assert outcome.answers == ["a kettle"]
    (actual,) = outcome.actual
    last = actual["intermediate_data"]["invocation_events"][-1]
    assert last["usage_metadata"]["prompt_token_count"] == 10
    assert last["model_version"] == "m-1"
    details = actual["app_details"]["agent_details"]["desk"]
    assert details["instructions"].startswith("Be kind.")
    assert details["tool_declarations"][0]["function_declarations"][0]["name"] == "find_order"
    # google-adk before 2.13 does not report tool durations.
    assert actual["duration"] >= actual.get("tool_duration", 0.0) >= 0
    assert outcome.usage == {"model_calls": 2, "input_tokens": 20, "output_tokens": 6}
    assert outcome.stdout == b"looking\n"


def test_session_starts_as_the_case_says(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
import json

def look(tool_context) -> dict:
    session = tool_context._invocation_context.session
    return {"state": session.state, "who": [session.app_name, session.user_id, session.id]}

root_agent = agent(call("look"), "a", call("look"), "b", tools=[look], instruction="For {customer}.", output_key="said")
""",
        "one",
        "two",
        session={"app_name": "shop", "user_id": "u1", "session_id": "s1", "state": {"customer": "Ana"}},
    )
    looks = [parts(outcome, turn)[1][1][0]["function_response"]["response"] for turn in range(2)]
    assert looks[0] == {"state": {"customer": "Ana"}, "who": ["shop", "u1", "s1"]}
    # We add nothing to the state, not even after the first model call.
    assert looks[1]["state"] == {"customer": "Ana", "said": "a"}
    details = outcome.actual[1]["app_details"]["agent_details"]
    assert details["desk"]["instructions"].startswith("For Ana.")
    assert len({actual["invocation_id"] for actual in outcome.actual}) == 2


def test_without_session_input_the_session_is_adks_default(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
def look(tool_context) -> dict:
    session = tool_context._invocation_context.session
    return {"who": [session.app_name, session.user_id, session.id]}

root_agent = agent(call("look"), "a", tools=[look])
""",
        "one",
    )
    app_name, user_id, session_id = parts(outcome)[1][1][0]["function_response"]["response"]["who"]
    assert (app_name, user_id) == ("EvaluationGenerator", "test_user_id")
    assert session_id.startswith("adk-eval-session-")


def test_answer_of_the_last_agent_is_the_final_answer(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
billing = agent("paid", name="billing", instruction="Bills.", description="bills")
hands_over = says("over to billing", call("transfer_to_agent", agent_name="billing"))
root_agent = agent(hands_over, name="front", sub_agents=[billing])
""",
        "is it paid?",
    )
    assert outcome.answers == ["paid"]
    assert [author for author, _ in parts(outcome)] == ["front", "front", "billing"]
    assert parts(outcome)[0][1][0] == {"text": "over to billing"}
    assert list(outcome.actual[0]["app_details"]["agent_details"]) == ["front", "billing"]


def test_answers_of_earlier_agents_become_intermediate_texts(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
from google.adk.agents import SequentialAgent
root_agent = SequentialAgent(name="both", sub_agents=[agent("draft", name="writer"), agent("final", name="editor")])
""",
        "write",
    )
    assert outcome.answers == ["final"]
    assert parts(outcome) == [("writer", [{"text": "draft"}]), ("editor", None)]


def test_final_response_without_text_does_not_replace_one_with_text(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
from google.adk.agents import BaseAgent
from google.adk.events import Event

class Steps(BaseAgent):
    async def _run_async_impl(self, ctx):
        picture = types.Part(inline_data=types.Blob(data=b"\\xff\\xfe", mime_type="image/png"))
        for part in (types.Part(text="look"), picture):
            content = types.Content(role="model", parts=[part])
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)

root_agent = Steps(name="artist")
""",
        "draw",
    )
    assert outcome.answers == ["look"]
    assert parts(outcome) == [
        ("artist", None),
        ("artist", [{"inline_data": {"data": "__4=", "mime_type": "image/png"}}]),
    ]
    assert outcome.actual[0]["app_details"] == {"agent_details": {}}


def test_answer_of_another_model_than_requested_has_a_note(make_agent: MakeAgent) -> None:
    made = """
first, second = says("yes"), says("yes")
first.model_version, second.model_version = "gemini-2.5-flash-001", "gemini-3.5-flash-lite"
root_agent = LlmAgent(name="desk", model=Scripted(model="gemini-2.5-flash", steps=[first, second]))
"""
    outcome = run(make_agent, made, "one", "two")
    notes = [event["note"] for event in outcome.of("TurnFinished")]
    assert notes == ["", "desk asked gemini-2.5-flash, but gemini-3.5-flash-lite answered"]


def test_error_code_is_an_empty_answer_with_a_note(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent, 'root_agent = agent(LlmResponse(error_code="SAFETY", error_message="blocked"), "x")', "a", "b"
    )
    assert outcome.answers == [None, "x"]
    notes = [event["note"] for event in outcome.of("TurnFinished")]
    assert notes == ["the model answered with error code SAFETY: blocked", ""]


def test_turn_without_any_event_is_an_error(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
from google.adk.agents import BaseAgent

class Silent(BaseAgent):
    async def _run_async_impl(self, ctx):
        return
        yield

root_agent = Silent(name="silent")
""",
        "hello?",
    )
    assert outcome.error["kind"] == "turn_count"


def test_exception_of_a_tool_is_reported(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
def restart(serial: str) -> dict:
    raise ConnectionError(f"router {serial} does not answer")

root_agent = agent(call("restart", serial="SN-0"), "x", tools=[restart])
""",
        "restart it",
    )
    error = outcome.error
    assert error["kind"] == "agent_raised"
    assert error["message"] == "ConnectionError: router SN-0 does not answer"
    assert error["traceback"].count("File ") == 1
    assert "in restart" in error["traceback"]
    assert outcome.usage["model_calls"] == 1


def test_arguments_without_a_json_form_are_recorded(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
import datetime, math

def odd() -> dict:
    return {"when": datetime.date(2026, 1, 2), "nan": math.nan, "obj": object, "s": "\\ud800", "in": {1: {2}}}

root_agent = agent(call("odd"), "x", tools=[odd])
""",
        "a",
    )
    response = parts(outcome)[1][1][0]["function_response"]["response"]
    assert str(response.pop("nan")) == "nan"
    assert response == {"when": "2026-01-02", "obj": "<class 'object'>", "s": "\ud800", "in": {"1": [2]}}


def test_plugins_of_an_app_run_and_are_closed(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin

class Loud(BasePlugin):
    async def after_model_callback(self, *, callback_context, llm_response):
        for part in llm_response.content.parts:
            part.text = part.text.upper()

    async def close(self):
        print("plugin closed")

app = App(name="desk_app", root_agent=agent("quiet", "still"), plugins=[Loud(name="loud")])
""",
        "a",
        "b",
        session={"app_name": "another", "user_id": "u"},
    )
    assert outcome.answers == ["QUIET", "STILL"]


def test_turn_answered_by_a_plugin_has_no_request_details(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin

class Cache(BasePlugin):
    async def before_model_callback(self, *, callback_context, llm_request):
        return says("from the cache")

app = App(name="desk_app", root_agent=agent(), plugins=[Cache(name="cache")])
""",
        "a",
    )
    assert outcome.answers == ["from the cache"]
    assert outcome.actual[0]["app_details"] == {"agent_details": {}}


@pytest.mark.parametrize(
    ("factory", "warnings"),
    [
        ("async def get_agent_async():\n    return agent('made')", []),
        ("def get_agent_async():\n    return agent('made'), None", []),
        (
            "from contextlib import AsyncExitStack\n\nasync def get_agent_async():\n    stack = AsyncExitStack()\n"
            "    stack.callback(print, 'stack closed')\n    return agent('made'), stack",
            [],
        ),
    ],
)
def test_async_or_sync_factory_makes_the_agent_and_its_stack_is_closed(
    make_agent: MakeAgent, factory: str, warnings: list[str]
) -> None:
    outcome = run(make_agent, factory, "a")
    assert outcome.answers == ["made"]
    assert outcome.stdout == (b"stack closed\n" if "stack" in factory else b"")
    assert outcome.of("Ended")[0]["warnings"] == warnings


def test_exception_of_a_factory_is_reported(make_agent: MakeAgent) -> None:
    outcome = run(make_agent, "async def get_agent_async():\n    raise RuntimeError('no server')", "a")
    assert (outcome.error["kind"], outcome.error["message"]) == ("agent_raised", "RuntimeError: no server")


def test_exception_during_teardown_is_a_warning_and_keeps_the_answer(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
from google.adk.tools.base_toolset import BaseToolset

class Tools(BaseToolset):
    async def get_tools(self, readonly_context=None):
        return []

    async def close(self):
        raise RuntimeError("cannot close")

class Stack:
    async def aclose(self):
        raise RuntimeError("stuck")

async def get_agent_async():
    return agent("fine", tools=[Tools()]), Stack()
""",
        "a",
    )
    assert outcome.answers == ["fine"]
    assert outcome.exit_code == 0
    assert outcome.of("Ended")[0]["warnings"] == ["closing the agent's exit stack raised RuntimeError: stuck"]
    assert b"cannot close" in outcome.stderr


def test_missing_key_is_explained(make_agent: MakeAgent) -> None:
    outcome = run(make_agent, 'root_agent = LlmAgent(name="desk", model="gemini-2.5-flash")', "a")
    assert outcome.error["kind"] == "agent_raised"
    assert outcome.error["message"].startswith("no Gemini key: GOOGLE_API_KEY is not set")
    assert "GOOGLE_API_KEY=" in outcome.error["hint"]


def test_exhausted_quota_has_its_own_kind(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
from google.genai.errors import ClientError
details = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
root_agent = agent(ClientError(429, details))
""",
        "a",
    )
    assert outcome.error["kind"] == "quota"
    assert outcome.error["message"].startswith("the model's quota is used up")
    assert "slow down" in outcome.error["message"]


def test_messages_with_bytes_reach_the_agent(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
class Eyes(Scripted):
    async def generate_content_async(self, llm_request, stream=False):
        yield says(repr(llm_request.contents[-1].parts[1].inline_data.data))

root_agent = LlmAgent(name="desk", model=Eyes(steps=[]))
""",
        {"role": "user", "parts": [{"text": "a"}, {"inline_data": {"data": "__4=", "mime_type": "image/png"}}]},
    )
    assert outcome.answers == ["b'\\xff\\xfe'"]


def test_lone_surrogates_reach_the_agent(make_agent: MakeAgent) -> None:
    outcome = run(make_agent, 'root_agent = agent("\\ud800")', user("a\udfff"))
    assert outcome.answers == ["\ud800"]
    assert outcome.actual[0]["user_content"]["parts"] == [{"text": "a\udfff"}]


def test_yaml_agent_runs(make_agent: MakeAgent) -> None:
    made = make_agent(
        """
        name: desk
        model: gemini-2.5-flash
        instruction: Be kind.
        tools:
          - name: desk.tools.find
        before_model_callbacks:
          - name: desk.tools.answer
        """,
        kind="yaml",
        files={
            "__init__.py": "",
            "tools.py": """
                from google.adk.models import LlmResponse
                from google.genai import types

                def find(number: str) -> str:
                    return number

                def answer(callback_context, llm_request):
                    names = sorted(llm_request.tools_dict)
                    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=" ".join(names))]))
                """,
        },
    )
    assert made.imported["op"] == "imported", made.imported
    assert made.run("a").answers == ["find"]


def test_usage_includes_agents_used_as_tools(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
from google.adk.tools.agent_tool import AgentTool
helper = agent("42", name="helper", description="helps")
root_agent = agent(call("helper", request="?"), "it is 42", tools=[AgentTool(helper)])
""",
        "a",
    )
    assert outcome.answers == ["it is 42"]
    assert outcome.usage["model_calls"] == 3


def test_hanging_tool_is_located(make_agent: MakeAgent) -> None:
    made = make_agent(
        """
        from .scripted import *
        import asyncio

        async def wait() -> dict:
            asyncio.get_running_loop().call_soon(print, "here")
            await asyncio.sleep(1000)

        root_agent = agent(call("wait"), tools=[wait])
        """,
        files={"scripted.py": SCRIPTED, "__init__.py": ""},
    )
    case = made.start()
    case.say(iter(["hi"]))
    case.wait(until=lambda outcome: outcome.stdout == b"here\n")
    made.kill(case.number)
    (stopped,) = case.wait().of("Stopped")
    assert "in wait\n    await asyncio.sleep(1000)" in stopped["where"]
