"""A project as a program uses it: the one way to run its evalsets and to judge what came of it."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from workbench.agents.discovery import AgentFolder
from workbench.agents.owners import read_owners
from workbench.agents.targets import find_root
from workbench.agents.workspace import EvalsetEntry, Workspace, open_workspace
from workbench.authoring.check.project import checked_agents
from workbench.config import Settings
from workbench.engine.chat.chat import Chat, ChatEvent
from workbench.engine.places.kinds import place_at
from workbench.engine.places.place import Place
from workbench.engine.plan.plan import Plan, agent_setting
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.plan.run_plan import plan_cases
from workbench.engine.processes.agent_process import Touched
from workbench.engine.processes.children import Children
from workbench.engine.processes.trial_imports import TrialImport, try_imports
from workbench.engine.run.recorder import Publish
from workbench.engine.run.run import Run
from workbench.events import CaseName
from workbench.history.journal import Journal
from workbench.history.latest import latest_runs
from workbench.history.resuming import resume
from workbench.history.retention import tidy
from workbench.history.state_dir import judge_cache_dir
from workbench.history.state_dir import state_dir as state_of
from workbench.project.running import Running, end
from workbench.project.scoring import plan_of_run
from workbench.project.targets import NamedTargets, Targets
from workbench.project.watch import News, RunningWatch
from workbench.store import Store
from workbench.stored_records import register_details

if TYPE_CHECKING:
    from workbench.history.compare import Comparison
    from workbench.project.last_verdicts import LastVerdict

__all__ = ["Project", "Running", "TrialImport"]


class Project:
    """The evalsets and agents of a folder, and the only way to run and judge them.

    Use as `async with`, in one event loop; the end of the block ends all processes. `Project.open` also reads the
    files. `path` is a folder, an evalset or an agent; targets are relative to the folder. `store` holds the state of
    all runs, unless they publish their events elsewhere. `state_dir` is where runs are kept; None: `.workbench` in the
    root. With `keep_runs` False nothing is written but answers of judges, and these only if there is a `.workbench`.
    With `keep_warm` False nothing is made for a second run. Agents run at `place`, by default in child
    processes: a word such as `local` names one of the kinds that are installed. The project closes only such a place.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ".",
        *,
        state_dir: Path | None = None,
        settings: Settings | None = None,
        store: Store | None = None,
        keep_runs: bool = True,
        keep_warm: bool = True,
        place: Place | str | None = None,
    ) -> None:
        self.path = Path(path)
        self.store = Store() if store is None else store
        self.settings = settings or Settings(Path())
        self._workspace: Workspace | None = None
        self._keep_warm = keep_warm
        self._children: Children | None = None
        self._explicit_state = state_dir
        self._keep_runs = keep_runs
        self._held: dict[str, Journal] = {}
        """The journals of interrupted runs that are to be resumed, by id."""
        self._touched_before: dict[Path, Touched] = {}
        self._renew = False
        self._place = place
        self._named: Place | None = None
        """The place that `place` names, once it is needed."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Runs and watches that have not ended."""
        self._running = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(
        cls, path: str | os.PathLike[str] = ".", *, state_dir: Path | None = None, keep_runs: bool = True
    ) -> AsyncIterator[Self]:
        """Open a folder, an evalset or an agent: read its files, and run nothing.

        Raises:
            FileNotFoundError: there is no such path.
            OwnersFileError: what the state folder says about owners cannot be read.
        """
        async with cls(path, state_dir=state_dir, keep_runs=keep_runs) as project:
            await project.read()
            yield project

    async def read(self) -> Workspace:
        """Read the files as they are now, and return what was found."""
        self._workspace = await asyncio.to_thread(self._read)
        return self._workspace

    @property
    def workspace(self) -> Workspace:
        """What was found when the files were last read.

        Raises:
            RuntimeError: they were not read yet.
        """
        if self._workspace is None:
            raise RuntimeError("the project was not read yet: use `Project.open`, or await `read` first")
        return self._workspace

    @property
    def evalsets(self) -> tuple[EvalsetEntry, ...]:
        """The evalsets of the workspace."""
        return self.workspace.evalsets

    @property
    def children(self) -> Children:
        """The processes of the project, made when they are first needed."""
        if self._children is None:
            self._children = Children(keep_warm=self._keep_warm)
        return self._children

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all runs and processes, and wait until they are gone."""
        await end(self.tasks)
        for journal in self._held.values():
            journal.release()
        self._held.clear()
        if self._children is not None:
            try:
                if self._named is not None:
                    await self._named.close()
            finally:
                await self._children.close()

    def _agents_place(self) -> Place | None:
        if not isinstance(self._place, str):
            return self._place
        if self._named is None:
            self._named = place_at(self._place, self.children.local)
        return self._named

    def resumed(self, plan: Plan) -> Plan:
        """Return the plan with which an interrupted run of the same cases goes on, or `plan` itself if there is none.

        The notices of the plan say which it is, and why. Reads files: not for an event loop's thread.
        """
        found = resume(state_of(plan.root, self._explicit_state), plan, plan.options)
        if isinstance(found, Plan):
            return found
        self._held[found.plan.run_id] = found.journal
        return found.plan

    def forget(self, plan: Plan) -> None:
        """Release the interrupted run of a plan that `resumed` returned and that is not going to run."""
        journal = self._held.pop(plan.run_id, None)
        if journal is not None:
            journal.release()

    def targets(self, *words: str | os.PathLike[str], **named: Unpack[NamedTargets]) -> Targets:
        """Return cases to run: those of folders, evalset files, `FILE:case_1,case_2` or evalset ids.

        Without words, all of the project. `named` are fields of `Targets`.
        """
        texts = tuple(os.fspath(word) for word in words) or (str(self.path.absolute()),)
        folder = self.path if self.path.is_dir() else self.path.parent
        return Targets(texts, folder, state_dir=self._explicit_state, **named)

    async def plan(
        self,
        *words: str | os.PathLike[str],
        options: RunOptions | None = None,
        workspace: Workspace | None = None,
        names: Iterable[CaseName] = (),
        **named: Unpack[NamedTargets],
    ) -> Plan:
        """Return the plan that runs targets, which are named as for `targets`.

        With `workspace`, it runs the cases `names` of that workspace, whose entries may have other criteria than their
        files: nothing is read again, and a fault in one file does not refuse the others.

        Raises:
            UsageFaultError: a target does not exist, or a file or config that was named is wrong.
        """
        options = options or RunOptions()
        if workspace is not None:
            return await asyncio.to_thread(plan_cases, workspace, names, options)
        return await asyncio.to_thread(self.targets(*words, **named).plan, options)

    async def score(
        self,
        run: str = "last",
        *,
        cases: Sequence[str] = (),
        config: Path | None = None,
        criteria: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Running:
        """Prepare a run that scores the transcripts of a stored run again, with the criteria of now.

        Or with those of the file `config`, or with `criteria`: thresholds or objects by name, as in such a file. No
        agent is called. `run` is an id, the beginning of one, `last` or the path of a JSON report.

        Raises:
            UsageFaultError: there is no such run or case, or the config is wrong.
        """

        def plan() -> Plan:
            return plan_of_run(
                run,
                options or RunOptions(),
                folder=self.targets().folder,
                config=config,
                criteria=criteria,
                cases=cases,
                explicit_state=self._explicit_state,
            )

        return self.run(await asyncio.to_thread(plan))

    async def watch(
        self,
        *words: str | os.PathLike[str],
        options: RunOptions | None = None,
        **named: Unpack[NamedTargets],
    ) -> AsyncGenerator[News, None]:
        """Run targets, then after each save the cases that it can affect. Yield what happens, until the loop is left.

        Targets are named as for `targets`.

        Raises:
            UsageFaultError: as `plan`.
        """
        targets = self.targets(*words, **named)
        workspace = await asyncio.to_thread(targets.open)
        plan = await asyncio.to_thread(targets.plan, options or RunOptions(), workspace)
        async with aclosing(RunningWatch(self, targets, workspace, plan).follow()) as news:
            async for item in news:
                yield item

    async def status(self) -> "list[LastVerdict]":
        """Return the last verdict of each case, and why it is stale. Reads the files again, and runs nothing."""
        from workbench.project.last_verdicts import last_verdicts

        workspace = await self.read()
        state = state_of(workspace.root, self._explicit_state)
        return await asyncio.to_thread(lambda: list(last_verdicts(workspace, state)))

    async def compare(self, before: str = "baseline", after: str = "last") -> "Comparison":
        """Compare two stored runs, case by case. Each is an id, the beginning of one, `last`, `baseline`, or the path
        of a JSON report.

        Raises:
            UsageFaultError: there is no such run.
        """
        from workbench.history.compare import compare
        from workbench.history.summary_lookup import open_summary

        folder = self.targets().folder
        state = state_of(find_root(folder), self._explicit_state)

        def compare_now() -> "Comparison":
            (first, _), (second, _) = (open_summary(word, state, folder) for word in (before, after))
            return compare(first, second, state)

        return await asyncio.to_thread(compare_now)

    def run(self, plan: Plan, publish: Publish | None = None) -> Running:
        """Prepare a run of the plan. Its events go to `publish`; None: to the store of the project.

        Raises:
            UsageFaultError: there is no such place as the project's.
        """
        place = self._agents_place()
        state = state_of(plan.root, self._explicit_state)
        journal = self._journal(state, plan)
        if journal is not None:
            register_details(self.store.detail_sources, journal)
        is_kept = state.is_dir() if journal is None else journal.path is not None
        cache = judge_cache_dir(state) if is_kept else None

        def make(take: Publish) -> Run:
            return Run(plan, take, self.children, journal, cache, place)

        async def tidy_runs() -> None:
            if journal is not None and journal.path is not None:
                with contextlib.suppress(OSError):  # What cannot be deleted stays, and is tried after the next run.
                    await asyncio.to_thread(tidy, state, self.settings.history)

        return Running(make, publish or self.store.apply, self.store, journal, self._turn, tidy_runs, self.tasks)

    def chat(
        self, agent: AgentFolder, root: Path, session_input: dict[str, Any], publish: Callable[[ChatEvent], None]
    ) -> Chat:
        """Prepare a conversation with an agent, beside runs. What happens in it goes to `publish`."""
        return Chat(agent_setting(agent, root, RunOptions()), session_input, self.children, publish)

    async def import_agents(self, workspace: Workspace) -> AsyncIterator[TrialImport]:
        """Import each agent of the workspace in a child process, and yield each outcome as soon as it is known."""
        async for outcome in try_imports(checked_agents(workspace), workspace.root, self.children):
            yield outcome

    async def warm(self, workspace: Workspace) -> None:
        """Start the processes that runs of this workspace will need."""
        agents = {entry.agent.folder: entry.agent for entry in workspace.evalsets if entry.agent is not None}
        self.children.scorer.warm(
            {criterion.name for entry in workspace.evalsets for criterion in entry.criteria.config.criteria}
        )
        for agent in agents.values():
            setting = agent_setting(agent, workspace.root, RunOptions())
            await self.children.local.warm(setting)

    def look_back(self, workspace: Workspace) -> None:
        """Take in what agents touched in the runs that made the last verdicts. Reads files: for a thread."""
        from workbench.project.input_files import touched_in

        cases = workspace.case_ids
        latest = latest_runs(state_of(workspace.root, self._explicit_state), cases)
        self._touched_before = touched_in(latest, workspace)

    def touched(self) -> dict[Path, Touched]:
        """Return what agents were seen to read, list and write, by the agent's folder. From any thread."""
        known = {} if self._children is None else dict(self._children.touched)
        before = self._touched_before
        folders = {**known, **before}
        return {folder: before.get(folder, Touched()) | known.get(folder, Touched()) for folder in folders}

    def renew(self) -> None:
        """Have the processes of agents started anew before the next run: their environment has changed."""
        self._renew = True

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until no other run is going on, and be the one that is."""
        async with self._running:
            if self._renew:
                self._renew = False
                await self.children.restart()
            yield

    def _read(self) -> Workspace:
        kept = None if self._explicit_state is None else read_owners(self._explicit_state)
        return open_workspace(self.path, stored_owners=kept)

    def _journal(self, state: Path, plan: Plan) -> Journal | None:
        """Return the journal of a run: that of the interrupted one that is resumed, a new one, or none."""
        if plan.run_id in self._held:
            return self._held.pop(plan.run_id)
        return Journal.open(state, plan.run_id) if self._keep_runs else None
