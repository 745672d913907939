"""The two uses of the criteria editor, and the base of its screen that applies, saves or discards changes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from workbench.editing.criteria_change import (
    ConfigDraft,
    ConfigRejectedError,
    Content,
    changed_names,
    draft_of,
    edit_of,
    merged,
    new_faults,
)
from workbench.editing.saving import Saver
from workbench.files.faults import Fault
from workbench.files.json_text.json_edit import EditError
from workbench.text.safe_text import one_line
from workbench.ui.actions import footer
from workbench.ui.criteria.changes import FormChanges
from workbench.ui.dialogs.items import Item
from workbench.ui.dialogs.pick import Ask
from workbench.ui.editing.conflicts import Chosen, choose_version, save, save_error_message
from workbench.ui.editing.field import FieldScreen
from workbench.ui.session.next_run import PlaceOptions, RecordingOptions
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.rows import RowView

Ending: TypeAlias = Literal["applied", "run", "try"]
"""How the editor was closed, unless the changes were discarded."""


@dataclass
class EditorMode:
    """A use of the editor: for the next run, or for a file.

    `why` returns safe text about a config, which is shown above the rows. `saved` is called after each save. `apply`
    takes over the changes for the next run. It is None if the editor changes the file. `recordings` and `place` are the
    edited options of the next run, or None.
    """

    title: str
    why: Callable[[ConfigDraft], str]
    saved: Callable[[], Awaitable[object]]
    apply: Callable[[Sequence[FormChanges]], None] | None = None
    recordings: RecordingOptions | None = None
    place: PlaceOptions | None = None

    @property
    def is_for_next_run(self) -> bool:
        """Whether changes apply to the next run only."""
        return self.apply is not None


class LeavingScreen(FieldScreen[Ending | None]):
    """A screen that edits configs. `mode` says whether changes apply to the next run or to the files."""

    verb = ("accepts", "accepted")

    def __init__(
        self,
        rows: RowView,
        edits: Sequence[FormChanges],
        mode: EditorMode,
        saver: Saver,
        keys: Mapping[str, tuple[str, ...]],
    ) -> None:
        super().__init__(rows, keys, footer("criteria"))
        self.edits, self.mode, self._saver = edits, mode, saver
        self._busy = False
        self._warned = False
        """Whether the user was just warned that changes would be lost."""

    def reject(self, edit: FormChanges, fault: Fault, what: str) -> None:
        """Show a fault that makes a config unusable, after the words `what`."""
        raise NotImplementedError

    async def after_save(self, words: str) -> None:
        """Show the saved files, with a message."""
        raise NotImplementedError

    @property
    def pending(self) -> bool:
        """Whether a config has unsaved changes."""
        return any(edit.pending for edit in self.edits)

    def back(self) -> None:
        """Discard the changes and close the editor. If the changes are for a file, warn first."""
        if self._busy:
            return
        if self.pending and not self.mode.is_for_next_run and not self._warned:
            self._warned = True
            self.say("not saved: ctrl+o saves, esc again discards the changes", warning=True)
            return
        self.dismiss(None)

    def leave(self, ending: Ending) -> None:
        """Apply the changes to the next run and close the editor. If they would stop a run, show why and stay open."""
        assert self.mode.apply is not None
        for edit in self.edits:
            try:
                faults = new_faults(edit.draft, edit.result)
            except EditError as error:
                self.say(save_error_message(error), warning=True)
                return
            if faults:
                self.reject(edit, faults[0], "not applied")
                return
        self.mode.apply(self.edits)
        self.dismiss(ending)

    def save(self) -> None:
        """Write the changed configs to their files. If the editor is for a file, also create a missing file."""
        if self._busy:
            return
        in_file = not self.mode.is_for_next_run
        wanted = [edit for edit in self.edits if edit.pending or (in_file and edit.draft.before is None)]
        obstacle = next((edit.obstacle for edit in wanted if edit.obstacle), "")
        if obstacle or not wanted:
            self.say(obstacle or "no changes", warning=bool(obstacle))
            return
        self._busy = True
        start_work(self, partial(self._save, wanted), "save")

    async def _save(self, wanted: Sequence[FormChanges]) -> None:
        messages = []
        try:
            for edit in wanted:
                message = await self._save_one(edit)
                if message is None:
                    return
                messages.append(message)
            await self.after_save("; ".join(messages))
        finally:
            self._busy = False

    async def _save_one(self, edit: FormChanges) -> str | None:
        """Save a config and return a message about it. If it cannot be saved, show why and return None."""
        draft, content = edit.draft, edit.result
        try:
            label, mine = await asyncio.to_thread(edit_of, draft, content)
            choose = partial(_choose, self.app.push_screen_wait, draft, content, mine)
            saved = await save(self._saver, label, draft.file, draft.before, mine, choose)
        except ConfigRejectedError as error:
            self.reject(edit, error.faults[0], "not saved")
            return None
        except (EditError, OSError) as error:
            self.say(save_error_message(error), warning=True)
            return None
        if saved is None:
            self.say("not saved: your changes are still here", warning=True)
            return None
        edit.saved(draft_of(draft.file, saved.content or b"", draft.metrics))
        name = one_line(draft.file.name)
        return f"saved: {name} (in the tree, u undoes)" if saved.written else f"kept {name} as it is on disk"


async def _choose(ask: Ask, draft: ConfigDraft, content: Content, mine: bytes, theirs: bytes | None) -> Any:
    """Let the user choose a version of a config: the one on disk, their own, or both merged.

    Return `Chosen`, or None to go back to the editor.
    """
    try:
        there = draft_of(draft.file, theirs or b"", draft.metrics)
    except EditError:
        # The file was deleted, or it is no longer an editable config.
        return await choose_version(ask, draft.file, mine, theirs, leave="")
    both = Item("both: their version with your changes", "both", help=_who(draft.content, there.content, content))
    chosen = await choose_version(ask, draft.file, mine, theirs, both=both)
    if chosen == "both":
        _, new = await asyncio.to_thread(edit_of, there, merged(draft.content, there.content, content))
        return Chosen(new)
    return chosen


def _who(base: Content, theirs: Content, mine: Content) -> str:
    they, you = changed_names(base, theirs), changed_names(base, mine)
    who = f"Changed on disk: {', '.join(they) or 'only the layout'}. Changed by you: {', '.join(you) or 'nothing'}."
    if both := sorted(set(they) & set(you)):
        who += f" Changed by both, so your version is used: {', '.join(both)}."
    return one_line(who)
