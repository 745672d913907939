"""Actions that try variants of the project on cases, and keep a variant."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.run import Targets
from workbench.ui.running.run_thread import RunThread
from workbench.ui.screen.controller import Controller
from workbench.ui.terminal.host import Host

if TYPE_CHECKING:
    from workbench.ui.screen.view import View
    from workbench.ui.variants.dialog import Choice
    from workbench.ui.variants.model import Try

_NOTHING_TO_KEEP = "nothing to keep: the project already has these files"
_ELSEWHERE = "variables and models are not written: change them in .env or in the agent"


class Variants(Controller):
    """The actions that try variants on the marked or current cases. They change no verdicts."""

    def __init__(self, view: "View", files: Files, engine: Engine, thread: RunThread, host: Host) -> None:
        super().__init__(view)
        self._files, self._engine, self._thread, self._host = files, engine, thread, host

    def try_head(self) -> None:
        """Try the working tree against HEAD."""
        self.try_cases(self.view.targets("try_head"))

    def try_variants(self) -> None:
        """Ask which variants to try, and try them."""
        self.try_cases(self.view.targets("try_variants"), ask=True)

    def try_cases(self, targets: Targets, *, ask: bool = False) -> None:
        """Try the working tree against HEAD on these cases. With `ask`, ask which variants to try."""
        if self.workspace() is None:
            return
        if targets:
            self.view.work(partial(self._ask if ask else self._try, targets, None), "variants")
        else:
            self.view.say("no cases here")

    async def _ask(self, targets: Targets, before: "Choice | None") -> None:
        from workbench.ui.variants.dialog import TryDialog

        names = self.view.rows.names()
        choice = await self.view.ask(TryDialog(f"try variants on {counted(len(targets), 'case')}", before))
        if choice is not None:
            await self._try(self.view.rows.current_pairs(names, targets), choice)

    async def _try(self, targets: Targets, choice: "Choice | None") -> None:
        """Start a try and show it. If a file has changed, read the folder again first."""
        from workbench.project.variants.variant import Wanted
        from workbench.ui.variants.dialog import RUNS
        from workbench.ui.variants.model import Try, TryRun
        from workbench.ui.variants.screen import TryScreen

        folder, rows = self._files.folder, self.view.rows
        names = rows.names()
        if self.session.outdated() and not await folder.read_again():
            return
        await folder.give_agents(rows.current_pairs(names, targets))
        targets, names = rows.current_pairs(names, targets), rows.names()
        if not targets:
            self.view.say("these cases no longer exist", warning=True)
            return
        wanted, runs = (Wanted(), RUNS) if choice is None else (choice.wanted, choice.runs)
        make, prices, state = self._engine.trial(targets, wanted, runs), self.session.prices, self.session.state_dir
        tried = Try(lambda wake: TryRun(self._thread, self._engine, make, prices, state, wake), prices)

        async def undo() -> str:
            _, message = await self._files.take_back(again=False)
            return message

        def left(_: None) -> None:
            if tried.stage == "refused" and choice is not None:
                self.view.work(partial(self._ask, rows.current_pairs(names, targets), choice), "variants")

        keep, go = partial(self._keep, tried), self._files.go_to_stored
        self.view.push(TryScreen(tried, self.view.keys, self._host, keep=keep, undo=undo, go=go), left)

    async def _keep(self, tried: "Try", variant: int) -> str:
        """Write a variant's files into the project, if the user confirms it. Return a safe message, or "" if not."""
        from workbench.editing.saving import ChangedOnDiskError
        from workbench.files.run_options import UsageFaultError
        from workbench.ui.editing.conflicts import save_error_message

        trial = tried.trial
        if trial is None:
            return ""
        name = one_line(trial.layout.names[variant], limit=60)
        try:
            contents = await asyncio.to_thread(trial.kept, variant)
        except (UsageFaultError, OSError) as error:
            return one_line(str(error))
        made = trial.variants[variant]
        if not contents:
            return _ELSEWHERE if made.values or made.model else _NOTHING_TO_KEEP
        names = [self.session.below_root(file) for file in contents]
        deleted = sum(after is None for _, after in contents.values())
        written = len(contents) - deleted
        parts = [f"write {counted(written, 'file')} of {name}"] if written else []
        parts += [f"delete {counted(deleted, 'file')} that {name} lacks"] if deleted else []
        what = " and ".join(parts)
        help_ = f"{few(names, 5)}. u undoes it." + (f" {_ELSEWHERE.capitalize()}." if made.values or made.model else "")
        items = [Item(what, True, help=one_line(help_, limit=1000)), Item("go back", False)]
        if not await self.view.pick(f"keep {name}?", items, placeholder=""):
            return ""
        saver = await self._files.saver()
        try:
            await asyncio.to_thread(saver.save, f"keep {name}", contents)
        except (ChangedOnDiskError, OSError, ValueError) as error:
            return save_error_message(error)
        await self._files.reopen(*contents)
        done = [f"{counted(written, 'file')} written"] if written else []
        done += [f"{counted(deleted, 'file')} deleted"] if deleted else []
        return one_line(f"{', '.join(done)} ({few(names)}): u undoes it")
