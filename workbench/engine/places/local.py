"""This machine as a place: agent processes are forks of a warm zygote, or fresh ones where that cannot be."""

import asyncio
import itertools
import os
import resource
from pathlib import Path
from typing import Literal

from workbench.agents.child_process import Command
from workbench.agents.discovery import AgentFolder
from workbench.agents.interpreter import installed
from workbench.agents.orphans import kill_stale
from workbench.agents.worker import WORKER_DIR
from workbench.engine.places.agent_clock import done_within
from workbench.engine.places.local_agent import LocalAgent, forked, solo
from workbench.engine.places.place import NotStartedError, OnFrame
from workbench.engine.places.stalls import can_be_watched
from workbench.engine.places.zygote import Ready, Zygote
from workbench.engine.plan.plan import AgentSetting
from workbench.regular_file import read_regular

_READY_WITHIN = 120.0
"""Seconds that importing the framework may take: cold, on a slow disk."""
_SOURCES = ("*.py", "*/*.py")
_SOURCES_READ = 200
_FILES_A_CASE = 8
_FILES_BESIDES = 256
_LOOK_EVERY = 1.0
"""Seconds between two looks at processes that may stand still."""


class LocalPlace:
    """Child processes on this machine. `lifeline` is the pipe they die with. With `keep_warm` they are kept ready for
    the next run."""

    def __init__(self, lifeline: int, *, keep_warm: bool = True) -> None:
        self._lifeline = lifeline
        self._keep_warm = keep_warm
        self._uses_adk: set[Path] = set()
        """Folders of agents that turned out to need google-adk."""
        self._zygotes: dict[tuple[Path, bool], asyncio.Task[tuple[Zygote, Ready]]] = {}
        self._installed: dict[tuple[Path, bool], tuple[int, ...]] = {}
        """What was installed when a zygote was started, as `installed` tells it."""
        self._agents: set[LocalAgent] = set()
        self._watching: asyncio.Task[None] | None = None
        self._looking_for_stale: asyncio.Task[int] | None = None

    def open(self, concurrency: int) -> None:
        """Allow enough open files: a case has a socket and two pipes."""
        wanted = _FILES_A_CASE * concurrency + _FILES_BESIDES
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:  # It is 256 on macOS.
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    async def start(self, agent: AgentSetting, on_frame: OnFrame, *, cases: int) -> LocalAgent:
        """Fork the zygote of the agent's interpreter. A single case gets a fresh process if there is no zygote yet."""
        python = agent.interpreter.path
        zygote = None
        single = not self._worth_a_zygote(python, cases)
        if not single:
            zygote = await self.warm(agent)
        if zygote is not None:
            start = forked(zygote, agent.spec())
        else:
            start = solo(worker_command("solo", python, agent.root), self._lifeline, agent.spec())
        try:
            found = LocalAgent(start, on_frame, zygote, serves_one_case=single)
        except OSError as error:
            raise NotStartedError(f"{python} cannot be started: {error.strerror or error}") from None
        self._look_after(found, agent.agent)
        return found

    async def warm(self, agent: AgentSetting) -> Zygote | None:
        """Start what a run of the agent will fork, with the framework imported if the agent needs it.

        Raises:
            NotStartedError: the interpreter cannot be used.
        """
        adk = agent.agent.folder in self._uses_adk or await asyncio.to_thread(self._names_adk, agent.agent)
        return (await self.zygote(agent.interpreter.path, agent.root, warm=adk))[0]

    async def zygote(self, interpreter: Path, folder: Path, *, warm: bool) -> tuple[Zygote | None, Ready]:
        """Return the zygote of an interpreter once it is ready, with the framework imported if `warm`. It is started in
        `folder` if none is alive. None if it cannot fork (and `why` says so).

        Raises:
            NotStartedError: the interpreter does not start, or ends before it is ready.
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
            task = self._zygotes[interpreter, warm] = asyncio.create_task(self._start_zygote(command))
        zygote, ready = await asyncio.shield(task)
        return (zygote if ready.can_fork else None), ready

    async def close(self) -> None:
        """End the zygotes, so that the next run starts with what is installed and set now. Not while a run is going on:
        its agents are forks of them."""
        if self._watching is not None:
            self._watching.cancel()
        tasks, self._zygotes = list(self._zygotes.values()), {}
        for task in tasks:
            if not task.done():
                task.cancel()
        started = await asyncio.gather(*tasks, return_exceptions=True)
        zygotes = [item[0] for item in started if isinstance(item, tuple)]
        await asyncio.gather(*(zygote.process.close() for zygote in zygotes))

    def _worth_a_zygote(self, interpreter: Path, cases: int) -> bool:
        return cases > 1 or self._keep_warm or any(key[0] == interpreter for key in self._zygotes)

    def _names_adk(self, agent: AgentFolder) -> bool:
        """Guess whether google-adk should be imported before the agent is. A wrong guess only costs time."""
        sources = itertools.islice(itertools.chain.from_iterable(map(agent.folder.glob, _SOURCES)), _SOURCES_READ)
        found = agent.kind == "yaml" or any(map(_names_adk, sources))
        if found:
            self._uses_adk.add(agent.folder)
        return found

    def _look_after(self, found: LocalAgent, agent: AgentFolder) -> None:
        """Watch an agent's process until it is gone."""

        def imported(framework: "asyncio.Future[str]") -> None:
            if framework.result() == "adk":
                self._uses_adk.add(agent.folder)

        self._agents.add(found)
        found.framework.add_done_callback(imported)
        found.ended.add_done_callback(lambda _: self._agents.discard(found))
        if can_be_watched() and (self._watching is None or self._watching.done()):
            self._watching = asyncio.create_task(self._replace_stalled())

    async def _replace_stalled(self) -> None:
        """Look now and then whether a process that forks others stands still, as long as there is one."""
        while self._agents:
            for zygote in {agent.zygote for agent in self._agents if agent.zygote is not None}:
                why = zygote.replace_if_stalled()
                for agent in self._agents if why else ():
                    if agent.zygote is zygote:
                        agent.tell_stalled(why)
            for agent in tuple(self._agents):
                agent.replace_if_stalled()
            await asyncio.sleep(_LOOK_EVERY)

    async def _start_zygote(self, command: Command) -> tuple[Zygote, Ready]:
        if self._looking_for_stale is None:
            self._looking_for_stale = asyncio.create_task(asyncio.to_thread(kill_stale))
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
    """Return how a worker is started, in this process's environment; `warm` has it import google-adk ahead. Pools of
    numerical threads are kept to one: threads do not survive a fork."""
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
