"""What concerns the folder: reading it again, what was ignored in it, and which agent an evalset belongs to."""

import asyncio
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from workbench.text import one_line, plain
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.screens.shell import Shell
from workbench.ui.tree.labels import label
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from pathlib import Path

    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry, Workspace


_SHOWN_EVERY = 0.3
"""Seconds between two looks at what is read so far."""


class FolderActions(Shell):
    """Reads in a thread, so that a large folder delays no key."""

    def action_reload(self) -> None:
        self.run_worker(self._reload(), group="read", exclusive=True)

    def action_ignored(self) -> None:
        workspace = self.session.workspace
        ignored = workspace.ignored if workspace else ()
        items = [
            Item(
                self._below(str(item.path)),
                item.path if item.evalset else None,
                hint=one_line(item.reason, limit=60),
                help="enter opens it as an evalset" if item.evalset else one_line(item.reason),
            )
            for item in sorted(ignored, key=lambda item: not item.evalset)
        ]
        screen = PickScreen(f"passed over: {len(items)}", searching(items), nothing="nothing was passed over")
        self.app.push_screen(screen, self._open_besides)

    def _open_besides(self, path: "Path | None") -> None:
        """Open an evalset under another name beside what is open."""
        if path is not None:
            self.session.opened_besides.add(path)
            self.action_reload()

    def action_choose_agent(self) -> None:
        row = self.tree_view.row
        if row is None or row.evalset < 0:
            self.say("put the cursor on an evalset first")
            return
        self.run_worker(self._choose(self.session.entry(row.evalset)), group="ask")

    async def read_again(self) -> bool:
        """Read the folder and show it. False, and a notice, if it cannot be read.

        At the first reading, what is read so far is shown while the rest is read.
        """
        session = self.session
        session.reading = session.reading or session.workspace is None
        try:
            workspace = await asyncio.to_thread(self._read, asyncio.get_running_loop() if session.reading else None)
        except Exception as error:  # whatever it is: the screen must not stay at "reading"
            expected = isinstance(error, OSError | ValueError)
            session.reading = False
            session.trouble = str(error) if expected else f"{type(error).__name__}: {error}"
            self.show_facts()
            self.notify(plain(session.trouble, limit=600), severity="error", timeout=10, markup=False)
            return False
        session.reading = False
        self.load(workspace)
        return True

    def _read(self, loop: asyncio.AbstractEventLoop | None) -> "Workspace":
        """Read the folder, in a thread. `loop` is where to show what is read so far."""
        shown = time.monotonic()

        def arrived(workspace: "Workspace") -> None:
            nonlocal shown
            if loop is not None and time.monotonic() - shown > _SHOWN_EVERY:
                shown = time.monotonic()
                loop.call_soon_threadsafe(self._show_so_far, workspace)

        return self.session.read(arrived)

    def _show_so_far(self, workspace: "Workspace") -> None:
        if self.session.reading and self.is_attached:
            Shell.load(self, workspace)

    async def give_agents(self, targets: Iterable[tuple[int, int]]) -> None:
        """Asks for each evalset of the targets that belongs to no agent, once. Where the user would not say, or there
        is no agent at all, the run will."""
        workspace = self.session.workspace
        if workspace is None or not workspace.agents:
            return
        asked = [self.session.entry(evalset) for evalset in sorted({evalset for evalset, _ in targets})]
        asked = [entry for entry in asked if entry.agent is None and entry.relative not in self.session.declined]
        answers = []
        for entry in asked:
            answers.append(await self._ask(entry))
            if not answers[-1]:
                self.session.declined.add(entry.relative)
        if any(answers) and await self.read_again():
            self.owners_chosen()

    async def _reload(self) -> None:
        if await self.read_again():
            self.say("read again")

    async def _choose(self, entry: "EvalsetEntry") -> None:
        if await self._ask(entry) and await self.read_again():
            self.owners_chosen()

    def owners_chosen(self) -> None:
        """The user chose the agents of evalsets, and the folder was read again."""

    async def _ask(self, entry: "EvalsetEntry") -> bool:
        """Which agent the evalset belongs to; keeps the answer."""
        assert self.session.workspace is not None
        items = [
            Item(
                label(agent.name),
                agent,
                hint=self._below(str(agent.folder)),
                help=f"now: {one_line(entry.agent_reason, limit=2000)}",
            )
            for agent in self.session.workspace.agents
        ]
        title = f"which agent does {label(entry.relative)} belong to?"
        screen = PickScreen(title, searching(items), placeholder="type to find; esc leaves it without one")
        agent: AgentFolder | None = await self.app.push_screen_wait(screen)
        if agent is None:
            return False
        try:
            await asyncio.to_thread(self.session.keep_owner, entry, agent)
        except (OSError, ValueError) as error:
            self.notify(plain(str(error), limit=600), severity="error", timeout=10, markup=False)
            return False
        return True

    def _below(self, path: str) -> str:
        root = str(self.session.workspace.root) if self.session.workspace else ""
        return one_line(path.removeprefix(root + "/"))
