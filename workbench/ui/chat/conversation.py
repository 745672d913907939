"""The state of a conversation, its link to the runs' thread, and the capture of new cases."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from workbench.editing.capture import Captured, of_turns
from workbench.events.events import (
    AgentActed,
    CallsRecorded,
    CaseError,
    Noticed,
    OutputCaptured,
    SpansRecorded,
    TurnFinished,
    TurnStarted,
)
from workbench.files.evalset import EvalCase
from workbench.files.invocation import content_text
from workbench.files.prices import Prices
from workbench.run.chat import ChatEnded, ChatEvent, ChatOpened, StateReported, Streamed, TurnFailed, has_text
from workbench.store.execution import CaseRecord, Turn
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.running.run_thread import RunThread, SideWork

if TYPE_CHECKING:
    from workbench.results.document import Document
    from workbench.results.lines import View
    from workbench.run.chat import Chat


_OUTPUT_KEPT = 200_000
"""Maximum number of characters kept of each output stream."""


@dataclass(slots=True)
class ConversationTurn:
    """A turn of a conversation, finished or in progress, with its error if it failed."""

    turn: Turn
    error: CaseError | None = None
    growing: dict[str, Streamed] = field(default_factory=dict)
    """Streamed text of unfinished steps, by agent."""
    laid: "tuple[View, Document] | None" = field(default=None, compare=False)
    """The cached lines of a finished turn, with the view that they were laid out for."""

    @property
    def going(self) -> bool:
        """Whether the agent is still working on the turn."""
        return self.turn.actual is None and self.error is None

    @property
    def shown(self) -> Turn:
        """The turn, with the text streamed so far as its last steps."""
        if not self.growing:
            return self.turn
        return replace(self.turn, acted=[*self.turn.acted, *map(_as_step, self.growing.values())])

    def take(self, event: Streamed | AgentActed | SpansRecorded | CallsRecorded | TurnFinished | TurnFailed) -> None:
        """Apply an event of this turn. A finished step with text replaces the agent's streamed text."""
        match event:
            case Streamed():
                self.growing[event.author] = event
            case AgentActed():
                self.turn.acted.append(event.acted)
                if has_text(event.acted):
                    self.growing.pop(str(event.acted.get("author")), None)
            case SpansRecorded():
                self.turn.spans = event
            case CallsRecorded():
                self.turn.calls = (*self.turn.calls, event)
            case TurnFinished():
                self.turn.actual, self.turn.note = event.actual, event.note
                self.growing.clear()
            case TurnFailed():
                self.error = event.error


@dataclass
class Conversation:
    """A conversation with the agent `name`. `initial` is the initial session state."""

    name: str
    initial: dict[str, Any]
    framework: str = ""
    """The agent's framework, such as `google-adk 1.18.0`, or "" while the agent starts."""
    turns: list[ConversationTurn] = field(default_factory=list)
    state: StateReported | None = None
    output: dict[str, str] = field(default_factory=dict)
    notices: list[Noticed] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    """Messages that the agent has not started to answer."""
    over: bool = False
    error: CaseError | None = None
    """The error that ended the conversation."""
    prices: Prices | None = None
    """Prices from the user's settings."""

    def take(self, event: ChatEvent) -> None:
        """Apply the next event."""
        match event:
            case ChatOpened():
                other = "plain Python" if event.framework == "python" else event.framework
                self.framework = f"google-adk {event.adk}" if event.adk else other
            case TurnStarted():
                del self.waiting[:1]
                self.turns.append(ConversationTurn(Turn(event.user)))
            case Streamed() | AgentActed() | SpansRecorded() | CallsRecorded() | TurnFinished() | TurnFailed() if (
                self.turns
            ):
                self.turns[-1].take(event)
            case StateReported():
                self.state = event
                # It comes before the end of the turn that it belongs to. The first one may come after the turn's start.
                if self.turns:
                    self.turns[-1].turn.state = event.state if isinstance(event.state, dict) else None
            case OutputCaptured():
                self.output[event.stream] = (self.output.get(event.stream, "") + event.text)[-_OUTPUT_KEPT:]
            case Noticed():
                self.notices.append(event)
            case ChatEnded():
                self.over, self.error = True, event.error
                self.waiting.clear()
                if self.turns and self.turns[-1].going:
                    unanswered = CaseError("cancelled", "the conversation ended in this turn")
                    self.turns[-1].error = event.error or unanswered

    @property
    def doing(self) -> Literal["starting", "waiting", "answering", "over"]:
        """The current state of the conversation. `waiting`: it waits for the user."""
        if self.over:
            return "over"
        if not self.framework:
            return "starting"
        return "answering" if self.waiting or (self.turns and self.turns[-1].going) else "waiting"

    @property
    def finished(self) -> list[Turn]:
        """The turns that have an answer."""
        return [item.turn for item in self.turns if item.turn.actual is not None]


def _as_step(streamed: Streamed) -> dict[str, Any]:
    parts = [{"text": text, **({"thought": True} if thought else {})} for text, thought in streamed.passages]
    return {"author": streamed.author, "content": {"role": "model", "parts": parts}}


MakeChat: TypeAlias = "Callable[[Callable[[ChatEvent], None]], Chat]"


class ChatLink(SideWork["ChatEvent"]):
    """The screen's side of a conversation. Creating it starts the conversation."""

    def __init__(self, runs: RunThread, make: MakeChat, wake: Callable[[], None]) -> None:
        self._make = make
        self._chat: Chat | None = None
        self._waiting: list[Callable[[Chat], None]] = []
        """Calls to make once the conversation exists. Like `_chat`, used only in the run's thread."""
        super().__init__(runs, wake)

    def say(self, content: dict[str, Any]) -> None:
        """Send the user's next message (an ADK `Content` as a dict)."""
        self._with(lambda chat: chat.say(content))

    def stop_turn(self) -> None:
        """Ask the agent to stop the turn."""
        self._with(lambda chat: chat.stop_turn())

    def kill(self) -> None:
        """Kill the agent's process during a turn, which ends the conversation."""
        error = CaseError("cancelled", "the agent did not stop and was killed", "T starts a new conversation")
        self._with(lambda chat: chat.end(error, kill=True))

    def end(self) -> None:
        """End the conversation, unless it has already ended."""
        self._wake = lambda: None  # The screen is closed.
        self._with(lambda chat: chat.end())

    def _with(self, do: "Callable[[Chat], None]") -> None:
        def now() -> None:
            if self._chat is not None:
                do(self._chat)
            else:
                self._waiting.append(do)

        self._runs.call(now)

    async def _execute(self) -> None:
        try:
            self._chat = self._make(self._publish)
            for do in self._waiting:
                do(self._chat)
            await self._chat.execute()
        except Exception as fault:
            hint = getattr(fault, "hint", "")
            trace = "" if hint else traceback.format_exc()
            self._publish(ChatEnded(CaseError("internal", str(fault) or repr(fault), hint, trace)))


def captured_from_conversation(conversation: Conversation, app_name: str, user_id: str) -> Captured:
    """Return the answered turns of a conversation. The notes list the turns that failed."""
    notes = [
        f"“{one_line(content_text(item.turn.user), limit=40)}” has no answer and is left out: "
        f"{one_line(item.error.message, limit=200)}. Its changes to the session are not in the case."
        for item in conversation.turns
        if item.error is not None
    ]
    finished = conversation.finished
    turns = tuple(turn.actual for turn in finished if turn.actual is not None)
    states = tuple(turn.state for turn in finished)
    return Captured(app_name, user_id, turns, conversation.initial, tuple(notes), states=states)


def captured_from_record(record: CaseRecord, case: EvalCase | None, app_name: str) -> Captured:
    """Return the answered turns of a finished case, with the case's current session input.

    A note warns if the initial state is not known, or if it may differ from the run's.
    """
    session: dict[str, Any] = (case.session_input if case is not None else None) or {}
    note = ""
    if case is None:
        note = "initial state unknown: the case is no longer in its file"
    elif session.get("state") and record.expected is not None and list(record.expected) != list(case.turns or ()):
        note = "the case has changed since that run: this is its current initial state"
    return captured_with(record, session, app_name, note)


def captured_with(record: CaseRecord, session: Mapping[str, Any], app_name: str, note: str = "") -> Captured:
    """Return the answered turns of a record, with this session input, and the state after each turn if known."""
    answered = [turn for turn in record.turns if turn.actual is not None]
    without = len(record.turns) - len(answered)
    left_out = f"{counted(without, 'turn')} without an answer left out" if without else ""
    state = session.get("state")
    return Captured(
        str(session.get("app_name") or app_name),
        str(session.get("user_id") or "user"),
        tuple(turn.actual for turn in answered if turn.actual is not None),
        state if isinstance(state, dict) else {},
        tuple(filter(None, (left_out, note))),
        states=tuple(turn.state for turn in answered),
    )


def with_recording(captured: Captured, record: CaseRecord, root: Path, state: Path) -> Captured:
    """Return `captured` with the recorded calls of its turns, if the run stored them.

    The calls are kept by default if the case was replayed or has a recording. Reads files, so call it in a thread.
    """
    from workbench.project.freezing import recording_of_run

    recording, has_one = recording_of_run(record, root, state)
    if recording is None:
        return captured
    answered = [number for number, turn in enumerate(record.turns, 1) if turn.actual is not None]
    keeps = has_one or record.frozen is not None
    return replace(captured, recording=of_turns(recording, answered), keeps_recording=keeps)
