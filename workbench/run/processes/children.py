"""Child processes that outlive a run: warm agent processes and the scorer."""

import asyncio
import os
from pathlib import Path
from types import TracebackType

from workbench.freshness.touched import Touched
from workbench.run.places.local import LocalPlace
from workbench.run.scoring.client import Scorer


class Children:
    """The child processes of the program. Use one instance in an `async with` block.

    The children end when this process does, even if it is killed, because they hold the other end of a pipe that only
    this process can write to. Set `keep_warm` to False if there is only one run, so that nothing is prepared for the
    next one.
    """

    def __init__(self, *, keep_warm: bool = True) -> None:
        self.lifeline, self._lifeline_end = os.pipe()
        self.scorer = Scorer(self.lifeline)
        self.local = LocalPlace(self.lifeline, keep_warm=keep_warm)
        self.touched: dict[Path, Touched] = {}
        """Folder of an agent → files that it read, listed and wrote."""

    async def __aenter__(self) -> "Children":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def restart(self) -> None:
        """End the warm processes, so that the next run uses the current packages and environment.

        Do not call it during a run, because its agents are forks of these processes.
        """
        await self.local.close()

    async def close(self) -> None:
        """End all children and wait until they are gone."""
        await asyncio.gather(self.scorer.close(), self.local.close())
        if self.lifeline >= 0:
            os.close(self.lifeline)
            os.close(self._lifeline_end)
            self.lifeline = -1
