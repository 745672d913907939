"""What is wrong in the folder, found while nobody waits for it: marks in the tree, and all of it as a list."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from textual.message import Message
from textual.timer import Timer

from workbench.text import one_line, plain
from workbench.ui.checking import MOST_CASES, Findings, check
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.screens.shell import Shell
from workbench.ui.tree.outline import Row
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.model.faults import Fault
    from workbench.project.project import TrialImport

_WAITS = 0.4
"""Seconds after the folder was shown: the first frame and the first keys come before."""


class CheckActions(Shell):
    """Checks in a thread whenever the folder, or a file of it, was read."""

    _check_timer: Timer | None = None

    class AgentImported(Message):
        """A trial import has ended."""

        def __init__(self, outcome: "TrialImport") -> None:
            super().__init__()
            self.outcome = outcome

    def import_agents(self, workspace: "Workspace") -> None:
        """Have each agent imported in a child; an `AgentImported` follows for each. The engine's part."""
        raise NotImplementedError

    def load(self, workspace: "Workspace") -> None:
        super().load(workspace)
        if self._check_timer is not None:
            self._check_timer.stop()
        if self.session.checks:
            self._check_timer = self.set_timer(_WAITS, self._check_later)

    def _check_later(self) -> None:
        workspace = self.session.workspace
        if workspace is not None and sum(len(entry.document.cases) for entry in workspace.evalsets) <= MOST_CASES:
            self.run_worker(self._check(workspace), group="check", exclusive=True)

    def action_import_agents(self) -> None:
        workspace = self.session.workspace
        if workspace is None:
            self.say("still reading")
            return
        self.say("importing agents …")
        self.import_agents(workspace)

    def on_check_actions_agent_imported(self, message: AgentImported) -> None:
        outcome, imports = message.outcome, self.session.verdicts.imports
        imports.take(outcome.agent.name, outcome.error)
        failed = outcome.error is not None
        self.say(
            f"{one_line(outcome.agent.name, limit=60)} {'cannot be' if failed else 'was'} imported", warning=failed
        )
        self.tree_view.refresh()
        if self.tree_view.row is not None and self.tree_view.row.kind == "agent":
            self.show_row()

    def action_found(self) -> None:
        self.run_worker(self._show_found(), group="check", exclusive=True)

    async def _show_found(self) -> None:
        workspace = self.session.workspace
        if workspace is None:
            self.say("still reading")
            return
        self.say("checking …")
        found = await self._check(workspace)
        if found is None:
            return
        self.key_line.hush()
        items = [
            Item(
                one_line(fault.message, limit=300),
                pair or (),
                hint=one_line(self._place(fault), limit=60),
                kind={"error": "!", "warning": "~", "note": "·"}[fault.severity],
                help=plain(fault.sentence(self._place(fault)), limit=2000),
            )
            for fault, pair in found.every
        ]
        title = f"found by check: {len(items)}"
        pair = await self.app.push_screen_wait(PickScreen(title, searching(items), nothing="nothing was found"))
        if pair:
            self._go_to(*pair)

    def _go_to(self, evalset: int, case: int) -> None:
        group = self.tree_view.model.outline.group_of[evalset]
        row = Row("evalset", group, evalset) if case < 0 else Row("case", group, evalset, case)
        self.tree_view.go_to(row)
        self.go_left()

    def _place(self, fault: "Fault") -> str:
        root = str(self.session.workspace.root) if self.session.workspace else ""
        return str(fault.file).removeprefix(root + "/")

    async def _check(self, workspace: "Workspace") -> Findings | None:
        """Checks and shows what was found; None (and nothing shown) if the folder was read again meanwhile."""
        try:
            found = await _beside(lambda: check(workspace))
        except Exception as error:
            # Nobody asked for it: what goes wrong in it must not end what somebody is doing.
            self.say(f"the folder could not be checked: {type(error).__name__}: {error}", warning=True)
            return None
        if workspace is not self.session.workspace:
            return None
        self.session.findings = found
        verdicts = self.session.verdicts
        verdicts.take_found(found.worst)
        changed, verdicts.changed = verdicts.changed, set()
        self.tree_view.verdicts_changed(changed)
        row = self.tree_view.row
        if row is not None and row.evalset >= 0 and found.of(row.evalset, row.case):
            self.show_row()
        return found


async def _beside(work: Callable[[], Findings]) -> Findings:
    """Does the work in a thread that nobody waits for when the program ends: a folder may take seconds."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Findings] = loop.create_future()

    def tell(found: Findings | None, error: Exception | None) -> None:
        if done.cancelled():
            return
        if found is not None:
            done.set_result(found)
        elif error is not None:
            done.set_exception(error)

    def do() -> None:
        found, error = None, None
        try:
            found = work()
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the program has ended
            loop.call_soon_threadsafe(tell, found, error)

    Thread(target=do, name="check", daemon=True).start()
    return await done
