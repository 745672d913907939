"""Sessions that have a history before the first turn (`session_input.events`), for ADK and plain-Python agents."""

import json
from typing import Any

from tests.worker.client import Outcome
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork
from tests.worker.test_adk_agents import run

pytestmark = needs_fork


def said(author: str, text: str, **delta: Any) -> dict[str, Any]:
    """Return an event with a text that changes the state."""
    content = {"role": "user" if author == "user" else "model", "parts": [{"text": text}]}
    return {"author": author, "content": content, **({"actions": {"state_delta": delta}} if delta else {})}


def called(name: str, **args: Any) -> dict[str, Any]:
    """Return an event with a call."""
    return {
        "author": "model",
        "content": {"role": "model", "parts": [{"function_call": {"name": name, "args": args}}]},
    }


def answered(name: str, **response: Any) -> dict[str, Any]:
    """Return an event with a response."""
    part = {"function_response": {"name": name, "response": response}}
    return {"author": "model", "content": {"role": "user", "parts": [part]}}


EVENTS = [
    {"author": "user", "actions": {"state_delta": {"tier": "gold"}}},
    said("user", "Where is A-1?"),
    called("find", number="A-1"),
    answered("find", place="Lisbon"),
    called("find", number="A-2"),
    answered("find", place="Porto"),
    said("model", "In Lisbon and Porto.", last="A-2"),
    {**said("clerk", "I am here too."), "longRunningToolIds": [], "someKey": 1},
]


def _answer(outcome: Outcome, turn: int = 0) -> Any:
    return json.loads(outcome.answers[turn] or "")


SEES = """
def seen(request):
    shown = []
    for content in request.contents:
        for part in content.parts:
            if part.text: shown.append(content.role + ": " + part.text)
            if part.function_call: shown.append("call " + part.function_call.args["number"])
            if part.function_response: shown.append("got " + part.function_response.response["place"])
    return shown

class Sees(BaseLlm):
    model: str = "sees"
    async def generate_content_async(self, llm_request, stream=False):
        import json
        yield says(json.dumps(seen(llm_request)))

root_agent = LlmAgent(name="desk", model=Sees(), instruction="tier {tier}, last {last}")
"""


@needs_adk
def test_adk_agents_model_sees_the_history(make_agent: MakeAgent) -> None:
    given = {"app_name": "desk", "user_id": "ana", "state": {"tier": "none"}, "events": EVENTS}
    outcome = run(make_agent, SEES, "And now?", session=given, state=True)
    shown = _answer(outcome)
    assert shown[:6] == [
        "user: Where is A-1?",
        "call A-1",
        "got Lisbon",
        "call A-2",
        "got Porto",
        "model: In Lisbon and Porto.",
    ]
    assert "[clerk] said" in shown[-2]
    assert shown[-1] == "user: And now?"
    assert [event["author"] for event in outcome.actual[0]["intermediate_data"]["invocation_events"]] == ["desk"]
    assert outcome.of("TurnFinished")[0]["state"] == {"tier": "gold", "last": "A-2"}


def test_plain_agent_gets_the_history_as_turns(make_agent: MakeAgent) -> None:
    agent = make_agent(
        """
        import json

        def root_agent(message, session):
            turns = [(turn["user"], turn["answer"]) for turn in session.history]
            steps = session.history[1]["invocation"]["intermediate_data"]["invocation_events"]
            kinds = [(step["author"], *step["content"]["parts"][0]) for step in steps]
            return json.dumps([turns, kinds, session.state])
        """
    )
    events = [said("model", "Welcome."), *EVENTS[:-1], said("user", "Thanks.")]
    outcome = agent.run("hi", "again", session={"state": {"tier": "none", "a": 1}, "events": events})
    turns, steps, state = _answer(outcome)
    assert turns == [["", "Welcome."], ["Where is A-1?", "In Lisbon and Porto."], ["Thanks.", ""]]
    assert steps == [["desk", "function_call"], ["desk", "function_response"]] * 2
    assert state == {"tier": "gold", "a": 1, "last": "A-2"}
    assert len(_answer(outcome, 1)[0]) == 4
