"""The engine as the screen uses it: what is marked becomes a plan, a journal and a run."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.ui.draft import Draft
from workbench.ui.run_thread import Build, Publish, Runnable
from workbench.ui.times import Times

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import Workspace
    from workbench.config import Settings
    from workbench.details import Kept
    from workbench.engine.chat.chat import Chat, ChatEvent
    from workbench.engine.plan.target_words import Selection
    from workbench.engine.processes.children import Children
    from workbench.engine.processes.trial_imports import TrialImport
    from workbench.engine.watch.board import Job
    from workbench.history.journal import Journal
    from workbench.project.watching import Watching
    from workbench.store import CaseRecord
    from workbench.ui.session import Session


class Engine:
    """Keeps the engine's children warm between runs. `build` only remembers; all the work happens where its result is
    called, in the run's thread. `all_votes` and `max_judge_calls` are those of the user's settings."""

    def __init__(
        self,
        *,
        all_votes: bool = False,
        max_judge_calls: int | None = None,
        settings: "Settings | None" = None,
        kept: "dict[str, Kept] | None" = None,
    ) -> None:
        """`kept` is that of the store which takes the events: it learns there where their details are."""
        self._kept = {} if kept is None else kept
        self._all_votes = all_votes
        self._max_judge_calls = max_judge_calls
        self._settings = settings
        self._children: Children | None = None
        self._renew = False
        self.screen_files: Callable[[], list[Path]] = lambda: [settings.file] if settings is not None else []
        """The files that change the screen only."""

    def build(
        self, workspace: "Workspace", targets: Iterable[tuple[int, int]], times: Times, draft: Draft, state_dir: Path
    ) -> Build:
        """A run of these cases, so often, with the criteria of the draft."""
        chosen = _with_draft(workspace, draft)
        cases = sorted(set(targets))

        def build(publish: Publish) -> Runnable:
            from workbench.engine.plan.options import RunOptions
            from workbench.engine.plan.plan import make_plan
            from workbench.engine.processes.children import Children
            from workbench.engine.run.run import Run
            from workbench.history.journal import Journal
            from workbench.history.state_dir import judge_cache_dir

            options = RunOptions(
                runs=times.runs,
                until_sure=times.until_sure,
                all_votes=self._all_votes or times.all_votes,
                max_judge_calls=self._max_judge_calls,
            )
            plan = make_plan(*select(chosen, cases), options)
            if self._children is None:
                self._children = Children()
            journal = Journal.open(state_dir, plan.run_id)
            cache = None if journal.path is None else judge_cache_dir(state_dir)
            run = Run(plan, options, publish, self._children, journal, cache)
            return self._journaled(run, journal)

        return build

    def resume(self, workspace: "Workspace", state_dir: Path) -> Build:
        """Goes on with the newest run, which was interrupted."""

        def build(publish: Publish) -> Runnable:
            from workbench.engine.processes.children import Children
            from workbench.engine.run.run import Run
            from workbench.history.state_dir import judge_cache_dir
            from workbench.ui.resuming import find_resumable

            found, options = find_resumable(workspace, state_dir)
            if self._children is None:
                self._children = Children()
            cache = judge_cache_dir(state_dir)
            run = Run(found.plan, options, publish, self._children, found.journal, cache, resumed=found.resumption)
            return self._journaled(run, found.journal)

        return build

    def _journaled(self, run: Runnable, journal: "Journal") -> "_Journaled":
        self._keep(journal)
        return _Journaled(run, journal, self._settings)

    def _keep(self, journal: "Journal") -> None:
        from workbench.kept_records import keep_details

        keep_details(self._kept, journal)

    def rescore(
        self,
        workspace: "Workspace",
        targets: Iterable[tuple[int, int]],
        records: "Sequence[CaseRecord]",
        draft: Draft,
        state_dir: Path,
        *,
        fresh: bool,
        references_of_now: bool = False,
    ) -> Build:
        """Scores the transcripts of these cases again, with the criteria of the draft: those in `records`, and for
        cases that have none there, those of the last run that is kept. `fresh`: judges are asked anew;
        `references_of_now`: they are laid beside what is expected by now, not beside what they were made for."""
        chosen = _with_draft(workspace, draft)
        cases = sorted(set(targets))

        def build(publish: Publish) -> Runnable:
            from workbench.engine.plan.options import RunOptions
            from workbench.engine.processes.children import Children
            from workbench.engine.run.rescoring import Rescoring
            from workbench.history.journal import Journal
            from workbench.history.state_dir import judge_cache_dir
            from workbench.ui.rescoring import plan_rescoring

            options = RunOptions(use_cache=not fresh, all_votes=self._all_votes, max_judge_calls=self._max_judge_calls)
            plan = plan_rescoring(chosen, cases, records, state_dir, options, references_of_now=references_of_now)
            if self._children is None:
                self._children = Children()
            journal = Journal.open(state_dir, plan.run_id)
            self._keep(journal)
            cache = None if journal.path is None else judge_cache_dir(state_dir)
            return Rescoring(plan, options, publish, self._children, journal, cache)

        return build

    def chat(
        self, agent: "AgentFolder", root: Path, session_input: dict[str, Any]
    ) -> "Callable[[Callable[[ChatEvent], None]], Chat]":
        """A conversation with an agent, beside runs."""

        def make(publish: "Callable[[ChatEvent], None]") -> "Chat":
            from workbench.engine.chat.chat import Chat
            from workbench.engine.plan.options import RunOptions
            from workbench.engine.plan.plan import agent_setting
            from workbench.engine.processes.children import Children

            if self._children is None:
                self._children = Children()
            return Chat(agent_setting(agent, root, RunOptions()), session_input, self._children, publish)

        return make

    def watch(self, session: "Session", marked: set[tuple[int, int]]) -> "Watching":
        """A watch over the workspace of a session, for the marked cases or (none) all. Reads files: for a thread."""
        from workbench.engine.plan.options import RunOptions
        from workbench.engine.watch.board import Board, Limit
        from workbench.engine.watch.snapshot import Key
        from workbench.engine.watch.watcher import Watcher
        from workbench.project.watching import Watching

        workspace = session.workspace
        assert workspace is not None
        armed = frozenset(
            Key(entry.relative, entry.document.cases[case].eval_id)
            for evalset, case in marked
            for entry in [workspace.evalsets[evalset]]
        )
        watcher = Watcher(
            workspace, session.read, self.footprints, results=self.results, screen_files=self.screen_files()
        )
        settings = self._settings
        limit = Limit() if settings is None else Limit(settings.watch_calls, settings.watch_money)
        options = RunOptions(all_votes=self._all_votes, max_judge_calls=self._max_judge_calls)
        return Watching(session.store, watcher, Board(armed or None, limit), options, session.prices)

    def footprints(self) -> "dict[Path, frozenset[Path]]":
        """The files that agents were seen to read; from any thread."""
        children = self._children
        if children is None:
            return {}
        return {folder: frozenset(files) for folder, files in list(children.footprints.items())}

    def results(self) -> "dict[Path, frozenset[Path]]":
        """The files that agents were seen to write; from any thread."""
        children = self._children
        if children is None:
            return {}
        return {folder: frozenset(files) for folder, files in list(children.results.items())}

    def watched(self, watching: "Watching", job: "Job", state_dir: Path) -> Build:
        """A job of the watch."""

        def build(publish: Publish) -> Runnable:
            from workbench.engine.processes.children import Children
            from workbench.history.journal import Journal
            from workbench.history.state_dir import judge_cache_dir

            if self._children is None:
                self._children = Children()

            def cache(journal: Journal) -> Path | None:
                return None if journal.path is None else judge_cache_dir(state_dir)

            run, journal = watching.build(
                job, publish, self._children, lambda run_id: Journal.open(state_dir, run_id), cache
            )
            return self._afresh(self._journaled(run, journal))

        return build

    def warm(self, workspace: "Workspace") -> "Callable[[], Awaitable[None]]":
        """Starts what runs of this workspace will need; to be called in the run's thread."""

        async def start() -> None:
            from workbench.engine.plan.options import RunOptions
            from workbench.engine.plan.plan import agent_setting
            from workbench.engine.processes.children import Children

            if self._children is None:
                self._children = Children()
            agents = {entry.agent.folder: entry.agent for entry in workspace.evalsets if entry.agent is not None}
            self._children.scorer.warm(
                {criterion.name for entry in workspace.evalsets for criterion in entry.criteria.config.criteria}
            )
            for agent in agents.values():
                setting = agent_setting(agent, workspace.root, RunOptions())
                warm = self._children.uses_adk(agent)
                await self._children.zygote(setting.interpreter.path, workspace.root, warm=warm)

        return start

    def import_agents(
        self, workspace: "Workspace", told: "Callable[[TrialImport], None]"
    ) -> "Callable[[], Awaitable[None]]":
        """Import each agent of the workspace and tell every outcome; to be called in the run's thread."""

        async def start() -> None:
            from workbench.authoring.check.project import checked_agents
            from workbench.engine.plan.options import RunOptions
            from workbench.engine.processes.children import Children
            from workbench.engine.processes.trial_imports import IMPORT_SECONDS, try_imports

            if self._children is None:
                self._children = Children()
            agents = checked_agents(workspace)
            options = RunOptions(timeout=IMPORT_SECONDS)
            async for outcome in try_imports(agents, workspace.root, self._children, options):
                told(outcome)

        return start

    def renew(self) -> None:
        """Before the next watched run, the children are started anew: an agent's environment is another one."""
        self._renew = True

    def _afresh(self, run: "_Journaled") -> Runnable:
        if self._renew and self._children is not None:
            self._renew = False
            run.before = self._children.restart
        return run

    async def close(self) -> None:
        """Ends the children."""
        if self._children is not None:
            await self._children.close()


class _Journaled:
    """A run that closes its journal when it is over, and takes away the oldest runs where they are too many."""

    def __init__(self, run: Runnable, journal: "Journal", settings: "Settings | None") -> None:
        self._run, self._journal, self._settings = run, journal, settings
        self.cancel, self.stop = run.cancel, run.stop
        self.before: Callable[[], Awaitable[None]] | None = None

    async def execute(self) -> None:
        try:
            if self.before is not None:
                await self.before()
            await self._run.execute()
        finally:
            self._journal.close()
        await self._tidy()

    async def _tidy(self) -> None:
        from workbench.config import Limits
        from workbench.history.retention import tidy

        limits = Limits() if self._settings is None else self._settings.history
        if self._journal.path is not None:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(tidy, self._journal.path.parents[2], limits)


def select(workspace: "Workspace", cases: list[tuple[int, int]]) -> "tuple[Workspace, Selection]":
    """The workspace with only the evalsets that are meant, and the selection. No target counts as named: a fault in one
    file does not refuse the others."""
    from workbench.engine.plan.target_words import Selection, Target

    meant: dict[int, list[int]] = {}
    for evalset, case in cases:
        meant.setdefault(evalset, []).append(case)
    entries = {evalset: workspace.evalsets[evalset] for evalset in meant}
    partly = [
        Target(
            entry.relative,
            entry.file,
            tuple(entry.document.cases[case].eval_id for case in meant[evalset]),
            named=False,
        )
        for evalset, entry in entries.items()
        if len(meant[evalset]) < len(entry.document.cases)
    ]
    whole = Target(workspace.root.name, workspace.root)
    return replace(workspace, evalsets=tuple(entries.values())), Selection((whole, *partly))


def _with_draft(workspace: "Workspace", draft: Draft) -> "Workspace":
    if draft.empty:
        return workspace
    entries = tuple(replace(entry, criteria=draft.apply(entry.criteria)) for entry in workspace.evalsets)
    return replace(workspace, evalsets=entries)
