"""A case in the user's own editor, again and again until it can be saved or is given up."""

import asyncio
from typing import TYPE_CHECKING, Any

from workbench.text import one_line, plain
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.screens.undo_actions import UndoActions
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from workbench.authoring.evalset_file import RejectedError
    from workbench.authoring.saving import ChangedOnDiskError
    from workbench.ui.editing.drafts import Draft
    from workbench.ui.editing.settling import Settled


class OutsideActions(UndoActions):
    """The screen is gone while the editor runs; a run of cases goes on."""

    async def edit_outside(self, draft: "Draft") -> "Draft | None":
        """The draft after the user's editor; None if it is not there any more."""
        from workbench.ui.editing.outside import NoEditorError
        from workbench.ui.editing.values import json_text

        text = first = json_text(draft.value)
        while True:
            try:
                text = self.lend_terminal(draft.name, text)
            except NoEditorError as error:
                self.notify(plain(str(error)), severity="warning", timeout=8, markup=False)
                return draft
            if text.strip() == first.strip():
                self.say("nothing was changed")
                return draft
            outcome = await self._save_outside(draft, text)
            if not isinstance(outcome, str):
                await self.reopen(draft.file)
                self.say("nothing was changed" if outcome.draft is draft else f"saved: {one_line(draft.name)}")
                return outcome.draft
            if not await self._once_more(outcome):
                return draft

    async def _save_outside(self, draft: "Draft", text: str) -> "Settled | str":
        """What came of saving, or why it was not saved."""
        from workbench.authoring.evalset_file import RejectedError
        from workbench.authoring.saving import ChangedOnDiskError
        from workbench.model.json_edit import EditError, same
        from workbench.ui.editing.drafts import save_draft
        from workbench.ui.editing.settling import Settled
        from workbench.ui.editing.values import UnreadableError, read_json_text
        from workbench.ui.editing.wording import in_words

        label = f"{draft.name}: in an editor"
        try:
            value = read_json_text(text)
            if same(value, draft.value):
                return Settled(draft)
            return Settled(await asyncio.to_thread(save_draft, await self.saver(), draft, value, label))
        except UnreadableError as error:
            return f"line {error.line}, column {error.column}: {error}"
        except RejectedError as error:
            return _at_line(text, error)
        except ChangedOnDiskError as error:
            return await self._settle_outside(error, draft, value, label) or in_words(error)
        except (EditError, OSError) as error:
            return in_words(error)

    async def _settle_outside(
        self, error: "ChangedOnDiskError", draft: "Draft", value: Any, label: str
    ) -> "Settled | None":
        try:
            return await self.settle(error, draft, value, label)
        except OSError as trouble:
            self.tell(trouble)
            return None

    async def _once_more(self, trouble: str) -> bool:
        items = [Item("edit it again", True, help=one_line(trouble)), Item("drop what was typed", False)]
        return bool(await self.app.push_screen_wait(PickScreen(one_line(trouble, limit=70), searching(items))))

    def lend_terminal(self, name: str, text: str) -> str:
        """The text as the user's editor leaves it; the screen is gone until then."""
        from textual.app import SuspendNotSupported

        from workbench.ui.editing.outside import NoEditorError, edit_outside

        try:
            with self.app.suspend():
                return edit_outside(name, text)
        except SuspendNotSupported:
            raise NoEditorError("this terminal cannot be lent to an editor") from None


def _at_line(text: str, error: "RejectedError") -> str:
    """A rejection with the line at which its cause stands in the text."""
    from workbench.ui.editing.values import place_of

    breach = error.breaches[0]
    place = place_of(text, breach.location)
    return f"line {place[0]}: {error}" if place else str(error)
