"""The state of a conversation, built from its events, without widgets."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

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
from workbench.files.prices import Prices
from workbench.run.chat import ChatEnded, ChatEvent, ChatOpened, StateTold, Streamed, TurnFailed, has_text
from workbench.store.execution import Turn

if TYPE_CHECKING:
    from workbench.results.document import Document
    from workbench.results.rows import View

_OUTPUT_KEPT = 200_000
"""Maximum number of characters kept per output stream."""


@dataclass(slots=True)
class ConversationTurn:
    """A turn so far, and its error."""

    turn: Turn
    error: CaseError | None = None
    growing: dict[str, Streamed] = field(default_factory=dict)
    """Streamed text of unfinished steps, by agent."""
    laid: "tuple[View, Document] | None" = field(default=None, compare=False)
    """The cached lines of the finished turn."""

    @property
    def going(self) -> bool:
        """Whether the agent is still working on the turn."""
        return self.turn.actual is None and self.error is None

    @property
    def shown(self) -> Turn:
        """The turn, with streamed text as its last steps."""
        if not self.growing:
            return self.turn
        return replace(self.turn, acted=[*self.turn.acted, *map(_as_step, self.growing.values())])

    def take(self, event: Streamed | AgentActed | SpansRecorded | CallsRecorded | TurnFinished | TurnFailed) -> None:
        """Apply an event of this turn. A step with text replaces the agent's streamed text."""
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
    turns: list[ConversationTurn] = field(default_factory=list)
    state: StateTold | None = None
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
                self.framework = f"google-adk {event.adk}" if event.adk else "plain Python"
            case TurnStarted():
                del self.waiting[:1]
                self.turns.append(ConversationTurn(Turn(event.user)))
            case Streamed() | AgentActed() | SpansRecorded() | CallsRecorded() | TurnFinished() | TurnFailed() if (
                self.turns
            ):
                self.turns[-1].take(event)
            case StateTold():
                self.state = event
                # It comes before the end of the turn that it belongs to.
                if self.turns and isinstance(event.state, dict):
                    self.turns[-1].turn.state = event.state
            case OutputCaptured():
                self.output[event.stream] = (self.output.get(event.stream, "") + event.text)[-_OUTPUT_KEPT:]
            case Noticed():
                self.notices.append(event)
            case ChatEnded():
                self._end(event.error)

    @property
    def doing(self) -> Literal["starting", "waiting", "answering", "over"]:
        """The current state. `waiting` means waiting for the user."""
        if self.over:
            return "over"
        if not self.framework:
            return "starting"
        return "answering" if self.waiting or (self.turns and self.turns[-1].going) else "waiting"

    @property
    def finished(self) -> list[Turn]:
        """The turns that have an answer."""
        return [item.turn for item in self.turns if item.turn.actual is not None]

    def _end(self, error: CaseError | None) -> None:
        self.over, self.error = True, error
        self.waiting.clear()
        if self.turns and self.turns[-1].going:
            self.turns[-1].error = error or CaseError("cancelled", "the conversation ended in this turn")


def _as_step(streamed: Streamed) -> dict[str, Any]:
    """Return streamed text in the form of a finished step."""
    parts = [{"text": text, **({"thought": True} if thought else {})} for text, thought in streamed.passages]
    return {"author": streamed.author, "content": {"role": "model", "parts": parts}}
