"""A run in the run's thread whose events go to one screen, and never to the tree."""

import traceback
from collections import deque
from collections.abc import Callable

from workbench.events.events import Event
from workbench.ui.running.run_thread import Build, Refused, Runnable, RunThread


def cancel_words(what: str, *, kill: bool) -> str:
    """Return what a key that cancels has done."""
    return f"killing {what}" if kill else f"cancelling {what}: once more kills"


class SideRun:
    """A run whose events go to one screen instead of the session's store. It starts at once.

    `wake` is called from the run's thread whenever there are events to `take`.
    """

    def __init__(self, runs: RunThread, build: Build, wake: Callable[[], None]) -> None:
        self._runs, self._build, self._wake = runs, build, wake
        self._news: deque[Event | Refused] = deque()
        self._run: Runnable | None = None
        self._stopped = self._cancelled = False
        self.over = False
        """Whether the run has ended. Set after its last event."""
        runs.also(self._execute)

    def listen(self, wake: Callable[[], None]) -> None:
        """Replace the function that is called on new events, and call it once."""
        self._wake = wake
        wake()

    def cancel(self) -> bool:
        """Cancel what runs, and start no more. The second call kills. Return whether this one does."""
        kill, self._cancelled = self._cancelled, True

        def now() -> None:
            self._stopped = True
            if self._run is not None:
                self._run.stop()
                self._run.cancel(None, kill=kill)

        self._runs.call(now)
        return kill

    def take(self) -> list[Event | Refused]:
        """Return all events since the last call."""
        news: list[Event | Refused] = []
        while self._news:
            news.append(self._news.popleft())
        return news

    async def _execute(self) -> None:
        try:
            self._run = await self._build(self._publish)
            if not self._stopped:
                await self._run.execute()
        except Exception as fault:
            hint = getattr(fault, "hint", None)  # A refusal explains itself.
            hint = traceback.format_exc(limit=-3) if hint is None else hint
            self._news.append(Refused(str(fault) or repr(fault), hint))
        finally:
            self.over = True
            self._wake()

    def _publish(self, event: Event) -> None:
        self._news.append(event)
        self._wake()
