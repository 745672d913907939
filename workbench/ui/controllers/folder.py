"""The open folder: reading it again, what was ignored in it, and the agents of its evalsets."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from workbench.text import one_line, plain
from workbench.ui.controllers.view import Controller, View
from workbench.ui.items import Item
from workbench.ui.tree.labels import label

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry, Workspace


_SHOWN_EVERY = 0.3
"""Seconds between two looks at what is read so far."""


class Folder(Controller):
    """The folder, read in a thread so that a large one delays no key."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self.when_loaded: list[Callable[[], None]] = []
        """Called after the whole folder, or a file of it, was read and shown."""
        self.when_owned: list[Callable[[], None]] = []
        """Called after the user chose the agents of evalsets and the folder was read again."""

    def load(self, workspace: "Workspace") -> None:
        """Show a workspace and tell all controllers that depend on it."""
        self.view.show_workspace(workspace)
        for tell in self.when_loaded:
            tell()

    def reload(self) -> None:
        """Read the folder again."""
        self.view.work(self._reload(), "read")

    def ignored(self) -> None:
        """List ignored files. Open one of them if it is an evalset under another name."""
        workspace = self.session.workspace
        ignored = workspace.ignored if workspace else ()
        items = [
            Item(
                self.below_root(str(item.path)),
                item.path if item.evalset else None,
                hint=one_line(item.reason, limit=60),
                help="enter opens it as an evalset" if item.evalset else one_line(item.reason),
            )
            for item in sorted(ignored, key=lambda item: not item.evalset)
        ]
        self.view.work(self._open_ignored(items), "ask", exclusive=False)

    async def _open_ignored(self, items: list[Item]) -> None:
        path = await self.view.pick(f"passed over: {len(items)}", items, nothing="nothing was passed over")
        if path is not None:
            self.session.extra_evalsets.add(path)
            self.reload()

    def choose_agent(self) -> None:
        """Ask which agent the evalset under the cursor belongs to."""
        if (row := self.current_evalset()) is not None:
            self.view.work(self._choose(self.session.entry(row.evalset)), "ask", exclusive=False)

    async def read_again(self) -> bool:
        """Read the folder and show it. Return False and say why if it cannot be read.

        At the first reading, what is read so far is shown while the rest is read.
        """
        session = self.session
        session.reading = session.reading or session.workspace is None
        try:
            workspace = await asyncio.to_thread(self._read, asyncio.get_running_loop() if session.reading else None)
        except Exception as error:  # whatever it is: the screen must not stay at "reading"
            expected = isinstance(error, OSError | ValueError)
            session.reading = False
            session.read_error = str(error) if expected else f"{type(error).__name__}: {error}"
            self.view.show_facts()
            self.view.notify(plain(session.read_error, limit=600), severity="error", timeout=10)
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
        if self.session.reading:
            self.view.show_workspace(workspace)

    async def give_agents(self, targets: Iterable[tuple[int, int]]) -> None:
        """Ask once for the agent of each evalset of the targets that has none. If the user does not say, or there
        is no agent, the run reports it."""
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
        if any(answers):
            await self._take_owners()

    async def _reload(self) -> None:
        if await self.read_again():
            self.view.say("read again")

    async def _choose(self, entry: "EvalsetEntry") -> None:
        if await self._ask(entry):
            await self._take_owners()

    async def _take_owners(self) -> None:
        if await self.read_again():
            for tell in self.when_owned:
                tell()

    async def _ask(self, entry: "EvalsetEntry") -> bool:
        """Ask which agent the evalset belongs to, and keep the answer. Return whether there is one."""
        assert self.session.workspace is not None
        items = [
            Item(
                label(agent.name),
                agent,
                hint=self.below_root(str(agent.folder)),
                help=f"now: {one_line(entry.agent_reason, limit=2000)}",
            )
            for agent in self.session.workspace.agents
        ]
        title = f"which agent does {label(entry.relative)} belong to?"
        placeholder = "type to find; esc leaves it without one"
        agent: AgentFolder | None = await self.view.pick(title, items, placeholder=placeholder)
        if agent is None:
            return False
        try:
            await asyncio.to_thread(self.session.save_owner, entry, agent)
        except (OSError, ValueError) as error:
            self.view.notify(plain(str(error), limit=600), severity="error", timeout=10)
            return False
        return True

    def below_root(self, path: str) -> str:
        """Return a path as it is shown: below the root if it is there; safe."""
        root = str(self.session.workspace.root) if self.session.workspace else ""
        return one_line(path.removeprefix(root + "/"))
