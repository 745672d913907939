"""What is known of a conversation: events in, state out, without a widget."""

from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.engine.chat import ChatEnded, ChatEvent, ChatOpened, StateTold, TurnFailed
from workbench.events import AgentActed, CaseError, Noticed, OutputCaptured, TurnFinished, TurnStarted
from workbench.store import Turn

_OUTPUT_KEPT = 200_000
"""Characters of each stream."""


@dataclass(slots=True)
class TalkTurn:
    """A turn so far, and why it failed."""

    turn: Turn
    error: CaseError | None = None

    @property
    def going(self) -> bool:
        """Whether the agent is still at it."""
        return self.turn.actual is None and self.error is None


@dataclass
class Talk:
    """A conversation with the agent `name`, which began with the session state `initial`."""

    name: str
    initial: dict[str, Any]
    framework: str = ""
    turns: list[TalkTurn] = field(default_factory=list)
    state: StateTold | None = None
    output: dict[str, str] = field(default_factory=dict)
    notices: list[Noticed] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    """Messages that the agent has not begun to answer."""
    over: bool = False
    error: CaseError | None = None
    """Why the conversation cannot go on."""

    def take(self, event: ChatEvent) -> None:
        """Takes in the next event."""
        match event:
            case ChatOpened():
                self.framework = f"google-adk {event.adk}" if event.adk else event.framework
            case TurnStarted():
                del self.waiting[:1]
                self.turns.append(TalkTurn(Turn(event.user)))
            case AgentActed() if self.turns:
                self.turns[-1].turn.acted.append(event.acted)
            case TurnFinished() if self.turns:
                self.turns[-1].turn.actual, self.turns[-1].turn.note = event.actual, event.note
            case TurnFailed() if self.turns:
                self.turns[-1].error = event.error
            case StateTold():
                self.state = event
            case OutputCaptured():
                self.output[event.stream] = (self.output.get(event.stream, "") + event.text)[-_OUTPUT_KEPT:]
            case Noticed():
                self.notices.append(event)
            case ChatEnded():
                self._end(event.error)

    @property
    def doing(self) -> Literal["starting", "waiting", "answering", "over"]:
        """What is going on: `waiting` is for the user."""
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
