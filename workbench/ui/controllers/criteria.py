"""The criteria that hold for what is under the cursor, in a form."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.counting import counted
from workbench.text import one_line
from workbench.ui.controllers.files import Files
from workbench.ui.controllers.view import Controller, View
from workbench.ui.items import Item

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.config_file import ConfigDraft


class Criteria(Controller):
    """The form of criteria. The folder is shown as it is after each save."""

    def __init__(self, view: View, files: Files) -> None:
        super().__init__(view)
        self._files = files

    def criteria(self) -> None:
        """Edit the criteria of what is under the cursor."""
        self.view.work(self._edit_criteria(), "edit")

    async def _edit_criteria(self) -> None:
        entry = await self._whose_criteria()
        draft = None if entry is None else await self._config_of(entry)
        if entry is None or draft is None:
            return
        from workbench.authoring.what_if import WhatIf
        from workbench.ui.criteria.form import CriteriaScreen

        files = {one.relative for one in self._with_same_config(entry)}
        records = [record for ref, record in self.session.store.records.items() if ref.evalset_file in files]
        screen = CriteriaScreen(
            draft,
            self.session.saver,
            WhatIf(records),
            self.view.keys,
            why=lambda draft: self._why(entry, draft),
            saved=self._files.folder.read_again,
        )
        await self.view.ask(screen)

    async def _whose_criteria(self) -> "EvalsetEntry | None":
        """Return the evalset under the cursor. Above evalsets, ask for one of those whose configs hold below it."""
        row = self.view.rows.cursor
        if row is not None and row.evalset >= 0:
            return self.session.entry(row.evalset)
        numbers = sorted({evalset for evalset, _ in self.view.rows.targets()})
        entries = [self.session.entry(number) for number in numbers]
        if not entries:
            self.view.say("put the cursor on an evalset first")
            return None
        files = {_config_file(entry): entry for entry in reversed(entries)}
        if len(files) == 1:
            return entries[0]
        items = [
            Item(
                self._files.folder.below_root(str(file)) + ("" if entry.criteria.config.path else "  (new)"),
                entry,
                help=one_line(f"{entry.relative}: {entry.criteria.reason}"),
            )
            for file, entry in sorted(files.items())
        ]
        found: EvalsetEntry | None = await self.view.pick("which criteria?", items)
        return found

    async def _config_of(self, entry: "EvalsetEntry") -> "ConfigDraft | None":
        from workbench.authoring.config_file import new_draft, open_config
        from workbench.model.json_edit import EditError

        file = _config_file(entry)
        try:
            # One may have come since the folder was read.
            if entry.criteria.config.path is None and not await asyncio.to_thread(file.exists):
                return new_draft(file)
            return await asyncio.to_thread(open_config, file)
        except (EditError, OSError) as error:
            self._files.tell(error)
            return None

    def _with_same_config(self, entry: "EvalsetEntry") -> "list[EvalsetEntry]":
        """Return the evalsets for which the file holds, or a new one beside the evalset would."""
        workspace = self.session.workspace
        path = entry.criteria.config.path
        return [
            one
            for one in (workspace.evalsets if workspace else ())
            if one.criteria.config.path == path and (path is not None or one.file.parent == entry.file.parent)
        ]

    def _why(self, entry: "EvalsetEntry", draft: "ConfigDraft") -> str:
        # The folder may have been read again since the form was opened.
        workspace = self.session.workspace
        now = workspace.evalsets if workspace else ()
        entry = next((one for one in now if one.file == entry.file), entry)
        count = len(self._with_same_config(entry))
        holds = counted(count, "evalset")
        if draft.before is None:
            file = self._files.folder.below_root(str(draft.file))
            return one_line(
                f"No config holds for {entry.relative}: the defaults do. s writes {file}, which holds for {holds}"
            )
        reason = entry.criteria.reason.removeprefix(draft.file.name).strip()
        return one_line(f"{self._files.folder.below_root(str(draft.file))}, {reason}; holds for {holds}")


def _config_file(entry: "EvalsetEntry") -> Path:
    """Return the config that holds for an evalset, or the path of a new one."""
    from workbench.authoring.config_file import NEW_CONFIG

    return entry.criteria.config.path or entry.file.parent / NEW_CONFIG
