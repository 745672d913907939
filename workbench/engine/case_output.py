"""What a case prints, up to a limit."""

import os
from collections.abc import Callable

from workbench.agents.output import OutputPipe
from workbench.engine.agent_process import Stream

OUTPUT_LIMIT = 16 * 1024 * 1024
"""Bytes a case may print."""


class CaseOutput:
    """Pipes for a case's stdout and stderr. `show` takes texts as they come; `on_flood` is called once, with a
    sentence, when there is more than a case may print, and from then on it is dropped. `descriptors` are the ends for
    the case, to be taken over."""

    def __init__(self, show: Callable[[Stream, str], None], on_flood: Callable[[str], None]) -> None:
        self._on_flood = on_flood
        self._printed = 0
        stdout, childs_stdout = os.pipe()
        stderr, childs_stderr = os.pipe()
        self.descriptors = (childs_stdout, childs_stderr)
        self._pipes = (
            OutputPipe(stdout, lambda text: show("stdout", text), self._count),
            OutputPipe(stderr, lambda text: show("stderr", text), self._count),
        )

    def settle(self) -> None:
        """Takes in what was printed so far."""
        for pipe in self._pipes:
            pipe.settle()

    def finish(self) -> None:
        """`settle`, and no more is taken."""
        for pipe in self._pipes:
            pipe.finish()

    def _count(self, size: int) -> None:
        before, self._printed = self._printed, self._printed + size
        if before <= OUTPUT_LIMIT < self._printed:
            for pipe in self._pipes:
                pipe.mute()
            self._on_flood(f"the agent printed more than {OUTPUT_LIMIT // 2**20} MiB")
