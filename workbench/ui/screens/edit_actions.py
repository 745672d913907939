"""Editing what is under the cursor: in place, or in the user's editor."""

import asyncio
from typing import TYPE_CHECKING

from workbench.ui.screens.outside_actions import OutsideActions
from workbench.ui.tree.outline import Row

if TYPE_CHECKING:
    from workbench.model.places import Location
    from workbench.ui.editing.drafts import Draft


class EditActions(OutsideActions):
    """The editor, and what it hands back to the main screen."""

    # In place

    def action_edit(self) -> None:
        row = self.tree_view.row
        if row is None or row.evalset < 0:
            self.say("put the cursor on a case or an evalset first")
            return
        self.run_worker(self.edit_row(row), group="edit", exclusive=True)

    def action_edit_outside(self) -> None:
        row = self.tree_view.row
        if row is None or row.case < 0:
            self.say("put the cursor on a case first")
            return
        self.run_worker(self._edit_outside_from_tree(row), group="edit", exclusive=True)

    async def _edit_outside_from_tree(self, row: Row) -> None:
        draft = await self._draft(row)
        if draft is not None:
            await self.edit_outside(draft)

    async def edit_row(self, row: Row, *, at: "Location | None" = None, editing: bool = False) -> None:
        """Opens the editor on a case, or on what stands around the cases of a file, until it is left."""
        from workbench.ui.editing.editor import EditorScreen

        draft = await self._draft(row)
        saver = await self.saver()
        if draft is not None:
            self.warn_if_fleeting()
            screen = EditorScreen(draft, saver, self.keys, self, at=at, editing=editing, over=lambda: self.right.region)
            await self.app.push_screen_wait(screen)

    async def _draft(self, row: Row) -> "Draft | None":
        from workbench.authoring.whole_cases import GoneError
        from workbench.model.json_edit import EditError
        from workbench.ui.editing.drafts import open_case, open_frame

        entry = self.session.entry(row.evalset)
        if entry.document.format != "current":
            self.say_old_format()
            return None
        try:
            if row.case < 0:
                return await asyncio.to_thread(open_frame, entry.file)
            chosen = self.chosen(row.evalset, [row.case])
            return await asyncio.to_thread(open_case, chosen, entry.document)
        except (EditError, GoneError, OSError) as error:
            self.tell(error)
            await self.reopen(entry.file)
            return None

    async def reopened(self, draft: "Draft") -> "Draft | None":
        """The draft in the file as it is now; None if it is not there any more."""
        from workbench.authoring.evalset_file import EvalsetFile
        from workbench.model.json_edit import EditError

        try:
            content = await asyncio.to_thread(draft.file.read_bytes)
            return draft.reopened(await asyncio.to_thread(EvalsetFile, content))
        except (EditError, OSError):
            return None
