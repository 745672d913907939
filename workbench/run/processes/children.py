"""Child processes that outlive a run: the scorer, and agent processes, forked from a warm zygote if possible."""

import asyncio
import contextlib
import functools
import itertools
import os
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from workbench.agents.channel import Frame
from workbench.agents.child_process import STOPPED, ChildProcess, Command, how_it_ended, kill_stale, stat_fields
from workbench.agents.environment import installation_times
from workbench.files.file_access import read_regular
from workbench.freshness.agent_inputs import Touched
from workbench.run.place import NotStartedError, OnFrame, Place
from workbench.run.plan.plan import AgentSetting
from workbench.run.processes.agent_clock import done_within
from workbench.run.processes.local_agent import ForkedProcess, LocalAgent, Start, start_solo
from workbench.run.scoring.client import Scorer
from workbench.worker import WORKER_DIR

_READY_WITHIN = 120.0
"""Time limit for importing the framework, in seconds. It is enough for a slow disk without a cache."""
_SOURCES = ("*.py", "*/*.py")
_SOURCES_READ = 200
_FILES_A_CASE = 8
_FILES_BESIDES = 256
_STOPPED = [[state] for state in STOPPED]
_CHECK_EVERY = 1.0
"""Seconds between two checks for stopped processes."""


class Zygote:
    """A zygote: a process that forks agent processes, which inherit its imports.

    `ready` is done when the zygote has imported the framework (True), or ended before that (False). `failure` then says
    why. `can_fork` is known once it is ready. With `spare`, an idle zygote forks an agent process in advance for the
    next run.

    Raises:
        OSError: the interpreter cannot be started.
    """

    def __init__(self, command: Command, lifeline: int, *, spare: bool = False) -> None:
        self._spare = spare
        self.ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.can_fork = False
        self._ids = itertools.count(1)
        self._forks: dict[int, ForkedProcess] = {}
        self.process = ChildProcess(command, lifeline, self._take)
        self.process.ended.add_done_callback(lambda ended: self._ended(ended.result()))
        self.process.kill_if_stopped(lambda: not self.ready.done())

    @property
    def idle(self) -> bool:
        """Whether all its forks have ended."""
        return not self._forks

    @property
    def failure(self) -> str:
        """The reason why it ended, or "does not answer", with its last line of output."""
        how = self.process.ended.result() if self.process.ended.done() else "does not answer"
        return f"{how}: {self.process.last_line}" if self.process.last_line else how

    def fork(self, spec: dict[str, Any], on_frame: Callable[[Frame], None], stdout: int, stderr: int) -> ForkedProcess:
        """Fork an agent process, which takes over the two pipes for its output."""
        try:
            control, childs_control = socket.socketpair()
        except OSError:
            os.close(stdout)
            os.close(stderr)
            raise
        number, send = next(self._ids), self.process.channel.send
        forked = ForkedProcess(control, on_frame, lambda kind: send({"op": "kill", "id": number, "signal": kind}))
        self._forks[number] = forked
        send({"op": "agent", "id": number, "spec": spec}, descriptors=[childs_control.detach(), stdout, stderr])
        if self.process.ended.done():
            self._ended(self.process.ended.result())
        return forked

    def _take(self, frame: Frame) -> None:
        match frame:
            case {"op": "ready", "can_fork": bool(can_fork)}:
                self.can_fork = can_fork
                self.ready.set_result(True)
                self._request_spare(can_fork)
            case {"op": "started", "id": int(number), "pid": int(pid)} if number in self._forks:
                self._forks[number].pid = pid
            case {"op": "exited", "id": int(number), "status": int(status)} if number in self._forks:
                self._forks.pop(number).end(how_it_ended(os.waitstatus_to_exitcode(status)))
                self._request_spare(self.idle)

    def _request_spare(self, now: bool) -> None:
        if self._spare and now:
            self.process.channel.send({"op": "spare"})

    def _ended(self, how: str) -> None:
        if not self.ready.done():
            self.ready.set_result(False)
        forks, self._forks = self._forks, {}
        for forked in forks.values():
            if forked.pid is not None:  # Normally the process died with its parent.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(forked.pid, signal.SIGKILL)
            forked.end(f"ended with its parent, which {how}")


class Children:
    """The child processes of the program. Use one instance in an `async with` block.

    The children end when this process does, even if it is killed, because each of them reads from a pipe of which only
    this process has the other end. With `keep_warm` False, nothing is prepared for a next run. Agents run at
    `place`, by default in child processes.
    """

    def __init__(self, *, keep_warm: bool = True, place: Place | None = None) -> None:
        self.lifeline, self._lifeline_end = os.pipe()
        self.scorer = Scorer(self.lifeline)
        self.local = LocalPlace(self.lifeline, keep_warm=keep_warm)
        self.place: Place = place or self.local
        self.touched: dict[Path, Touched] = {}
        """Folder of an agent → files that it read, listed and wrote."""

    async def __aenter__(self) -> "Children":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all children and wait until they have ended."""
        await asyncio.gather(self.scorer.close(), self.local.close())
        if self.lifeline >= 0:
            os.close(self.lifeline)
            os.close(self._lifeline_end)
            self.lifeline = -1


class LocalPlace:
    """Child processes here, which end when the pipe `lifeline` closes. `keep_warm` keeps them for the next run."""

    def __init__(self, lifeline: int, *, keep_warm: bool = True) -> None:
        self._lifeline = lifeline
        self._keep_warm = keep_warm
        self._zygotes: dict[tuple[Path, bool], asyncio.Task[Zygote]] = {}
        self._installed: dict[tuple[Path, bool], tuple[int, ...]] = {}
        """Installed packages when a zygote was started, in the form of `installation_times`."""
        self._agents: dict[LocalAgent, Zygote | None] = {}
        """The running agents, each with the zygote that forked it, if any."""
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
        """Start a process that imports the agent, by a fork of the zygote of its interpreter.

        It is a fresh process if the interpreter cannot fork, or if only one case needs it, there is no zygote yet, and
        nothing is kept for a next run.

        Raises:
            NotStartedError: the interpreter cannot be used.
        """
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
            found = LocalAgent(start, on_frame, serves_one_case=single)
        except OSError as error:
            raise NotStartedError(f"{python} cannot be started: {error.strerror or error}") from None
        self._agents[found] = zygote
        found.ended.add_done_callback(lambda _: self._agents.pop(found, None))
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._replace_stopped())
        return found

    async def warm(self, setting: AgentSetting) -> Zygote | None:
        """Return the ready zygote for an agent, or None if its interpreter cannot fork. Start it if necessary.

        The zygote has imported google-adk if the agent seems to need it.

        Raises:
            NotStartedError: the interpreter cannot be used.
        """
        adk = await self._needs_adk(setting)
        return await self.zygote(setting.interpreter.path, setting.process_folder, warm=adk)

    async def zygote(self, interpreter: Path, folder: Path, *, warm: bool) -> Zygote | None:
        """Return the zygote of an interpreter once it is ready, or None if the interpreter cannot fork.

        The zygote is started in `folder` if none is alive. With `warm`, it has imported google-adk.

        Raises:
            NotStartedError: the interpreter does not start, or ends before it is ready.
        """
        task = self._zygotes.get((interpreter, warm))
        now = installation_times(interpreter)
        if task is not None and task.done() and not _is_lost(task) and self._installed[interpreter, warm] != now:
            zygote = task.result()
            if zygote.idle:
                # The installed packages have changed since its imports.
                await zygote.process.close()
                task = None
        if task is None or (task.done() and _is_lost(task)):
            self._installed[interpreter, warm] = now
            command = worker_command("zygote", interpreter, folder, warm=warm)
            task = self._zygotes[interpreter, warm] = asyncio.create_task(self._start_zygote(command))
        zygote = await asyncio.shield(task)
        return zygote if zygote.can_fork else None

    async def close(self) -> None:
        """End the zygotes. The next run then uses the current packages and environment.

        Do not call it during a run, because its agents are forks of the zygotes.
        """
        if self._watching is not None:
            self._watching.cancel()
        tasks, self._zygotes = list(self._zygotes.values()), {}
        for task in tasks:
            if not task.done():
                task.cancel()
        started = await asyncio.gather(*tasks, return_exceptions=True)
        zygotes = [zygote for zygote in started if isinstance(zygote, Zygote)]
        await asyncio.gather(*(zygote.process.close() for zygote in zygotes))

    async def _needs_adk(self, setting: AgentSetting) -> bool:
        """Guess whether google-adk should be imported before the agent. A wrong guess only costs time."""
        agent = setting.agent
        return agent.kind == "yaml" or await asyncio.to_thread(_names_adk, agent.folder)

    async def _replace_stopped(self) -> None:
        """Kill processes that fork others and that a signal has stopped. Their cases start again once."""
        before: set[ChildProcess | ForkedProcess] = set()
        while self._agents:
            parents: set[ChildProcess | ForkedProcess] = {agent.process for agent in self._agents if agent.forks}
            parents |= {zygote.process for zygote in self._agents.values() if zygote is not None}
            stopped = {one for one in parents if one.pid is not None and stat_fields(one.pid)[:1] in _STOPPED}
            # Only two checks in a row count: a process that is resumed together with ours runs before the second one.
            for process in stopped & before:
                for agent, zygote in self._agents.items():
                    if process is agent.process or (zygote is not None and process is zygote.process):
                        agent.report_stopped()
                process.signal_group(signal.SIGKILL)
            before = stopped
            await asyncio.sleep(_CHECK_EVERY)

    async def _start_zygote(self, command: Command) -> Zygote:
        if self._stale_cleanup is None:
            self._stale_cleanup = asyncio.create_task(asyncio.to_thread(kill_stale))
        try:
            zygote = Zygote(command, self._lifeline, spare=self._keep_warm)
        except OSError as error:
            raise NotStartedError(f"{command.arguments[0]} cannot be started: {error.strerror or error}") from None
        try:
            is_ready = await done_within(zygote.ready, _READY_WITHIN) and zygote.ready.result()
        except asyncio.CancelledError:
            await zygote.process.close(grace=0)
            raise
        if not is_ready:
            failure = zygote.failure
            await zygote.process.close(grace=0)
            raise NotStartedError(f"agents cannot run in {command.arguments[0]}: it {failure}", died=True)
        if not zygote.can_fork:
            await zygote.process.close()
        return zygote


def worker_command(mode: Literal["zygote", "solo"], interpreter: Path, folder: Path, *, warm: bool = False) -> Command:
    """Return the command that starts a worker in this process's environment.

    With `warm`, it imports google-adk in advance. Numerical libraries get one thread, because threads do not survive a
    fork.
    """
    arguments = [str(interpreter), "-X", "utf8", "-u", WORKER_DIR, mode, *(("--warm", "adk") if warm else ())]
    return Command(arguments, {"OPENBLAS_NUM_THREADS": "1", **os.environ}, folder)


def _is_lost(task: "asyncio.Task[Zygote]") -> bool:
    if task.cancelled() or task.exception() is not None:
        return True
    return task.result().can_fork and task.result().process.ended.done()


def _names_adk(folder: Path) -> bool:
    for source in itertools.islice(itertools.chain.from_iterable(map(folder.glob, _SOURCES)), _SOURCES_READ):
        with contextlib.suppress(OSError):  # The import of the agent gives a better message.
            if b"google.adk" in read_regular(source):
                return True
    return False
