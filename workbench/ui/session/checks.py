"""The check of the folder in the background. Its problems are marked in the tree and listed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.text.safe_text import one_line, plain
from workbench.ui.dialogs.items import Item
from workbench.ui.session.findings import MOST_CASES, Findings, check
from workbench.ui.session.view import Controller, Stoppable, View, read_in_thread

if TYPE_CHECKING:
    from workbench.agents.workspace import Workspace
    from workbench.files.faults import Fault
    from workbench.project.project import TrialImport

_DELAY = 0.4
"""Seconds between showing the folder and checking it, so that the first frame and keys come first."""


class Checks(Controller):
    """The check of the folder.

    It runs in a thread after each read of the folder or of a file in it. `try_imports` makes the engine import each
    agent in a child process. It passes every outcome to its second argument, in another thread.
    """

    def __init__(self, view: View, try_imports: "Callable[[Workspace, Callable[[TrialImport], object]], None]") -> None:
        super().__init__(view)
        self._try_imports = try_imports
        self._due: Stoppable | None = None

    def loaded(self) -> None:
        """Check the folder soon, because it was read."""
        if self._due is not None:
            self._due.stop()
        if self.session.checks:
            self._due = self.view.set_timer(_DELAY, self._check_in_background)

    def _check_in_background(self) -> None:
        workspace = self.session.workspace
        if self.session.loading == "results":
            self.loaded()  # The verdicts come first, also on a slow machine.
        elif workspace is not None and sum(len(entry.document.cases) for entry in workspace.evalsets) <= MOST_CASES:
            self.view.work(self._check(workspace), "check")

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
        """List the problems found by check."""
        self.view.work(self._show_found(), "check")

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
                hint=one_line(self._place(fault), limit=60),
                kind={"error": "!", "warning": "~", "note": "·"}[fault.severity],
                help=plain(fault.sentence(self._place(fault)), limit=2000),
            )
            for fault, pair in found.every
        ]
        title = f"problems found by check: {len(items):,}" if items else "problems found by check"
        pair = await self.view.pick(title, items, nothing="no problems found")
        if pair:
            self.view.go_to(*pair)
            self.view.go_left()

    def _place(self, fault: "Fault") -> str:
        root = str(self.session.workspace.root) if self.session.workspace else ""
        return str(fault.file).removeprefix(root + "/")

    async def _check(self, workspace: "Workspace") -> Findings | None:
        """Check the folder and show the findings. Return None if the folder was read again meanwhile."""
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
