"""Traces of real google-adk agents with a scripted model: spans, their events, and requests."""

import json
from typing import Any

from tests.worker.client import Outcome
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork
from tests.worker.test_adk_agents import run

pytestmark = [needs_adk, needs_fork]

FIND = """
def find_order(number: str) -> dict:
    "Finds an order."
    return {"item": "kettle"}

"""


def spans(outcome: Outcome, turn: int = 0) -> list[dict[str, Any]]:
    (event,) = [one for one in outcome.of("Spans") if one["turn"] == turn]
    found: list[dict[str, Any]] = json.loads(event["spans"])
    return found


def piece(outcome: Outcome, digest: str) -> Any:
    return next(json.loads(event["pieces"][digest]) for event in outcome.of("Spans") if digest in event["pieces"])


def tree(found: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the name (or kind) of each span with children → its children, in order."""
    names = {span["id"]: span["name"] or span["kind"] for span in found}
    held: dict[str, list[str]] = {}
    for span in found:
        if "parent" in span:
            held.setdefault(names[span["parent"]], []).append(f"{span['kind']} {span['name']}")
    return held


def test_agent_used_as_a_tool_is_inside_the_tools_span(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        FIND
        + """
from google.adk.tools.agent_tool import AgentTool

clerk = agent(call("find_order", number="A-7"), "a kettle", name="clerk", tools=[find_order], description="knows")
root_agent = agent(call("clerk", request="A-7?"), "It is a kettle.", tools=[AgentTool(clerk)], instruction="Be kind.")
""",
        "what is A-7?",
    )
    found = spans(outcome)
    assert tree(found) == {
        "turn": ["agent desk"],
        "desk": ["model scripted", "tool clerk", "model scripted"],
        # The tool contains the agent of the same name.
        "clerk": ["agent clerk", "model scripted", "tool find_order", "model scripted"],
    }
    by_name = {(span["kind"], span["name"]): span for span in found}
    # Only spans of the conversation itself have events.
    assert [span.get("events") for span in found if span["kind"] == "model"] == [[0], None, None, [2]]
    assert by_name["tool", "clerk"]["events"] == [1]
    assert by_name["tool", "clerk"]["runs"] == "clerk"
    assert "events" not in by_name["tool", "find_order"]
    assert piece(outcome, by_name["tool", "find_order"]["args"]) == {"number": "A-7"}
    assert piece(outcome, by_name["tool", "find_order"]["response"]) == {"item": "kettle"}
    first, *_, last = [span for span in found if span["kind"] == "model"]
    assert piece(outcome, first["request"]["system"]).startswith("Be kind.")
    assert first["tokens"] == [10, 3]
    assert "base" not in first["request"]
    assert (last["request"]["base"], last["request"]["same"]) == (first["id"], 1), "the beginning is reported once"
    assert [piece(outcome, name)["role"] for name in last["request"]["more"]] == ["model", "user"]
    assert piece(outcome, last["response"])["content"]["parts"] == [{"text": "It is a kettle."}]
    for span in found:
        assert span["end"] >= span["start"]
        inside = [other for other in found if other.get("parent") == span["id"]]
        assert all(span["start"] <= other["start"] and other["end"] <= span["end"] for other in inside)


def test_parallel_agents_keep_their_own_spans(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
import asyncio
from google.adk.agents import ParallelAgent

async def wait(n: int) -> dict:
    "Waits."
    await asyncio.sleep(0.01)
    return {"n": n}

both = [agent(says(call("wait", n=1), call("wait", n=2)), "done", name=name, tools=[wait]) for name in ("one", "two")]
root_agent = ParallelAgent(name="both", sub_agents=both)
""",
        "go",
    )
    found = spans(outcome)
    held = tree(found)
    assert held["both"] == ["agent one", "agent two"]
    assert held["one"] == held["two"] == ["model scripted", "tool wait", "tool wait", "model scripted"]
    given = sorted(number for span in found for number in span.get("events", []) if span["kind"] == "model")
    answers = [number for number, (_, parts) in enumerate(_events(outcome)) if "function_response" not in str(parts)]
    assert given == answers, "each event has its own model call"
    for span in found:
        if span["kind"] == "tool":
            assert {_events(outcome)[number][0] for number in span["events"]} == {span["agent"]}


def test_agent_after_a_transfer_is_a_sibling(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
sub = agent("hello", name="sub", description="greets")
root_agent = agent(call("transfer_to_agent", agent_name="sub"), name="root", sub_agents=[sub])
""",
        "hi",
    )
    found = spans(outcome)
    named = [span["name"] for span in found if span["kind"] == "agent"]
    assert named == ["root", "sub"]
    assert [span["events"] for span in found if span["kind"] == "model"] == [[0], [2]]
    assert all("end" in span for span in found)


def test_span_of_a_failing_tool_has_its_error(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
def broken() -> dict:
    "Breaks."
    raise ValueError("no such order")

root_agent = agent(call("broken"), "never", tools=[broken])
""",
        "hi",
    )
    found = spans(outcome)
    assert {span["kind"]: span.get("error") for span in found} == {
        "turn": "ValueError: no such order",
        "agent": "ValueError: no such order",
        "model": None,
        "tool": "ValueError: no such order",
    }
    assert outcome.error["kind"] == "agent_raised"


def test_model_spans_show_error_codes_and_callback_answers(make_agent: MakeAgent) -> None:
    blocked = spans(run(make_agent, 'root_agent = agent(says(error_code="SAFETY", error_message="no"))', "hi"))
    assert [span["error"] for span in blocked if span["kind"] == "model"] == ["SAFETY: no"]
    cached = run(
        make_agent,
        """
def cache(callback_context, llm_request):
    return says("kept")

root_agent = agent("never", name="desk2", before_model_callback=cache)
""",
        "hi",
    )
    (model,) = [span for span in spans(cached) if span["kind"] == "model"]
    assert "answered by a callback" in model["note"]
    assert model["events"] == [0]
    assert cached.answers == ["kept"]


def test_turns_report_their_own_spans_and_each_piece_once(make_agent: MakeAgent) -> None:
    outcome = run(make_agent, 'root_agent = agent("a", "b", instruction="Be kind.")', "one", "two")
    first, second = spans(outcome), spans(outcome, 1)
    assert [span["kind"] for span in (*first, *second)] == ["turn", "agent", "model"] * 2
    assert len({span["id"] for span in (*first, *second)}) == 6
    system = first[2]["request"]["system"]
    assert second[2]["request"]["system"] == system
    assert [system in event["pieces"] for event in outcome.of("Spans")] == [True, False]
    assert second[2]["request"]["base"] == first[2]["id"]


def test_trace_errors_do_not_fail_the_case(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        """
import sys
spans = next(module for name, module in sys.modules.items() if name.endswith("worker.spans"))
def fail(self, value):
    raise RuntimeError("no room")
spans.Trace.piece = fail
root_agent = agent("a")
""",
        "hi",
    )
    assert outcome.answers == ["a"]
    turn, *_ = spans(outcome)
    assert "RuntimeError: no room" in turn["note"]


def _events(outcome: Outcome) -> list[tuple[str, Any]]:
    events = outcome.actual[0]["intermediate_data"]["invocation_events"]
    return [(event["author"], event.get("content", {}).get("parts")) for event in events]


def test_calls_inside_agents_used_as_tools_are_reported_with_their_outer_call(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        FIND
        + """
from google.adk.tools.agent_tool import AgentTool

clerk = agent(call("find_order", number="A-7"), "a kettle", name="clerk", tools=[find_order], description="knows")
chief = agent(call("clerk", request="?"), "kettle", name="chief", tools=[AgentTool(clerk)], description="asks")
root_agent = agent(call("find_order", number="B"), call("chief", request="A-7?"), "A kettle.", "No.",
                   tools=[find_order, AgentTool(chief)])
""",
        "what is A-7?",
        "and now?",
    )
    first, second = outcome.of("TurnFinished")
    parts = [part for event in first["actual"]["intermediate_data"]["invocation_events"] for part in _parts(event)]
    own = [part["function_call"] for part in parts if part.get("function_call")]
    assert [call["name"] for call in own] == ["find_order", "chief"]
    outer = {"call": own[1]["id"], "tool": "chief"}
    assert first["inner_calls"] == [
        {**outer, "agent": "chief", "name": "clerk", "args": {"request": "?"}},
        {**outer, "agent": "clerk", "name": "find_order", "args": {"number": "A-7"}},
    ]
    assert second["inner_calls"] == []


def _parts(event: dict[str, Any]) -> list[dict[str, Any]]:
    return list((event.get("content") or {}).get("parts") or ())


def test_calls_inside_a_tool_that_adk_hides_are_reported_as_hidden(make_agent: MakeAgent) -> None:
    outcome = run(
        make_agent,
        FIND
        + """
from google.adk.tools.agent_tool import AgentTool

clerk = agent(call("find_order", number="A-7"), "a kettle", name="clerk", tools=[find_order], description="knows")
root_agent = agent(call("clerk", request="A-7?"), "A kettle.", tools=[AgentTool(clerk, include_plugins=False)])
""",
        "what is A-7?",
    )
    (finished,) = outcome.of("TurnFinished")
    (hidden,) = finished["inner_calls"]
    assert (hidden["tool"], hidden["hidden"], "name" in hidden) == ("clerk", True, False)
