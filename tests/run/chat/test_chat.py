"""A conversation with a real agent process: turns, failures, stopping and the session state."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.run.project import Project
from workbench.agents.workspace import open_workspace
from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    Noticed,
    OutputCaptured,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
)
from workbench.files.run_options import RunOptions
from workbench.run.chat import Chat, ChatEnded, ChatEvent, ChatOpened, StateReported, TurnFailed
from workbench.run.plan.plan import agent_setting
from workbench.run.processes.children import Children

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENT = """
import asyncio, os, sys, time

async def root_agent(message, session):
    session.state["turns"] = session.state.get("turns", 0) + 1
    if "print" in message:
        print("said aloud")
    if "raise" in message:
        raise KeyError("no such order")
    if "leave" in message:
        sys.exit(3)
    if "die" in message:
        os._exit(4)
    if "nothing" in message:
        return
    if "wait" in message:
        yield {"text": "just a moment", "author": "desk"}
        await asyncio.sleep(1000)
    if "block" in message:
        yield {"text": "just a moment", "author": "desk"}
        time.sleep(1000)
    if "state" in message:
        session.state["large"] = "x" * 300_000
    if "odd" in message:
        session.state["odd"] = object()
    yield {"tool_call": {"name": "look", "args": {"at": str(message)}}}
    yield f"{session.state.get('customer', 'nobody')}: {message} {os.environ.get('DESK_TOKEN', '')}"
"""


class Talker:
    """A chat that is told what to do when something happens."""

    def __init__(self, project: Project, children: Children, state: dict[str, Any] | None = None) -> None:
        workspace = open_workspace(project.root)
        setting = agent_setting(workspace.agents[0], workspace.root, RunOptions())
        session = {"app_name": "desk", "user_id": "user", "state": state or {}}
        self.events: list[ChatEvent] = []
        self._waiting: list[tuple[Callable[[ChatEvent], bool], asyncio.Future[ChatEvent]]] = []
        self.chat = Chat(setting, session, children, self._take)
        self.task = asyncio.ensure_future(self.chat.execute())

    def _take(self, event: ChatEvent) -> None:
        self.events.append(event)
        for wanted, future in list(self._waiting):
            if not future.done() and wanted(event):
                future.set_result(event)

    async def next(self, *kinds: type) -> Any:
        """Return the next event of one of these kinds."""
        future: asyncio.Future[ChatEvent] = asyncio.get_running_loop().create_future()
        self._waiting.append((lambda event: isinstance(event, kinds), future))
        return await asyncio.wait_for(future, 60)

    async def say(self, text: str, *kinds: type) -> Any:
        coming = asyncio.ensure_future(self.next(*(kinds or (TurnFinished, TurnFailed, ChatEnded))))
        await asyncio.sleep(0)
        self.chat.say({"role": "user", "parts": [{"text": text}]})
        return await coming

    async def end(self) -> ChatEnded:
        self.chat.end()
        await asyncio.wait_for(self.task, 60)
        last = self.events[-1]
        assert isinstance(last, ChatEnded)
        return last

    def states(self) -> list[Any]:
        return [event.state for event in self.events if isinstance(event, StateReported)]


async def test_turns_steps_and_state_are_published_as_they_happen(project: Project, children: Children) -> None:
    project.agent(AGENT)
    talker = Talker(project, children, {"customer": "Mira"})
    first = await talker.say("print this")
    assert first.actual["final_response"]["parts"][0]["text"].startswith("Mira: print this")
    second = await talker.say("ご注文はどこですか")
    assert second.turn == 1
    assert (await talker.end()).error is None
    kinds = [type(event) for event in talker.events if not isinstance(event, OutputCaptured | Noticed)]
    turn = [TurnStarted, AgentActed, AgentActed, SpansRecorded, CallsRecorded, StateReported, TurnFinished]
    # The first message was there before the session was.
    assert kinds == [ChatOpened, TurnStarted, StateReported, *turn[1:], *turn, ChatEnded]
    assert talker.states() == [
        {"customer": "Mira"},
        {"customer": "Mira", "turns": 1},
        {"customer": "Mira", "turns": 2},
    ]
    printed = [event.text for event in talker.events if isinstance(event, OutputCaptured)]
    assert "".join(printed) == "said aloud\n"


async def test_failed_turn_does_not_end_the_conversation(project: Project, children: Children) -> None:
    project.agent(AGENT)
    talker = Talker(project, children)
    raised = await talker.say("raise")
    assert raised.error.kind == "agent_raised"
    assert "no such order" in raised.error.message
    assert 'raise KeyError("no such order")' in raised.error.traceback
    left = await talker.say("leave")
    assert isinstance(left, TurnFailed)
    assert "3" in left.error.message
    silent = await talker.say("nothing")
    assert silent.error.kind == "turn_count"
    good = await talker.say("hello")
    assert isinstance(good, TurnFinished)
    assert good.turn == 0
    await talker.end()
    assert talker.states()[-1] == {"turns": 4}


async def test_stopped_turn_does_not_end_the_conversation(project: Project, children: Children) -> None:
    project.agent(AGENT)
    talker = Talker(project, children)
    await talker.say("wait", AgentActed)
    coming = asyncio.ensure_future(talker.next(TurnFailed))
    await asyncio.sleep(0)
    talker.chat.stop_turn()
    assert (await coming).error.kind == "cancelled"
    assert isinstance(await talker.say("hello"), TurnFinished)
    # Between turns there is nothing to stop.
    talker.chat.stop_turn()
    assert isinstance(await talker.say("hello again"), TurnFinished)
    assert (await talker.end()).error is None


async def test_agent_that_ignores_stop_can_be_killed(project: Project, children: Children) -> None:
    project.agent(AGENT)
    talker = Talker(project, children)
    await talker.say("block", AgentActed)
    talker.chat.stop_turn()
    from workbench.events.events import CaseError

    talker.chat.end(CaseError("cancelled", "killed"), kill=True)
    await asyncio.wait_for(talker.task, 60)
    last = talker.events[-1]
    assert isinstance(last, ChatEnded)
    assert last.error is not None
    assert last.error.message == "killed"


async def test_dead_process_ends_the_conversation_with_an_error(project: Project, children: Children) -> None:
    project.agent(AGENT)
    talker = Talker(project, children)
    ended = await talker.say("die")
    assert isinstance(ended, ChatEnded)
    assert ended.error is not None
    assert ended.error.kind == "crashed"
    assert "code 4" in ended.error.message
    await asyncio.wait_for(talker.task, 60)


async def test_large_or_odd_state_does_not_break_the_conversation(project: Project, children: Children) -> None:
    project.agent(AGENT)
    talker = Talker(project, children)
    assert isinstance(await talker.say("odd"), TurnFinished)
    assert "odd" in talker.states()[-1]
    assert isinstance(await talker.say("a large state"), TurnFinished)
    told = [event for event in talker.events if isinstance(event, StateReported)][-1]
    assert told.state is None
    assert "too large to keep" in told.why
    await talker.end()


async def test_import_failure_ends_the_conversation_with_the_reason(project: Project, children: Children) -> None:
    project.agent("print('on the way')\nraise RuntimeError('no shop')\nroot_agent = None\n")
    talker = Talker(project, children)
    await asyncio.wait_for(talker.task, 60)
    last = talker.events[-1]
    assert isinstance(last, ChatEnded)
    assert last.error is not None
    assert "no shop" in last.error.message
    assert any(isinstance(event, OutputCaptured) and "on the way" in event.text for event in talker.events)


async def test_secrets_do_not_reach_the_screen(project: Project, children: Children) -> None:
    project.agent(AGENT)
    project.write("desk/.env", "DESK_TOKEN=sesame-open-please\n")
    talker = Talker(project, children)
    finished = await talker.say("hello")
    assert "sesame" not in str(talker.events)
    assert finished.actual["final_response"]["parts"][0]["text"] == "nobody: hello [secret DESK_TOKEN]"
    await talker.end()


async def test_model_without_a_key_is_reported_as_in_a_run(
    project: Project, children: Children, monkeypatch: Any
) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)
    project.agent('from google.adk.agents import Agent\nroot_agent = Agent(name="desk", model="gemini-2.5-flash")\n')
    talker = Talker(project, children)
    noticed = await talker.next(Noticed)
    assert "gemini-2.5-flash" in noticed.message
    assert "needs a key" in noticed.message
    await talker.end()


async def test_conversation_can_end_before_the_agent_is_imported(project: Project, children: Children) -> None:
    project.agent("import time\ntime.sleep(1000)\n\ndef root_agent(message, session):\n    return 'ok'\n")
    talker = Talker(project, children)
    await asyncio.sleep(0)
    assert (await talker.end()).error is None


async def test_exception_of_the_callback_ends_the_conversation_and_is_raised(
    project: Project, children: Children
) -> None:
    project.agent(AGENT)
    workspace = open_workspace(project.root)
    setting = agent_setting(workspace.agents[0], workspace.root, RunOptions())
    told: list[ChatEvent] = []

    def take(event: ChatEvent) -> None:
        told.append(event)
        if isinstance(event, TurnFinished):
            raise ValueError("no room for this")

    chat = Chat(setting, {}, children, take)
    chat.say({"parts": [{"text": "hello"}]})
    with pytest.raises(ValueError, match="no room for this"):
        await asyncio.wait_for(chat.execute(), 60)
    assert isinstance(told[-1], TurnFinished), "nothing is told to a function that failed"


async def test_cancelled_conversation_leaves_no_thread(project: Project, children: Children) -> None:
    project.agent(AGENT)
    before = set(threading.enumerate())
    talker = Talker(project, children)
    await talker.say("hello")
    talker.task.cancel()
    await asyncio.gather(talker.task, return_exceptions=True)
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("events"):
            thread.join(60)
            assert not thread.is_alive()


async def test_conversation_that_the_user_ends_within_a_turn_has_no_error(project: Project, children: Children) -> None:
    project.agent(AGENT)
    talker = Talker(project, children)
    await talker.say("wait", AgentActed)
    assert (await talker.end()).error is None
