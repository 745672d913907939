"""The end of a case (closing never changes the verdict), and stopped turns."""

import asyncio
import contextlib
import socket
from typing import Any

import pytest

from workbench.worker import case as case_module
from workbench.worker import drivers, project_files
from workbench.worker.case import Case
from workbench.worker.cases import Chat
from workbench.worker.driver import Loaded
from workbench.worker.frames import Channel, SocketWire, send


class Stack:
    """An exit stack as a factory may return it."""

    def __init__(self, seconds: float, error: BaseException | None = None, stubborn: bool = False) -> None:
        self.seconds, self.error, self.stubborn = seconds, error, stubborn

    async def aclose(self) -> None:
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            if not self.stubborn:
                raise
            await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error


async def ending(stack: Stack) -> list[dict[str, Any]]:
    """Run a case whose agent comes with `stack`. Return what was sent after the turn."""
    loaded = Loaded("desk", "adk", factory=lambda: ((lambda message, session: "x"), stack))
    ours, theirs = socket.socketpair()
    send(ours, {"op": "turn", "content": {"parts": [{"text": "hi"}]}})
    send(ours, {"op": "end"})
    await Case(SocketWire(theirs), {"session_input": None}, loaded, shared=True).run()
    channel = Channel(ours)
    events = []
    while (message := channel.receive()) is not None:
        events.append(message)
    channel.close()
    kinds = [event["event"] for event in events]
    assert kinds[:3] == ["AgentActed", "Spans", "TurnFinished"]
    return events[3:]


@pytest.mark.parametrize(
    ("stack", "warning"),
    [
        (Stack(0), None),
        (Stack(0, OSError("gone")), "closing the agent's exit stack raised OSError: gone"),
        (Stack(0, asyncio.CancelledError()), "closing the agent's tools ended with CancelledError"),
        (Stack(1000), "closing the agent's tools took more than 0.05 s and was abandoned"),
        (Stack(1000, stubborn=True), "closing the agent's tools took more than 0.05 s and was abandoned"),
    ],
)
async def test_teardown_problems_become_warnings(
    monkeypatch: pytest.MonkeyPatch, stack: Stack, warning: str | None
) -> None:
    monkeypatch.setattr(case_module, "_TEARDOWN_SECONDS", 0.05 if stack.seconds else 60.0)
    monkeypatch.setattr(project_files, "_watched", ())
    assert await ending(stack) == [{"event": "Ended", "warnings": [warning] if warning else []}]


async def test_reads_are_reported_only_if_they_were_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "_watched", ())
    assert [event["event"] for event in await ending(Stack(0))] == ["Ended"]
    monkeypatch.setattr(project_files, "_watched", ("/nowhere/",))
    monkeypatch.setattr(project_files, "_overflowed", [])
    assert [event["event"] for event in await ending(Stack(0))] == ["Touched", "Ended"]


async def test_agent_of_a_factory_is_closed_even_in_a_shared_process() -> None:
    loaded = Loaded("desk", "adk", factory=lambda: lambda message, session: "x")
    opened = await drivers.open_conversation(loaded, None, shared=True)
    assert opened.needs_closing
    shared = await drivers.open_conversation(Loaded("desk", "python", agent=print), None, shared=True)
    assert not shared.needs_closing


@pytest.mark.parametrize("agent", ["no agent", lambda message, session: "x"])
async def test_exit_stack_is_closed_if_no_session_can_be_opened(agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*args: Any, **more: Any) -> None:
        raise RuntimeError("no session")

    monkeypatch.setattr(drivers.driver_of(Loaded("desk", "python", agent=print)), "open", fails, raising=False)
    closed: list[str] = []
    stack = contextlib.AsyncExitStack()
    stack.callback(closed.append, "closed")
    with pytest.raises((drivers.NoAgentError, RuntimeError)):
        await drivers.open_conversation(Loaded("desk", "adk", factory=lambda: (agent, stack)), None, shared=False)
    assert closed == ["closed"]


async def test_stop_sent_together_with_its_message_cancels_the_turn() -> None:
    async def waits(message: Any, session: Any) -> str:
        await asyncio.sleep(1000)
        return "never"

    ours, theirs = socket.socketpair()
    send(ours, {"op": "turn", "content": {"parts": [{"text": "hi"}]}})
    send(ours, {"op": "stop"})
    running = asyncio.ensure_future(
        Chat(SocketWire(theirs), {"session_input": None}, Loaded("desk", "python", waits), shared=True).run()
    )
    channel = SocketWire(ours)
    events: list[dict[str, Any]] = []
    while not events or events[-1]["event"] != "TurnFailed":
        await channel.wait_for_data()
        channel.fill()
        events.extend(channel.pending)
        channel.pending.clear()
    assert events[-1]["error"]["kind"] == "cancelled"
    send(ours, {"op": "end"})
    await running
    channel.close()
