"""The two uses of the criteria editor, and the code that applies, saves or discards its changes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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
from workbench.ui.criteria.preview import ConfigEdit
from workbench.ui.dialogs.items import Item
from workbench.ui.dialogs.pick import Ask
from workbench.ui.dialogs.screens import RowsScreen
from workbench.ui.editing.conflicts import Chosen, choose_version, save, save_error_message
from workbench.ui.session.next_run import PlaceOptions, RecordingOptions
from workbench.ui.widgets.basics import start_work

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
    apply: Callable[[Sequence[ConfigEdit]], None] | None = None
    recordings: RecordingOptions | None = None
    place: PlaceOptions | None = None

    @property
    def is_for_next_run(self) -> bool:
        """Whether changes apply to the next run only."""
        return self.apply is not None


Reject: TypeAlias = Callable[[ConfigEdit, Fault, str], None]


class Leaving:
    """Saving and closing of the criteria editor.

    `reject` shows a fault that makes a config unusable. `saved` is called with a message after files were saved.
    """

    def __init__(
        self,
        screen: RowsScreen[Ending | None],
        edits: Sequence[ConfigEdit],
        mode: EditorMode,
        saver: Saver,
        reject: Reject,
        saved: Callable[[str], Awaitable[None]],
    ) -> None:
        self._screen, self._edits, self._mode, self._saver = screen, edits, mode, saver
        self._reject, self._saved = reject, saved
        self._busy = False
        self.warned = False
        """Whether the user was just warned that changes would be lost."""

    def back(self) -> None:
        """Discard the changes and close the editor. If the changes are for a file, warn first."""
        if self._busy:
            return
        changed = any(edit.changes.pending for edit in self._edits)
        if changed and not self._mode.is_for_next_run and not self.warned:
            self.warned = True
            self._screen.say("not saved: ctrl+o saves, esc again discards the changes", warning=True)
            return
        self._screen.dismiss(None)

    def leave(self, ending: Ending) -> None:
        """Apply the changes to the next run and close the editor. If they would stop a run, show why and stay open."""
        assert self._mode.apply is not None
        for edit in self._edits:
            try:
                faults = new_faults(edit.changes.draft, edit.changes.result)
            except EditError as error:
                self._screen.say(save_error_message(error), warning=True)
                return
            if faults:
                self._reject(edit, faults[0], "not applied")
                return
        self._mode.apply(self._edits)
        self._screen.dismiss(ending)

    def save(self) -> None:
        """Write the changed configs to their files. If the editor is for a file, also create a missing file."""
        if self._busy:
            return
        in_file = not self._mode.is_for_next_run
        drafts = ((edit, edit.changes.draft) for edit in self._edits)
        wanted = [edit for edit, draft in drafts if edit.changes.pending or (in_file and draft.before is None)]
        obstacle = next((edit.obstacle for edit in wanted if edit.obstacle), "")
        if obstacle or not wanted:
            self._screen.say(obstacle or "no changes", warning=bool(obstacle))
            return
        self._busy = True
        start_work(self._screen, partial(self._save, wanted), "save")

    async def _save(self, wanted: Sequence[ConfigEdit]) -> None:
        messages = []
        try:
            for edit in wanted:
                message = await self._save_one(edit)
                if message is None:
                    return
                messages.append(message)
            await self._saved("; ".join(messages))
        finally:
            self._busy = False

    async def _save_one(self, edit: ConfigEdit) -> str | None:
        """Save a config and return a message about it. If it cannot be saved, show why and return None."""
        draft, content = edit.changes.draft, edit.changes.result
        try:
            label, mine = await asyncio.to_thread(edit_of, draft, content)
            choose = partial(_choose, self._screen.app.push_screen_wait, draft, content, mine)
            saved = await save(self._saver, label, draft.file, draft.before, mine, choose)
        except ConfigRejectedError as error:
            self._reject(edit, error.faults[0], "not saved")
            return None
        except (EditError, OSError) as error:
            self._screen.say(save_error_message(error), warning=True)
            return None
        if saved is None:
            self._screen.say("not saved: your changes are still here", warning=True)
            return None
        edit.changes.saved(draft_of(draft.file, saved.content or b"", draft.metrics))
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
