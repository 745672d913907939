"""An agent through one run: its process, started when a case first needs it and again if it dies."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.plan import AgentSetting
from workbench.engine.processes.agent_clock import done_within
from workbench.engine.processes.agent_process import AgentProcess, Imported, Start, Stream, forked, solo
from workbench.engine.processes.children import Children, NoWorkerError, worker_command
from workbench.engine.processes.stalls import can_be_watched
from workbench.engine.processes.zygote import Zygote
from workbench.events import CaseError, ErrorKind, Noticed

_OTHER_PYTHON = "--python names another interpreter"
_LOOK_EVERY = 1.0
"""Seconds between two looks at processes that may stand still."""


class NoAgentProcessError(Exception):
    """The agent cannot be used, and `error` says why."""

    def __init__(self, error: CaseError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True)
class Seat:
    """Where a case may run: in `process`, which has imported the agent, and whether it has to `share` it. `alone`:
    the process is for this case only, and is to be closed after it. `here`: it becomes the case's own, without a fork
    of it."""

    process: AgentProcess
    share: bool
    alone: bool = False
    here: bool = False


class AgentHost:
    """Gives out seats for the cases of one agent. `only`: there will be one case. `single`: there will be only one in
    this interpreter, so that a process of its own costs less than a zygote that is forked."""

    def __init__(
        self,
        setting: AgentSetting,
        children: Children,
        options: RunOptions,
        notice: Callable[[Noticed], None],
        *,
        single: bool = False,
        only: bool = False,
    ) -> None:
        self._setting = setting
        self._children = children
        self._options = options
        self._notice = notice
        self._single = single
        self._only = only
        self._locks = {False: asyncio.Lock(), True: asyncio.Lock()}
        self._seats: dict[bool, asyncio.Task[Seat]] = {}
        """The usual one, and the one for cases that must be apart although those of the run share a process."""
        self._processes: list[AgentProcess] = []
        self._zygote: Zygote | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failure: CaseError | None = None
        self._output: list[tuple[Stream, str]] = []
        self._noticed: set[str] = set()

    def take_output(self) -> list[tuple[Stream, str]]:
        """What was printed while the agent was imported, once: it belongs to no case."""
        output, self._output = self._output, []
        return output

    def begin(self) -> None:
        """Starts the agent's process already, for the seats that will be asked for."""
        if not self._seats:
            self._seats[False] = asyncio.create_task(self._start(False))

    def ready_seat(self, *, alone: bool) -> Seat | None:
        """The place that `seat` would give, where it need not wait."""
        task = self._seats.get(alone)
        if alone or task is None or not task.done() or _is_lost(task):
            return None
        seat = task.result()
        # One for a single case belongs to who asked for it, who may not have been told yet.
        return None if seat.alone else seat

    async def seat(self, *, alone: bool = False) -> Seat:
        """A place for a case, which with `alone` shares it with no other.

        Raises:
            NoAgentProcessError: the interpreter does not start, or the agent cannot be imported. Asked again, the
                same is said without another try.
        """
        async with self._locks[alone]:
            if self._failure is not None:
                raise NoAgentProcessError(self._failure)
            task = self._seats.get(alone)
            if task is None or _is_lost(task):
                task = self._seats[alone] = asyncio.create_task(self._start(alone))
            # Who waits may be cancelled; the process is for the others as well.
            seat = await asyncio.shield(task)
            if seat.alone:
                del self._seats[alone]
            return seat

    async def close(self) -> None:
        """Ends the agent's processes, also those that are just being started."""
        for task in self._seats.values():
            task.cancel()
        await asyncio.gather(*self._seats.values(), return_exceptions=True)
        for process in self._processes:
            if not process.imported.done():
                process.kill()  # In the middle of an import it would not listen.
        await asyncio.gather(*(process.close() for process in self._processes))
        if self._watching is not None:
            self._watching.cancel()

    async def _replace_stalled(self) -> None:
        """Looks now and then whether a process that forks others stands still."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            stalls = [process.replace_if_stalled() for process in self._processes]
            stalls += [self._zygote.replace_if_stalled()] if self._zygote is not None else []
            for why in filter(None, stalls):
                message = f"a process of {self._setting.agent.name} stood still and was replaced: {why}"
                self._notice(Noticed("warning", message, "The cases that ran in it start again, once"))

    async def _start(self, alone: bool) -> Seat:
        """Starts a process and sees it through the import. One that was killed says nothing about the agent: then
        once more."""
        try:
            return await self._start_once(alone)
        except NoAgentProcessError as failed:
            if failed.error.kind != "crashed":
                self._failure = failed.error
                raise
        try:
            return await self._start_once(alone)
        except NoAgentProcessError as failed:
            self._failure = failed.error
            raise

    async def _start_once(self, alone: bool) -> Seat:
        process = await self._process()
        self._processes = [other for other in self._processes if not other.gone.done()]
        self._processes.append(process)
        imported = await self._imported(process)
        alone = alone or self._single
        wanted = self._options.isolation == "run" and not alone
        if not (wanted or self._single or imported.can_fork):
            self._notice_once(
                f"the cases of {self._setting.agent.name} share a process: {imported.why}",
                "What one case leaves behind in a module, the next one sees",
            )
        for warning in imported.warnings:
            self._notice_once(f"{self._setting.agent.name}: {warning}")
        share = wanted or not imported.can_fork
        return Seat(process, share, alone and share, here=self._only and not share)

    async def _process(self) -> AgentProcess:
        """Starts the agent's process: a fork of the warm zygote, or where that cannot be, a fresh one."""
        setting = self._setting
        python = setting.interpreter.path
        start: Start
        try:
            zygote = None
            if not self._single:
                warm = setting.agent.folder in self._children.adk_agents or await asyncio.to_thread(
                    self._children.uses_adk, setting.agent
                )
                zygote, _ = await self._children.zygote(python, setting.root, warm=warm)
                self._watch(zygote)
            if zygote is not None:
                start = forked(zygote, setting.spec())
            else:
                start = solo(worker_command("solo", python, setting.root), self._children.lifeline, setting.spec())
            process = AgentProcess(start)
        except NoWorkerError as error:
            kind: ErrorKind = "crashed" if error.died else "import_failed"
            raise NoAgentProcessError(CaseError(kind, str(error), _OTHER_PYTHON)) from None
        except OSError as error:
            message = f"{python} cannot be started: {error.strerror or error}"
            raise NoAgentProcessError(CaseError("import_failed", message, _OTHER_PYTHON)) from None
        # What it reads outlives it: it is what a later change is held against.
        process.touched = self._children.footprints.setdefault(setting.agent.folder, set())
        process.written = self._children.results.setdefault(setting.agent.folder, set())
        return process

    def _watch(self, zygote: Zygote | None) -> None:
        self._zygote = zygote
        if zygote is not None and self._watching is None and can_be_watched():
            self._watching = asyncio.create_task(self._replace_stalled())

    async def _imported(self, process: AgentProcess) -> Imported:
        """Waits for the import. A process that cannot be used is ended here."""
        if await done_within(process.imported, self._options.timeout):
            outcome = process.imported.result()
        else:
            message = f"importing the agent took longer than {self._options.timeout:g} s"
            outcome = CaseError("timeout", message, "--timeout SECONDS allows more")
            process.kill()
        if isinstance(outcome, CaseError):
            await process.close()
        process.settle_output()
        self._output.extend(process.printed)
        if isinstance(outcome, CaseError):
            raise NoAgentProcessError(outcome)
        if outcome.framework == "adk":
            self._children.adk_agents.add(self._setting.agent.folder)
        return outcome

    def _notice_once(self, message: str, hint: str = "") -> None:
        if message not in self._noticed:
            self._noticed.add(message)
            self._notice(Noticed("warning", message, hint))


def _is_lost(task: "asyncio.Task[Seat]") -> bool:
    """Whether a seat is no longer to be had: its process is gone, or never came."""
    return task.done() and (task.cancelled() or task.exception() is not None or task.result().process.gone.done())
