"""What a case prints, up to a limit."""

import os
from collections.abc import Callable
from typing import Literal, TypeAlias

from workbench.agents.output import Lines, OutputPipe

Stream: TypeAlias = Literal["stdout", "stderr"]

OUTPUT_LIMIT = 16 * 1024 * 1024
"""Bytes a case may print."""


class CaseOutput:
    """What goes to a case's stdout and stderr: through pipes, or told by a case that is to `share` its process.

    `show` takes texts as they come; `on_flood` is called once, with a sentence, when there is more than a case may
    print, and from then on it is dropped. `descriptors` are the ends for the case, to be taken over."""

    def __init__(
        self, show: Callable[[Stream, str], None], on_flood: Callable[[str], None], *, share: bool = False
    ) -> None:
        self._show = show
        self._on_flood = on_flood
        self._printed = 0
        self._lines: dict[Stream, Lines] = {}
        self._pipes: tuple[OutputPipe, ...] = ()
        self.descriptors: tuple[int, ...] = ()
        if share:
            self._lines = {"stdout": Lines(self._out), "stderr": Lines(self._err)}
            return
        stdout, childs_stdout = os.pipe()
        stderr, childs_stderr = os.pipe()
        self.descriptors = (childs_stdout, childs_stderr)
        self._pipes = (OutputPipe(stdout, self._out, self._count), OutputPipe(stderr, self._err, self._count))

    def take(self, stream: Stream, text: str) -> None:
        """Takes what the case says that it has printed. KeyError: it is not one that should say so."""
        lines = self._lines[stream]
        if self._printed <= OUTPUT_LIMIT:
            lines.add(text)
        self._count(len(text.encode("utf-8", "replace")))

    def settle(self) -> None:
        """Takes in what was printed so far."""
        for pipe in self._pipes:
            pipe.settle()
        for lines in self._lines.values():
            lines.settle()

    def finish(self) -> None:
        """`settle`, and no more is taken."""
        for pipe in self._pipes:
            pipe.finish()
        for lines in self._lines.values():
            lines.settle()

    def _out(self, text: str) -> None:
        self._show("stdout", text)

    def _err(self, text: str) -> None:
        self._show("stderr", text)

    def _count(self, size: int) -> None:
        before, self._printed = self._printed, self._printed + size
        if before <= OUTPUT_LIMIT < self._printed:
            for pipe in self._pipes:
                pipe.mute()
            self._on_flood(f"the agent printed more than {OUTPUT_LIMIT // 2**20} MiB")
