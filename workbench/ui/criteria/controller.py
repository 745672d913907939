"""Actions that open the criteria editor, for the next run or for the file that governs an evalset."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.running.run import Run, Targets
from workbench.ui.screen.controller import Controller
from workbench.ui.variants.controller import Variants

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.editing.criteria_change import ConfigDraft
    from workbench.editing.what_if import WhatIf
    from workbench.ui.criteria.changes import FormChanges
    from workbench.ui.criteria.mode import EditorMode
    from workbench.ui.screen.view import View

_ONCE = "Criteria apply to the next run only. ctrl+o saves them to the file."


class Criteria(Controller):
    """Actions that open the criteria editor. The folder is read again after each save."""

    def __init__(self, view: "View", files: Files, run: Run, variants: Variants) -> None:
        super().__init__(view)
        self._files, self._run, self._variants = files, run, variants

    def criteria(self) -> None:
        """Edit the criteria of the evalset under the cursor."""
        self.view.work(self._edit_criteria, "edit")

    def options(self) -> None:
        """Change the options of the next run: its criteria, use of recordings, and place."""
        targets = self.view.targets("options")
        if self.session.workspace is None or not targets:
            self.view.say("no cases here")
        else:
            self.view.work(partial(self._edit_next_run, targets), "edit")

    async def _edit_criteria(self) -> None:
        entry = await self._whose_criteria()
        draft = None if entry is None else await self.config_of(entry)
        if entry is None or draft is None:
            return
        from workbench.ui.criteria.changes import FormChanges
        from workbench.ui.criteria.mode import EditorMode

        edit = FormChanges(draft, what_if=self._last_results(self.with_same_config(entry)))
        title = f"criteria › {one_line(draft.file.name, limit=60)}"
        await self._ask([edit], EditorMode(title, lambda now: self._why(entry, now), self._files.folder.read_again))

    async def _edit_next_run(self, targets: Targets) -> None:
        from workbench.ui.criteria.mode import EditorMode

        names = self.view.rows.names()
        edits = await self._edits(targets)
        if edits is None:
            return

        def apply(_: "Sequence[FormChanges]") -> None:
            assert mode.recordings is not None
            assert mode.place is not None
            self.session.recordings, self.session.places = mode.recordings, mode.place
            for path, edit in edits.items():
                self.session.draft.change(path, edit.draft.content, edit.result)

        async def saved() -> None:
            for path, edit in edits.items():
                if not edit.pending:
                    self.session.draft.forget(path)
            await self._files.folder.read_again()

        title = f"next run: {counted(len(targets), 'case')}"
        mode = EditorMode(title, lambda _: _ONCE, saved, apply, self.session.recordings, self.session.places)
        ending = await self._ask(list(edits.values()), mode)
        self.view.show_facts()
        targets = self.view.rows.current_pairs(names, targets)
        if ending == "run":
            self._run.run_cases(targets)
        elif ending == "try":
            self._variants.try_cases(targets)

    async def _edits(self, targets: Targets) -> "dict[Path | None, FormChanges] | None":
        """Return the configs of these cases by file, with the key None for cases without a config.

        If a config cannot be read, show why and return None.
        """
        from workbench.ui.criteria.changes import FormChanges

        by_config: dict[Path | None, list[EvalsetEntry]] = {}
        for number in sorted({evalset for evalset, _ in targets}):
            entry = self.session.entry(number)
            by_config.setdefault(entry.criteria.config.edited_file, []).append(entry)
        edits = {}
        for path, entries in by_config.items():
            draft = await self.config_of(entries[0])
            if draft is None:
                return None
            after = self.session.draft.content(path, draft.content)
            edit = FormChanges(draft, after, self._last_results(entries))
            edit.name = one_line(self.session.below_root(path) if path is not None else entries[0].criteria.reason)
            edit.file_name = self.session.below_root(draft.file)
            folders = {entry.file.parent for entry in entries} if path is None else ()
            if len(folders) > 1:
                edit.obstacle = f"the evalsets are in {counted(len(folders), 'folder')}: save for one folder at a time"
            edits[path] = edit
        return edits

    def _last_results(self, entries: "Sequence[EvalsetEntry]") -> "WhatIf":
        from workbench.editing.what_if import WhatIf

        files, verdicts = {entry.relative for entry in entries}, self.session.verdicts
        numbers = [n for n, entry in enumerate(self.session.opened.evalsets) if entry.relative in files]
        pairs = [(number, case) for number in numbers for case, _ in verdicts.of_evalset(number)]
        records = [record for pair in pairs for record in verdicts.records(*pair)]
        return WhatIf(records, self.session.prices)

    async def _ask(self, edits: "Sequence[FormChanges]", mode: "EditorMode") -> str | None:
        from workbench.ui.criteria.form import CriteriaScreen

        ending: str | None = await self.view.ask(CriteriaScreen(edits, mode, self.session.saver, self.view.keys))
        return ending

    async def _whose_criteria(self) -> "EvalsetEntry | None":
        """Return the evalset whose criteria to edit, or None. If several configs govern the row, ask which one."""
        row = self.view.rows.cursor
        if row is not None and row.evalset >= 0:
            return self.session.entry(row.evalset)
        numbers = sorted({evalset for evalset, _ in self.view.targets("criteria")})
        entries = [self.session.entry(number) for number in numbers]
        if not entries:
            self.view.say("put the cursor on an evalset first")
            return None
        files = {_config_file(entry): entry for entry in reversed(entries)}
        if len(files) == 1:
            return entries[0]
        items = [
            Item(
                self.session.below_root(file) + ("" if entry.criteria.config.edited_file else "  (new)"),
                entry,
                help=one_line(f"{entry.relative}: {entry.criteria.reason}"),
            )
            for file, entry in sorted(files.items())
        ]
        found: EvalsetEntry | None = await self.view.pick("which criteria?", items)
        return found

    async def config_of(self, entry: "EvalsetEntry") -> "ConfigDraft | None":
        """Return an evalset's config, or a new one if it has none. If it cannot be read, show why and return None."""
        from workbench.editing.criteria_change import new_draft, open_config
        from workbench.files.json_text.json_edit import EditError
        from workbench.files.metrics_config import metrics_of

        file, config = _config_file(entry), entry.criteria.config
        metrics = metrics_of(config)
        try:
            # A config may have been created since the folder was read.
            is_missing = config.edited_file is None or metrics is not None
            if is_missing and not await asyncio.to_thread(file.exists):
                return new_draft(file, metrics)
            return await asyncio.to_thread(open_config, file, metrics)
        except (EditError, OSError) as error:
            self._files.show_error(error)
            return None

    def with_same_config(self, entry: "EvalsetEntry") -> "list[EvalsetEntry]":
        """Return the evalsets that share this evalset's config.

        If it has no config, return those that a new config beside the evalset would govern.
        """
        path = entry.criteria.config.edited_file
        return [
            one
            for one in self.session.opened.evalsets
            if one.criteria.config.edited_file == path and (path is not None or entry.file.parent in one.file.parents)
        ]

    def _why(self, entry: "EvalsetEntry", draft: "ConfigDraft") -> str:
        # The folder may have been read again since the form was opened.
        entry = next((one for one in self.session.opened.evalsets if one.file == entry.file), entry)
        governed = counted(len(self.with_same_config(entry)), "evalset")
        if draft.before is None:
            file = self.session.below_root(draft.file)
            used = entry.criteria.reason if draft.metrics is not None else "no config and uses the defaults"
            return one_line(f"{entry.relative} has {used}. ctrl+o creates {file} for {governed}.")
        reason = entry.criteria.reason.removeprefix(draft.file.name).strip()
        return one_line(f"{self.session.below_root(draft.file)}, {reason}, for {governed}")


def _config_file(entry: "EvalsetEntry") -> Path:
    """Return the config file of an evalset, or the path of a new one."""
    from workbench.editing.criteria_change import NEW_CONFIG

    return entry.criteria.config.edited_file or entry.file.parent / NEW_CONFIG
