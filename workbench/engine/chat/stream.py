"""Texts that grow while an agent says them: pieces in, and now and then the whole so far out."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.json_values import parts_of

PAUSE = 0.05
"""Seconds between two times that the same texts are told: the eye does not see more."""
LONGEST = 200_000
"""Characters of an agent's text that are told as they grow. The rest is there when the step is."""

_CUT = "…"
"""Says that a text was cut here, so that the beginning of a secret before it is known for what it is."""

Passage = tuple[str, bool]
"""A text, and whether it is a thought."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """What `author` has said so far of a step that is still to come."""

    author: str
    passages: tuple[Passage, ...]


class Growing:
    """The texts of the turn that is going on. `tell` gets what has grown, in the event loop's thread, at most every
    `PAUSE` seconds; `clean` takes secrets out of a text, also the beginning of one before the mark of a cut."""

    def __init__(self, tell: Callable[[Streamed], None], clean: Callable[[str], str]) -> None:
        self._tell = tell
        self._clean = clean
        self._passages: dict[str, list[tuple[list[str], bool]]] = {}
        """By author; the pieces of each passage."""
        self._sizes: dict[str, int] = {}
        self._grown: dict[str, None] = {}
        self._due: asyncio.TimerHandle | None = None

    def add(self, author: str, text: str, thought: bool) -> None:
        """Takes the next piece."""
        size = self._sizes.get(author, 0)
        if size >= LONGEST:
            return
        self._sizes[author] = size + len(text)
        passages = self._passages.setdefault(author, [])
        if not passages or passages[-1][1] != thought:
            passages.append(([], thought))
        passages[-1][0].append(text)
        self._grown[author] = None
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(PAUSE, self.tell_now)

    def drop(self, author: str) -> None:
        """The step is there: what was said of it before is of no use any more."""
        self._passages.pop(author, None)
        self._sizes.pop(author, None)
        self._grown.pop(author, None)

    def end(self) -> None:
        """The turn is over."""
        for author in list(self._passages):
            self.drop(author)
        self.stop()

    def stop(self) -> None:
        """Nothing is told any more."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def tell_now(self) -> None:
        """Tells what has grown since it was told last."""
        self.stop()
        for author in self._grown:
            passages = ((self._cleaned("".join(pieces)), thought) for pieces, thought in self._passages[author])
            self._tell(Streamed(author, tuple(passages)))
        self._grown.clear()

    def _cleaned(self, text: str) -> str:
        return self._clean(text + _CUT).removesuffix(_CUT)


def says_something(acted: dict[str, Any]) -> bool:
    """Whether the step is, or holds, a text: then it is the one that was growing."""
    parts = parts_of(acted.get("content"))
    return any(part.get("text") for part in parts)
