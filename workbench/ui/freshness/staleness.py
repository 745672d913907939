"""Marks of stale verdicts, and changes on disk by other programs. Both work without the watch and run nothing."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.files.file_access import Signature, signature_of
from workbench.store.execution import CaseRecord, Execution
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.news import News
from workbench.ui.screen.controller import Controller, read_in_thread
from workbench.ui.screen.folder import Folder

if TYPE_CHECKING:
    from textual.timer import Timer

    from workbench.agents.workspace import Workspace
    from workbench.events.events import CaseName
    from workbench.freshness.follow import DiskNews, TouchedPaths
    from workbench.freshness.staleness import Changes
    from workbench.store.history.latest import LatestRun
    from workbench.ui.screen.view import View


_POLL_INTERVAL = 2.0
"""Seconds between two checks of the files that verdicts depend on."""
_PAUSE_FACTOR = 10.0
"""Pause after a comparison, as a multiple of its duration."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing all verdicts with the current inputs.

    `latest` are the stored runs with the last verdicts, and `cases` has the IDs of the cases in each evalset. `stale`
    has the changed inputs of each stale case. `runs` maps each case to the ID of the run that made its verdict. `files`
    are the files that verdicts depend on. `signature` is their state at the comparison.
    """

    latest: "tuple[LatestRun, ...]"
    cases: dict[str, set[str]]
    stale: "dict[CaseName, Changes]"
    runs: "dict[CaseName, str]"
    files: tuple[Path, ...]
    signature: Signature


class Staleness(Controller):
    """The marks of stale verdicts. Comparisons run in a thread, one at a time."""

    def __init__(self, view: "View", folder: Folder, news: News) -> None:
        super().__init__(view)
        self._folder = folder
        self._again = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._ran = False
        """Whether a run has stored verdicts since the last comparison."""
        self._saved_in_run = False
        """Whether a file has changed during the run. Cases may then end with a verdict that is already stale."""
        self._run_id = ""
        self._last: Comparison | None = None
        self._due = 0.0
        """Earliest time of the next check of the files (see `_PAUSE_FACTOR`)."""
        self._may_have_changed = True
        """Whether a file may have changed since the last check."""
        self.when_compared: list[Callable[[], None]] = []
        """Called after each comparison."""
        self._warned = ""
        """The last warning. Polling would repeat it."""
        folder.when_loaded.append(self.loaded)
        news.when_taken.append(self.after_news)

    async def begin(self, latest: "Iterable[LatestRun]") -> None:
        """Compare the verdicts of earlier sessions, then keep the marks up to date."""
        await self._idle.wait()
        self._idle.clear()
        await self._compare(tuple(latest))
        self.view.set_interval(_POLL_INTERVAL, self.poll)

    def loaded(self) -> None:
        """Compare again, because the folder was read again."""
        self._mark()
        if self._last is not None:
            self.compare()

    def after_news(self, ended: bool) -> None:
        """Update the marks after events of a run. `ended`: the run has ended."""
        self._ran = True
        if ended:
            self._saved_in_run = False
            self.compare()
        elif self.session.store.run.run_id != self._run_id:
            self._run_id = self.session.store.run.run_id
            self._mark()

    @property
    def files(self) -> Collection[Path]:
        """The files and folders on which verdicts depend. Empty before the first comparison."""
        return () if self._last is None else self._last.files

    @property
    def is_notified(self) -> bool:
        """Whether `check_files` is called after each change of a file. Polling is then not needed."""
        follower = self.session.follower
        return follower is not None and follower.complete and self.session.watching is None

    def check_files(self) -> None:
        """Check the files now or at the next poll, because one of them may have changed."""
        self._may_have_changed = True
        self.poll()

    def stored(self) -> None:
        """Compare again, because verdicts were stored."""
        self._ran = True
        if self._last is not None:
            self.compare()

    def compare(self) -> None:
        """Compare every verdict with the current inputs, and mark the stale ones."""
        self._again = True
        if self._idle.is_set():
            self._idle.clear()
            self.view.work(partial(self._compare, None), "staleness", exclusive=False)

    async def compared(self) -> None:
        """Compare every verdict with the current inputs, and wait for the result."""
        self.compare()
        await self._idle.wait()

    def poll(self) -> None:
        """Compare again if a file has changed, or if cases have ended since a change."""
        if self.is_notified and not (self._may_have_changed or (self._saved_in_run and self._ran)):
            return
        if self._last is not None and self._idle.is_set() and time.monotonic() >= self._due:
            self._may_have_changed = False
            self._idle.clear()
            self.view.work(partial(self._compare_if_outdated, self._last), "staleness", exclusive=False)

    async def _compare_if_outdated(self, last: Comparison) -> None:
        changed = await asyncio.to_thread(signature_of, last.files) != last.signature
        running = self.session.store.activity.running
        self._saved_in_run = running and (changed or self._saved_in_run)
        if changed or self._again or (self._saved_in_run and self._ran):
            await self._compare(None)
        else:
            self._idle.set()

    async def _compare(self, latest: "tuple[LatestRun, ...] | None") -> None:
        self._again = True
        try:
            while self._again:
                began, self._again = time.monotonic(), False
                known, self._ran = None if self._ran else self._last, False
                found = await asyncio.to_thread(self._read, known, latest)
                latest = None
                if found is not None:
                    self._last, self.session.stale = found, found.stale
                    self._mark()
                    for notify in self.when_compared:
                        notify()
                    self._folder.read_settings()
                now = time.monotonic()
                self._due = now + _PAUSE_FACTOR * (now - began)
        except Exception as error:
            # The screen continues without stale marks.
            message = one_line(f"stale verdicts are not marked: {error!r}", limit=400)
            if message != self._warned:
                self._warned = message
                self.view.notify(message, severity="warning")
        finally:
            self._idle.set()

    def _mark(self) -> None:
        """Mark stale verdicts. Skip running and waiting cases, and verdicts newer than the comparison."""
        verdicts = self.session.verdicts
        before, runs = verdicts.stale, {} if self._last is None else self._last.runs
        marked = {}
        for name, changes in self.session.stale.items():
            place = verdicts.place(*name)
            record = None if place is None else verdicts.record(*place)
            if place is not None and record is not None and record.has_verdict and record.run_id == runs.get(name):
                marked[place] = changes
        verdicts.mark_stale(marked)
        if verdicts.stale != before:
            self.view.tree_view.show_verdicts()
            self.view.show_row()
            self.view.show_facts()

    def _read(self, known: Comparison | None, latest: "tuple[LatestRun, ...] | None") -> Comparison | None:
        from workbench.freshness.staleness import input_files, stale_cases, stale_transcripts
        from workbench.store.history.latest import latest_runs
        from workbench.store.transcripts import stored_case

        session, workspace = self.session, self._workspace()
        if workspace is None:
            return None
        cases, shown = workspace.case_ids, list(session.store.latest_verdicts())
        if latest is None and known is not None and known.cases == cases:
            latest = known.latest
        elif latest is None:
            latest = self._with_shown(latest_runs(session.state_dir, cases), shown)
        files = input_files(latest, workspace)
        # The signature comes first, so that the next check notices files that are saved meanwhile.
        signature = signature_of(files)
        stored_runs = {run.summary.run_id for run in latest}
        records = [record for record in shown if record.run_id not in stored_runs]
        # Of those that are not stored, the transcripts are in memory.
        here = (stored_case(record) for record in records if isinstance(record, CaseRecord))
        stale = stale_cases(latest, workspace) | stale_transcripts(here, workspace, session.state_dir)
        unreadable = {entry.relative for entry in workspace.evalsets if entry.document.broken}
        unreadable_marks = {name: why for name, why in session.stale.items() if name[0] in unreadable}
        runs = {one.ref.name: one.run_id for run in latest for one in run.executions}
        runs |= {record.ref.name: record.run_id for record in records}
        return Comparison(latest, cases, {**unreadable_marks, **stale}, runs, files, signature)

    def _with_shown(self, newest: "Iterable[LatestRun]", shown: "Iterable[Execution]") -> "tuple[LatestRun, ...]":
        """Return the newest runs, after those of the last comparison that are deleted or too old but still shown.

        Otherwise, their verdicts could never become stale.
        """
        runs, ids = tuple(newest), {record.ref: record.run_id for record in shown}
        found = {run.summary.run_id for run in runs}
        gone = [run for run in (self._last.latest if self._last is not None else ()) if run.summary.run_id not in found]
        kept = [
            replace(run, executions=mine)
            for run in gone
            if (mine := tuple(one for one in run.executions if ids.get(one.ref) == run.summary.run_id))
        ]
        names = {one.ref.name for run in kept for one in run.executions}
        others = (replace(run, executions=tuple(o for o in run.executions if o.ref.name not in names)) for run in runs)
        return (*kept, *others) if kept else runs

    def _workspace(self) -> "Workspace | None":
        """Return the folder as it is on disk, or None if it cannot be read. The screen may show an older state."""
        if not self.session.outdated():
            return self.session.workspace
        try:
            return self.session.read()
        except (OSError, ValueError):
            return None


_BETWEEN = 1.0
"""Minimum number of seconds between two updates of the screen."""
_SOON = 0.01
_AGAIN = 0.5
"""Seconds until the screen tries again to show changes that would disturb the user now."""
NEWS_SECONDS = 10.0
"""Seconds for which a message about a change on disk is shown. The user may look at another terminal."""


class Follow(Controller):
    """Updates of the screen after other programs (git, an editor) change the folder.

    Changes wait while the user edits, types or answers a dialog. `look_for_runs` is called after another program has
    stored results of a run. `read_triage` is called after triage files have changed.
    """

    def __init__(
        self,
        view: "View",
        folder: Folder,
        staleness: Staleness,
        engine: Engine,
        *,
        look_for_runs: Callable[[], None],
        read_triage: Callable[[], None],
    ) -> None:
        super().__init__(view)
        self._folder, self._staleness, self._engine = folder, staleness, engine
        self._look_for_runs, self._read_triage = look_for_runs, read_triage
        self._pending: frozenset[Path] = frozenset()
        self._inputs: tuple[Path, ...] = ()
        """Changed files on which verdicts depend, until the next comparison has used them."""
        self._stale_by: set[Path] = set()
        """Files for which a message said that they made verdicts stale."""
        self._known_inputs: Collection[Path] = ()
        self._due: Timer | None = None
        self._shown = 0.0
        self._reading = False
        staleness.when_compared.append(self.compared)

    def begin(self) -> None:
        """Follow changes on disk until the program ends."""
        self.view.work(self._follow, "disk", exclusive=False)

    def compared(self) -> None:
        """After a comparison, show which files made verdicts stale, and follow the files of new verdicts."""
        self._say_inputs()
        if self._staleness.files != self._known_inputs:
            self._known_inputs = self._staleness.files
            self._update_soon()

    def _update_soon(self) -> None:
        if self.session.follower is not None:
            self.view.work(partial(self._update, walk=False), "follow", exclusive=False)

    async def _follow(self) -> None:
        follower = await asyncio.to_thread(self._engine.follow, lambda: self._staleness.files)
        follower.changes.on_polling = lambda: self._say(f"polling for changes: {follower.changes.polling}")
        self.session.follower = follower
        try:
            await self._update(walk=True)
            async for touched in follower.touched():
                self.take(touched)
        except Exception as error:
            # The screen continues, and reads the folder again before each run.
            self.view.notify(
                one_line(f"changes on disk are noticed only before a run: {error!r}", limit=400), severity="warning"
            )
        finally:
            self.session.follower = None
            follower.changes.close()

    def take(self, touched: "TouchedPaths") -> None:
        """Show changes on disk, now or once they do not disturb the user."""
        if touched.runs:
            self._look_for_runs()
            self._update_soon()
        if touched.paths and self.session.watching is None:
            self._pending |= touched.paths
            self._show_soon()

    def _show_soon(self, seconds: float = 0.0) -> None:
        if self._due is None and not self._reading:
            wait = max(seconds, self._shown + _BETWEEN - time.monotonic(), _SOON)
            self._due = self.view.set_timer(wait, self._show)

    def _show(self) -> None:
        self._due = None
        if self.view.occupied or self.session.reading or self.session.workspace is None:
            self._show_soon(_AGAIN)
        elif self._pending and not self._reading:
            self._reading = True
            self.view.work(self._read, "follow", exclusive=False)

    async def _read(self) -> None:
        """Read what changed and show it. If the user has started something else meanwhile, try again later."""
        from workbench.freshness.follow import read_news

        paths, self._pending = self._pending, frozenset()
        old, follower = self.session.workspace, self.session.follower
        assert old is not None
        try:
            walked = () if follower is None else follower.walked
            inputs = frozenset(self._staleness.files)
            self.session.begin_reading()
            news = await read_in_thread(lambda _: read_news(old, paths, walked, inputs, self.session.read))
        except (OSError, ValueError) as error:
            self.session.read_error = str(error)
            self.view.show_facts()
            return
        finally:
            self._reading = False
            self._shown = time.monotonic()
        if self.view.occupied or self.session.workspace is not old:
            self._pending |= paths
            self._show_soon(_AGAIN)
            return
        await self._apply(news)
        if self._pending:
            self._show_soon()

    async def _apply(self, news: "DiskNews") -> None:
        from workbench.freshness.follow import disk_words

        self.session.read_error = ""
        if news.workspace is not None:
            self._folder.load(news.workspace)
        elif news.triage:
            self._read_triage()
        if news.changes:
            self._say(disk_words(news.changes))
        elif news.inputs:
            self._inputs += news.inputs
        if news.moved or news.workspace is not None:
            await self._update(walk=news.moved)
        elif news.inputs:
            self._staleness.compare()

    async def _update(self, *, walk: bool) -> None:
        if self.session.follower is not None:
            await asyncio.to_thread(self.session.follower.update, walk=walk)
            if self._staleness.is_notified:
                # A file may have changed before its folder was followed.
                self._staleness.check_files()

    def _say_inputs(self) -> None:
        """Show a message if changed files made verdicts stale, or if files that did so no longer do."""
        inputs, self._inputs = self._inputs, ()
        if not inputs:
            return
        if words := self._inputs_words(inputs):
            self._stale_by |= set(inputs)
            self._say(words)
        elif again := self._stale_by.intersection(inputs):
            self._stale_by -= again
            what = next(iter(again)).name if len(again) == 1 else counted(len(again), "file")
            self._say(f"{what} changed on disk: no verdict stale")

    def _inputs_words(self, files: tuple[Path, ...]) -> str:
        """Return `agent.py changed on disk: 3 verdicts stale`, or "" if the files made no verdict stale."""
        from workbench.files.walk import relative_to  # Not needed for the first frame.

        root = self.session.opened.root
        names = {relative_to(file, root): file.name for file in files}
        found: dict[str, None] = {}
        stale = 0
        for changes in self.session.stale.values():
            mine = [names[name] for change in changes for name in (change.file, change.name) if name in names]
            found |= dict.fromkeys(mine)
            stale += bool(mine)
        if not found:
            return ""
        first, *others = found
        what = first if not others else counted(len(found), "file")
        return f"{what} changed on disk: {counted(stale, 'verdict')} stale"

    def _say(self, text: str) -> None:
        self.view.say(text, seconds=NEWS_SECONDS)
