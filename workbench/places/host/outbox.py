"""Messages from agents on their way to the client, numbered and limited until they are acknowledged."""

import time
from collections import deque
from collections.abc import Callable

from workbench.agents.channel import Frame

WINDOW = 8 * 1024 * 1024
"""Bytes that may be unacknowledged before nothing more is read from the agents."""


class Outbox:
    """The window of unacknowledged messages.

    `send` sends a message to the client, and returns its size in bytes. `pause` is called with True when the window is
    full, and with False when the client has caught up.
    """

    def __init__(
        self,
        send: Callable[[Frame], int],
        pause: Callable[[bool], None],
        clock: Callable[[], float] = time.monotonic,
        window: int = WINDOW,
    ) -> None:
        self._send = send
        self._pause = pause
        self._clock = clock
        self._window = window
        self._sizes: deque[int] = deque()
        """Sizes in bytes of the unacknowledged messages."""
        self._bytes = 0
        self._number = 0
        self._held = 0.0
        self._since: float | None = None
        """The time since when nothing is read, or None."""

    @property
    def held(self) -> float:
        """Seconds so far in which nothing was read from the agents because the client was slow."""
        return self._held + (0.0 if self._since is None else self._clock() - self._since)

    def put(self, frame: Frame) -> None:
        """Send a message with its number and the time.

        Raises:
            FrameTooLargeError: it is too large, and was not sent.
        """
        size = self._send({**frame, "n": self._number + 1, "t": self._clock(), "held": self.held})
        self._number += 1
        self._sizes.append(size)
        self._bytes += size
        if self._bytes >= self._window and self._since is None:
            self._since = self._clock()
            self._pause(True)

    def acknowledge(self, number: int) -> None:
        """Record that the client has handled all messages up to `number`. Repeated and wrong numbers do nothing."""
        while self._sizes and self._number - len(self._sizes) < number:
            self._bytes -= self._sizes.popleft()
        if self._since is not None and self._bytes < self._window // 2:
            self._held = self.held
            self._since = None
            self._pause(False)
