"""The agent processes of one run, started when a case first needs them and again if they die, and trial imports."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.agents.discovery import AgentFolder
from workbench.criteria.secrets import Secrets
from workbench.events.events import CaseError, ErrorKind, Noticed
from workbench.files.run_options import RunOptions
from workbench.freshness.agent_inputs import Touched
from workbench.run.place import NotStartedError, Stream
from workbench.run.plan.plan import AgentSetting, Plan, PlanEntry, agent_setting
from workbench.run.plan.source import AgentSource
from workbench.run.processes.agent_clock import done_within
from workbench.run.processes.agent_process import AgentProcess, Imported
from workbench.run.processes.children import Children

_OTHER_PYTHON = "Use --python to name another interpreter"
IMPORT_SECONDS = 60.0
"""Time limit for one trial import, in seconds. A run allows more time, because it needs the import."""
_AT_ONCE = 2
"""Number of imports at the same time. Each uses one core."""
_LINE = re.compile(r'^ *File "([^"\n]+)", line (\d+), in ', re.MULTILINE)


class NoAgentProcessError(Exception):
    """An agent that cannot be used. `error` says why."""

    def __init__(self, error: CaseError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True)
class ProcessSlot:
    """A slot for a case in `process`, which has imported the agent.

    `share` means that other cases use the process too. `alone` means that the process serves only this case and must be
    closed after it. `here` means that the process becomes the case's own, without a fork.
    """

    process: AgentProcess
    share: bool
    alone: bool = False
    here: bool = False


class AgentHost:
    """The processes of one agent.

    `cases` is the number of the agent's cases. `same_interpreter` is the number of all cases in its interpreter,
    including those of other agents.
    """

    def __init__(
        self,
        setting: AgentSetting,
        children: Children,
        options: RunOptions,
        notice: Callable[[Noticed], None],
        *,
        cases: int = 2,
        same_interpreter: int = 2,
    ) -> None:
        self._setting = setting
        self._children = children
        self._options = options
        self._notice = notice
        self._only = cases == 1
        self._alike = same_interpreter
        self._locks = {False: asyncio.Lock(), True: asyncio.Lock()}
        self._slots: dict[bool, asyncio.Task[ProcessSlot]] = {}
        """The usual slot (False), and the slot for a case that must run alone (True)."""
        self._processes: list[AgentProcess] = []
        self._failure: CaseError | None = None
        self._output: list[tuple[Stream, str]] = []
        self._noticed: set[str] = set()

    def take_output(self) -> list[tuple[Stream, str]]:
        """Return the output of the agent's import, which belongs to no case. The next call returns nothing."""
        output, self._output = self._output, []
        return output

    def begin(self) -> None:
        """Start the agent's process in advance."""
        if not self._slots:
            self._slots[False] = asyncio.create_task(self._start(False))

    async def slot(self, *, alone: bool = False) -> ProcessSlot:
        """Return a slot for a case. With `alone`, no other case shares its process.

        Raises:
            NoAgentProcessError: the interpreter does not start, or the agent cannot be imported. Later calls raise the
                same error at once.
        """
        async with self._locks[alone]:
            if self._failure is not None:
                raise NoAgentProcessError(self._failure)
            task = self._slots.get(alone)
            if task is None or _is_lost(task):
                task = self._slots[alone] = asyncio.create_task(self._start(alone))
            # The waiting case may be cancelled, but the process serves other cases too.
            slot = await asyncio.shield(task)
            if slot.alone:
                del self._slots[alone]
            return slot

    async def close(self) -> None:
        """End the agent's processes, including those that are starting."""
        for task in self._slots.values():
            task.cancel()
        await asyncio.gather(*self._slots.values(), return_exceptions=True)
        for process in self._processes:
            if not process.imported.done():
                process.link.kill()  # A process does not respond during an import.
        await asyncio.gather(*(process.link.close() for process in self._processes))

    async def _start(self, alone: bool) -> ProcessSlot:
        """Start a process and import the agent. Try once more if the process crashed."""
        try:
            try:
                return await self._start_once(alone)
            except NoAgentProcessError as failed:
                if failed.error.kind != "crashed":
                    raise
            return await self._start_once(alone)
        except NoAgentProcessError as failed:
            self._failure = failed.error
            raise

    async def _start_once(self, alone: bool) -> ProcessSlot:
        setting = self._setting

        def note_stop() -> None:
            message = f"a process of {setting.agent.name} was stopped by a signal and replaced"
            self._notice(Noticed("warning", message, "Each of its cases starts again once"))

        # The record of its reads outlives the process: later changes are compared with it.
        process = AgentProcess(note_stop, self._children.touched.setdefault(setting.agent.folder, Touched()))
        try:
            await process.start(self._children.place, setting, cases=self._alike)
        except NotStartedError as error:
            kind: ErrorKind = "crashed" if error.died else "import_failed"
            raise NoAgentProcessError(CaseError(kind, str(error), _OTHER_PYTHON)) from None
        self._processes = [other for other in self._processes if not other.link.ended.done()]
        self._processes.append(process)
        imported = await self._imported(process)
        single = process.link.serves_one_case
        wanted = self._options.isolation == "run" and not (alone or single)
        if not (wanted or single or imported.can_fork):
            message = f"the cases of {self._setting.agent.name} share a process: {imported.why}"
            if message not in self._noticed:
                self._noticed.add(message)
                hint = "Values that one case leaves in a module are visible to the next"
                self._notice(Noticed("warning", message, hint))
        share = wanted or not imported.can_fork
        return ProcessSlot(process, share, (alone or single) and share, here=self._only and not share)

    async def _imported(self, process: AgentProcess) -> Imported:
        """Wait for the import. Raise NoAgentProcessError, and end the process, if it fails or takes too long."""
        if await done_within(process.imported, self._options.timeout):
            outcome = process.imported.result()
        else:
            message = f"importing the agent took longer than {self._options.timeout:g} s"
            outcome = CaseError("timeout", message, "Allow more time with --timeout SECONDS")
            process.link.kill()
        if isinstance(outcome, CaseError):
            await process.link.close()
        self._output.extend(process.printed)
        if isinstance(outcome, CaseError):
            raise NoAgentProcessError(outcome)
        return outcome


def _is_lost(task: "asyncio.Task[ProcessSlot]") -> bool:
    """Return whether a slot is lost because its process has ended or never started."""
    return task.done() and (task.cancelled() or task.exception() is not None or task.result().process.link.ended.done())


class AgentHosts:
    """The agent hosts for the executions `todo` of the plan. `notify` takes their notices."""

    def __init__(
        self, plan: Plan, todo: Sequence[PlanEntry], children: Children, notify: Callable[[Noticed], None]
    ) -> None:
        self._left = Counter(entry.ref.agent for entry in todo)
        """Number of unfinished cases of each agent."""
        self._startable = [entry for entry in todo if entry.blocked is None and isinstance(entry.source, AgentSource)]
        children.place.open(plan.options.concurrency)
        agents = plan.agents
        of_agent = Counter(entry.ref.agent for entry in self._startable)
        cases = Counter(agents[entry.ref.agent].interpreter.path for entry in self._startable)
        self.by_agent = {
            name: AgentHost(
                setting,
                children,
                plan.options,
                notify,
                cases=of_agent[name],
                same_interpreter=cases[setting.interpreter.path],
            )
            for name, setting in agents.items()
            if of_agent[name]
        }

    def start_first(self) -> None:
        """Start to import the agent of the first case in advance, because imports take long."""
        if self._startable:
            self.by_agent[self._startable[0].ref.agent].begin()

    def drop(self, agent: str) -> None:
        """Count one of the agent's cases as dropped."""
        self._left[agent] -= 1

    async def case_over(self, agent: str) -> None:
        """Count one of the agent's cases as ended, and close the agent's host after its last case."""
        self._left[agent] -= 1
        if self._left[agent] == 0 and agent in self.by_agent:
            await self.by_agent[agent].close()

    async def close(self) -> None:
        """Close all hosts."""
        await asyncio.gather(*(host.close() for host in self.by_agent.values()))


@dataclass(frozen=True, slots=True)
class TrialImport:
    """The outcome of the trial import of one agent. `error` is None if it succeeded."""

    agent: AgentFolder
    error: CaseError | None = None

    @property
    def place(self) -> tuple[Path, int]:
        """The last file and line in the agent's folder in the traceback, or else the agent's definition with line 0."""
        found = _LINE.findall(self.error.traceback) if self.error is not None else []
        inside = [(Path(file), int(line)) for file, line in found if Path(file).is_relative_to(self.agent.folder)]
        return inside[-1] if inside else (self.agent.definition, 0)


async def try_imports(agents: Sequence[AgentFolder], root: Path, children: Children) -> AsyncIterator[TrialImport]:
    """Import agents for at most `IMPORT_SECONDS` each. Yield each outcome, without secrets, as soon as it is known."""
    options = RunOptions(timeout=IMPORT_SECONDS)
    free = asyncio.Semaphore(_AT_ONCE)

    async def one(agent: AgentFolder) -> TrialImport:
        async with free:
            setting = agent_setting(agent, root, options)
            host = AgentHost(setting, children, options, lambda notice: None)
            try:
                await host.slot()
            except NoAgentProcessError as failed:
                error, clean = failed.error, Secrets([setting.environment.values]).clean_text
                texts = clean(error.message), clean(error.hint), clean(error.traceback)
                return TrialImport(agent, CaseError(error.kind, *texts))
            finally:
                await host.close()
            return TrialImport(agent)

    tasks = [asyncio.create_task(one(agent)) for agent in agents]
    try:
        for task in asyncio.as_completed(tasks):
            yield await task
    finally:
        for unfinished in tasks:
            unfinished.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
