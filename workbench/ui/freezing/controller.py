"""Freezing of cases, and the choices if a recording lacks a call or cannot be read."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.events.events import CaseName, Event, RunStarted
from workbench.store.details import read_details
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.news import News
from workbench.ui.running.run import Request, Run
from workbench.ui.screen.controller import Controller
from workbench.ui.session.next_run import RecordingOptions, lacks_recording

if TYPE_CHECKING:
    from workbench.editing.freezing import Freezing as Prepared
    from workbench.editing.saving import Contents
    from workbench.store.execution import Execution
    from workbench.ui.screen.view import View

Pair = tuple[int, int]


class Freezing(Controller):
    """The actions "freeze" and "thaw". After a replay that failed, "freeze" offers ways to fix the recording."""

    def __init__(self, view: "View", news: News, files: Files, run: Run, engine: Engine) -> None:
        super().__init__(view)
        self._files, self._run, self._engine = files, run, engine
        self._requested: frozenset[CaseName] = frozenset()
        """The cases of the requested run, which are frozen after it."""
        self._after_run: frozenset[CaseName] = frozenset()
        """The cases to freeze once the active run has ended."""
        self.session.store.subscribe(self._take)
        news.when_taken.append(self.after_news)

    def freeze(self) -> None:
        """Show what freezing the cases would write, and write what the user chooses.

        If the recording of a single case lacks a call or cannot be read, offer ways to fix that instead.
        """
        pairs, row = self.view.targets("freeze"), self.view.rows.cursor
        record = self.session.record(row) if row is not None and pairs == [(row.evalset, row.case)] else None
        if record is not None and lacks_recording(record):
            self.view.work(partial(self._fix_missing, (record.ref.evalset_file, record.ref.eval_id), record), "edit")
        else:
            self.view.work(partial(self.freeze_cases, pairs), "edit")

    async def freeze_cases(self, pairs: Sequence[Pair]) -> bool:
        """Show what freezing these cases would write, and write what the user chooses. Return whether files changed."""
        from workbench.ui.freezing.screen import FreezeScreen

        every = (record for pair in dict.fromkeys(pairs) for record in self.session.verdicts.records(*pair))
        records = [record for record in every if record.finished]
        if not records:
            self.view.say("no case here has finished a run: r runs the cases", warning=True)
            return False
        root = self.session.opened.root
        prepare = partial(self._prepare, records, root)
        try:
            prepared = await asyncio.to_thread(prepare, False, False)
            choice = await self.view.ask(FreezeScreen(prepared, prepare, root, self.view.keys))
            if choice is None:
                return False
            chosen = [record for record in records if record.ref.name in choice.cases]
            freezing = await asyncio.to_thread(self._prepare, chosen, root, choice.models, choice.prune)
        except OSError as error:
            self._files.show_error(error, "not frozen")
            return False
        if not freezing.contents:
            self.view.say("nothing to write: the recordings are unchanged")
            return False
        return await self._files.put(freezing.label, freezing.contents)

    def _prepare(self, records: "Sequence[Execution]", root: Path, models: bool, prune: bool) -> "Prepared":
        """Return what freezing these executions would write. Runs in a thread."""
        from workbench.project.freezing import freezing_of_cases

        return freezing_of_cases(records, root, self.session.state_dir, models=models, prune=prune)

    async def _fix_missing(self, name: CaseName, execution: "Execution") -> None:
        from workbench.results.evidence_reasons import missed_in, missed_request_in, part_words

        record = await asyncio.to_thread(read_details, execution)
        assert record.error is not None
        missed = await asyncio.to_thread(missed_in, record, self.session.state_dir)
        request = missed_request_in(record) if missed is None else None
        frozen = record.frozen
        items = []
        if missed is not None or (frozen is not None and record.error.kind == "frozen_miss" and frozen.misses):
            help_text = "Replays recorded calls, makes the others live, then shows what freezing would add."
            items.append(Item("run again, and record missing calls", "add", help=help_text))
        for argument in missed.differing if missed is not None else ():
            words = f"ignore {one_line(argument, limit=60)} of {one_line(missed.tool, limit=60)}"  # type: ignore[union-attr]
            help_text = "Edits the recording, so that calls match whatever this argument is. u undoes it."
            items.append(Item(words, ("ignore", missed.tool, argument), help=help_text))  # type: ignore[union-attr]
        for part in request.parts if request is not None else ():
            help_text = "Edits the recording, so that model requests match whatever this part is. u undoes it."
            words = f"ignore {part_words(part)} in requests to models"
            items.append(Item(words, ("ignore", request.TOOL, part), help=help_text))  # type: ignore[union-attr]
        items += [
            Item("run live, and freeze again", "again", help="Shows the new recording before it replaces the old one."),
            Item("run live once", "live", help="Changes no recording."),
        ]
        chosen = await self.view.pick(f"fix recording › {one_line(record.ref.eval_id)}", items)
        pairs = self.session.verdicts.places([name])
        match chosen:
            case ("ignore", str(tool), str(argument)) if frozen is not None:
                await self._ignore(frozen.file, tool, argument)
            case "add":
                mode = frozen.mode if frozen is not None else "tools"
                self._run_first(pairs, RecordingOptions(mode, live_on_miss=True), freeze=True)
            case "again" | "live":
                self._run_first(pairs, RecordingOptions(""), freeze=chosen == "again")

    def _run_first(self, pairs: Sequence[Pair], recordings: RecordingOptions, *, freeze: bool) -> None:
        if freeze and not self.session.store.activity.busy:
            self._requested = frozenset(self.session.opened.case_name(*pair) for pair in pairs)
        self._run.start(Request(pairs, partial(self._engine.build, recordings=recordings)))

    def _take(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            # Another run may have started instead of the requested one.
            wanted, self._requested = self._requested, frozenset()
            self._after_run = wanted if wanted == {planned.case.name for planned in event.cases} else frozenset()

    def after_news(self, ended: bool) -> None:
        """Freeze the cases of a requested run once it has ended. If another screen is open, only tell the user."""
        if ended and self._after_run:
            names, self._after_run = self._after_run, frozenset()
            if self.view.covered:
                self.view.notify("the run has ended: press K on its cases to freeze them")
            else:
                self.view.work(partial(self.freeze_cases, self.session.verdicts.places(names)), "edit")

    async def _ignore(self, file: str, tool: str, argument: str) -> None:
        from workbench.editing.freezing import ignoring
        from workbench.files.own_file import OwnFileError
        from workbench.run.recordings.requests import MissedRequest

        path = self.session.opened.root / file
        try:
            contents: Contents = await asyncio.to_thread(ignoring, path, tool, argument)
        except OwnFileError as error:
            self.view.notify(error.faults[0].sentence(path.name), severity="error", timeout=10)
            return
        except OSError as error:
            self._files.show_error(error)
            return
        of = "requests to models" if tool == MissedRequest.TOOL else tool
        await self._files.put(f"ignore {argument} of {of}", contents)

    def thaw(self) -> None:
        """Run the cases live, and compare each tool answer with its recording."""
        self._run_first(self.view.targets("thaw"), RecordingOptions("thaw"), freeze=False)
