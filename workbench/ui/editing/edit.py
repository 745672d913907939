"""Editing of the case or evalset under the cursor, in place or in the user's editor."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from workbench.text.safe_text import one_line, plain
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.session.view import Controller, View
from workbench.ui.tree.outline import Row

if TYPE_CHECKING:
    from workbench.editing.evalset_file import RejectedError
    from workbench.editing.responsible import Place
    from workbench.files.faults import Location
    from workbench.ui.editing.drafts import Draft


class Edit(Controller):
    """The editor screen and the user's own editor. A run of cases continues meanwhile."""

    def __init__(self, view: View, files: Files) -> None:
        super().__init__(view)
        self._files = files

    # In place

    def edit(self) -> None:
        """Edit the case or evalset under the cursor."""
        if (row := self.current_evalset()) is not None:
            self.view.work(self.edit_row(row), "edit")

    def edit_outside(self) -> None:
        """Open the file that is responsible for what is under the cursor in the user's editor, at its line."""
        place = self.view.responsible()
        if place is None:
            self.view.say("no file here: put the cursor on a case or an agent")
        else:
            self.view.work(self._open(place), "edit")

    async def _open(self, place: "Place") -> None:
        from workbench.ui.editing.external_editor import NoEditorError, open_file

        try:
            self.view.lend_terminal(partial(open_file, place.file, place.line))
        except NoEditorError as error:
            self.view.notify(plain(str(error)), severity="warning", timeout=8)
        if self.session.outdated():
            await self._files.folder.read_again()

    async def edit_row(self, row: Row, *, at: "Location | None" = None, editing: bool = False) -> None:
        """Open the editor on a case, or on ID, name and description of an evalset, until the user leaves."""
        from workbench.ui.editing.editor import EditorScreen

        draft = await self.draft(row)
        if draft is not None:
            self._files.warn_if_undo_is_temporary()
            screen = EditorScreen(
                draft,
                self.view.keys,
                self._files,
                self.draft_outside,
                at=at,
                editing=editing,
                over=lambda: self.view.right.region,
            )
            await self.view.ask(screen)

    async def draft(self, row: Row) -> "Draft | None":
        """Return an editable draft of a row's case or evalset. If there is none, say why and return None."""
        from workbench.editing.whole_cases import GoneError
        from workbench.files.json_text.json_edit import EditError
        from workbench.ui.editing.drafts import open_case, open_frame

        entry = self.session.entry(row.evalset)
        if not entry.document.editable:
            self._files.say_old_format()
            return None
        try:
            if row.case < 0:
                return await asyncio.to_thread(open_frame, entry.file)
            chosen = self._files.chosen(row.evalset, [row.case])
            return await asyncio.to_thread(open_case, chosen, entry.document)
        except (EditError, GoneError, OSError) as error:
            self._files.show_error(error)
            await self._files.reopen(entry.file)
            return None

    # In the user's editor

    async def draft_outside(self, draft: "Draft") -> "Draft | None":
        """Open a draft in the user's editor until it can be saved or the user gives up.

        Return the updated draft, or None if it is no longer in the file.
        """
        from workbench.ui.editing.external_editor import NoEditorError, edit_text
        from workbench.ui.editing.values import json_text

        text = first = json_text(draft.stored)
        while True:
            try:
                text = self.view.lend_terminal(partial(edit_text, draft.name, text))
            except NoEditorError as error:
                self.view.notify(plain(str(error)), severity="warning", timeout=8)
                return draft
            after = draft if text.strip() == first.strip() else await self._save_outside(draft, text)
            if not isinstance(after, str):
                self.view.say("no changes" if after is draft else f"saved: {one_line(draft.name)}")
                return after
            if not await self._edit_again(after):
                return draft

    async def _save_outside(self, draft: "Draft", text: str) -> "Draft | str | None":
        """Return the saved draft, or the reason why it was not saved."""
        from workbench.editing.evalset_file import RejectedError
        from workbench.files.json_text.json_edit import same
        from workbench.ui.editing.drafts import NotSavedError
        from workbench.ui.editing.values import UnreadableError, read_json_text

        try:
            value = read_json_text(text)
            if same(value, draft.stored):
                return draft
            return await self._files.save(draft, value, f"{draft.name}: edit in $EDITOR")
        except UnreadableError as error:
            return f"line {error.line}, column {error.column}: {error}"
        except RejectedError as error:
            return _at_line(text, error)
        except NotSavedError as error:
            return str(error)

    async def _edit_again(self, reason: str) -> bool:
        items = [Item("edit again", True, help=one_line(reason)), Item("discard your text", False)]
        return bool(await self.view.pick(one_line(reason), items))


def _at_line(text: str, error: "RejectedError") -> str:
    """Return the message of a rejection, with the line that caused it."""
    from workbench.ui.editing.values import place_of

    breach = error.breaches[0]
    place = place_of(text, breach.location)
    return f"line {place[0]}: {error}" if place else str(error)
