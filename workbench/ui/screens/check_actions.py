"""What is wrong in the folder, found while nobody waits for it: marks in the tree, and all of it as a list."""

import asyncio
from typing import TYPE_CHECKING

from workbench.text import one_line, plain
from workbench.ui.checking import MOST_CASES, Findings, check
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.screens.shell import Shell
from workbench.ui.tree.outline import Row
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.model.faults import Fault

_WAITS = 0.4
"""Seconds after the folder was shown: the first frame and the first keys come before."""


class CheckActions(Shell):
    """Checks in a thread whenever the folder, or a file of it, was read."""

    def load(self, workspace: "Workspace") -> None:
        super().load(workspace)
        if self.session.checks:
            self.set_timer(_WAITS, self._check_later)

    def _check_later(self) -> None:
        workspace = self.session.workspace
        if workspace is not None and sum(len(entry.document.cases) for entry in workspace.evalsets) <= MOST_CASES:
            self.run_worker(self._check(workspace), group="check", exclusive=True)

    def action_found(self) -> None:
        self.run_worker(self._show_found(), group="check", exclusive=True)

    async def _show_found(self) -> None:
        workspace = self.session.workspace
        if workspace is None:
            self.say("still reading")
            return
        self.say("checking …")
        found = await self._check(workspace)
        self.key_line.hush()
        if found is None:
            return
        items = [
            Item(
                one_line(fault.message, limit=300),
                pair or (),
                hint=one_line(self._place(fault), limit=60),
                kind="!" if fault.severity == "error" else "~",
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
        found = await asyncio.to_thread(check, workspace)
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
