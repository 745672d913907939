"""The agents of one run: their processes, started when a case first needs them and again if they die."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workbench.engine.places.agent_clock import done_within
from workbench.engine.places.place import NotStartedError, Place, Stream
from workbench.engine.plan.plan import AgentSetting, Plan, PlanEntry
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.plan.source import AgentSource
from workbench.engine.processes.agent_process import AgentProcess, Imported, Touched
from workbench.engine.processes.children import Children
from workbench.events import CaseError, ErrorKind, Noticed

_OTHER_PYTHON = "--python names another interpreter"


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
    """Gives out seats for the cases of one agent at `place`, by default on this machine. There will be so many `cases`
    of the agent, and so many `alike` in its interpreter, those of other agents included."""

    def __init__(
        self,
        setting: AgentSetting,
        children: Children,
        options: RunOptions,
        notice: Callable[[Noticed], None],
        place: Place | None = None,
        *,
        cases: int = 2,
        alike: int = 2,
    ) -> None:
        self._setting = setting
        self._children = children
        self._options = options
        self._notice = notice
        self._place = place or children.local
        self._only = cases == 1
        self._alike = alike
        self._locks = {False: asyncio.Lock(), True: asyncio.Lock()}
        self._seats: dict[bool, asyncio.Task[Seat]] = {}
        """The usual one, and the one for cases that must be apart although those of the run share a process."""
        self._processes: list[AgentProcess] = []
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
        single = process.serves_one_case
        wanted = self._options.isolation == "run" and not (alone or single)
        if not (wanted or single or imported.can_fork):
            self._notice_once(
                f"the cases of {self._setting.agent.name} share a process: {imported.why}",
                "What one case leaves behind in a module, the next one sees",
            )
        for warning in imported.warnings:
            self._notice_once(f"{self._setting.agent.name}: {warning}")
        share = wanted or not imported.can_fork
        return Seat(process, share, (alone or single) and share, here=self._only and not share)

    async def _process(self) -> AgentProcess:
        """Starts the agent's process."""
        setting, children = self._setting, self._children
        # What it reads outlives it: it is what a later change is held against.
        touched = children.touched.setdefault(setting.agent.folder, Touched())
        process = AgentProcess(self._note_stall, touched)
        try:
            await process.start(self._place, setting, cases=self._alike)
        except NotStartedError as error:
            kind: ErrorKind = "crashed" if error.died else "import_failed"
            raise NoAgentProcessError(CaseError(kind, str(error), _OTHER_PYTHON)) from None
        return process

    def _note_stall(self, why: str) -> None:
        message = f"a process of {self._setting.agent.name} stood still and was replaced: {why}"
        self._notice(Noticed("warning", message, "The cases that ran in it start again, once"))

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
        self._output.extend(process.printed)
        if isinstance(outcome, CaseError):
            raise NoAgentProcessError(outcome)
        return outcome

    def _notice_once(self, message: str, hint: str = "") -> None:
        if message not in self._noticed:
            self._noticed.add(message)
            self._notice(Noticed("warning", message, hint))


def _is_lost(task: "asyncio.Task[Seat]") -> bool:
    """Whether a seat is no longer to be had: its process is gone, or never came."""
    return task.done() and (task.cancelled() or task.exception() is not None or task.result().process.gone.done())


class Hosts:
    """For the executions `todo` of the plan. The agents run at `place`, by default on this machine; `tell` takes what
    hosts have to say."""

    def __init__(
        self,
        plan: Plan,
        todo: Sequence[PlanEntry],
        children: Children,
        options: RunOptions,
        tell: Callable[[Noticed], None],
        place: Place | None = None,
    ) -> None:
        self._left = Counter(entry.ref.agent for entry in todo)
        """How many cases of an agent are not over yet."""
        self._startable = [entry for entry in todo if entry.blocked is None and isinstance(entry.source, AgentSource)]
        (place or children.local).open(options.concurrency)
        agents = plan.agents
        of_agent = Counter(entry.ref.agent for entry in self._startable)
        cases = Counter(agents[entry.ref.agent].interpreter.path for entry in self._startable)
        self._hosts = {
            name: AgentHost(
                setting,
                children,
                options,
                tell,
                place,
                cases=of_agent[name],
                alike=cases[setting.interpreter.path],
            )
            for name, setting in agents.items()
            if of_agent[name]
        }

    def of(self, agent: str) -> AgentHost:
        """Of an agent that has a case which can start."""
        return self._hosts[agent]

    def begin_first(self) -> None:
        """Lets the agent of the first case be imported already: that takes the longest."""
        if self._startable:
            self._hosts[self._startable[0].ref.agent].begin()

    def drop(self, agent: str) -> None:
        """One of its cases is not needed any more."""
        self._left[agent] -= 1

    async def case_over(self, agent: str) -> None:
        """One of its cases is over. An agent whose cases all are lets go of its memory while others run."""
        self._left[agent] -= 1
        if self._left[agent] == 0 and agent in self._hosts:
            await self._hosts[agent].close()

    async def close(self) -> None:
        """Ends all that is left of them."""
        await asyncio.gather(*(host.close() for host in self._hosts.values()))
