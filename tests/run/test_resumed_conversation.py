"""A run interrupted in a conversation: its case starts again, and models are not asked again."""

import asyncio
import json
import threading
from pathlib import Path

import pytest

from tests.run.project import Outcome, Project, evalset, turn
from tests.stored import sql
from tests.worker.conftest import needs_adk, needs_fork
from workbench.events.events import AgentActed, Event
from workbench.run.processes.children import Children
from workbench.run.resuming import Resumable, resume
from workbench.run.run import Run
from workbench.store.history.run_writer import RunWriter

pytestmark = [pytest.mark.asyncio(loop_scope="session"), needs_adk, needs_fork]

AGENT = '''
import asyncio
import os
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

BESIDE = "{beside}"


def noted(what):
    descriptor = os.open(BESIDE + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (what + "\\n").encode())
    os.close(descriptor)


async def count(what: str) -> dict:
    """Counts."""
    noted("tool")
    while not os.path.exists(BESIDE + "/go"):
        await asyncio.sleep(0.01)
    return {{"boats": 3}}


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False) -> AsyncGenerator[LlmResponse, None]:
        last = llm_request.contents[-1].parts[-1]
        noted("model " + (last.text or "result"))
        if last.text == "count":
            part = types.Part(function_call=types.FunctionCall(name="count", args={{"what": "boats"}}))
        else:
            part = types.Part(text="There are 3." if last.function_response else os.environ["THE_TOKEN"])
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=2)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


root_agent = LlmAgent(name="harbour", model=Scripted(model="scripted"), instruction="Count.", tools=[count])
'''


async def test_resumed_conversation_repeats_only_unanswered_and_secret_requests(
    project: Project, children: Children, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    beside = tmp_path_factory.mktemp("beside")
    project.agent(AGENT.format(beside=beside))
    project.write("desk/.env", "THE_TOKEN=a-secret-of-the-harbour\n")
    project.write("desk/all.evalset.json", evalset("all", {"one": [turn("hello"), turn("count", "There are 3.")]}))
    project.write("desk/test_config.json", {"criteria": {"response_match_score": 0.0}})
    state, plan = tmp_path / ".workbench", project.plan()
    journal = RunWriter.open(state, plan.run_id)
    first = Outcome()
    run = Run(plan, first.take, children, journal)

    def stop_in_the_tool(event: Event) -> None:
        if isinstance(event, AgentActed) and "function_call" in json.dumps(event.acted):
            run.cancel(kill=True)

    first.watchers.append(stop_in_the_tool)
    await asyncio.wait_for(run.execute(), 60)
    assert journal.path is not None
    assert len(sql(state, "SELECT answer FROM model_answer")) == 1, "of two answers, one holds a secret"
    (beside / "go").touch()
    before = (beside / "log").read_text().split("\n")

    found = resume(state, project.plan())
    assert isinstance(found, Resumable)
    assert found.plan.notices[0].message.endswith(", 1 model answer of other cases can be reused")
    again = Outcome()
    await Run(found.plan, again.take, children, found.writer).execute()
    assert (beside / "log").read_text().split("\n")[len(before) - 1 :] == ["model hello", "tool", "model result", ""]
    assert again.states == {"one": "passed"}
    assert again.record("one").usage.model_calls == 3
    assert sql(state, "SELECT answer FROM model_answer") == [], "the run is complete"
    assert not any(thread.name.startswith("answers") for thread in threading.enumerate()), "no run keeps its thread"
