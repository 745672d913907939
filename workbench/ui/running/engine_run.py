"""The screen's access to the engine: runs, chats and watches of the session's project."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from workbench.ui.running.run_thread import Build, Publish, Runnable
from workbench.ui.session.next_run import Draft, RecordingOptions

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import Workspace
    from workbench.files.prices import Prices
    from workbench.files.run_options import RunOptions
    from workbench.files.settings import Settings
    from workbench.freshness.follow import Follower
    from workbench.project.fault_matrix import FaultMatrix
    from workbench.project.project import Project, TrialImport
    from workbench.project.variants.trial import Trial
    from workbench.project.variants.variant import Wanted
    from workbench.project.watching import Watching
    from workbench.run.chat import Chat, ChatEvent
    from workbench.run.forking import Fork
    from workbench.run.plan.plan import Plan
    from workbench.ui.session.session import Session


@dataclass(frozen=True, slots=True)
class RepeatOptions:
    """The number of runs of each case, and whether judges give all their votes.

    With `until_sure` (a rate from 0 to 1), a case stops before `runs` once its pass rate is certainly above or below
    that rate. `all_votes` asks judges for all samples, whatever the settings say.
    """

    runs: int = 1
    until_sure: float | None = None
    all_votes: bool = False


ONCE = RepeatOptions()
"""One run of each case."""


class Engine:
    """A factory for runs, chats and watches of the session's project.

    `build` and similar methods only store their arguments. The work is done when the run's thread calls their result.
    `settings` are the user's settings.
    """

    def __init__(self, session: "Session", settings: "Settings") -> None:
        self._session = session
        self._settings = settings
        self._made: Project | None = None
        self._making = Lock()

    @property
    def _project(self) -> "Project":
        """The project, created on first use, because its imports take longer than drawing the first frame."""
        from workbench.project.project import Project

        with self._making:  # Several threads use this property.
            self._made = self._made or Project(
                state_dir=self._session.given_state_dir, settings=self._settings, store=self._session.store
            )
            return self._made

    def build(
        self,
        targets: Iterable[tuple[int, int]],
        times: RepeatOptions = ONCE,
        recordings: RecordingOptions | None = None,
    ) -> Build:
        """Return a run of these cases, with the session's unsaved criteria.

        `recordings` are by default the options chosen in the session.
        """
        recordings = recordings or self._session.recordings
        chosen = _with_draft(self._session.opened, self._session.draft)
        names = [chosen.case_name(*pair) for pair in sorted(set(targets))]
        replayed = {**recordings.run_options(), **self._session.places.run_options()}

        async def plan() -> "Plan":
            all_votes = self._settings.all_votes or times.all_votes
            options = self._options(runs=times.runs, until_sure=times.until_sure, all_votes=all_votes, **replayed)
            return await self._project.plan(options=options, workspace=chosen, names=names)

        return self._build(plan)

    def resume(self) -> Build:
        """Return a run that resumes the newest run. Its planning raises UsageFaultError if that is not possible."""
        workspace, state_dir, place = self._session.opened, self._session.state_dir, self._session.places.chosen

        def plan() -> "Plan":
            from workbench.project.past_runs import find_resumable

            return find_resumable(self._project.resumed, workspace, state_dir, place)

        return self.planned(plan)

    def resumable(self) -> str:
        """Return a description of the newest run if it can be resumed, else "". Reads files, so call it in a thread."""
        from workbench.project.past_runs import describe_resumable

        return describe_resumable(self._session.opened, self._session.state_dir)

    def rescore(
        self, targets: Sequence[tuple[int, int]], *, fresh: bool = False, references_of_now: bool = False
    ) -> Build:
        """Return a run that scores the transcripts of these cases again, with the session's unsaved criteria.

        Transcripts come from this session, or else from the last stored run. With `fresh`, cached judge answers are
        ignored. With `references_of_now`, transcripts are compared with the current expectations instead of those of
        their run.
        """
        session = self._session
        chosen, state_dir = _with_draft(self._session.opened, session.draft), session.state_dir
        records = [record for pair in targets for record in session.verdicts.records(*pair)]
        cases = sorted(set(targets))

        def plan() -> "Plan":
            from workbench.project.past_runs import plan_of_cases

            options = self._options(use_cache=not fresh)
            return plan_of_cases(chosen, cases, records, state_dir, options, references_of_now=references_of_now)

        return self.planned(plan)

    def planned(self, make: "Callable[[], Plan]", *, is_last: bool = True) -> Build:
        """Return a run of the plan that `make` returns. `make` is called in another thread.

        If `is_last`, "copy command" offers the command line of this run.
        """
        return self._build(lambda: asyncio.to_thread(make), is_last=is_last)

    def _build(self, plan: "Callable[[], Awaitable[Plan]]", *, is_last: bool = True) -> Build:
        session, workspace = self._session, self._session.opened

        async def build(publish: Publish) -> Runnable:
            from workbench.project.targets import command_of_plan

            made = await plan()
            if is_last:
                session.last_command = partial(command_of_plan, made, workspace, session.state_dir)
            try:
                await self._project.connect(made)  # If this fails, nothing is stored.
            except BaseException:
                self._project.forget(made)  # So that the run can be resumed later.
                raise
            return self._project.run(made, publish)

        return build

    def fork(self, fork: "Fork", tries: int) -> Build:
        """Return a run that tries a fork, with the session's unsaved criteria."""
        chosen = _with_draft(self._session.opened, self._session.draft)

        def plan() -> "Plan":
            from workbench.project.past_runs import plan_of_fork

            return plan_of_fork(chosen, fork, self._options(runs=tries, **self._session.places.run_options()))

        return self.planned(plan, is_last=False)

    async def fault_matrix(self, targets: Iterable[tuple[int, int]], *, frozen: bool) -> "FaultMatrix":
        """Return the matrix of tool faults for these cases, with the session's unsaved criteria. Reads files.

        With `frozen`, tool calls are replayed from the recordings.

        Raises:
            UsageFaultError: A config or setting is wrong.
        """
        chosen = _with_draft(self._session.opened, self._session.draft)
        names = [chosen.case_name(*pair) for pair in sorted(set(targets))]
        on_miss = "live" if self._session.recordings.live_on_miss else "error"
        place = self._session.places.run_options()
        options = self._options(inject="matrix", frozen="tools" if frozen else "", on_miss=on_miss, **place)
        plan = await self._project.plan(options=options, workspace=chosen, names=names)
        return await self._project.fault_matrix(plan)

    def faults(self, plan: "Plan") -> Build:
        """Return a run of a fault matrix's plan."""
        return self.planned(lambda: plan, is_last=False)

    def trial(
        self, targets: Iterable[tuple[int, int]], wanted: "Wanted", runs: int
    ) -> "Callable[[], Awaitable[Trial]]":
        """Return a function that copies the project for each variant. Call it in the run's thread.

        The cases run with the session's unsaved criteria. The function raises `UsageFaultError` if a variant cannot be
        made, or if no variant differs.
        """
        session, workspace = self._session, self._session.opened
        chosen = _with_draft(workspace, session.draft)
        names = [chosen.case_name(*pair) for pair in sorted(set(targets))]
        # Variants are never thawed, and run on this machine.
        recordings = {name: value for name, value in session.recordings.run_options().items() if name != "thaw"}
        options = self._options(runs=runs, **recordings, **session.places.run_options())

        async def make() -> "Trial":
            from workbench.project.variants.trial import open_trial

            project = self._project
            plan = await project.plan(options=options, workspace=chosen, names=names)

            def copy() -> "Trial":
                project.load_touched(workspace)
                read_before = [file for touched in project.touched().values() for file in touched.files]
                return open_trial(plan, wanted, read_before)

            return await asyncio.to_thread(copy)

        return make

    def run_trial(self, trial: "Trial", publish: Publish, prices: "Prices | None") -> Runnable:
        """Return the run of a try. Call it in the run's thread."""
        return trial.run(self._project, publish, prices)

    def chat(
        self, agent: "AgentFolder", session_input: dict[str, Any]
    ) -> "Callable[[Callable[[ChatEvent], None]], Chat]":
        """Return a function that starts a chat with an agent. A run in progress continues."""
        root = self._session.opened.root

        def make(publish: "Callable[[ChatEvent], None]") -> "Chat":
            return self._project.chat(agent, root, session_input, publish)

        return make

    def watch(self, marked: set[tuple[int, int]], screen_files: Collection[Path]) -> "tuple[Project, Watching]":
        """Return the project, and a watch of the marked cases, or of all cases if none is marked.

        `screen_files` are settings and themes, which matter only to the screen. Reads files, so call it in a thread.
        """
        from workbench.project.watching import watch_over

        session, workspace = self._session, self._session.opened
        armed = frozenset(workspace.case_name(*pair) for pair in marked)

        def options() -> "RunOptions":
            # What the user chooses while the watch is on holds for its next run.
            return self._options(**session.recordings.run_options(), **session.places.run_options())

        return self._project, watch_over(self._project, workspace, session.read, options, armed, screen_files)

    def made_run(self, run_id: str) -> bool:
        """Return whether a run with this ID was made in this session. Can be called in any thread."""
        return self._made is not None and run_id in self._made.run_ids

    def follow(self, inputs: "Callable[[], Collection[Path]]") -> "Follower":
        """Return a follower of changes in the folder and its runs. `inputs` returns the files that verdicts use."""
        from workbench.freshness.follow import Follower

        session = self._session
        return Follower(session.state_dir, lambda: self._session.opened, inputs, lambda: session.watching is not None)

    def warm(self) -> "Callable[[], Awaitable[None]]":
        """Return a function that starts processes for later runs. Call it in the run's thread."""
        workspace = self._session.opened
        return lambda: self._project.warm(workspace)

    def import_agents(
        self, workspace: "Workspace", report: "Callable[[TrialImport], object]"
    ) -> "Callable[[], Awaitable[None]]":
        """Return a function that imports each agent and reports each outcome. Call it in the run's thread."""

        async def start() -> None:
            async for outcome in self._project.import_agents(workspace):
                report(outcome)

        return start

    def renew(self) -> None:
        """Restart the agents' processes before the next run, because an agent's environment changed."""
        self._project.renew()

    async def close(self) -> None:
        """End all processes."""
        if self._made is not None:
            await self._made.close()

    def _options(self, **options: Any) -> "RunOptions":
        from workbench.files.run_options import RunOptions

        usual = {"all_votes": self._settings.all_votes, "max_judge_calls": self._settings.max_judge_calls}
        return RunOptions(**{**usual, **options})


def _with_draft(workspace: "Workspace", draft: Draft) -> "Workspace":
    if draft.empty:
        return workspace
    entries = tuple(replace(entry, criteria=draft.apply(entry.criteria)) for entry in workspace.evalsets)
    return replace(workspace, evalsets=entries)
