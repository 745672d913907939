"""A live conversation with an agent: what is typed goes to its process, as the messages of a case do, and what the
agent does comes back as it happens. A turn that fails or is stopped ends nothing but itself."""

import asyncio
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from workbench.agents.channel import Frame
from workbench.engine.chat.stream import Growing, Streamed, says_something
from workbench.engine.conversation.case_run import CaseRun
from workbench.engine.conversation.messages import Say
from workbench.engine.plan.plan import AgentSetting, agent_notices
from workbench.engine.plan.preflight.own_models import without_key
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.plan.secrets import Secrets
from workbench.engine.processes.agent_host import AgentHost, NoAgentProcessError, Seat
from workbench.engine.processes.agent_process import read_error
from workbench.engine.processes.children import Children
from workbench.engine.run.recorder import Publish as PublishEvent
from workbench.engine.run.recorder import Recorder
from workbench.events import (
    AgentActed,
    CaseError,
    CaseRef,
    Event,
    Noticed,
    OutputCaptured,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
    Usage,
)

_NO_LIMIT = 7 * 24 * 3600.0
"""Seconds that the agent may take: whoever waits for an answer can stop it."""


@dataclass(frozen=True, slots=True)
class ChatOpened:
    """The agent is there, and waits for the first message. `framework` is "adk" or "python"."""

    framework: str
    adk: str | None


@dataclass(frozen=True, slots=True)
class StateTold:
    """What the session remembers now; None where it cannot be shown, and `why`."""

    state: Any
    why: str = ""


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn has no answer: the agent raised, did nothing, or was stopped. The conversation goes on."""

    turn: int
    error: CaseError


@dataclass(frozen=True, slots=True)
class ChatEnded:
    """The conversation is over. `error` says why it cannot go on, None where it was asked to end."""

    error: CaseError | None


ChatEvent: TypeAlias = (
    ChatOpened
    | TurnStarted
    | Streamed
    | AgentActed
    | SpansRecorded
    | TurnFinished
    | TurnFailed
    | StateTold
    | OutputCaptured
    | Noticed
    | ChatEnded
)
Publish: TypeAlias = Callable[[ChatEvent], None]


class TypedMessages:
    """A user who types: each message is waited for."""

    usage = Usage()

    def __init__(self) -> None:
        self._typed: asyncio.Queue[Say] = asyncio.Queue()

    def say(self, content: dict[str, Any]) -> None:
        """Takes the next message, an ADK content."""
        self._typed.put_nowait(Say(content))

    async def next(self, turns: Sequence[dict[str, Any]]) -> Say:
        return await self._typed.get()

    def close(self) -> None:
        """Holds nothing."""


class Chat:
    """One conversation. `session_input` is that of a case; `publish` gets each event in the event loop's thread, clean
    of secrets. If it raises, the conversation ends. All methods are for that thread."""

    def __init__(
        self, setting: AgentSetting, session_input: dict[str, Any], children: Children, publish: Publish
    ) -> None:
        self._setting = setting
        self._session_input = session_input
        self._children = children
        self._publish = publish
        self._ref = CaseRef(setting.agent.name, "", "", "chat")
        self._messages = TypedMessages()
        self._run: _ChatRun | None = None
        self._ended = False
        self._over: CaseError | None = None
        self._coming: asyncio.Future[Seat] | None = None
        self._fault: Exception | None = None
        """What `publish` raised."""
        self._secrets: Secrets
        self._recorder: Recorder

    async def execute(self) -> None:
        """From the start of the agent's process to its end. Being cancelled kills it.

        Raises:
            Exception: what `publish` raised, after the end of the process.
        """
        self._secrets = await asyncio.to_thread(Secrets, [self._setting.environment.values])
        self._recorder = Recorder(cast(PublishEvent, self._tell), None, self._secrets, _nothing_is_written)
        host = AgentHost(self._setting, self._children, RunOptions(), self._put)
        try:
            error = await self._converse(host)
        except asyncio.CancelledError:
            if self._run is not None:
                self._run.cancel(CaseError("cancelled", "cancelled"), kill=True)
            raise
        except Exception as fault:
            error = CaseError("internal", f"the workbench failed: {fault!r}", "", traceback.format_exc())
        finally:
            await host.close()
        self._put(ChatEnded(error))
        await self._recorder.close()
        if self._fault is not None:
            raise self._fault

    def say(self, content: dict[str, Any]) -> None:
        """The user's next message, an ADK content; answered after those before it."""
        self._messages.say(content)

    def stop_turn(self) -> None:
        """Asks the agent to leave the turn. One that never gives its event loop back does not hear it."""
        if self._run is not None:
            self._run.stop_turn()

    def end(self, error: CaseError | None = None, *, kill: bool = False) -> None:
        """Ends the conversation; `error` says why, where that was not simply wished."""
        self._ended, self._over = True, error
        if self._run is not None:
            self._run.cancel(error or _WISHED, kill=kill)
        elif self._coming is not None:
            self._coming.cancel()

    async def _converse(self, host: AgentHost) -> CaseError | None:
        for notice in (*agent_notices([self._setting]), *await asyncio.to_thread(_keys_missing, self._setting)):
            self._put(notice)
        if self._ended:
            return self._over
        self._coming = asyncio.ensure_future(host.seat())
        try:
            seat = await self._coming
        except NoAgentProcessError as unusable:
            self._show_import(host)
            return unusable.error
        except asyncio.CancelledError:
            if not self._coming.cancelled():
                raise
            return self._over
        self._show_import(host)
        if self._ended:
            return self._over
        imported = seat.process.imported.result()
        if not isinstance(imported, CaseError):
            self._put(ChatOpened(imported.framework, imported.adk))
        growing = Growing(self._put, self._secrets.clean_text)
        run = self._run = _ChatRun(self._ref, self._messages, _NO_LIMIT, self._put, growing)
        spec = {"eval_id": "chat", "session_input": self._session_input, "env": {}, "chat": True}
        transcript = await run.run(seat.process, spec, share=seat.share)
        growing.tell_now()
        await run.finish()
        return None if transcript.error is _WISHED else transcript.error

    def _tell(self, event: ChatEvent) -> None:
        if self._fault is None:
            try:
                self._publish(event)
            except Exception as fault:
                self._fault = fault
                self.end(kill=True)

    def _put(self, event: ChatEvent | Event) -> None:
        # The recorder cleans whatever is a dataclass; that some of these are no events of a run shows only in writing
        # them, which is not done here.
        self._recorder.put(cast(Event, event))

    def _show_import(self, host: AgentHost) -> None:
        for stream, text in host.take_output():
            self._put(OutputCaptured(self._ref, stream, text))


class _ChatRun(CaseRun):
    """A case that also hears of texts as they grow, of failed turns and of the state."""

    def __init__(
        self, ref: CaseRef, source: TypedMessages, timeout: float, emit: Callable[[Event], None], growing: Growing
    ) -> None:
        super().__init__(ref, source, timeout, emit)
        self._growing = growing

    def stop_turn(self) -> None:
        self._process.send({"op": "stop"})

    def _understand(self, frame: Frame) -> None:
        match frame["event"]:
            case "Streamed":
                self._growing.add(str(frame["author"]), str(frame["text"]), bool(frame["thought"]))
            case "State":
                self._tell(StateTold(frame.get("state"), str(frame.get("why") or "")))
            case "TurnFailed":
                self._growing.tell_now()
                self._growing.end()
                self._tell(TurnFailed(len(self._transcript.turns), read_error(dict(frame["error"]))))
                if self._stop_reason is None:
                    self._go_on()
            case "AgentActed":
                if says_something(frame["acted"]):
                    self._growing.drop(str(frame["acted"].get("author")))
                super()._understand(frame)
            case "TurnFinished":
                self._growing.end()
                super()._understand(frame)
            case _:
                super()._understand(frame)

    def _tell(self, event: ChatEvent) -> None:
        self._event(cast(Event, event))


_WISHED = CaseError("cancelled", "ended")


def _keys_missing(setting: AgentSetting) -> list[Noticed]:
    """The words of a run about models of the agent that cannot be asked. The agent itself will say the rest."""
    try:
        return list(without_key(setting))
    except Exception:
        return [Noticed("error", "the look at the agent's models failed", traceback.format_exc())]


def _nothing_is_written(error: OSError) -> None:
    """The recorder's failure to write, which cannot be."""
