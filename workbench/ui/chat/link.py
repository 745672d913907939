"""A conversation in the run's thread, for use by the screen's thread."""

import traceback
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from workbench.ui.running.run_thread import RunThread

if TYPE_CHECKING:
    from workbench.run.chat import Chat, ChatEvent

MakeChat: TypeAlias = "Callable[[Callable[[ChatEvent], None]], Chat]"


class ChatLink:
    """The screen's side of a conversation, which starts at once.

    `wake` is called from the run's thread whenever there are events to `take`.
    """

    def __init__(self, runs: RunThread, make: MakeChat, wake: Callable[[], None]) -> None:
        self._runs, self._make, self._wake = runs, make, wake
        self._news: deque[ChatEvent] = deque()
        self._chat: Chat | None = None
        self._waiting: list[Callable[[Chat], None]] = []
        """Calls to make once the conversation exists. Used by the run's thread only, like `_chat`."""
        runs.also(self._execute)

    def listen(self, wake: Callable[[], None]) -> None:
        """Replace the function that is called on new events, and call it once."""
        self._wake = wake
        wake()

    def say(self, content: dict[str, Any]) -> None:
        """Send the user's next message, an ADK content."""
        self._with(lambda chat: chat.say(content))

    def stop_turn(self) -> None:
        """Ask the agent to stop the turn."""
        self._with(lambda chat: chat.stop_turn())

    def kill(self) -> None:
        """Kill the agent's process during a turn, which ends the conversation."""
        from workbench.events.events import CaseError

        error = CaseError("cancelled", "the agent did not stop and was killed", "r starts a new conversation")
        self._with(lambda chat: chat.end(error, kill=True))

    def end(self) -> None:
        """End the conversation if it is not over."""
        self._wake = _no_screen
        self._with(lambda chat: chat.end())

    def take(self) -> "list[ChatEvent]":
        """Return all events since the last call."""
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
        from workbench.events.events import CaseError
        from workbench.run.chat import ChatEnded

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


def _no_screen() -> None:
    """Ignore events after the screen was closed."""
