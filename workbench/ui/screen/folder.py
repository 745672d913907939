"""The open folder: reading and checking it, its ignored files, and the agents of its evalsets."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from workbench.text.collecting import collector_paused
from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain
from workbench.ui.dialogs.items import Item
from workbench.ui.screen.controller import Controller, read_in_thread
from workbench.ui.session.findings import MOST_CASES, Findings, check
from workbench.ui.tree.labels import label

if TYPE_CHECKING:
    from pathlib import Path

    from textual.timer import Timer

    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry, Workspace
    from workbench.project.project import TrialImport
    from workbench.ui.screen.view import View


_SHOWN_EVERY = 0.3
"""Minimum seconds between two updates of the screen while the folder is read for the first time."""
_PAUSE_FACTOR = 10
"""The pause after an update as a multiple of its duration, because each update shows all evalsets read so far."""
_DELAY = 0.4
"""Seconds between showing the folder and checking it. Meanwhile the first frame is drawn and keys are handled."""
_OPENS = "Press enter to open it as an evalset."


class _ReadCancelledError(Exception):
    """An exception that stops the read of a folder whose caller was cancelled."""


class Folder(Controller):
    """Actions that read the folder, in a thread, because keys must still work."""

    def __init__(self, view: "View") -> None:
        super().__init__(view)
        self.when_loaded: list[Callable[[], None]] = []
        """Called after the folder or a file in it was read and shown."""
        self.when_owned: list[Callable[[], None]] = []
        """Called after the user chose agents for evalsets and the folder was read again."""
        self._due = 0.0
        """Monotonic time of the next update during the first read."""

    def load(self, workspace: "Workspace") -> None:
        """Show a workspace, notify the controllers that depend on it, and read the settings of its project."""
        self.view.show_workspace(workspace)
        for notify in self.when_loaded:
            notify()
        self.read_settings()

    def read_settings(self) -> None:
        """Read the project's settings for recordings and places."""
        self.view.work(self._read_settings, "read setting", exclusive=False)

    async def _read_settings(self) -> None:
        from workbench.files.project_settings import known_mode, known_places

        session, workspace = self.session, self.session.workspace
        if workspace is None:
            return
        # A run says what is wrong with a setting.
        mode = await asyncio.to_thread(known_mode, workspace.root)
        place, named = await asyncio.to_thread(known_places, workspace.root)
        recordings = replace(session.recordings, project=mode or "")
        places = replace(session.places, project=place, named=named)
        if (recordings, places) != (session.recordings, session.places):
            session.recordings, session.places = recordings, places
            self.view.show_facts()

    async def offer_trust(self) -> None:
        """Ask whether to trust a `.workbench` that this user did not create here. If so, read the folder with it."""
        workspace = self.session.workspace
        if workspace is None or self.session.given_state_dir is not None:
            return
        from workbench.files.folders import can_be_trusted, trust, untrusted_text

        root = workspace.root
        message, hint = await asyncio.to_thread(untrusted_text, root)
        if not message:
            return
        if not await asyncio.to_thread(can_be_trusted, root):
            self.view.notify(plain(f"{message}\n{hint}", limit=1000), severity="warning", timeout=10)
            return
        items = [
            Item("ignore it", False, help="It is neither read nor written. Runs and undo last until you quit."),
            Item("trust it", True, help="Its verdicts may be made up. Trust it only if you know who made it."),
        ]
        if await self.view.pick("you did not create this .workbench", items, placeholder=""):
            # Keys wait for this work: an undo or edit before its end would have no state folder.
            done = asyncio.Event()
            self.view.work(partial(self._use, root, trust, done), "trust")
            await done.wait()

    async def _use(self, root: "Path", trust: Callable[["Path"], None], done: asyncio.Event) -> None:
        """Trust the state folder and read the project again. Set `done` at the end, even after an error."""
        try:
            await asyncio.to_thread(trust, root)
            await self.read_again()
        except OSError as error:
            self.view.notify(plain(str(error), limit=600), severity="error", timeout=10)
        finally:
            done.set()

    def reload(self) -> None:
        """Read the folder again."""
        self.view.work(self._reload, "read")

    def try_samples(self) -> None:
        """Copy the sample agents into the open folder, and show them."""
        if (workspace := self.workspace()) is not None:
            target = workspace.target if workspace.target.is_dir() else workspace.target.parent
            self.view.work(partial(self._try_samples, target), "edit")

    async def _try_samples(self, folder: "Path") -> None:
        from workbench.files.folders import copy_samples

        self.view.say("copying the sample agents")
        try:
            copy = await asyncio.to_thread(copy_samples, folder)
        except OSError as error:
            text = str(error) if error.errno is None else f"{error.filename or folder}: {error.strerror}"
            self.view.notify(plain(text, limit=600), title="nothing was copied", severity="error", timeout=10)
            return
        if await self.read_again():
            after = ": r runs them" if self.session.opened.evalsets else ", but ignored there"
            self.view.say(f"copied to {copy.name}{after}")

    def ignored(self) -> None:
        """List the ignored files. The user can open an evalset with an unusual name from the list."""
        workspace = self.session.workspace
        ignored = workspace.ignored if workspace else ()
        items = [
            Item(
                self.session.below_root(item.path),
                item.path if item.evalset else None,
                hint=one_line(item.reason, limit=60),
                # The row has a short reason in full.
                help=_OPENS if item.evalset else one_line(item.reason) if len(item.reason) > 60 else "",
            )
            for item in sorted(ignored, key=lambda item: not item.evalset)
        ]
        self.view.work(partial(self._open_ignored, items), "ask", exclusive=False)

    async def _open_ignored(self, items: list[Item]) -> None:
        path = await self.view.pick(f"{counted(len(items), 'path')} ignored", items, nothing="nothing was ignored")
        if path is not None:
            self.session.extra_evalsets.add(path)
            self.reload()

    def choose_agent(self) -> None:
        """Ask which agent the evalset under the cursor belongs to."""
        if (row := self.current_evalset()) is not None:
            self.view.work(partial(self._choose, self.session.entry(row.evalset)), "ask", exclusive=False)

    async def read_again(self) -> bool:
        """Read the folder and show it. If it cannot be read, show the reason and return False."""
        session = self.session
        session.reading = session.reading or session.workspace is None
        session.begin_reading()
        loop = asyncio.get_running_loop()
        try:
            to_show = loop if session.reading else None
            workspace = await read_in_thread(lambda is_left: self._read(to_show, is_left))
        except Exception as error:  # after any failure, the screen must not stay at "reading"
            expected = isinstance(error, OSError | ValueError)
            session.reading = False
            session.read_error = str(error) if expected else f"{type(error).__name__}: {error}"
            self.view.show_facts()
            self.view.notify(plain(session.read_error, limit=600), severity="error", timeout=10)
            return False
        session.reading = False
        self.load(workspace)
        return True

    def _read(self, loop: asyncio.AbstractEventLoop | None, is_left: Callable[[], bool]) -> "Workspace":
        """Read the folder. With a `loop`, show partial results in it. Call this in a thread.

        Raises:
            _ReadCancelledError: `is_left` has returned True, because the caller was cancelled.
        """
        self._due = time.monotonic() + _SHOWN_EVERY

        def arrived(workspace: "Workspace") -> None:
            if is_left():
                raise _ReadCancelledError
            if loop is not None and time.monotonic() > self._due:
                self._due = math.inf
                loop.call_soon_threadsafe(self._show_so_far, workspace)

        with collector_paused():
            return self.session.read(arrived)

    def _show_so_far(self, workspace: "Workspace") -> None:
        began = time.monotonic()
        if self.session.reading:
            self.view.show_workspace(workspace)
        now = time.monotonic()
        self._due = now + max(_SHOWN_EVERY, _PAUSE_FACTOR * (now - began))

    async def give_agents(self, targets: Iterable[tuple[int, int]]) -> None:
        """Ask once for the agent of each target evalset without one. The run reports evalsets that still have none."""
        workspace = self.session.workspace
        if workspace is None or not workspace.agents:
            return
        entries = [self.session.entry(evalset) for evalset in sorted({evalset for evalset, _ in targets})]
        entries = [entry for entry in entries if entry.agent is None and entry.relative not in self.session.declined]
        answers = []
        for entry in entries:
            answers.append(await self._ask(entry))
            if not answers[-1]:
                self.session.declined.add(entry.relative)
        if any(answers):
            await self._take_owners()

    async def _reload(self) -> None:
        if await self.read_again():
            self.view.say("folder reloaded")

    async def _choose(self, entry: "EvalsetEntry") -> None:
        if await self._ask(entry):
            await self._take_owners()

    async def _take_owners(self) -> None:
        if await self.read_again():
            for notify in self.when_owned:
                notify()

    async def _ask(self, entry: "EvalsetEntry") -> bool:
        """Ask which agent the evalset belongs to, and save the choice. Return whether it was saved."""
        items = [
            Item(
                label(agent.name),
                agent,
                hint=self.session.below_root(agent.folder),
                help=f"Now: {one_line(entry.agent_reason, limit=2000)}",
            )
            for agent in self.session.opened.agents
        ]
        title = f"which agent does {label(entry.relative)} belong to?"
        placeholder = "type to find; esc chooses none"
        agent: AgentFolder | None = await self.view.pick(title, items, placeholder=placeholder)
        if agent is None:
            return False
        try:
            await asyncio.to_thread(self.session.save_owner, entry, agent)
        except (OSError, ValueError) as error:
            self.view.notify(plain(str(error), limit=600), severity="error", timeout=10)
            return False
        return True


class Checks(Controller):
    """Checks of the folder and trial imports of its agents.

    The check runs in a thread after each read of the folder or of a file in it. Folders with more than `MOST_CASES`
    cases are only checked on request. `try_imports` imports each agent in a child process. It calls its second argument
    with each outcome, in another thread.
    """

    def __init__(
        self, view: "View", folder: Folder, try_imports: "Callable[[Workspace, Callable[[TrialImport], object]], None]"
    ) -> None:
        super().__init__(view)
        self._try_imports = try_imports
        self._due: Timer | None = None
        folder.when_loaded.append(self.loaded)

    def loaded(self) -> None:
        """Schedule a check of the folder, which was just read, unless checks are off."""
        if self._due is not None:
            self._due.stop()
        if self.session.checks:
            self._due = self.view.set_timer(_DELAY, self._check_in_background)

    def _check_in_background(self) -> None:
        workspace = self.session.workspace
        if self.session.loading == "results":
            self.loaded()  # The verdicts come first, also on a slow machine.
        elif workspace is not None and sum(len(entry.document.cases) for entry in workspace.evalsets) <= MOST_CASES:
            self.view.work(partial(self._check, workspace), "check")

    def import_agents(self) -> None:
        """Import each agent in a child process."""
        workspace = self.workspace()
        if workspace is None:
            return
        self.view.say("importing agents")
        self._try_imports(workspace, lambda outcome: self.view.call_later(self.imported, outcome))

    def imported(self, outcome: "TrialImport") -> None:
        """Show the outcome of an agent's trial import."""
        self.session.verdicts.imports.add(outcome.agent.name, outcome.error)
        failed = outcome.error is not None
        name = one_line(outcome.agent.name, limit=60)
        self.view.say(f"{name} {'cannot be' if failed else 'was'} imported", warning=failed)
        self.view.tree_view.refresh()
        row = self.view.rows.cursor
        if row is not None and row.kind == "agent":
            self.view.show_row()

    def found(self) -> None:
        """Check the folder and list the problems found."""
        self.view.work(self._show_found, "check")

    async def _show_found(self) -> None:
        workspace = self.workspace()
        if workspace is None:
            return
        self.view.say("checking")
        found = await self._check(workspace)
        if found is None:
            return
        self.view.clear_message()
        items = [
            Item(
                one_line(fault.message, limit=300),
                pair or (),
                hint=one_line(self.session.below_root(fault.file), limit=60),
                kind={"error": "!", "warning": "~", "note": "·"}[fault.severity],
                help=plain(fault.sentence(self.session.below_root(fault.file)), limit=2000),
            )
            for fault, pair in found.every
        ]
        names = self.view.rows.names()
        title = f"problems found by check: {len(items):,}" if items else "problems found by check"
        pair = await self.view.pick(title, items, nothing="no problems found")
        for place in self.view.rows.current_pairs(names, [pair] if pair else []):
            self.view.reveal(*place)
            self.view.go_left()

    async def _check(self, workspace: "Workspace") -> Findings | None:
        """Check the folder and show the findings. Return None if the check failed or is outdated."""
        try:
            found = await read_in_thread(lambda _: check(workspace))
        except Exception as error:
            # The check often runs unasked, so a defect in it must not end the user's session.
            self.view.say(f"checking the folder failed: {type(error).__name__}: {error}", warning=True)
            return None
        if workspace is not self.session.workspace:
            return None
        self.session.findings = found
        self.session.verdicts.set_check_results(found.worst)
        self.view.tree_view.show_verdicts()
        row = self.view.rows.cursor
        if row is not None and row.evalset >= 0 and found.faults_of(row.evalset, row.case):
            self.view.show_row()
        return found
