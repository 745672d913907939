"""Cases with a simulated user: turn by turn, and every way in which a conversation ends."""

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.run.project import Outcome, Project, evalset, execute, turn
from tests.services.scripted_gemini import Asked, Reply, ScriptedGemini, blocked, quota, said
from workbench.events.events import AgentActed, CaseFinished, CaseStarted, TurnFinished, TurnStarted, UserSimulated
from workbench.files.run_options import RunOptions
from workbench.run.processes.children import Children
from workbench.run.run import Run

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENT = """
async def root_agent(message, session):
    session.state["turns"] = session.state.get("turns", 0) + 1
    yield {"tool_call": {"name": "find", "args": {"what": message}}}
    yield {"tool_response": {"name": "find", "response": {"found": session.state["turns"]}}}
    yield f"answer {session.state['turns']}"
"""
ADK_AGENT = """
from collections.abc import AsyncGenerator
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


def count(what: str) -> dict:
    \"\"\"Counts boats.\"\"\"
    return {"boats": 3}


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False) -> AsyncGenerator[LlmResponse, None]:
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = types.Part(text=f"There are {last.function_response.response['boats']}.")
        elif "how many" in (last.text or "").lower():
            part = types.Part(function_call=types.FunctionCall(name="count", args={"what": "boats"}))
        else:
            part = types.Part(text=f"You said: {last.text}")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


root_agent = LlmAgent(name="harbour", model=Scripted(model="scripted"), instruction="Count.", tools=[count])
"""
USER = """
def talk(question):
    data = question["data"]
    said = [line["text"] for line in data["history"] if line["role"] == "user"]
    steps = data["plan"].split(" | ")
    step = steps[len(said) - 1] if len(said) <= len(steps) else data["stop_signal"]
    if step == "raise":
        raise RuntimeError("the user fell overboard")
    if step == "hang":
        import time
        time.sleep(1000)
    return "" if step == "nothing" else step
"""
UNTOUCHED = """
raise RuntimeError('the agent was imported')
root_agent = None
"""
SLOW = """
import asyncio

async def root_agent(message, session):
    await asyncio.sleep(0.4)
    return "ok"
"""
DYING = """
import os

def root_agent(message, session):
    return "ok" if "Hello" in message else os._exit(3)
"""
NEIGHBOURS = """
import asyncio, os, signal

waiting = os.path.join(os.path.dirname(__file__), "waiting")

async def root_agent(message, session):
    while message == "kill":
        if os.path.exists(waiting):
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(0.01)
    if message == "wait":
        open(waiting, "w").close()
        await asyncio.sleep(0.3)
    return "ok"
"""
FREE = {"hallucinations_v1": {"threshold": 0.5, "judge_model_options": {"judge_model": "nobody"}}}
"""A criterion that makes no call, because its judge does not exist."""
RUBRICS = {"per_turn_user_simulator_quality_v1": 0.5}


@pytest.fixture
def gemini() -> Iterator[ScriptedGemini]:
    with ScriptedGemini([]) as server:
        yield server


def scenario(project: Project, plan: str, criteria: Any = RUBRICS, persona: Any = None, **simulator: Any) -> None:
    """Write one case, `play`, whose user follows `plan`."""
    told = {"starting_prompt": "Hello there", "conversation_plan": plan}
    if persona is not None:
        told["user_persona"] = persona
    case = {"eval_id": "play", "conversation_scenario": told}
    project.write("desk/play.evalset.json", {"eval_set_id": "play", "eval_cases": [case]})
    project.write("desk/users.py", USER)
    config = {"user_simulator_config": {"model": "python:desk.users:talk", **simulator}}
    project.write("desk/test_config.json", config if criteria is None else {**config, "criteria": criteria})


def messages(outcome: Outcome) -> list[str]:
    return [turn.user["parts"][0]["text"] for turn in outcome.record("play").turns]


def ends(outcome: Outcome) -> list[tuple[int, str]]:
    return [(event.turn, event.ended) for event in outcome.record("play").simulated]


def _failed_while_played(outcome: Outcome) -> bool:
    """Return whether the conversation itself went wrong; what its criterion makes of it is another matter."""
    error = outcome.record("play").error
    return error is not None and error.kind != "judge"


async def test_conversation_ends_at_the_stop_signal(project: Project, children: Children) -> None:
    project.agent(AGENT)
    scenario(project, "The red one | And a rope | Bye </FINISHED> really")
    outcome = await execute(project.plan(), children)
    assert messages(outcome) == ["Hello there", "The red one", "And a rope"]
    assert ends(outcome) == [(0, ""), (1, ""), (2, ""), (3, "stop_signal")]
    record = outcome.record("play")
    assert record.error is None or record.error.kind not in ("simulator", "internal")
    assert [turn.actual is not None for turn in record.turns] == [True] * 3
    (finished,) = outcome.of(CaseFinished)
    assert finished.usage.judge_calls >= 3
    asked = record.simulated[1].question
    assert asked["kind"] == "simulated_user"
    assert asked["judge"]["model"] == "python:desk.users:talk"
    assert asked["replies"][0]["text"] == "The red one"
    assert "agent: answer 1" in asked["prompt"] or "desk: answer 1" in asked["prompt"]
    assert record.simulated[0].question == {}


async def test_conversation_is_published_turn_by_turn(project: Project, children: Children) -> None:
    project.agent(AGENT)
    scenario(project, "The red one | </finished>")
    outcome = await execute(project.plan(), children)
    shown = (CaseStarted, UserSimulated, TurnStarted, AgentActed, TurnFinished)
    kinds = [type(event).__name__ for event in outcome.events if isinstance(event, shown)]
    turn = ["UserSimulated", "TurnStarted", "AgentActed", "AgentActed", "AgentActed", "TurnFinished"]
    assert kinds == ["CaseStarted", *turn, *turn, "UserSimulated"]


async def test_conversation_ends_at_the_turn_limit(project: Project, children: Children) -> None:
    project.agent(AGENT)
    scenario(project, "one | two | three | four", max_allowed_invocations=3)
    outcome = await execute(project.plan(), children)
    assert messages(outcome) == ["Hello there", "one", "two"]
    assert ends(outcome)[-1] == (3, "turn_limit")
    error = outcome.record("play").error
    assert error is None or error.kind != "simulator"


@pytest.mark.parametrize(("limit", "turns"), [(0, 0), (1, 1)])
async def test_small_turn_limits_ask_no_model(project: Project, children: Children, limit: int, turns: int) -> None:
    """Nor do they check whether the model exists."""
    project.agent(AGENT)
    scenario(project, "one", criteria=FREE, max_allowed_invocations=limit, model="no such model")
    outcome = await execute(project.plan(), children)
    assert len(messages(outcome)) == turns
    assert ends(outcome)[-1] == (turns, "turn_limit")
    assert outcome.record("play").usage.judge_calls == 0


@pytest.mark.parametrize(
    "criteria",
    [{}, {"response_match_score": 0.5}, {"tool_trajectory_avg_score": 1.0}, {"rubric_based_tool_use_quality_v1": 0.5}],
    ids=["none", "text", "calls", "rubrics without any"],
)
async def test_scenario_without_suitable_criterion_is_not_played(
    project: Project, children: Children, criteria: Any
) -> None:
    project.agent(UNTOUCHED)
    scenario(project, "one", criteria=criteria)
    outcome = await execute(project.plan(), children)
    record = outcome.record("play")
    assert (record.state, record.turns) == ("not_evaluated", [])
    assert outcome.error("play")[0] == "config"
    assert "no criterion of the config can judge a simulated user's conversation" in outcome.error("play")[1]
    assert all(result.status in ("not_applicable", "not_evaluated") for result in record.metrics.values())


async def test_spent_budget_of_the_simulated_user_is_not_evaluated(project: Project, children: Children) -> None:
    project.agent(AGENT)
    scenario(project, "The red one | And a rope | More | </finished>")
    options = RunOptions(max_judge_calls=1)
    outcome = await execute(project.plan(options), children, options)
    record = outcome.record("play")
    assert record.state == "not_evaluated"
    assert messages(outcome) == ["Hello there", "The red one"], "what was said stays"
    kind, message = outcome.error("play")[:2]
    assert kind == "simulator"
    assert "--max-judge-calls 1 is reached" in message
    assert record.error is not None
    assert record.error.hint == "Raise --max-judge-calls"


async def test_starting_prompt_with_the_stop_signal_needs_no_agent(project: Project, children: Children) -> None:
    project.agent(UNTOUCHED)
    scenario(project, "x", criteria=FREE)
    told = {"starting_prompt": "</finished>", "conversation_plan": "x"}
    case = {"eval_id": "play", "conversation_scenario": told}
    project.write("desk/play.evalset.json", {"eval_set_id": "play", "eval_cases": [case]})
    outcome = await execute(project.plan(), children)
    assert (messages(outcome), ends(outcome)) == ([], [(0, "stop_signal")])
    assert outcome.record("play").state == "not_evaluated"


@pytest.mark.parametrize(("step", "words"), [("raise", "the user fell overboard"), ("nothing", "the reply was empty")])
async def test_failure_of_the_simulated_user_keeps_the_turns(
    project: Project, children: Children, step: str, words: str
) -> None:
    project.agent(AGENT)
    scenario(project, f"The red one | {step}")
    outcome = await execute(project.plan(), children)
    record = outcome.record("play")
    assert record.state == "error"
    assert outcome.error("play")[0] == "simulator"
    assert words in outcome.error("play")[1]
    assert messages(outcome) == ["Hello there", "The red one"]
    assert all(turn.actual is not None for turn in record.turns)
    assert record.simulated[-1].question["replies"][0]["unread"]
    assert record.usage.judge_calls == 2


async def test_case_can_be_cancelled_while_the_user_decides(project: Project, children: Children) -> None:
    project.agent(AGENT)
    scenario(project, "hang")
    outcome = Outcome()
    thinks = asyncio.Event()
    outcome.watchers.append(lambda event: thinks.set() if isinstance(event, TurnFinished) else None)
    run = Run(project.plan(), outcome.take, children)
    task = asyncio.create_task(run.execute())
    await thinks.wait()
    run.cancel(outcome.ref("play"))
    await asyncio.wait_for(task, 60)
    assert outcome.error("play") == ("cancelled", "cancelled while it was running")
    assert messages(outcome) == ["Hello there"]


async def test_agent_clock_stops_while_the_user_decides(
    project: Project, children: Children, gemini: ScriptedGemini
) -> None:
    """The agent has 2 s, the user takes longer over its messages."""
    left = [said("And then?").after(1.1), said("More").after(1.1), said("</finished>")]
    gemini.answer = lambda asked: left.pop(0)
    with_gemini(project, gemini)
    project.agent(AGENT)
    scenario(project, "x", model="gemini-2.5-flash", criteria=FREE)
    options = RunOptions(timeout=2.0)
    outcome = await execute(project.plan(options), children, options)
    assert messages(outcome) == ["Hello there", "And then?", "More"]
    assert not _failed_while_played(outcome)


async def test_message_is_requested_again_if_the_scorer_dies(
    project: Project, children: Children, gemini: ScriptedGemini
) -> None:
    def answer(asked: Asked) -> Reply:
        if len(gemini.asked) == 2:
            assert children.scorer.pid is not None
            os.kill(children.scorer.pid, signal.SIGKILL)
        return said("More" if "answer 2" not in asked.prompt else "</finished>")

    gemini.answer = answer
    with_gemini(project, gemini)
    project.agent(AGENT)
    scenario(project, "x", model="gemini-2.5-flash", criteria=FREE)
    outcome = await execute(project.plan(), children)
    assert messages(outcome) == ["Hello there", "More"]
    assert not _failed_while_played(outcome)
    assert len(gemini.asked) == 3
    assert outcome.record("play").usage.judge_calls == 2


async def test_agent_seconds_are_summed_over_the_turns(project: Project, children: Children) -> None:
    project.agent(SLOW)
    scenario(project, " | ".join(["more"] * 30))
    options = RunOptions(timeout=2.0)
    outcome = await execute(project.plan(options), children, options)
    assert outcome.error("play")[0] == "timeout"
    assert 1 <= len([turn for turn in outcome.record("play").turns if turn.actual]) <= 4


async def test_agent_that_dies_in_a_simulated_conversation_is_an_error(project: Project, children: Children) -> None:
    project.agent(DYING)
    scenario(project, "more | more")
    outcome = await execute(project.plan(), children)
    assert outcome.error("play")[0] == "crashed"
    assert messages(outcome) == ["Hello there", "more"]


async def test_case_in_a_killed_shared_process_is_played_again(project: Project, children: Children) -> None:
    """It starts again alone. The simulated user repeats its messages as long as the answers are the same."""
    project.agent(NEIGHBOURS)
    project.write("desk/kill.evalset.json", evalset("kill", {"kill": [turn("kill", "x")]}))
    scenario(project, "more | wait")
    options = RunOptions(isolation="run")
    outcome = await execute(project.plan(options), children, options)
    assert outcome.error("kill")[0] == "crashed"
    assert messages(outcome) == ["Hello there", "more", "wait"]
    assert ends(outcome) == [(0, ""), (1, ""), (2, ""), (3, "stop_signal")]
    usage = outcome.record("play").usage
    assert usage.judge_calls + usage.judge_calls_cached >= 3


def with_gemini(project: Project, server: ScriptedGemini) -> None:
    project.write("desk/.env", f"GOOGLE_API_KEY=scripted-key-123\nGOOGLE_GEMINI_BASE_URL={server.url}\n")


async def test_gemini_can_play_the_user_of_an_adk_agent(
    project: Project, children: Children, gemini: ScriptedGemini
) -> None:
    def answer(asked: Asked) -> Reply:
        return said("How many boats?") if "There are 3." not in asked.prompt else said("Thanks </finished>")

    gemini.answer = answer
    with_gemini(project, gemini)
    project.agent(ADK_AGENT)
    scenario(project, "Find out the number of boats", persona="NOVICE", model="gemini-2.5-flash", criteria=FREE)
    outcome = await execute(project.plan(), children)
    assert messages(outcome) == ["Hello there", "How many boats?"]
    assert ends(outcome)[-1] == (2, "stop_signal")
    record = outcome.record("play")
    assert record.turns[1].actual is not None
    assert record.turns[1].actual["final_response"]["parts"][0]["text"] == "There are 3."
    assert (record.usage.judge_calls, record.usage.judge_input_tokens) == (2, 200)
    first, second = gemini.asked
    assert sorted(first.config["thinkingConfig"].values()) == [True, 10240]
    assert "Find out the number of boats" in first.prompt
    assert "harbour: You said: Hello there" in first.prompt
    assert "[calls count" not in second.prompt
    (started,) = outcome.of(CaseStarted)
    assert started.scenario["user_persona"]["id"] == "NOVICE"
    assert len(started.scenario["user_persona"]["behaviors"]) > 2
    assert started.simulator["model"] == "gemini-2.5-flash"
    assert "scripted-key-123" not in str(outcome.events)


async def test_tool_calls_and_custom_instructions_reach_the_user(
    project: Project, children: Children, gemini: ScriptedGemini
) -> None:
    gemini.answer = lambda asked: said("How many boats?" if len(gemini.asked) == 1 else "</finished>")
    with_gemini(project, gemini)
    project.agent(ADK_AGENT)
    scenario(
        project,
        "Boats!",
        criteria=FREE,
        model="gemini-2.5-flash",
        custom_instructions="PIRATE {{ stop_signal }} {{ conversation_plan }} {{ conversation_history }}",
        include_function_calls=True,
        model_configuration={"temperature": 0.25},
    )
    outcome = await execute(project.plan(), children)
    assert len(messages(outcome)) == 2
    second = gemini.asked[1]
    assert second.prompt.startswith("PIRATE </finished> Boats! user: Hello there")
    assert '[calls count with {"what": "boats"}]' in second.prompt
    assert '[count gives {"boats": 3}]' in second.prompt
    assert second.config["temperature"] == 0.25
    assert "thinkingConfig" not in second.config


@pytest.mark.parametrize(("reply", "words"), [(blocked(), "PROHIBITED_CONTENT"), (said(""), "")])
async def test_simulator_model_without_an_answer_is_an_error(
    project: Project, children: Children, gemini: ScriptedGemini, reply: Reply, words: str
) -> None:
    gemini.answer = lambda asked: reply
    with_gemini(project, gemini)
    project.agent(AGENT)
    scenario(project, "x", model="gemini-2.5-flash")
    outcome = await execute(project.plan(), children)
    assert outcome.error("play")[0] == "simulator"
    assert words in outcome.error("play")[1]
    assert messages(outcome) == ["Hello there"]


async def test_recovered_quota_only_delays_the_run(
    project: Project, children: Children, gemini: ScriptedGemini
) -> None:
    left = [quota("0"), said("Boats?"), said("</finished>")]
    gemini.answer = lambda asked: left.pop(0)
    with_gemini(project, gemini)
    project.agent(AGENT)
    scenario(project, "x", model="gemini-2.5-flash", criteria=FREE)
    outcome = await execute(project.plan(), children)
    assert messages(outcome) == ["Hello there", "Boats?"]


# What is not played.


async def test_scenario_without_criteria_makes_no_calls(
    project: Project, children: Children, gemini: ScriptedGemini
) -> None:
    with_gemini(project, gemini)
    project.agent(UNTOUCHED)
    scenario(project, "x", criteria=None, model="gemini-2.5-flash")
    outcome = await execute(project.plan(), children)
    record = outcome.record("play")
    assert record.state == "not_evaluated"
    assert {metric.status for metric in record.metrics.values()} == {"not_applicable"}
    assert record.error is not None
    assert "per_turn_user_simulator_quality_v1" in record.error.hint
    assert gemini.asked == []
    assert record.turns == []


async def test_scenario_without_a_key_does_not_run(
    project: Project, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)
    project.agent(UNTOUCHED)
    scenario(project, "x", criteria={**RUBRICS, "response_match_score": 0.5}, model="gemini-2.5-flash")
    outcome = await execute(project.plan(), children)
    record = outcome.record("play")
    assert record.state == "not_evaluated"
    metrics = {name: metric.status for name, metric in record.metrics.items()}
    assert metrics == {"per_turn_user_simulator_quality_v1": "not_evaluated", "response_match_score": "not_applicable"}
    reason = record.metrics["per_turn_user_simulator_quality_v1"].reason
    assert "GOOGLE_API_KEY" in reason
    assert all(way in reason for way in ("LiteLLM", "ollama/", "python:")), reason


@pytest.mark.parametrize(
    ("simulator", "status", "words"),
    [
        ({"model": "gpt"}, "not_evaluated", "is not a known judge"),
        ({"type": "llm_audio"}, "not_evaluated", "llm_audio"),
        (
            {"custom_instructions": "{{ stop_signal }}{{ conversation_plan }}{{ conversation_history }}"},
            "error",
            "must use {{ persona }}",
        ),
    ],
)
async def test_unusable_simulator_is_reported(
    project: Project, children: Children, simulator: dict[str, Any], status: str, words: str
) -> None:
    project.agent(UNTOUCHED)
    scenario(project, "x", persona="EXPERT", **simulator)
    outcome = await execute(project.plan(), children)
    assert outcome.record("play").state == status
    assert outcome.error("play")[0] == "simulator"
    assert words in outcome.error("play")[1]
