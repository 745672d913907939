"""A live conversation with an agent.

Typed messages go to the agent's process like messages of a case, and its steps are published as soon as they happen.
Streamed texts arrive in parts. The complete text so far is published regularly. A turn that fails or is stopped does
not end the conversation.
"""

import asyncio
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from workbench.agents.channel import Frame
from workbench.criteria.secrets import Secrets
from workbench.events.events import (
    AgentActed,
    CallsRecorded,
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
from workbench.files.run_options import RunOptions
from workbench.judges.base import JudgeEnvironment
from workbench.run.conversation.case_run import CaseRun
from workbench.run.conversation.scenario_user import NextMessage
from workbench.run.plan.plan import AgentSetting, agent_notices
from workbench.run.plan.preflight import without_keys
from workbench.run.processes.agent_host import AgentHost, NoAgentProcessError, ProcessSlot
from workbench.run.processes.agent_process import read_error
from workbench.run.processes.children import Children
from workbench.run.recorder import Publish as PublishEvent
from workbench.run.recorder import Recorder
from workbench.text.json_values import parts_of

PAUSE = 0.05
"""Seconds between two updates of the same text. Faster updates would not be visible."""
LONGEST = 200_000
"""Maximum length of a streamed text, in characters. The rest arrives with the finished step."""

_CUT = "…"
"""Mark at the end of an unfinished text. A secret's first characters right before the mark are recognised."""

Passage = tuple[str, bool]
"""A text, and whether it is a thought."""
_NO_LIMIT = 7 * 24 * 3600.0
"""Time limit of the agent in seconds. It is never reached in practice, because the user can stop a turn."""
_ENDED_BY_USER = CaseError("cancelled", "ended")


@dataclass(frozen=True, slots=True)
class Streamed:
    """The text so far of an unfinished step of `author`."""

    author: str
    passages: tuple[Passage, ...]


class StreamBuffer:
    """The streamed texts of the current turn.

    `publish` gets changed texts in the event loop's thread, at most every `PAUSE` seconds. `clean` removes secrets from
    a text, including the start of a secret at the end of an unfinished text.
    """

    def __init__(self, publish: Callable[[Streamed], None], clean: Callable[[str], str]) -> None:
        self._publish = publish
        self._clean = clean
        self._passages: dict[str, list[tuple[list[str], bool]]] = {}
        """Author → the parts of each passage."""
        self._sizes: dict[str, int] = {}
        self._changed: dict[str, None] = {}
        self._due: asyncio.TimerHandle | None = None

    def add(self, author: str, text: str, thought: bool) -> None:
        """Add the next part of a text. Parts after `LONGEST` characters are dropped."""
        size = self._sizes.get(author, 0)
        if size >= LONGEST:
            return
        self._sizes[author] = size + len(text)
        passages = self._passages.setdefault(author, [])
        if not passages or passages[-1][1] != thought:
            passages.append(([], thought))
        passages[-1][0].append(text)
        self._changed[author] = None
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(PAUSE, self.publish_now)

    def drop(self, author: str) -> None:
        """Discard the text of a step that has finished."""
        self._passages.pop(author, None)
        self._sizes.pop(author, None)
        self._changed.pop(author, None)

    def end(self) -> None:
        """Discard all texts, because the turn is over."""
        for texts in (self._passages, self._sizes, self._changed):
            texts.clear()
        self.stop()

    def stop(self) -> None:
        """Stop the timer."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def publish_now(self) -> None:
        """Publish all texts that have changed since the last time."""
        self.stop()
        for author in self._changed:
            texts = [("".join(pieces), thought) for pieces, thought in self._passages[author]]
            passages = [(self._clean(text + _CUT).removesuffix(_CUT), thought) for text, thought in texts]
            self._publish(Streamed(author, tuple(passages)))
        self._changed.clear()


def has_text(acted: dict[str, Any]) -> bool:
    """Return whether a step has a text. Such a step replaces the streamed text."""
    return any(part.get("text") for part in parts_of(acted.get("content")))


@dataclass(frozen=True, slots=True)
class ChatOpened:
    """The start of the conversation: the agent waits for the first message. `framework` is its driver's name."""

    framework: str
    adk: str | None
    """The version of google-adk, or None for an agent in plain Python."""


@dataclass(frozen=True, slots=True)
class StateReported:
    """The current session state. If it cannot be shown, `state` is None and `why` is the reason."""

    state: Any
    why: str = ""


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A turn without an answer: the agent raised, did nothing, or was stopped. The conversation continues."""

    turn: int
    error: CaseError


@dataclass(frozen=True, slots=True)
class ChatEnded:
    """The end of the conversation. `error` says why it cannot continue, or is None if the user ended it."""

    error: CaseError | None


ChatEvent: TypeAlias = (
    ChatOpened
    | TurnStarted
    | Streamed
    | AgentActed
    | SpansRecorded
    | CallsRecorded
    | TurnFinished
    | TurnFailed
    | StateReported
    | OutputCaptured
    | Noticed
    | ChatEnded
)
Publish: TypeAlias = Callable[[ChatEvent], None]


class TypedMessages:
    """A `MessageSource` for a user who types."""

    usage = Usage()

    def __init__(self) -> None:
        self._typed: asyncio.Queue[NextMessage] = asyncio.Queue()

    def say(self, content: dict[str, Any]) -> None:
        """Add the next message, an ADK content."""
        self._typed.put_nowait(NextMessage(content))

    async def next(self, turns: Sequence[dict[str, Any]]) -> NextMessage:
        """Wait for the next message."""
        return await self._typed.get()

    def close(self) -> None:
        """Do nothing, because there are no resources."""


class Chat:
    """One conversation.

    `session_input` has the same form as in a case. `publish` gets each event without secrets. If it raises, the
    conversation ends. Call all methods in the event loop's thread.
    """

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
        self._coming: asyncio.Future[ProcessSlot] | None = None
        self._fault: Exception | None = None
        """The exception of `publish`."""
        self._secrets: Secrets
        self._recorder: Recorder

    async def execute(self) -> None:
        """Run the conversation from the start of the agent's process to its end. Cancel it to kill the process.

        Raises:
            Exception: `publish` raised it. It is raised again after the end of the process.
        """
        self._secrets = await asyncio.to_thread(Secrets, [self._setting.environment.values])
        self._recorder = Recorder(cast(PublishEvent, self._tell), None, self._secrets)
        host = AgentHost(self._setting, self._children, RunOptions(), self._put)
        try:
            self._put(ChatEnded(await self._outcome(host)))
        finally:
            await self._recorder.close()
        if self._fault is not None:
            raise self._fault

    async def _outcome(self, host: AgentHost) -> CaseError | None:
        """Converse and close the host. Return why the conversation could not continue, or None."""
        try:
            return await self._converse(host)
        except asyncio.CancelledError:
            if self._run is not None:
                self._run.cancel(CaseError("cancelled", "cancelled"), kill=True)
            raise
        except Exception as fault:
            return CaseError("internal", f"the workbench failed: {fault!r}", "", traceback.format_exc())
        finally:
            await host.close()

    def say(self, content: dict[str, Any]) -> None:
        """Add the user's next message, an ADK content. Messages are answered in order."""
        self._messages.say(content)

    def stop_turn(self) -> None:
        """Ask the agent to stop the turn. An agent that blocks its event loop cannot be stopped this way."""
        if self._run is not None:
            self._run.stop_turn()

    def end(self, error: CaseError | None = None, *, kill: bool = False) -> None:
        """End the conversation. `error` is None if the user ends it. With `kill`, kill the process at once."""
        self._ended, self._over = True, error
        if self._run is not None:
            self._run.cancel(error or _ENDED_BY_USER, kill=kill)
        elif self._coming is not None:
            self._coming.cancel()

    async def _converse(self, host: AgentHost) -> CaseError | None:
        for notice in (*agent_notices([self._setting]), *await asyncio.to_thread(_keys_missing, self._setting)):
            self._put(notice)
        if self._ended:
            return self._over
        self._coming = asyncio.ensure_future(host.slot())
        try:
            slot = await self._coming
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
        imported = slot.process.imported.result()
        if not isinstance(imported, CaseError):
            self._put(ChatOpened(imported.framework, imported.adk))
        buffer = StreamBuffer(self._put, self._secrets.clean_text)
        run = self._run = _ChatRun(self._ref, self._messages, _NO_LIMIT, self._put, buffer)
        spec = {"eval_id": "chat", "session_input": self._session_input, "env": {}, "chat": True}
        spec["calls"] = {"record": True}
        transcript = await run.run(slot.process, spec, share=slot.share)
        buffer.publish_now()
        await run.finish()
        error = transcript.error
        # An error gets the lines at which the agent was stopped.
        return None if error is not None and replace(error, traceback="") == _ENDED_BY_USER else error

    def _tell(self, event: ChatEvent) -> None:
        if self._fault is None:
            try:
                self._publish(event)
            except Exception as fault:
                self._fault = fault
                self.end(kill=True)

    def _put(self, event: ChatEvent | Event) -> None:
        # The recorder cleans any dataclass. Only writing needs events of a run, and nothing is written here.
        self._recorder.put(cast(Event, event))

    def _show_import(self, host: AgentHost) -> None:
        for stream, text in host.take_output():
            self._put(OutputCaptured(self._ref, stream, text))


class _ChatRun(CaseRun):
    """A case run that also handles streamed texts, failed turns and the session state."""

    def __init__(
        self, ref: CaseRef, source: TypedMessages, timeout: float, emit: Callable[[Event], None], buffer: StreamBuffer
    ) -> None:
        super().__init__(ref, source, timeout, emit)
        self._buffer = buffer

    def stop_turn(self) -> None:
        self._process.send({"op": "stop"})

    def _handle_frame(self, frame: Frame) -> None:
        match frame["event"]:
            case "Streamed":
                self._buffer.add(str(frame["author"]), str(frame["text"]), bool(frame["thought"]))
            case "State":
                self._tell(StateReported(frame.get("state"), str(frame.get("why") or "")))
            case "TurnFailed":
                self._buffer.publish_now()
                self._buffer.end()
                self._tell(TurnFailed(len(self._transcript.turns), read_error(dict(frame["error"]), ours=True)))
                if self._stop_reason is None:
                    self._next_move()
            case "AgentActed":
                if has_text(frame["acted"]):
                    self._buffer.drop(str(frame["acted"].get("author")))
                super()._handle_frame(frame)
            case "TurnFinished":
                self._buffer.end()
                super()._handle_frame(frame)
            case _:
                super()._handle_frame(frame)

    def _tell(self, event: ChatEvent) -> None:
        self._event(cast(Event, event))


def _keys_missing(setting: AgentSetting) -> list[Noticed]:
    """Return notices about the agent's models that lack a key, or one notice that this check failed."""
    try:
        environment = JudgeEnvironment(**setting.judge_environment())
        return list(without_keys({setting.agent.name: setting}, {setting.agent.name: environment}))
    except Exception:
        return [Noticed("error", "the check of the agent's models failed", traceback.format_exc())]
