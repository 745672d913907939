"""`run --watch`: a run, and then after each save the cases that it can affect, in plain lines, until Ctrl-C."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from workbench import config
from workbench.agents.workspace import Workspace
from workbench.cli.changed_lines import Outcomes, changed_lines, outcomes
from workbench.cli.exit_codes import INTERRUPTED, UNDECIDED
from workbench.cli.interruption import Interruption
from workbench.cli.plain_progress import PlainProgress
from workbench.cli.run_command import RunRequest
from workbench.cli.streams import has_failed, is_unread, write_line
from workbench.counting import few
from workbench.engine.plan.options import UsageFaultError
from workbench.engine.plan.plan import Plan
from workbench.engine.plan.target_words import Selection
from workbench.engine.watch.board import Board, Estimate, Job, Limit
from workbench.engine.watch.snapshot import Key
from workbench.engine.watch.watcher import Saved, Watcher
from workbench.events import CaseRef, Event, Noticed, RunFinished
from workbench.project.project import Project, Running
from workbench.project.watch_cost import limit_words
from workbench.project.watching import Watching
from workbench.rendering.plain_lines import notice_line
from workbench.rendering.repeat_lines import repeat_lines, repeats_of
from workbench.store import CaseState, Store
from workbench.text import one_line

_STATES: tuple[CaseState, ...] = ("passed", "failed", "error", "not_evaluated", "cancelled")


def watch(request: RunRequest) -> int:
    """Runs what is asked for, then watches; ends when it is interrupted.

    Raises:
        UsageFaultError: the request cannot be carried out; nothing ran.
    """
    workspace = request.targets.open()
    plan = request.targets.plan(request.options, workspace)
    return asyncio.run(_Session(request, request.targets.selection(), workspace, plan).run())


class _Session:
    """One life of `run --watch`."""

    def __init__(self, request: RunRequest, selection: Selection, workspace: Workspace, plan: Plan) -> None:
        self._request = request
        self._plan = plan
        self._store = Store()
        self._progress = PlainProgress(self._store, sys.stdout, sys.stderr, lambda: self._watching.superseded)
        self._settings = config.read_settings()
        self._project = Project(explicit_state=request.targets.state_dir, settings=self._settings, store=self._store)
        self._watcher = Watcher(
            workspace,
            lambda: request.targets.open(self._watcher.snapshot.workspace),
            self._project.footprints,
            results=self._project.results,
        )
        changes = self._watcher.changes
        changes.on_polling = lambda: self._say(f"polling: {one_line(changes.polling)}")
        changes.on_gone = lambda: self._say(self._where_it_is(gone=changes.gone))
        named = bool(selection.case_ids) or any(target.case_ids for target in selection.targets)
        armed = frozenset(Key(entry.ref.evalset_file, entry.ref.eval_id) for entry in plan.entries) if named else None
        board = Board(armed, Limit(self._settings.watch_calls, self._settings.watch_money))
        self._watching = Watching(self._store, self._watcher, board, request.options, self._settings.prices)
        self._run: asyncio.Task[None] | None = None
        self._current: Running | None = None
        self._wanted = asyncio.Event()
        self._ended = asyncio.Event()
        self._reported: Outcomes = {}
        """How each case came out when a round was reported last."""
        self._asked: Estimate | None = None
        """What waits for a key, and was said to."""

    async def run(self) -> int:
        """Runs until it is interrupted; the exit code."""
        for fault in self._settings.faults:
            self._say(f"warning: {fault}")
        watching = asyncio.create_task(self._watch())
        async with self._project:
            with self._progress, self._keys(), Interruption(self, self._say_of_run) as interruption:
                self._execute(self._plan)
                while not (self._ended.is_set() or has_failed(sys.stdout) or is_unread(sys.stdout)):
                    await self._step()
                self._watcher.close()
                await asyncio.gather(watching, return_exceptions=True)
                if self._run is not None:
                    await asyncio.gather(self._run, return_exceptions=True)
        return INTERRUPTED if interruption.count or is_unread(sys.stdout) else UNDECIDED

    async def _step(self) -> None:
        """Waits until there may be something to start, and starts it."""
        await self._wanted.wait()
        self._wanted.clear()
        if self._run is not None and self._run.done():
            self._run, self._current = None, None
            await asyncio.to_thread(self._watcher.learn)
        if self._run is not None or self._ended.is_set():
            return
        start = self._watching.next(busy=False)
        waiting = self._watching.board.waiting
        if start is not None:
            self._say(start.words)
            self._begin(start.job)
        elif waiting is not None:
            cases = len(self._watcher.snapshot.cases())
            way = "enter runs them" if sys.stdin.isatty() else "a terminal is needed to allow that"
            limit = limit_words(self._watching.board.limit, self._settings.prices)
            if waiting != self._asked:
                self._say(f"{waiting.words(cases)}; the limit is {limit} ([watch] in the settings): {way}")
        self._asked = waiting

    def _begin(self, job: Job) -> None:
        self._watching.started(job)
        try:
            plan = self._watching.plan(job)
        except UsageFaultError as fault:
            self._wanted.set()  # What else is stale may still be started.
            self._say(notice_line(Noticed("error", str(fault), fault.hint)))
            return
        self._execute(plan)

    def _execute(self, plan: Plan) -> None:
        run = self._project.run(plan, self._apply)

        async def whole() -> None:
            try:
                await run.execute()
            finally:
                self._watching.end_start()
                self._wanted.set()

        self._current = run
        self._run = asyncio.create_task(whole())

    # What happens

    async def _watch(self) -> None:
        try:
            async for saved in self._watcher.saves():
                await self._watching.announced.wait()
                self._take(saved)
        except Exception as error:
            self._say(notice_line(Noticed("error", f"the watch failed: {error!r}")))
            self._ended.set()
            self._wanted.set()
            raise

    def _take(self, saved: Saved) -> None:
        if saved.trouble:
            if not self._watcher.changes.gone:  # That is said already.
                self._say(notice_line(Noticed("error", f"cannot be read: {saved.trouble}", "The last verdicts stay")))
            return
        if saved.environments:
            self._project.renew()
        obsolete = self._watching.take(saved)
        for name in self._watching.ignored:
            said = f"{one_line(name)} changes whenever the agent runs: it is not watched any more"
            self._say(notice_line(Noticed("warning", said)))
        if obsolete and self._current is not None:
            self._current.stop()
            for ref in obsolete:
                self._current.cancel(ref, kill=True)
        if saved.impact.depths:
            self._say(f"saved {one_line(few(map(self._name, sorted(saved.changed))))}")
        stay = "The last verdicts stay, as stale" if saved.impact.depths else "The last verdicts stay"
        for fault in saved.faults:
            place = one_line(self._name(fault.path)) + (f":{fault.line}" if fault.line else "")
            self._say(notice_line(Noticed("error", f"{place}: {fault.message}", stay)))
        self._wanted.set()

    def _apply(self, event: Event) -> None:
        admitted = self._watching.admit(event)
        if admitted is None:
            return
        self._store.apply(admitted)
        if isinstance(admitted, RunFinished) and self._watching.superseded:
            # What it did not get to has its earlier verdicts again: to count them here would tell of them twice. What
            # it decided is reported with the next round that comes to its end.
            self._say(f"superseded after {admitted.duration_seconds:.2f} s by what was saved since")
        elif isinstance(admitted, RunFinished):
            self._tell(admitted)

    def _tell(self, event: RunFinished) -> None:
        """Report what came of a run, and what differs from the last report: regressions first."""
        counts = self._store.counts()
        said = ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state])
        now = outcomes(self._store.standing())
        for line in changed_lines(self._reported, now):
            write_line(sys.stdout, line)
        self._reported |= now
        for names, told, _ in repeat_lines(repeats_of(self._store)):
            for name in names:
                write_line(sys.stdout, f"REPEATS {name}: {told}")
        then = "the watch ends" if self._ended.is_set() else "watching, Ctrl-C ends"
        self._say(f"{said or 'nothing'} in {event.duration_seconds:.2f} s; {then}")

    def _where_it_is(self, *, gone: bool) -> str:
        root = one_line(str(self._plan.root))
        return f"{root} is not there any more; the watch waits for it" if gone else f"{root} is there again"

    def _name(self, path: Path) -> str:
        root = self._plan.root
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)

    def _say(self, line: str) -> None:
        self._progress.message(line)

    # Keys, and signals as `Interruption` passes them on

    @contextlib.contextmanager
    def _keys(self) -> Iterator[None]:
        """While it is entered, enter allows what costs too much."""
        loop = asyncio.get_running_loop()
        listening = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
        if listening:
            loop.add_reader(sys.stdin.fileno(), self._pressed)
        try:
            yield
        finally:
            if listening:
                loop.remove_reader(sys.stdin.fileno())

    def _pressed(self) -> None:
        if not sys.stdin.readline():
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            return
        self._watching.board.allow()
        self._wanted.set()

    def stop(self) -> None:
        """Starts nothing more; the program ends when what runs has ended."""
        self._ended.set()
        self._wanted.set()
        if self._current is not None:
            self._current.stop()

    def cancel(self, ref: CaseRef | None, *, kill: bool = False) -> None:
        """Ends what runs."""
        if self._current is not None:
            self._current.cancel(ref, kill=kill)

    def _say_of_run(self, line: str) -> None:
        if self._run is not None and not self._run.done():
            self._say(line)
