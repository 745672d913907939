"""Streamed texts of an agent: they arrive in pieces, and the whole text so far is published regularly."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.json_values import parts_of

PAUSE = 0.05
"""Seconds between two updates of the same text. The eye does not see more."""
LONGEST = 200_000
"""Limit of characters of a streamed text. The rest arrives with the finished step."""

_CUT = "…"
"""Marks the end of an unfinished text, so that the start of a secret before it can be recognised."""

Passage = tuple[str, bool]
"""A text, and whether it is a thought."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The text so far of an unfinished step of `author`."""

    author: str
    passages: tuple[Passage, ...]


class StreamBuffer:
    """The streamed texts of the current turn.

    `publish` gets changed texts in the event loop's thread, at most every `PAUSE` seconds. `clean` removes secrets from
    a text, including the start of one before the mark of a cut.
    """

    def __init__(self, publish: Callable[[Streamed], None], clean: Callable[[str], str]) -> None:
        self._publish = publish
        self._clean = clean
        self._passages: dict[str, list[tuple[list[str], bool]]] = {}
        """Author → the pieces of each passage."""
        self._sizes: dict[str, int] = {}
        self._changed: dict[str, None] = {}
        self._due: asyncio.TimerHandle | None = None

    def add(self, author: str, text: str, thought: bool) -> None:
        """Add the next piece."""
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
        for author in list(self._passages):
            self.drop(author)
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
            passages = ((self._cleaned("".join(pieces)), thought) for pieces, thought in self._passages[author])
            self._publish(Streamed(author, tuple(passages)))
        self._changed.clear()

    def _cleaned(self, text: str) -> str:
        return self._clean(text + _CUT).removesuffix(_CUT)


def has_text(acted: dict[str, Any]) -> bool:
    """Return whether a step has a text, so that it replaces the streamed text."""
    parts = parts_of(acted.get("content"))
    return any(part.get("text") for part in parts)
