"""The class `Project`, with which all front ends run and judge evalsets."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from workbench.agents.discovery import AgentFolder
from workbench.agents.workspace import EvalsetEntry, Workspace, open_workspace
from workbench.criteria.secrets import Secrets
from workbench.editing.check.project import checked_agents
from workbench.events.events import CaseName, ForkChange
from workbench.files.folders import state_dir as state_of
from workbench.files.project_root import find_root
from workbench.files.project_settings import with_project_setting
from workbench.files.run_options import MATRIX, PlaceChoice, RunOptions, UsageFaultError
from workbench.files.settings import Settings
from workbench.freshness.agent_inputs import Touched
from workbench.project.past_runs import plan_of_fork, plan_of_run, stored_original
from workbench.project.running import Running, end
from workbench.project.targets import NamedTargets, Targets
from workbench.project.watch import News, RunningWatch
from workbench.run.chat import Chat, ChatEvent
from workbench.run.dask.files import (
    FilesError,
    MachineState,
    Sending,
    UnconfirmedError,
    cleaned_states,
    confirm,
    files_of_agents,
    is_confirmed,
    needs_of,
)
from workbench.run.dask.place import DaskPlace
from workbench.run.forking import CannotForkError, Change, Fork
from workbench.run.place import Place
from workbench.run.plan.plan import AgentSetting, Plan, agent_setting
from workbench.run.plan.run_plan import plan_cases
from workbench.run.processes.agent_host import TrialImport, try_imports
from workbench.run.processes.children import Children
from workbench.run.recorder import Publish
from workbench.run.resuming import resume
from workbench.run.run import Run
from workbench.store.history.latest import latest_runs
from workbench.store.history.retention import tidy
from workbench.store.history.run_writer import RunWriter
from workbench.store.owners import read_owners
from workbench.store.store import Store

if TYPE_CHECKING:
    from workbench.editing.freezing import Freezing
    from workbench.project.fault_matrix import FaultMatrix
    from workbench.project.last_verdicts import LastVerdict
    from workbench.results.gate import Gate
    from workbench.results.run_comparison import Comparison

__all__ = ["Project", "Running", "TrialImport"]


class Project:
    """The evalsets and agents of a folder, with methods to run and judge them.

    Use it in an `async with` block in one event loop. The end of the block ends all processes. `Project.open` also
    reads the files. `path` is a folder, an evalset or an agent. Targets are relative to the folder. Without `settings`,
    the defaults apply, not the user's file. `store` has the state of all runs, except those that publish their events
    elsewhere. `state_dir` is the folder for runs, by default `.workbench` in the root. If `keep_runs` is False, only
    answers of judges are written, and only if that folder exists. If `keep_warm` is False, no processes are prepared
    for a second run. Agents run at `place`, by default in child processes. If `place` is a text, it has the form of
    `--on`: `local`, `dask://host:8786` or a name from the project's settings.
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
        self._held: dict[str, RunWriter] = {}
        """The writers of interrupted runs that will be resumed, by id."""
        self._touched_before: dict[Path, Touched] = {}
        self.run_ids: set[str] = set()
        """The IDs of the runs that this project made or resumed, without those stored in another folder."""
        self._renew = False
        self._environments: dict[Path, Mapping[str, str]] = {}
        """The environments of agents that ran at another place, by folder."""
        self._secrets = Secrets([os.environ])
        """Secrets to replace in texts from other machines: those of this process and of the agents that ran there."""
        self._place = place
        self._clusters: dict[PlaceChoice, DaskPlace] = {}
        """The Dask clusters, created on first use."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Runs and watches that have not ended."""
        self._running = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(
        cls, path: str | os.PathLike[str] = ".", *, state_dir: Path | None = None, keep_runs: bool = True
    ) -> AsyncIterator[Self]:
        """Open a folder, an evalset or an agent as a project. The files are read, and nothing runs.

        Raises:
            FileNotFoundError: the path does not exist.
        """
        async with cls(path, state_dir=state_dir, keep_runs=keep_runs) as project:
            await project.read()
            yield project

    async def read(self) -> Workspace:
        """Read the current files, and return the workspace.

        Raises:
            FileNotFoundError: the path does not exist.
        """
        self._workspace = await asyncio.to_thread(self._read)
        return self._workspace

    @property
    def workspace(self) -> Workspace:
        """The workspace at the last reading of the files.

        Raises:
            RuntimeError: the files have not been read yet.
        """
        if self._workspace is None:
            raise RuntimeError("the project has not been read yet: use `Project.open`, or await `read` first")
        return self._workspace

    @property
    def evalsets(self) -> tuple[EvalsetEntry, ...]:
        """The evalsets of the workspace."""
        return self.workspace.evalsets

    @property
    def children(self) -> Children:
        """The child processes of the project, created on first use."""
        if self._children is None:
            place = None if isinstance(self._place, str) else self._place
            self._children = Children(keep_warm=self._keep_warm, place=place)
            self._children.scorer.prices = self.settings.prices
        return self._children

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all runs and processes, and wait until they have ended."""
        await end(self.tasks)
        for writer in self._held.values():
            writer.release()
        self._held.clear()
        if self._children is not None:
            try:
                await asyncio.gather(*(cluster.close() for cluster in self._clusters.values()))
            finally:
                await self._children.close()

    def _with_own_place(self, options: RunOptions, root: Path | None = None) -> RunOptions:
        """Return options with the place that was passed to the project, if that is a text.

        A name is looked up in the settings of the project in `root`. Without `root`, the plan looks it up.
        """
        word, chosen = self._place, options.place
        if not isinstance(word, str) or (chosen is not None and word in (chosen.word, chosen.name)):
            return options
        known = next((choice for choice in self._clusters if word in (choice.word, choice.name)), PlaceChoice(word))
        if root is None or known in self._clusters:
            return replace(options, place=known)
        return replace(options, place=with_project_setting(RunOptions(place=known), root).place)

    def state_dir(self, root: Path) -> Path:
        """Return the folder for the runs of the project in `root`. It may not exist."""
        return state_of(root, self._explicit_state)

    def machines(self, options: RunOptions) -> Sequence[MachineState]:
        """Return the current states of the other machines for a run with these options, or () if there are none."""
        cluster = self.cluster(options)
        return () if cluster is None else cleaned_states(cluster.machines(), self._secrets.clean_text)

    def cluster(self, options: RunOptions) -> DaskPlace | None:
        """Return the Dask cluster of a run, or None if agents run on this machine or at a given `Place`."""
        if self._place is not None and not isinstance(self._place, str):
            return None
        choice = self._with_own_place(options).place
        if choice is None or choice.is_local:
            return None
        if choice not in self._clusters:
            self._clusters[choice] = DaskPlace(choice, lambda: self.children.lifeline)
        return self._clusters[choice]

    async def sending(self, options: RunOptions, root: Path, settings: Mapping[str, AgentSetting]) -> Sending | None:
        """Return what is sent to a cluster for runs of these agents, or None if they do not run on one.

        Raises:
            UsageFaultError: the cluster is not known, or the files cannot be sent.
        """
        cluster, choice = self.cluster(options), self._with_own_place(options).place
        if cluster is None or choice is None:
            return None
        names = dict.fromkeys(name for setting in settings.values() for name in setting.environment.names)
        variables = tuple(sorted({*names, *choice.env}))
        folders = {name: setting.agent.folder for name, setting in settings.items()}
        touched = self.touched()
        used = {name: touched[folder].files for name, folder in folders.items() if folder in touched}
        try:
            files = await asyncio.to_thread(files_of_agents, root, settings, used)
        except FilesError as error:
            raise UsageFaultError(str(error)) from None
        address = await cluster.resolve()
        return Sending(choice.name or choice.word, address, root, files.sizes, files.left_out, variables)

    async def connect(
        self, plan: Plan, say: Callable[[str], None] = lambda line: None, ask: Callable[[Sending], bool] | None = None
    ) -> None:
        """Connect to the cluster of a plan, and wait for a worker that fits. Without a cluster, do nothing.

        `say` gets a raw line about the progress, every few seconds. `ask` asks the user to confirm what is sent, unless
        that was confirmed before. A place that was passed to the project as a text counts as confirmed.

        Raises:
            UnconfirmedError: the user has not confirmed what is sent.
            UsageFaultError: the cluster cannot be used.
        """
        cluster = self.cluster(plan.options)
        if cluster is None or not plan.runs_agents:
            return
        sending = await self.sending(plan.options, plan.root, plan.agents)
        if sending is not None:
            needs = await asyncio.to_thread(needs_of, plan.agents.values())
            await self.connect_for(sending, cluster, needs, say, ask)

    async def connect_for(
        self,
        sending: Sending,
        cluster: DaskPlace,
        needs: Mapping[str, str],
        say: Callable[[str], None],
        ask: Callable[[Sending], bool] | None,
    ) -> None:
        """Connect to a cluster, as `connect` does. `needs` are the package versions that workers must have.

        Raises:
            UnconfirmedError: the user has not confirmed what is sent.
            UsageFaultError: the cluster cannot be used.
        """
        if not is_confirmed(sending):
            named_in_code = isinstance(self._place, str)
            if not (named_in_code or (ask is not None and ask(sending))):
                raise UnconfirmedError(sending)
            confirm(sending)
        await cluster.connect(needs, say)

    def resumed(self, plan: Plan) -> Plan:
        """Return a plan that resumes an interrupted run of the same cases.

        If there is none, return `plan`. Notices in the returned plan say what is resumed, or why the run cannot be
        resumed. The interrupted run is reserved for this process. Do not call this in an event loop's thread: it reads
        files.
        """
        found = resume(self.state_dir(plan.root), plan)
        if isinstance(found, Plan):
            return found
        self.run_ids.add(found.plan.run_id)
        self._held[found.plan.run_id] = found.writer
        return found.plan

    def forget(self, plan: Plan) -> None:
        """Release the interrupted run of a plan that `resumed` returned, if the plan will not run."""
        writer = self._held.pop(plan.run_id, None)
        if writer is not None:
            writer.release()

    def targets(self, *words: str | os.PathLike[str], **named: Unpack[NamedTargets]) -> Targets:
        """Return targets: folders, evalset files, `FILE:case_1,case_2` or evalset ids.

        Without words, the target is the whole project. `named` are fields of `Targets`.
        """
        texts = tuple(os.fspath(word) for word in words) or (str(self.path.absolute()),)
        return Targets(texts, self._folder, state_dir=self._explicit_state, **named)

    @property
    def _folder(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    async def plan(
        self,
        *words: str | os.PathLike[str],
        options: RunOptions | None = None,
        workspace: Workspace | None = None,
        names: Iterable[CaseName] = (),
        **named: Unpack[NamedTargets],
    ) -> Plan:
        """Return the plan that runs the targets, which are named as in `targets`.

        With `workspace`, the plan runs the cases `names` of that workspace instead. Evalsets and configs are not read
        again, so its criteria may differ from the files. A fault in one file then does not stop cases of other files.

        Raises:
            UsageFaultError: a target does not exist, a named file or config is wrong, or nothing is selected.
        """
        options = self._with_own_place(options or RunOptions())
        if workspace is not None:
            return await asyncio.to_thread(plan_cases, workspace, names, options)
        return await asyncio.to_thread(self.targets(*words, **named).plan, options)

    async def fault_matrix(self, plan: Plan) -> "FaultMatrix":
        """Return the matrix of tool faults for the cases of a plan whose `RunOptions.inject` is `matrix`.

        Run its `first` if it is not None, and pass the records to its `add`. Then run its `plan()`.
        """
        from workbench.project.fault_matrix import FaultMatrix

        return await asyncio.to_thread(lambda: FaultMatrix(plan, self.state_dir(plan.root), self._read()))

    async def score(
        self,
        run: str = "last",
        *,
        cases: Sequence[str] = (),
        config: Path | None = None,
        criteria: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Running:
        """Prepare a run that scores the transcripts of a stored run again. No agent runs.

        `run` is an id or the start of one, `last`, or the path of a JSON report. The current criteria apply, unless
        `config` names a file or `criteria` is given, which maps names to thresholds or objects, as in such a file.

        Raises:
            UsageFaultError: the run or case does not exist, the run injected faults or tried a fork, or the config is
                wrong.
        """
        plan = await asyncio.to_thread(
            plan_of_run,
            run,
            options or RunOptions(),
            folder=self._folder,
            config=config,
            criteria=criteria,
            cases=cases,
            explicit_state=self._explicit_state,
        )
        return self.run(plan)

    async def freeze(
        self,
        run: str = "last",
        *,
        cases: Sequence[str] = (),
        models: bool = False,
        prune: bool = False,
        dry_run: bool = False,
    ) -> "Freezing":
        """Freeze cases of a stored run: store the answers of their tools beside the evalset, to replay them.

        `run` is an id or the start of one, `last`, or the path of a JSON report. Without `cases` (ids), all finished
        cases are frozen. With `models`, the answers of models are stored, too. With `prune`, recorded calls that a
        frozen run did not use are removed, and without `cases` also recordings of deleted cases. With `dry_run`,
        nothing is written.

        Raises:
            UsageFaultError: the run or a case does not exist, or the run has no cases.
            OSError: a file cannot be read or written. Nothing was written.
        """
        from workbench.project.freezing import freeze_run

        return await asyncio.to_thread(
            freeze_run,
            run,
            folder=self._folder,
            cases=cases,
            models=models,
            prune=prune,
            dry_run=dry_run,
            explicit_state=self._explicit_state,
        )

    async def fork(
        self,
        run: str = "last",
        *,
        case: str,
        turn: int,
        call: int = 0,
        change: ForkChange = "nothing",
        value: Any = None,
        agent: str = "",
        tries: int = 3,
        frozen: bool = False,
        repeat: int = 1,
        options: RunOptions | None = None,
    ) -> Running:
        """Prepare a run that repeats a stored conversation up to a point, and then changes one thing.

        `run` is an id or the start of one, or `last`. `case` is an id, and `repeat` chooses one of its executions. The
        point is the start of `turn`, or the `call` with this number in the whole conversation. All of these numbers
        count from 1. `value` is the new message, instruction or model, or the new answer as JSON data. `agent` is the
        agent whose instruction or model is changed. With `frozen`, tools are answered from the recording after the
        point, too. `tries` replaces the number of runs in `options`.

        Raises:
            UsageFaultError: the run, case or point does not exist, or the conversation cannot be forked.
        """
        workspace = self._workspace or await self.read()
        original = await asyncio.to_thread(
            stored_original, run, case, repeat, folder=self._folder, explicit_state=self._explicit_state
        )
        try:
            fork = Fork(original, turn - 1, call - 1 if call else None, Change(change, value, agent), frozen)
        except CannotForkError as error:
            raise UsageFaultError(f"cannot fork: {error}") from None
        options = replace(options or RunOptions(), runs=tries)
        return self.run(await asyncio.to_thread(plan_of_fork, workspace, fork, options))

    async def watch(
        self, *words: str | os.PathLike[str], options: RunOptions | None = None, **named: Unpack[NamedTargets]
    ) -> AsyncGenerator[News, None]:
        """Run targets, and after each save the cases that it can affect. Yield news until the caller leaves the loop.

        Targets are named as in `targets`.

        Raises:
            UsageFaultError: see `plan`.
        """
        targets = self.targets(*words, **named)
        workspace = await asyncio.to_thread(targets.open)
        options = options or RunOptions()
        plan = await asyncio.to_thread(targets.plan, options, workspace)
        async with aclosing(RunningWatch(self, targets, workspace, plan, options).follow()) as news:
            async for item in news:
                yield item

    async def status(self) -> "list[LastVerdict]":
        """Return the last verdict of each case, and why it is stale. Reads the files again and runs nothing.

        Raises:
            FileNotFoundError: the path of the project does not exist.
        """
        from workbench.project.last_verdicts import last_verdicts

        workspace = await self.read()
        return await asyncio.to_thread(lambda: list(last_verdicts(workspace, self.state_dir(workspace.root))))

    async def compare(self, before: str = "baseline", after: str = "last") -> "Comparison":
        """Compare two stored runs, case by case.

        Each is an id or the start of one, `last`, `baseline`, or the path of a JSON report.

        Raises:
            UsageFaultError: a run does not exist or cannot be read.
        """
        from workbench.results.run_comparison import compare
        from workbench.store.history.reading import open_summary

        state = self.state_dir(find_root(self._folder))
        first, _ = await asyncio.to_thread(open_summary, before, state, self._folder)
        second, _ = await asyncio.to_thread(open_summary, after, state, self._folder)
        return await asyncio.to_thread(compare, first, second, state)

    async def gate(self, before: str = "baseline", after: str = "last", *, alpha: float = 0.05) -> "Gate":
        """Compare two stored runs, and look for losses that chance does not explain, as `compare --gate` does.

        If nothing changed, the gate fails with a probability of at most `alpha`.

        Raises:
            UsageFaultError: a run does not exist or cannot be read.
        """
        from workbench.results.gate import gate

        found = await self.compare(before, after)
        return await asyncio.to_thread(gate, found, self.state_dir(find_root(self._folder)), alpha=alpha)

    def run(
        self, plan: Plan, publish: Publish | None = None, *, store: Store | None = None, state: Path | None = None
    ) -> Running:
        """Prepare a run of the plan. Its events go to `publish`, or by default to the project's store.

        For runs that are not the project's own, such as a try of variants, `store` is their store, and `state` the
        folder in which they are stored.

        Raises:
            UsageFaultError: the project's place does not exist, or the plan is for a matrix of tool faults but not made
                by `fault_matrix`.
        """
        if plan.options.inject == MATRIX and all(entry.planned.fault is None for entry in plan.entries):
            raise UsageFaultError("this plan injects no faults", "Run the plan of `Project.fault_matrix(plan)` instead")
        # The inputs of verdicts say where they were made. So the plan has to know the place, however it was made.
        plan = replace(plan, options=self._with_own_place(plan.options, plan.root))
        cluster = self.cluster(plan.options) if plan.runs_agents else None
        if state is None:
            self.run_ids.add(plan.run_id)
        if cluster is not None:
            self._environments |= {one.agent.folder: one.environment.values for one in plan.agents.values()}
            self._secrets = Secrets([os.environ, *self._environments.values()])
        own_state, store = self.state_dir(plan.root), store or self.store
        writer = RunWriter.open(state, plan.run_id) if state is not None else self._writer(own_state, plan)
        if writer is not None:
            store.writers[plan.run_id] = writer
        cache = own_state if (state is None and writer is not None) or own_state.is_dir() else None

        def make(take: Publish) -> Run:
            return Run(plan, take, self.children, writer, cache, cluster)

        async def tidy_runs() -> None:
            if writer is not None and state is None:
                with contextlib.suppress(OSError):  # The next run tries again.
                    await asyncio.to_thread(tidy, own_state, self.settings.history)

        async def prepare() -> None:
            if cluster is not None:
                await self.connect(plan)

        return Running(make, publish or store.apply, store, writer, self._turn, prepare, tidy_runs, self.tasks)

    def chat(
        self, agent: AgentFolder, root: Path, session_input: dict[str, Any], publish: Callable[[ChatEvent], None]
    ) -> Chat:
        """Prepare a conversation with an agent, whose events go to `publish`. Runs can continue meanwhile."""
        return Chat(agent_setting(agent, root, RunOptions()), session_input, self.children, publish)

    async def import_agents(self, workspace: Workspace) -> AsyncIterator[TrialImport]:
        """Import each agent of the workspace in a child process, and yield each outcome as it arrives."""
        async for outcome in try_imports(checked_agents(workspace), workspace.root, self.children):
            yield outcome

    async def warm(self, workspace: Workspace) -> None:
        """Start the processes that runs of this workspace will need."""
        agents = {entry.agent.folder: entry.agent for entry in workspace.evalsets if entry.agent is not None}
        self.children.scorer.warm(
            {criterion.name for entry in workspace.evalsets for criterion in entry.criteria.config.criteria}
        )
        for agent in agents.values():
            await self.children.local.warm(agent_setting(agent, workspace.root, RunOptions()))

    def load_touched(self, workspace: Workspace) -> None:
        """Load the files that agents used in the runs of the last verdicts. Call it in a thread: it reads files."""
        from workbench.freshness.staleness import touched_in

        latest = latest_runs(self.state_dir(workspace.root), workspace.case_ids)
        self._touched_before = touched_in(latest, workspace)

    def touched(self) -> dict[Path, Touched]:
        """Return the files that agents read, listed and wrote, grouped by agent folder. Can be called in any thread."""
        known = {} if self._children is None else dict(self._children.touched)
        before = self._touched_before
        folders = {**known, **before}
        return {folder: before.get(folder, Touched()) | known.get(folder, Touched()) for folder in folders}

    def renew(self) -> None:
        """Restart the agents' processes before the next run, because their environment has changed."""
        self._renew = True

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Hold back other runs of this project until this one ends. After `renew`, end the agents' processes first."""
        async with self._running:
            if self._renew:
                self._renew = False
                await self.children.local.close()
            yield

    def _read(self) -> Workspace:
        kept = None if self._explicit_state is None else read_owners(self.state_dir(self.path))
        return open_workspace(self.path, stored_owners=kept)

    def _writer(self, state: Path, plan: Plan) -> RunWriter | None:
        if plan.run_id in self._held:
            return self._held.pop(plan.run_id)
        return RunWriter.open(state, plan.run_id) if self._keep_runs else None
