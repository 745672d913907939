"""What outlives a run: agent processes kept warm, and the scorer. One `Children` for the life of the program."""

import asyncio
import os
from pathlib import Path
from types import TracebackType

from workbench.engine.places.local import LocalPlace
from workbench.engine.processes.agent_process import Touched
from workbench.engine.scoring.client import Scorer


class Children:
    """Starts what a run needs, keeps it warm for the next one, and ends it.

    Use as `async with`. All of it ends when this process does, however that happens: the children hold the other end
    of a pipe that only this process can write to, and end with it. `keep_warm` False: there will be one run only, so
    that nothing is made for the next one.
    """

    def __init__(self, *, keep_warm: bool = True) -> None:
        self.lifeline, self._lifeline_end = os.pipe()
        self.scorer = Scorer(self.lifeline)
        self.local = LocalPlace(self.lifeline, keep_warm=keep_warm)
        self.touched: dict[Path, Touched] = {}
        """Folder of an agent → what it was seen to read, list and write."""

    async def __aenter__(self) -> "Children":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def restart(self) -> None:
        """Ends the warm processes, so that the next run starts with what is installed and set now. Not while one is
        going on: its agents are forks of them."""
        await self.local.close()

    async def close(self) -> None:
        """Ends all children, and waits until they are gone."""
        await asyncio.gather(self.scorer.close(), self.local.close())
        if self.lifeline >= 0:
            os.close(self.lifeline)
            os.close(self._lifeline_end)
            self.lifeline = -1
