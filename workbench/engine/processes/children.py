"""The children that outlive a run: warm zygotes and the scorer. One `Children` for the life of the program."""

import asyncio
import itertools
import os
from pathlib import Path
from types import TracebackType
from typing import Literal

from workbench.agents.child_process import Command
from workbench.agents.discovery import AgentFolder
from workbench.agents.interpreter import installed
from workbench.agents.left_behind import kill_stale
from workbench.agents.worker import WORKER_DIR
from workbench.engine.processes.agent_clock import done_within
from workbench.engine.processes.zygote import Ready, Zygote
from workbench.engine.scoring.client import Scorer
from workbench.regular_file import read_regular

_READY_WITHIN = 120.0
"""Seconds that importing the framework may take: cold, on a slow disk."""
_SOURCES = ("*.py", "*/*.py")
_SOURCES_READ = 200


class NoWorkerError(Exception):
    """An interpreter cannot be used; the text says how it failed. `died`: it did start."""

    def __init__(self, message: str, *, died: bool = False) -> None:
        super().__init__(message)
        self.died = died


class Children:
    """Starts what a run needs, keeps it warm for the next one, and ends it.

    Use as `async with`. All of it ends when this process does, however that happens: the children hold the other end
    of a pipe that only this process can write to, and end with it. `keep_warm` False: there will be one run only, so
    that nothing is made for the next one.
    """

    def __init__(self, *, keep_warm: bool = True) -> None:
        self._keep_warm = keep_warm
        self.lifeline, self._lifeline_end = os.pipe()
        self.scorer = Scorer(self.lifeline)
        self.adk_agents: set[Path] = set()
        """Folders of agents that turned out to need google-adk."""
        self.footprints: dict[Path, set[Path]] = {}
        """Folder of an agent → the project's files that it was seen to read, in all runs so far."""
        self.results: dict[Path, set[Path]] = {}
        """Folder of an agent → the project's files that it was seen to write."""
        self._zygotes: dict[tuple[Path, bool], asyncio.Task[tuple[Zygote, Ready]]] = {}
        self._looking_for_stale: asyncio.Task[int] | None = None
        self._installed: dict[tuple[Path, bool], tuple[int, ...]] = {}
        """What was installed when a zygote was started, as `installed` tells it."""

    async def __aenter__(self) -> "Children":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def worth_a_zygote(self, interpreter: Path, cases: int) -> bool:
        """Whether so many cases of a run in this interpreter should be forks, rather than one fresh process."""
        return cases > 1 or self._keep_warm or any(key[0] == interpreter for key in self._zygotes)

    async def zygote(self, interpreter: Path, folder: Path, *, warm: bool) -> tuple[Zygote | None, Ready]:
        """The zygote of an interpreter, once it is ready, with the framework imported if `warm`; started in `folder`
        if there is none alive. None if it cannot fork (and `why` says so).

        Raises:
            NoWorkerError: the interpreter does not start, or ends before it is ready.
        """
        task = self._zygotes.get((interpreter, warm))
        now = installed(interpreter)
        if task is not None and task.done() and not _is_lost(task) and self._installed[interpreter, warm] != now:
            zygote, _ = task.result()
            if zygote.idle:
                # What it has imported is not what is installed any more.
                await zygote.process.close()
                task = None
        if task is None or (task.done() and _is_lost(task)):
            self._installed[interpreter, warm] = now
            command = worker_command("zygote", interpreter, folder, warm=warm)
            task = self._zygotes[interpreter, warm] = asyncio.create_task(self._start(command))
        zygote, ready = await asyncio.shield(task)
        return (zygote if ready.can_fork else None), ready

    def uses_adk(self, agent: AgentFolder) -> bool:
        """Whether google-adk should be imported before the agent is: it was once, or a word in its sources says so. A
        wrong guess only costs time."""
        if agent.kind == "yaml" or agent.folder in self.adk_agents:
            return True
        sources = itertools.islice(itertools.chain.from_iterable(map(agent.folder.glob, _SOURCES)), _SOURCES_READ)
        if any(_names_adk(source) for source in sources):
            self.adk_agents.add(agent.folder)
        return agent.folder in self.adk_agents

    async def restart(self) -> None:
        """Ends the zygotes, so that the next run starts with what is installed and set now. Not while one is going on:
        its agents are forks of them."""
        await self._close_zygotes()

    async def close(self) -> None:
        """Ends all children, and waits until they are gone."""
        await asyncio.gather(self.scorer.close(), self._close_zygotes())
        if self.lifeline >= 0:
            os.close(self.lifeline)
            os.close(self._lifeline_end)
            self.lifeline = -1

    async def _close_zygotes(self) -> None:
        tasks, self._zygotes = list(self._zygotes.values()), {}
        for task in tasks:
            if not task.done():
                task.cancel()
        started = await asyncio.gather(*tasks, return_exceptions=True)
        zygotes = [item[0] for item in started if isinstance(item, tuple)]
        await asyncio.gather(*(zygote.process.close() for zygote in zygotes))

    async def _start(self, command: Command) -> tuple[Zygote, Ready]:
        if self._looking_for_stale is None:
            self._looking_for_stale = asyncio.create_task(asyncio.to_thread(kill_stale))
        try:
            zygote = Zygote(command, self.lifeline, spare=self._keep_warm)
        except OSError as error:
            raise NoWorkerError(f"{command.arguments[0]} cannot be started: {error.strerror or error}") from None
        try:
            ready = zygote.ready.result() if await done_within(zygote.ready, _READY_WITHIN) else None
        except asyncio.CancelledError:
            await zygote.process.close(grace=0)
            raise
        if ready is None:
            failure = zygote.failure
            await zygote.process.close(grace=0)
            raise NoWorkerError(f"agents cannot run in {command.arguments[0]}: it {failure}", died=True)
        if not ready.can_fork:
            await zygote.process.close()
        return zygote, ready


def worker_command(mode: Literal["zygote", "solo"], interpreter: Path, folder: Path, *, warm: bool = False) -> Command:
    """How a worker is started, in this process's environment; `warm` has it import google-adk ahead. Pools of numerical
    threads are kept to one: threads do not survive a fork."""
    arguments = [str(interpreter), "-X", "utf8", "-u", WORKER_DIR, mode, *(("--warm", "adk") if warm else ())]
    return Command(arguments, {"OPENBLAS_NUM_THREADS": "1", **os.environ}, folder)


def _is_lost(task: "asyncio.Task[tuple[Zygote, Ready]]") -> bool:
    if task.cancelled() or task.exception() is not None:
        return True
    zygote, ready = task.result()
    return ready.can_fork and zygote.process.ended.done()


def _names_adk(source: Path) -> bool:
    try:
        return b"google.adk" in read_regular(source)
    except OSError:
        return False  # The agent's own import will say it better.
