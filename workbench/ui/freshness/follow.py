"""Changes on disk by others, shown without the watch. Nothing runs."""

import asyncio
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.freshness.staleness import Staleness
from workbench.ui.running.engine_run import Engine
from workbench.ui.session.folder import Folder
from workbench.ui.session.view import Controller, Stoppable, View, read_in_thread

if TYPE_CHECKING:
    from workbench.freshness.follow import DiskNews, Follower, Touched

_BETWEEN = 1.0
"""Least number of seconds between two updates of the screen."""
_SOON = 0.01
_AGAIN = 0.5
"""Seconds until changes are shown that must not disturb the user now."""
NEWS_SECONDS = 10.0
"""Seconds for which a change by others is named. The user may look at another terminal."""


class Follow(Controller):
    """The folder as others change it: git, an editor, another program.

    Changes wait while the user edits, types or is asked something. `runs_changed` is called after a run was made or
    has ended, `read_triage` after triage files changed.
    """

    def __init__(
        self, view: View, folder: Folder, staleness: Staleness, engine: Engine, read_triage: Callable[[], None]
    ) -> None:
        super().__init__(view)
        self._folder, self._staleness, self._engine = folder, staleness, engine
        self._read_triage = read_triage
        self.runs_changed: Callable[[], None] = lambda: None
        self._follower: Follower | None = None
        self._pending: frozenset[Path] = frozenset()
        self._inputs: tuple[Path, ...] = ()
        """Changed files on which verdicts depend, until the verdicts are compared with them."""
        self._stale_by: set[Path] = set()
        """Files that were named because they made verdicts stale."""
        self._known_inputs: Collection[Path] = ()
        self._due: Stoppable | None = None
        self._shown = 0.0
        self._reading = False
        staleness.is_told = self._tells_all

    def _tells_all(self) -> bool:
        """Return whether each change of a file on which verdicts depend is noticed here."""
        return self._follower is not None and self._follower.complete and self.session.watching is None

    def begin(self) -> None:
        """Follow the disk until the program ends."""
        self.view.work(self._follow(), "disk", exclusive=False)

    def watch_changed(self) -> None:
        """Follow the files again after the watch was turned off, or leave them to it."""
        if self._follower is not None:
            self._follower.changes.refresh_folders()

    def compared(self) -> None:
        """Name the changed files that made verdicts stale, and follow the files of new verdicts."""
        self._say_inputs()
        if self._staleness.files != self._known_inputs:
            self._known_inputs = self._staleness.files
            self._update_soon()

    def _update_soon(self) -> None:
        if self._follower is not None:
            self.view.work(self._update(walk=False), "follow", exclusive=False)

    async def _follow(self) -> None:
        follower = await asyncio.to_thread(self._engine.follow, lambda: self._staleness.files)
        follower.changes.on_polling = lambda: self._say(f"polling for changes: {follower.changes.polling}")
        self._follower = follower
        try:
            await self._update(walk=True)
            async for touched in follower.touched():
                self.take(touched)
        except Exception as error:
            # The screen continues, and reads the folder again before each run.
            self.view.notify(one_line(f"changes on disk are not noticed: {error!r}", limit=400), severity="warning")
        finally:
            self._follower = None
            follower.close()

    def take(self, touched: "Touched") -> None:
        """Show changes as soon as they do not disturb."""
        if touched.runs:
            self.runs_changed()
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
            self.view.work(self._read(), "follow", exclusive=False)

    async def _read(self) -> None:
        """Read what changed, and show it unless the user has begun something else meanwhile."""
        from workbench.freshness.follow import read_news

        paths, self._pending = self._pending, frozenset()
        old, follower = self.session.workspace, self._follower
        assert old is not None
        try:
            walked = () if follower is None else follower.walked
            inputs = frozenset(self._staleness.files)
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
            if await asyncio.to_thread(self._staleness.has_compared, news.inputs):
                self._say_inputs()
        if news.moved or news.workspace is not None:
            await self._update(walk=news.moved)
        elif news.inputs:
            self._staleness.told()

    async def _update(self, *, walk: bool) -> None:
        if self._follower is not None:
            await asyncio.to_thread(self._follower.update, walk=walk)
            if self._tells_all():
                # A file may have changed before its folder was followed.
                self._staleness.told()

    def _say_inputs(self) -> None:
        """Name the changed files that made verdicts stale, or that no longer do."""
        inputs, self._inputs = self._inputs, ()
        if not inputs:
            return
        if told := self._inputs_words(inputs):
            self._stale_by |= set(inputs)
            self._say(told)
        elif again := self._stale_by.intersection(inputs):
            self._stale_by -= again
            what = next(iter(again)).name if len(again) == 1 else counted(len(again), "file")
            self._say(f"{what} changed on disk: no verdict stale")

    def _inputs_words(self, files: tuple[Path, ...]) -> str:
        """Return `agent.py changed on disk: 3 verdicts stale`, or "" if no verdict depends on the change."""
        from workbench.files.walk import relative_to  # Not needed for the first frame.

        assert self.session.workspace is not None
        root = self.session.workspace.root
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
