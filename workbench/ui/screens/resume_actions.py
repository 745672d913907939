"""Going on with a run that was interrupted: offered once, when the folder is opened, and never begun unasked."""

import asyncio

from workbench.text import one_line
from workbench.ui.run_thread import Build
from workbench.ui.screens.run_actions import RunActions


class ResumeActions(RunActions):
    def build_resumption(self) -> Build:
        """How the newest run is gone on with: the engine's part."""
        raise NotImplementedError

    def resumable(self) -> str:
        """What the newest run has, if it was interrupted and can be resumed; else "". Reads files: for a thread."""
        raise NotImplementedError

    def action_resume(self) -> None:
        if self.session.workspace is None:
            self.say("still reading")
        elif self.session.running or self.session.starting:
            self.say("a run is going on: cancel it, or wait for its end", warning=True)
        else:
            self.session.starting = True
            self.show_facts()
            self.runs.start(self.build_resumption())

    async def offer_resuming(self) -> None:
        """Says that the newest run can be resumed, and how."""
        has = await asyncio.to_thread(self.resumable)
        if has and not self.session.running:
            self.notify(
                f"{one_line(has)}\nIn the palette (:) resume goes on with it",
                title="a run was interrupted",
                timeout=15,
                markup=False,
            )
