"""Child processes that outlive a run: warm agent processes on this machine, and the scorer.

Agent processes are forks of a warm zygote, or fresh if forking is impossible.
"""

import asyncio
import functools
import itertools
import os
import resource
from pathlib import Path
from types import TracebackType
from typing import Literal

from workbench.agents.child_process import Command, kill_stale
from workbench.agents.environment import installed
from workbench.files.file_access import read_regular
from workbench.freshness.agent_inputs import Touched
from workbench.run.place import NotStartedError, OnFrame
from workbench.run.plan.plan import AgentSetting
from workbench.run.processes.agent_clock import can_be_watched, done_within
from workbench.run.processes.local_agent import LocalAgent, Start, start_solo
from workbench.run.processes.zygote import Ready, Zygote
from workbench.run.scoring.client import Scorer
from workbench.worker import WORKER_DIR

_READY_WITHIN = 120.0
"""Limit of seconds for importing the framework, without disk cache and on a slow disk."""
_SOURCES = ("*.py", "*/*.py")
_SOURCES_READ = 200
_FILES_A_CASE = 8
_FILES_BESIDES = 256
_CHECK_EVERY = 1.0
"""Seconds between two checks for hung processes."""


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


class LocalPlace:
    """Child processes on this machine, which end when the pipe `lifeline` closes.

    With `keep_warm`, they stay ready for the next run.
    """

    def __init__(self, lifeline: int, *, keep_warm: bool = True) -> None:
        self._lifeline = lifeline
        self._keep_warm = keep_warm
        self._uses_adk: set[Path] = set()
        """Folders of agents that need google-adk."""
        self._zygotes: dict[tuple[Path, bool], asyncio.Task[tuple[Zygote, Ready]]] = {}
        self._installed: dict[tuple[Path, bool], tuple[int, ...]] = {}
        """Installed packages when a zygote was started, in the form of `installed`."""
        self._agents: set[LocalAgent] = set()
        self._paused = False
        self._watching: asyncio.Task[None] | None = None
        self._stale_cleanup: asyncio.Task[int] | None = None

    def open(self, concurrency: int) -> None:
        """Raise the limit of open files, because each case has a socket and two pipes."""
        wanted = _FILES_A_CASE * concurrency + _FILES_BESIDES
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:  # The default on macOS is 256.
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    async def start(self, setting: AgentSetting, on_frame: OnFrame, *, cases: int) -> LocalAgent:
        """Fork the zygote of the agent's interpreter. A single case gets a fresh process if there is no zygote yet."""
        python = setting.interpreter.path
        zygote = None
        single = cases == 1 and not self._keep_warm and all(key[0] != python for key in self._zygotes)
        if not single:
            zygote = await self.warm(setting)
        if zygote is not None:
            start: Start = functools.partial(zygote.fork, setting.spec())
        else:
            command = worker_command("solo", python, setting.process_folder, warm=await self._needs_adk(setting))
            start = functools.partial(start_solo, command, self._lifeline, setting.spec())
        try:
            found = LocalAgent(start, on_frame, zygote, serves_one_case=single)
        except OSError as error:
            raise NotStartedError(f"{python} cannot be started: {error.strerror or error}") from None
        self._watch(found, setting)
        return found

    async def warm(self, setting: AgentSetting) -> Zygote | None:
        """Start the zygote for an agent, with the framework imported if the agent needs it.

        Raises:
            NotStartedError: the interpreter cannot be used.
        """
        adk = await self._needs_adk(setting)
        return (await self.zygote(setting.interpreter.path, setting.process_folder, warm=adk))[0]

    async def zygote(self, interpreter: Path, folder: Path, *, warm: bool) -> tuple[Zygote | None, Ready]:
        """Return the zygote of an interpreter once it is ready, or None if it cannot fork (then `why` says why).

        It is started in `folder` if none is alive. With `warm` it has imported the framework.

        Raises:
            NotStartedError: the interpreter does not start, or ends before it is ready.
        """
        task = self._zygotes.get((interpreter, warm))
        now = installed(interpreter)
        if task is not None and task.done() and not _is_lost(task) and self._installed[interpreter, warm] != now:
            zygote, _ = task.result()
            if zygote.idle:
                # The installed packages have changed since its imports.
                await zygote.process.close()
                task = None
        if task is None or (task.done() and _is_lost(task)):
            self._installed[interpreter, warm] = now
            command = worker_command("zygote", interpreter, folder, warm=warm)
            task = self._zygotes[interpreter, warm] = asyncio.create_task(self._start_zygote(command))
        zygote, ready = await asyncio.shield(task)
        return (zygote if ready.can_fork else None), ready

    @property
    def is_busy(self) -> bool:
        """Whether cases are running."""
        return any(agent.is_busy for agent in self._agents)

    def pause(self, paused: bool) -> None:
        """Stop reading what agents and cases send and print, or continue. They wait when their pipes are full."""
        self._paused = paused
        for agent in self._agents:
            agent.pause(paused)

    async def close(self) -> None:
        """End the zygotes, so that the next run uses the current packages and environment.

        Do not call it during a run, because its agents are forks of the zygotes.
        """
        if self._watching is not None:
            self._watching.cancel()
        tasks, self._zygotes = list(self._zygotes.values()), {}
        for task in tasks:
            if not task.done():
                task.cancel()
        started = await asyncio.gather(*tasks, return_exceptions=True)
        zygotes = [item[0] for item in started if isinstance(item, tuple)]
        await asyncio.gather(*(zygote.process.close() for zygote in zygotes))

    async def _needs_adk(self, setting: AgentSetting) -> bool:
        return setting.agent.folder in self._uses_adk or await asyncio.to_thread(self._names_adk, setting)

    def _names_adk(self, setting: AgentSetting) -> bool:
        """Guess whether google-adk should be imported before the agent. A wrong guess only costs time."""
        folder = setting.agent.folder
        sources = itertools.islice(
            itertools.chain.from_iterable(map(setting.agent.folder.glob, _SOURCES)), _SOURCES_READ
        )
        found = setting.agent.kind == "yaml" or any(map(_names_adk, sources))
        if found:
            self._uses_adk.add(folder)
        return found

    def _watch(self, found: LocalAgent, setting: AgentSetting) -> None:
        """Watch an agent's process until it has ended."""

        def imported(framework: "asyncio.Future[str]") -> None:
            if framework.result() == "adk":
                self._uses_adk.add(setting.agent.folder)

        self._agents.add(found)
        if self._paused:
            found.pause(True)
        found.framework.add_done_callback(imported)
        found.ended.add_done_callback(lambda _: self._agents.discard(found))
        if can_be_watched() and (self._watching is None or self._watching.done()):
            self._watching = asyncio.create_task(self._replace_stalled())

    async def _replace_stalled(self) -> None:
        """Check regularly for hung parent processes, as long as there are agents."""
        while self._agents:
            for zygote in {agent.zygote for agent in self._agents if agent.zygote is not None}:
                why = zygote.replace_if_stalled()
                for agent in self._agents if why else ():
                    if agent.zygote is zygote:
                        agent.report_stalled(why)
            for agent in tuple(self._agents):
                agent.replace_if_stalled()
            await asyncio.sleep(_CHECK_EVERY)

    async def _start_zygote(self, command: Command) -> tuple[Zygote, Ready]:
        if self._stale_cleanup is None:
            self._stale_cleanup = asyncio.create_task(asyncio.to_thread(kill_stale))
        try:
            zygote = Zygote(command, self._lifeline, spare=self._keep_warm)
        except OSError as error:
            raise NotStartedError(f"{command.arguments[0]} cannot be started: {error.strerror or error}") from None
        try:
            ready = zygote.ready.result() if await done_within(zygote.ready, _READY_WITHIN) else None
        except asyncio.CancelledError:
            await zygote.process.close(grace=0)
            raise
        if ready is None:
            failure = zygote.failure
            await zygote.process.close(grace=0)
            raise NotStartedError(f"agents cannot run in {command.arguments[0]}: it {failure}", died=True)
        if not ready.can_fork:
            await zygote.process.close()
        return zygote, ready


def worker_command(mode: Literal["zygote", "solo"], interpreter: Path, folder: Path, *, warm: bool = False) -> Command:
    """Return the command that starts a worker in this process's environment.

    With `warm`, it imports google-adk in advance. Numerical libraries get one thread, because threads do not survive a
    fork.
    """
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
        return False  # The import of the agent gives a better message.
