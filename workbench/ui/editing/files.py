"""Saving, undo and redo of changes to project files, and reading of files that changed on disk."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.files.folders import untrusted_root
from workbench.text.counting import few
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item
from workbench.ui.screen.controller import Controller
from workbench.ui.screen.folder import Folder
from workbench.ui.tree.outline import parts_of

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry, Workspace
    from workbench.editing.evalset_file import EvalsetFile
    from workbench.editing.saving import Contents, Edit, Saver
    from workbench.editing.whole_cases import CaseSelection, OpenedFiles
    from workbench.events.events import CaseRef
    from workbench.ui.editing.drafts import Draft
    from workbench.ui.screen.view import View

_TRIES = 5
"""Attempts to write a file while other programs change it."""


class Files(Controller):
    """Actions that read and write project files in threads. A message about an edit appears after it is on disk."""

    def __init__(self, view: "View", folder: Folder) -> None:
        super().__init__(view)
        self.folder = folder
        self._warned = False
        self.other_readers: list[Callable[[Sequence[Path]], Awaitable[bool]]] = []
        """Functions that read files again that are not evalsets. Each returns whether it has read them."""
        self._one_at_a_time = asyncio.Lock()
        """A lock that keeps two quick undos in order."""

    def undo(self) -> None:
        """Undo the last edit."""
        if self.workspace() is not None:
            self.view.work(partial(self._say_taken_back, again=False), "back", exclusive=False)

    def redo(self) -> None:
        """Redo the edit that was undone last."""
        if self.workspace() is not None:
            self.view.work(partial(self._say_taken_back, again=True), "back", exclusive=False)

    async def _say_taken_back(self, *, again: bool) -> None:
        async with self._one_at_a_time:
            _, message = await self.take_back(again=again)
            self.view.say(message)

    async def take_back(self, *, again: bool) -> "tuple[Edit | None, str]":
        """Undo the newest edit. With `again`, redo the edit undone last. Return the edit and a safe message.

        The edit is None if nothing was undone or redone. The message is "" if the user declined.
        """
        from workbench.editing.saving import ChangedOnDiskError, NothingToUndoError
        from workbench.ui.editing.conflicts import save_error_message

        saver = await self.saver()
        known = saver.undone if again else saver.newest
        if known is not None and known.earlier and not await self._wants(known, "redo" if again else "undo"):
            return None, ""
        try:
            edit = await asyncio.to_thread(saver.redo if again else saver.undo)
        except NothingToUndoError as error:
            return None, str(error)
        except (ChangedOnDiskError, OSError) as error:
            return None, save_error_message(error, "not redone" if again else "not undone")
        await self.reopen(*(change.file for change in edit.changes))
        files = few(sorted({change.file.name for change in edit.changes}))
        return edit, one_line(f"{'redone' if again else 'undone'}: {edit.label}  ({files})")

    async def _wants(self, edit: "Edit", what: str) -> bool:
        """Ask whether to undo or redo an edit of an earlier session. The dialog lists its files."""
        files = f"{edit.label}: {self._named(edit)}"
        items = [
            Item(f"{what} the edit", True, help=one_line(f"changes {files}", limit=1000)),
            Item("leave the files", False, help=one_line(files, limit=1000)),
        ]
        return bool(await self.view.pick(one_line(f"{what} an edit from an earlier session?"), items))

    def _named(self, edit: "Edit") -> str:
        return ", ".join(dict.fromkeys(self.session.below_root(change.file) for change in edit.changes))

    async def offer_interrupted(self) -> None:
        """If an edit of an earlier session was interrupted, ask whether to finish or discard it."""
        from workbench.store.database.database import database

        if not database(self.session.state_dir).exists:
            return
        saver = await self.saver()
        edit = await asyncio.to_thread(saver.interrupted)
        if edit is None:
            return
        items = [
            Item("finish the edit", True, help=one_line(f"{edit.label}: {self._named(edit)}", limit=1000)),
            Item(
                "discard the edit",
                False,
                help="The files stay as they are. You can no longer undo the edit.",
            ),
        ]
        wanted = await self.view.pick(one_line(f"an edit was interrupted: {edit.label}"), items)
        try:
            if wanted:
                await asyncio.to_thread(saver.resume)
                await self.reopen(*(change.file for change in edit.changes))
            elif wanted is False:
                await asyncio.to_thread(saver.forget_interrupted)
        except OSError as error:
            self.show_error(error)

    async def saver(self) -> "Saver":
        """Return the session's saver, created in a thread, because its creation reads stored edits."""
        return await asyncio.to_thread(lambda: self.session.saver)

    async def reopen(self, *files: Path) -> None:
        """Read files again and show them. The cursor stays. Recordings are left out, because they are not shown.

        If one of `other_readers` reads the files, nothing else is read. Otherwise, the whole folder is read if a file
        is new, deleted or not an evalset.
        """
        from workbench.files.evalset import open_evalset
        from workbench.files.frozen_path import is_in_frozen_folder

        files = tuple(file for file in files if not is_in_frozen_folder(file))
        if not files:
            return
        workspace = self.session.workspace
        if workspace is not None:
            for read in self.other_readers:
                if await read(files):
                    return
        known = {entry.file for entry in workspace.evalsets} if workspace else set()
        if workspace is None or not set(files) <= known or not all(file.is_file() for file in files):
            await self.folder.read_again()
            return
        opened = {file: await asyncio.to_thread(open_evalset, file) for file in files}
        # The folder may have been read again meanwhile.
        workspace = self.session.opened
        entries = tuple(
            replace(entry, document=opened[entry.file]) if entry.file in opened else entry
            for entry in workspace.evalsets
        )
        self.folder.load(replace(workspace, evalsets=entries))

    async def evalset_file(self, entry: "EvalsetEntry") -> "EvalsetFile | None":
        """Return an evalset as it is on disk, for an edit. If it cannot be edited, show why and return None."""
        from workbench.editing.evalset_file import EvalsetFile
        from workbench.files.file_access import read_regular
        from workbench.files.json_text.json_edit import EditError

        if not entry.document.editable:
            self.say_old_format()
            return None
        try:
            return EvalsetFile(await asyncio.to_thread(read_regular, entry.file))
        except (EditError, OSError) as error:
            self.show_error(error)
            return None

    @staticmethod
    def cases_on_disk(
        workspace: "Workspace", pairs: Iterable[tuple[int, int]], left_out: Counter[str]
    ) -> "Iterator[tuple[tuple[int, int], CaseSelection, Any]]":
        """Yield each case of a workspace with its selection and its JSON on disk. Runs in a thread.

        The session may have another workspace by now. If an evalset cannot be edited safely, or one of its cases is
        gone, all its cases are left out and counted in `left_out` by the reason (safe text).
        """
        from workbench.editing.evalset_file import EvalsetFile
        from workbench.files.file_access import read_regular

        for evalset, cases in parts_of(pairs):
            entry = workspace.evalsets[evalset]
            try:
                content = read_regular(entry.file)
                opened = EvalsetFile(content, entry.document.index_of(content))
                places = _selection(entry, cases).places({entry.file: opened})
            except (OSError, ValueError) as error:
                left_out[one_line(f"{entry.file.name}: {error}", limit=200)] += len(cases)
                continue
            for case, place in zip(cases, places, strict=True):
                yield (evalset, case), _selection(entry, [case]), opened.case(place)

    async def change_cases(
        self, entries: "Sequence[EvalsetEntry]", change: "Callable[[OpenedFiles], tuple[str, Contents]]"
    ) -> bool:
        """Change evalsets, starting from their content on disk. If nothing can be written, show why and return False.

        `change` returns the label of the edit and the new contents. It is called again if another program writes one of
        the files meanwhile.
        """
        from workbench.editing.saving import ChangedOnDiskError

        for tries in range(_TRIES):
            opened = {entry.file: await self.evalset_file(entry) for entry in entries}
            ready = {file: evalset for file, evalset in opened.items() if evalset is not None}
            if len(ready) < len(opened):
                return False
            try:
                what, contents = await asyncio.to_thread(change, ready)
                return await self.put(what, contents, again=tries < _TRIES - 1)
            except ValueError as error:
                self.show_error(error)
                await self.reopen(*ready)
                return False
            except ChangedOnDiskError:
                continue
        return False

    async def put(self, what: str, contents: "Contents", *, again: bool = False) -> bool:
        """Write files as one edit and show them. If nothing can be written, show why and return False.

        Raises:
            ChangedOnDiskError: Another program has changed a file. Only with `again`: the caller then tries again.
        """
        from workbench.editing.saving import ChangedOnDiskError

        try:
            saver = await self.saver()
            await asyncio.to_thread(saver.save, what, contents)
        except ChangedOnDiskError as error:
            if again:
                raise
            self.show_error(error)
            await self.reopen(error.file)
            return False
        except OSError as error:
            self.show_error(error)
            return False
        self.warn_if_undo_is_temporary()
        await self.reopen(*contents)
        self.view.say(one_line(f"done: {what} (u undoes)"))
        return True

    async def reopened(self, draft: "Draft") -> "Draft | None":
        """Return a draft for the content on disk, or None if the file or its case can no longer be read."""
        from workbench.editing.evalset_file import EvalsetFile
        from workbench.files.json_text.json_edit import EditError

        try:
            content = await asyncio.to_thread(draft.file.read_bytes)
            return draft.reopened(await asyncio.to_thread(EvalsetFile, content))
        except (EditError, OSError):
            return None

    async def save(self, draft: "Draft", value: Any, label: str) -> "tuple[Draft | None, str]":
        """Write a draft with a new value, and show its file. Return the updated draft and a safe message.

        If another program changed the file, the user chooses which version to keep. The draft is None if the case can
        no longer be read.

        Raises:
            RejectedError: ADK could not read the result.
            NotSavedError: The file could not be written, or the user went back to the editor.
        """
        from workbench.files.json_text.json_edit import EditError
        from workbench.ui.editing.conflicts import choose_cases, save, save_error_message
        from workbench.ui.editing.drafts import NotSavedError

        saver, base = await self.saver(), draft.evalset.content
        try:
            mine = await asyncio.to_thread(draft.after, value)
            choose = partial(choose_cases, self.view.ask, self.view.keys, draft.file, base, mine.content)
            complete = partial(draft.with_recordings, value)
            saved = await save(saver, label, draft.file, base, mine.content, choose, complete)
            if saved is None:
                raise NotSavedError("not saved: your edit is still here")
        except (EditError, OSError) as error:
            raise NotSavedError(save_error_message(error)) from None
        await self.reopen(draft.file)
        if saved.content == mine.content:
            # A dataset's case from the user's editor is in the form of the file.
            shown = value if draft.number is None else mine.case(draft.number)
            after: Draft | None = replace(draft, evalset=mine, value=shown)
        else:
            after = await self.reopened(draft)
            if after is None or value not in (after.value, after.stored):
                return after, "kept the version on disk; discarded your edit"
        return after, f"saved: {one_line(label, limit=80)}"

    def go_to_case(self, file: Path, eval_id: str) -> None:
        """Put the cursor on a case of a file, or on the file if it has no such case. Clear a filter that hides it."""
        for number, entry in enumerate(self.view.rows.entries):
            if entry.file == file:
                case = next((case.index for case in entry.document.cases if case.eval_id == eval_id), -1)
                self.view.reveal(number, case)
                self.view.show_row()

    def go_to_stored(self, ref: "CaseRef") -> bool:
        """Close all pages and go to the case of a stored execution. Return False if the case no longer exists."""
        files = [ref.evalset_file]
        if not ref.evalset_file:  # ADK does not record the file of the evalset.
            entries = self.session.opened.evalsets
            files = [entry.relative for entry in entries if entry.document.eval_set_id == ref.eval_set_id]
        for file in files:
            place = self.session.verdicts.place(file, ref.eval_id)
            if place is not None:
                self.view.close_pages()
                self.view.reveal(*place)
                self.view.go_left()
                return True
        return False

    def go_near(self, file: Path, case: int) -> None:
        """Put the cursor where a case was deleted."""
        for number, entry in enumerate(self.view.rows.entries):
            if entry.file == file:
                self.view.go_to(number, min(case, len(entry.document.cases) - 1))
                self.view.show_row()

    def show_error(self, error: Exception, failed: str = "not saved") -> None:
        """Show the words `failed`, and why a file could not be read or written."""
        from workbench.ui.editing.conflicts import save_error_message

        self.view.notify(save_error_message(error, failed), severity="error", timeout=10)

    def warn_if_undo_is_temporary(self) -> None:
        """Warn once if edits cannot be stored, because undo then works only until the session ends."""
        if not self.session.saver.lasting and not self._warned:
            self._warned = True
            state = self.session.state_dir
            why = ".workbench is not trusted" if untrusted_root(state) else f"{state} is not writable"
            self.view.notify(one_line(f"{why}: undo works only until you quit"), severity="warning", timeout=8)

    def say_old_format(self) -> None:
        """Explain how to convert a file in an old format, which cannot be edited."""
        self.view.notify("this file has an old format: convert it with “migrate evalset” in the palette", timeout=8)

    def chosen(self, evalset: int, cases: Sequence[int]) -> "CaseSelection":
        """Return a selection of cases, by their current positions in the evalset."""
        return _selection(self.session.entry(evalset), cases)


def _selection(entry: "EvalsetEntry", cases: Sequence[int]) -> "CaseSelection":
    from workbench.editing.whole_cases import CaseSelection

    return CaseSelection(entry.file, entry.case_ids, list(cases))
