"""Undo and redo, and showing files as they are after an edit."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.text import one_line
from workbench.ui.screens.folder_actions import FolderActions
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from workbench.authoring.saving import ChangedOnDiskError, Saver
    from workbench.authoring.whole_cases import Chosen
    from workbench.ui.editing.drafts import Draft
    from workbench.ui.editing.settling import Settled


class UndoActions(FolderActions):
    """Reads and writes in threads. Each edit is on the disk before the screen says so."""

    _warned = False

    # Back and again

    def action_undo(self) -> None:
        self.run_worker(self._say_taken_back(again=False), group="back")

    def action_redo(self) -> None:
        self.run_worker(self._say_taken_back(again=True), group="back")

    @cached_property
    def _one_at_a_time(self) -> asyncio.Lock:
        """A key that is pressed twice takes two edits back, one after the other."""
        return asyncio.Lock()

    async def _say_taken_back(self, *, again: bool) -> None:
        async with self._one_at_a_time:
            self.say(await self.take_back(again=again))

    async def take_back(self, *, again: bool) -> str:
        """Takes the newest edit back, or makes it again; what was done, in safe words."""
        from workbench.authoring.saving import ChangedOnDiskError, NothingToUndoError
        from workbench.ui.editing.wording import in_words

        saver = await self.saver()
        try:
            edit = await asyncio.to_thread(saver.redo if again else saver.undo)
        except NothingToUndoError as error:
            return str(error)
        except (ChangedOnDiskError, OSError) as error:
            return in_words(error)
        await self.reopen(*(change.file for change in edit.changes))
        files = ", ".join(sorted({change.file.name for change in edit.changes}))
        return one_line(f"{'made again' if again else 'undone'}: {edit.label}  ({files})")

    async def offer_interrupted(self) -> None:
        """Asks what is to become of an edit that was cut short when the workbench was open last."""
        from workbench.authoring.undo import FILE_NAME

        if not (self.session.state_dir / FILE_NAME).is_file():
            return
        saver = await self.saver()
        edit = await asyncio.to_thread(saver.interrupted)
        if edit is None:
            return
        files = ", ".join(change.file.name for change in edit.changes)
        items = [
            Item("write it now", True, help=one_line(f"{edit.label}: {files}")),
            Item("leave the files as they are", False, help="The edit is given up; it cannot be undone or made again."),
        ]
        title = one_line(f"an edit was cut short: {edit.label}", limit=70)
        wanted = await self.app.push_screen_wait(PickScreen(title, searching(items)))
        try:
            if wanted:
                await asyncio.to_thread(saver.resume)
                await self.reopen(*(change.file for change in edit.changes))
            elif wanted is False:
                await asyncio.to_thread(saver.forget_interrupted)
        except OSError as error:
            self.tell(error)

    async def saver(self) -> "Saver":
        """What writes edits; made in a thread, for it reads the edits of earlier sessions."""
        return await asyncio.to_thread(lambda: self.session.saver)

    # Files that have changed

    async def reopen(self, *files: Path) -> None:
        """Shows these files as they are on the disk now; the tree stays where it is. Where one of them is new, gone
        or no evalset of ours, the folder is read again."""
        from workbench.model.evalset import open_evalset

        workspace = self.session.workspace
        known = {entry.file for entry in workspace.evalsets} if workspace else set()
        if workspace is None or not set(files) <= known or not all(file.is_file() for file in files):
            await self.read_again()
            return
        opened = {file: await asyncio.to_thread(open_evalset, file) for file in files}
        # It may have been read again meanwhile.
        workspace = self.session.workspace
        assert workspace is not None
        entries = tuple(
            replace(entry, document=opened[entry.file]) if entry.file in opened else entry
            for entry in workspace.evalsets
        )
        self.load(replace(workspace, evalsets=entries))

    async def settle(self, error: "ChangedOnDiskError", draft: "Draft", value: Any, label: str) -> "Settled | None":
        """Asks which version of a file holds that somebody else changed; None if nothing was written."""
        from workbench.ui.editing.settling import settle

        return await settle(self.app, await self.saver(), self.keys, error, draft, value, label)

    def tell(self, error: Exception) -> None:
        """Says what went wrong with a file."""
        from workbench.ui.editing.wording import in_words

        self.notify(in_words(error), severity="error", timeout=10, markup=False)

    def warn_if_fleeting(self) -> None:
        """Says once that edits cannot be undone any more after leaving, where nothing can be kept."""
        if not self.session.saver.lasting and not self._warned:
            self._warned = True
            words = f"{self.session.state_dir} cannot be written: edits can be undone until you leave"
            self.notify(one_line(words), severity="warning", timeout=8, markup=False)

    def say_old_format(self) -> None:
        """Why a file of an old format is not changed, and the way out."""
        words = "it is in an old format: “migrate the evalset” in the palette makes one of today's schema of it"
        self.notify(words, timeout=8, markup=False)

    def chosen(self, evalset: int, cases: Sequence[int]) -> "Chosen":
        """Cases of an evalset as they are shown."""
        from workbench.authoring.whole_cases import Chosen

        entry = self.session.entry(evalset)
        return Chosen(entry.file, [case.eval_id for case in entry.document.cases], list(cases))

    def entries_of(self, pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
        """Cases by their evalset."""
        found: dict[int, list[int]] = {}
        for evalset, case in sorted(pairs):
            found.setdefault(evalset, []).append(case)
        return found
