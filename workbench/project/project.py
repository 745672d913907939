"""A project as a program uses it: the one way to run its evalsets and to judge what came of it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from workbench.agents.discovery import AgentFolder
from workbench.agents.workspace import Workspace
from workbench.authoring.check.project import checked_agents
from workbench.config import Settings
from workbench.engine.chat.chat import Chat, ChatEvent
from workbench.engine.places.kinds import place_at
from workbench.engine.places.place import Place
from workbench.engine.plan.options import RunOptions
from workbench.engine.plan.plan import Plan, agent_setting
from workbench.engine.processes.children import Children
from workbench.engine.processes.trial_imports import IMPORT_SECONDS, TrialImport, try_imports
from workbench.engine.run.recorder import Publish
from workbench.engine.run.run import Run
from workbench.history.journal import Journal
from workbench.history.resuming import resume
from workbench.history.retention import tidy
from workbench.history.state_dir import judge_cache_dir, state_dir
from workbench.kept_records import keep_details
from workbench.project.running import Running
from workbench.store import Store

__all__ = ["Project", "Running", "TrialImport"]


class Project:
    """Runs plans, keeps their journals, and ends the processes that they start.

    Use as `async with`, in one event loop. `store` holds the state of all runs of this object, unless they publish
    their events elsewhere. `explicit_state` is the folder that `--state-dir` names; None: `.workbench` in the root.
    With `keep_runs` False nothing is written but answers of judges, and these only where there is a `.workbench`.
    With `keep_warm` False nothing is made for a second run. Agents run at `place`, by default in child
    processes: a word such as `local` names one of the kinds that are installed. The project closes only such a place.
    """

    def __init__(
        self,
        *,
        explicit_state: Path | None = None,
        settings: Settings | None = None,
        store: Store | None = None,
        keep_runs: bool = True,
        keep_warm: bool = True,
        place: Place | str | None = None,
    ) -> None:
        self.store = Store() if store is None else store
        self.settings = settings or Settings(Path())
        self._keep_warm = keep_warm
        self._children: Children | None = None
        self._explicit_state = explicit_state
        self._keep_runs = keep_runs
        self._held: dict[str, Journal] = {}
        """The journals of interrupted runs that are to be resumed, by id."""
        self._renew = False
        self._place = place
        self._named: Place | None = None
        """The place that `place` names, once it is needed."""

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
        """End all processes, and wait until they are gone."""
        for journal in self._held.values():
            journal.release()
        self._held.clear()
        if self._children is not None:
            if self._named is not None:
                await self._named.close()
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
        found = resume(self._state(plan), plan, plan.options)
        if isinstance(found, Plan):
            return found
        self._held[found.plan.run_id] = found.journal
        return found.plan

    def forget(self, plan: Plan) -> None:
        """Release the interrupted run of a plan that `resumed` returned and that is not going to run."""
        journal = self._held.pop(plan.run_id, None)
        if journal is not None:
            journal.release()

    def run(self, plan: Plan, publish: Publish | None = None) -> Running:
        """Prepare a run of the plan. Its events go to `publish`; None: to the store of the project."""
        state = self._state(plan)
        journal = self._journal(state, plan)
        if journal is not None:
            keep_details(self.store.kept, journal)
        is_kept = state.is_dir() if journal is None else journal.path is not None
        cache = judge_cache_dir(state) if is_kept else None

        def make(take: Publish) -> Run:
            return Run(plan, take, self.children, journal, cache, self._agents_place())

        async def tidy_runs() -> None:
            if journal is not None and journal.path is not None:
                with contextlib.suppress(OSError):  # What cannot be deleted stays, and is tried after the next run.
                    await asyncio.to_thread(tidy, state, self.settings.history)

        return Running(make, publish or self.store.apply, self.store, journal, self._begin_afresh, tidy_runs)

    def chat(
        self, agent: AgentFolder, root: Path, session_input: dict[str, Any], publish: Callable[[ChatEvent], None]
    ) -> Chat:
        """Prepare a conversation with an agent, beside runs. What happens in it goes to `publish`."""
        return Chat(agent_setting(agent, root, RunOptions()), session_input, self.children, publish)

    async def import_agents(
        self, workspace: Workspace, *, timeout: float = IMPORT_SECONDS
    ) -> AsyncIterator[TrialImport]:
        """Import each agent of the workspace in a child process, and yield each outcome as soon as it is known."""
        options = RunOptions(timeout=timeout)
        async for outcome in try_imports(checked_agents(workspace), workspace.root, self.children, options):
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

    def footprints(self) -> dict[Path, frozenset[Path]]:
        """Return the files that agents were seen to read, by the agent's folder. From any thread."""
        return _frozen(self._children.footprints) if self._children is not None else {}

    def results(self) -> dict[Path, frozenset[Path]]:
        """Return the files that agents were seen to write, by the agent's folder. From any thread."""
        return _frozen(self._children.results) if self._children is not None else {}

    def renew(self) -> None:
        """Have the processes of agents started anew before the next run: their environment has changed."""
        self._renew = True

    async def _begin_afresh(self) -> None:
        if self._renew:
            self._renew = False
            await self.children.restart()

    def _state(self, plan: Plan) -> Path:
        return state_dir(plan.root, self._explicit_state)

    def _journal(self, state: Path, plan: Plan) -> Journal | None:
        """Return the journal of a run: that of the interrupted one that is resumed, a new one, or none."""
        if plan.run_id in self._held:
            return self._held.pop(plan.run_id)
        return Journal.open(state, plan.run_id) if self._keep_runs else None


def _frozen(files: Mapping[Path, Collection[Path]]) -> dict[Path, frozenset[Path]]:
    return {folder: frozenset(paths) for folder, paths in list(files.items())}
