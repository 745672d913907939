"""Files of the project: written as edits, undone, and shown as they are on the disk."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.text import one_line
from workbench.ui.controllers.folder import Folder
from workbench.ui.controllers.view import Controller, View
from workbench.ui.items import Item

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.authoring.evalset_file import EvalsetFile
    from workbench.authoring.saving import Contents, Saver
    from workbench.authoring.whole_cases import CaseSelection, OpenedFiles
    from workbench.ui.editing.drafts import Draft

_TRIES = 5
"""How often somebody else may be quicker."""


class Files(Controller):
    """Reads and writes, in threads. Each edit is on the disk before the screen says so."""

    def __init__(self, view: View, folder: Folder) -> None:
        super().__init__(view)
        self.folder = folder
        self._warned = False
        self._one_at_a_time = asyncio.Lock()
        """A key that is pressed twice takes two edits back, one after the other."""

    # Back and again

    def undo(self) -> None:
        """Take the last edit back."""
        self.view.work(self._say_taken_back(again=False), "back", exclusive=False)

    def redo(self) -> None:
        """Make the edit again that was taken back last."""
        self.view.work(self._say_taken_back(again=True), "back", exclusive=False)

    async def _say_taken_back(self, *, again: bool) -> None:
        async with self._one_at_a_time:
            self.view.say(await self.take_back(again=again))

    async def take_back(self, *, again: bool) -> str:
        """Undo the newest edit, or make it again. Return what was done, in safe words."""
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
        """Ask what to do with an edit that was cut short when the workbench was open last."""
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
        wanted = await self.view.pick(title, items)
        try:
            if wanted:
                await asyncio.to_thread(saver.resume)
                await self.reopen(*(change.file for change in edit.changes))
            elif wanted is False:
                await asyncio.to_thread(saver.forget_interrupted)
        except OSError as error:
            self.tell(error)

    async def saver(self) -> "Saver":
        """Return what writes edits. It is made in a thread, because it reads the edits of earlier sessions."""
        return await asyncio.to_thread(lambda: self.session.saver)

    # Files that have changed

    async def reopen(self, *files: Path) -> None:
        """Show files as they are on the disk now; the cursor stays. Read the whole folder if one of them is new,
        gone or not an evalset."""
        from workbench.model.evalset import open_evalset

        workspace = self.session.workspace
        known = {entry.file for entry in workspace.evalsets} if workspace else set()
        if workspace is None or not set(files) <= known or not all(file.is_file() for file in files):
            await self.folder.read_again()
            return
        opened = {file: await asyncio.to_thread(open_evalset, file) for file in files}
        # It may have been read again meanwhile.
        workspace = self.session.workspace
        assert workspace is not None
        entries = tuple(
            replace(entry, document=opened[entry.file]) if entry.file in opened else entry
            for entry in workspace.evalsets
        )
        self.folder.load(replace(workspace, evalsets=entries))

    async def evalset_file(self, entry: "EvalsetEntry") -> "EvalsetFile | None":
        """Return a file as it is on the disk, ready to be changed. Return None and say why if it cannot be."""
        from workbench.authoring.evalset_file import EvalsetFile
        from workbench.model.json_edit import EditError

        if entry.document.format != "current":
            self.say_old_format()
            return None
        try:
            return EvalsetFile(await asyncio.to_thread(entry.file.read_bytes))
        except (EditError, OSError) as error:
            self.tell(error)
            return None

    async def change_cases(
        self, entries: "Sequence[EvalsetEntry]", change: "Callable[[OpenedFiles], tuple[str, Contents]]"
    ) -> bool:
        """Change evalsets as they are now. `change` returns what the edit is called and what the files become. It
        is called again if somebody else writes one meanwhile. Return False and say why if nothing was written."""
        from workbench.authoring.saving import ChangedOnDiskError

        for tries in range(_TRIES):
            opened = {entry.file: await self.evalset_file(entry) for entry in entries}
            ready = {file: evalset for file, evalset in opened.items() if evalset is not None}
            if len(ready) < len(opened):
                return False
            try:
                what, contents = await asyncio.to_thread(change, ready)
                return await self.put(what, contents, again=tries < _TRIES - 1)
            except ValueError as error:
                self.tell(error)
                await self.reopen(*ready)
                return False
            except ChangedOnDiskError:
                continue
        return False

    async def put(self, what: str, contents: "Contents", *, again: bool = False) -> bool:
        """Writes files as one edit and shows them; False (and a notice) if nothing was written.

        Raises:
            ChangedOnDiskError: with `again`, where somebody else has changed one of them.
        """
        from workbench.authoring.saving import ChangedOnDiskError

        try:
            saver = await self.saver()
            await asyncio.to_thread(saver.save, what, contents)
        except ChangedOnDiskError as error:
            if again:
                raise
            self.tell(error)
            await self.reopen(error.file)
            return False
        except OSError as error:
            self.tell(error)
            return False
        self.warn_if_fleeting()
        await self.reopen(*contents)
        self.view.say(one_line(f"done: {what}; u takes it back"))
        return True

    async def reopened(self, draft: "Draft") -> "Draft | None":
        """Return the draft in the file as it is now, or None if it is not there any more."""
        from workbench.authoring.evalset_file import EvalsetFile
        from workbench.model.json_edit import EditError

        try:
            content = await asyncio.to_thread(draft.file.read_bytes)
            return draft.reopened(await asyncio.to_thread(EvalsetFile, content))
        except (EditError, OSError):
            return None

    async def save(self, draft: "Draft", value: Any, label: str) -> "Draft | None":
        """Write a draft with a new value and show its file. Ask which version holds if somebody else changed the file.
        Return the draft as it goes on, or None if it is not there any more.

        Raises:
            RejectedError: ADK would not read it.
            NotSavedError: it could not be written, or the user went back.
        """
        from workbench.model.json_edit import EditError
        from workbench.ui.editing.drafts import NotSavedError
        from workbench.ui.editing.settling import choose_cases, save
        from workbench.ui.editing.wording import in_words

        saver, base = await self.saver(), draft.evalset.content
        try:
            mine = await asyncio.to_thread(draft.after, value)
            choose = partial(choose_cases, self.view.ask, self.view.keys, draft.file, base, mine.content)
            saved = await save(saver, label, draft.file, base, mine.content, choose)
            if saved is None:
                raise NotSavedError("nothing was written; it is still here")
        except (EditError, OSError) as error:
            raise NotSavedError(in_words(error)) from None
        await self.reopen(draft.file)
        return (
            replace(draft, evalset=mine, value=value) if saved.content == mine.content else await self.reopened(draft)
        )

    # Where the cursor goes

    def go_to_case(self, file: Path, eval_id: str) -> None:
        """Put the cursor on a case of a file by its id. Take back a filter that hides it: the user who made or
        named a case goes on with it."""
        for number, entry in enumerate(self.view.rows.entries):
            if entry.file == file:
                case = next((case.index for case in entry.document.cases if case.eval_id == eval_id), -1)
                if not self.view.go_to(number, case):
                    self.view.clear_filter()
                    self.view.go_to(number, case)
                self.view.show_row()

    def stand_near(self, file: Path, case: int) -> None:
        """Put the cursor near the place of a case that is gone."""
        for number, entry in enumerate(self.view.rows.entries):
            if entry.file == file:
                self.view.go_to(number, min(case, len(entry.document.cases) - 1))
                self.view.show_row()

    def tell(self, error: Exception) -> None:
        """Say what went wrong with a file."""
        from workbench.ui.editing.wording import in_words

        self.view.notify(in_words(error), severity="error", timeout=10)

    def warn_if_fleeting(self) -> None:
        """Say once that edits can be undone only until the user leaves, if nothing can be kept."""
        if not self.session.saver.lasting and not self._warned:
            self._warned = True
            words = f"{self.session.state_dir} cannot be written: edits can be undone until you leave"
            self.view.notify(one_line(words), severity="warning", timeout=8)

    def say_old_format(self) -> None:
        """Say why a file of an old format is not changed, and how to convert it."""
        words = "it is in an old format: “migrate evalset” in the palette makes one of today's schema of it"
        self.view.notify(words, timeout=8)

    def chosen(self, evalset: int, cases: Sequence[int]) -> "CaseSelection":
        """Return cases of an evalset as they are shown."""
        from workbench.authoring.whole_cases import CaseSelection

        entry = self.session.entry(evalset)
        return CaseSelection(entry.file, entry.case_ids, list(cases))

    def entries_of(self, pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
        """Group cases by their evalset."""
        found: dict[int, list[int]] = {}
        for evalset, case in sorted(pairs):
            found.setdefault(evalset, []).append(case)
        return found
