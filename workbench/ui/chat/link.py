"""A conversation in the run's thread, as the screen's thread sees it."""

import traceback
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from workbench.ui.run_thread import RunThread

if TYPE_CHECKING:
    from workbench.engine.chat.chat import Chat, ChatEvent

MakeChat: TypeAlias = "Callable[[Callable[[ChatEvent], None]], Chat]"


class ChatLink:
    """Starts a conversation at once. `wake` is called from the other thread whenever there is something to `take`."""

    def __init__(self, runs: RunThread, make: MakeChat, wake: Callable[[], None]) -> None:
        self._runs, self._make, self._wake = runs, make, wake
        self._news: deque[ChatEvent] = deque()
        self._chat: Chat | None = None
        self._waiting: list[Callable[[Chat], None]] = []
        """What is to be done as soon as the conversation is there; of the run's thread, like `_chat`."""
        runs.also(self._execute)

    def listen(self, wake: Callable[[], None]) -> None:
        """Has another one called at news."""
        self._wake = wake
        wake()

    def say(self, content: dict[str, Any]) -> None:
        """The user's next message, an ADK content."""
        self._with(lambda chat: chat.say(content))

    def stop_turn(self) -> None:
        """Asks the agent to leave the turn."""
        self._with(lambda chat: chat.stop_turn())

    def kill(self) -> None:
        """Ends the agent's process in the middle of the turn, and with it the conversation."""
        from workbench.events import CaseError

        error = CaseError("cancelled", "the agent did not stop, and was killed", "r begins a new conversation")
        self._with(lambda chat: chat.end(error, kill=True))

    def end(self) -> None:
        """Ends the conversation, if it is not over."""
        self._wake = _nobody
        self._with(lambda chat: chat.end())

    def take(self) -> "list[ChatEvent]":
        """All that happened since the last call."""
        news: list[ChatEvent] = []
        while self._news:
            news.append(self._news.popleft())
        return news

    def _with(self, do: "Callable[[Chat], None]") -> None:
        def now() -> None:
            if self._chat is not None:
                do(self._chat)
            else:
                self._waiting.append(do)

        self._runs.call(now)

    async def _execute(self) -> None:
        from workbench.engine.chat.chat import ChatEnded
        from workbench.events import CaseError

        try:
            self._chat = self._make(self._publish)
            for do in self._waiting:
                do(self._chat)
            await self._chat.execute()
        except Exception as fault:
            hint = getattr(fault, "hint", "")
            trace = "" if hint else traceback.format_exc()
            self._publish(ChatEnded(CaseError("internal", str(fault) or repr(fault), hint, trace)))

    def _publish(self, event: "ChatEvent") -> None:
        self._news.append(event)
        self._wake()


def _nobody() -> None:
    """The screen is gone."""
