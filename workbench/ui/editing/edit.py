"""Editing of the case or evalset under the cursor, on a screen or in the user's editor (`$VISUAL`, else `$EDITOR`)."""

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.text.safe_text import one_line, plain
from workbench.ui.dialogs.items import Item
from workbench.ui.editing.files import Files
from workbench.ui.screen.controller import Controller
from workbench.ui.terminal.host import NoEditorError
from workbench.ui.tree.outline import Row

if TYPE_CHECKING:
    from workbench.editing.responsible import Place
    from workbench.files.faults import Location
    from workbench.ui.editing.drafts import Draft
    from workbench.ui.screen.view import View


class Edit(Controller):
    """Actions that open the editor screen or the user's own editor. A run in progress continues."""

    def __init__(self, view: "View", files: Files) -> None:
        super().__init__(view)
        self._files = files

    def edit(self) -> None:
        """Edit the case or evalset under the cursor."""
        if (row := self.current_evalset()) is not None:
            self.view.work(partial(self.edit_row, row), "edit")

    def edit_outside(self) -> None:
        """Open the source file of the item under the cursor in the user's editor, at the item's line."""
        place = self.view.responsible()
        if place is None:
            self.view.say("no file here: put the cursor on a case or an agent")
        else:
            self.view.work(partial(self._open, place), "edit")

    async def _open(self, place: "Place") -> None:
        try:
            self.view.lend_terminal(partial(open_file, place.file, place.line))
        except NoEditorError as error:
            self.view.notify(plain(str(error)), severity="warning", timeout=8)
        if self.session.outdated():
            await self._files.folder.read_again()

    async def edit_row(self, row: Row, *, at: "Location | None" = None, editing: bool = False) -> None:
        """Open the editor screen on a case or evalset, and wait until the user closes it.

        `at` is the location where the cursor starts. With `editing`, the field there opens at once.
        """
        from workbench.ui.editing.editor import EditorScreen

        draft = await self.draft(row)
        if draft is not None:
            self._files.warn_if_undo_is_temporary()
            outside, over = self.draft_outside, lambda: self.view.right.region
            await self.view.ask(EditorScreen(draft, self.view.keys, self._files, outside, over, at=at, editing=editing))

    async def draft(self, row: Row) -> "Draft | None":
        """Return a draft of a row's case or evalset. If it cannot be edited, show why and return None."""
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
            return await asyncio.to_thread(open_case, self._files.chosen(row.evalset, [row.case]), entry.document)
        except (EditError, GoneError, OSError) as error:
            self._files.show_error(error, "not opened")
            await self._files.reopen(entry.file)
            return None

    async def draft_outside(self, draft: "Draft") -> "tuple[Draft | None, str]":
        """Open a draft in the user's editor, again and again until it can be saved or the user discards it.

        Return the updated draft and a safe message. The draft is None if the case can no longer be read.
        """
        from workbench.ui.editing.drafts import json_text

        text = first = json_text(draft.stored)
        while True:
            try:
                text = self.view.lend_terminal(partial(edit_text, draft.name, text))
            except NoEditorError as error:
                self.view.notify(plain(str(error)), severity="warning", timeout=8)
                return draft, "no changes"
            saved = (draft, "no changes") if text.strip() == first.strip() else await self._save_outside(draft, text)
            if not isinstance(saved, str):
                return saved
            why = one_line(saved)
            items = [Item("edit again", True, help=why), Item("discard your text", False)]
            if not await self.view.pick(why, items):
                return draft, "no changes"

    async def _save_outside(self, draft: "Draft", text: str) -> "tuple[Draft | None, str] | str":
        """Save the edited text as `Files.save` does, and return the same. If it cannot be saved, return the reason."""
        from workbench.editing.evalset_file import RejectedError
        from workbench.files.json_text.json_edit import same
        from workbench.ui.editing.drafts import NotSavedError, UnreadableError, json_text, place_of, read_json_text

        if "\ufffd" in text and "\ufffd" not in json_text(draft.stored):
            return "the editor did not save UTF-8: replace each \ufffd"
        try:
            value = read_json_text(text)
            if same(value, draft.stored):
                return draft, "no changes"
            return await self._files.save(draft, value, f"{draft.name}: edit in $EDITOR")
        except UnreadableError as error:
            return f"line {error.line}, column {error.column}: {error}"
        except RejectedError as error:
            place = place_of(text, error.breaches[0].location)
            return f"line {place[0]}: {error}" if place else str(error)
        except NotSavedError as error:
            return str(error)


_USUAL = ("sensible-editor", "nano", "vim", "vi")
_PLUS_LINE = frozenset(
    {"vi", "vim", "nvim", "view", "gvim", "nano", "pico", "emacs", "emacsclient", "micro", "joe", "kak", "ne", "mg"}
    | {"sensible-editor", "mcedit"}
)
_GOTO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON_LINE = frozenset({"hx", "helix", "subl", "zed"})
"""Editors by their form of a line number: `+38 FILE`, `--goto FILE:38`, `FILE:38`. Others get only the file."""


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the command of the user's editor, without a file.

    Raises:
        NoEditorError: A variable is not a valid command, or neither `VISUAL` nor `EDITOR` is set and none of the usual
            editors is installed.
    """
    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(environment.get(name, ""))
        except ValueError as error:
            message = f"{name} is not a valid command ({error}): {environment[name]}. Correct the variable"
            raise NoEditorError(message) from None
        if words:
            return words
    found = next((path for name in _USUAL if (path := shutil.which(name))), None)
    if found is None:
        raise NoEditorError("no editor found: set VISUAL or EDITOR, for example EDITOR=nano")
    return [found]


def open_file(file: Path, line: int) -> None:
    """Open a file in the user's editor, at a line if the editor is one of those known here.

    The terminal must be free.

    Raises:
        NoEditorError: The editor could not be started, or exited with an error.
    """
    command = editor_command(os.environ)
    editor, arguments = Path(command[0]).name, [str(file)]
    if editor in _PLUS_LINE:
        arguments = [f"+{line}", str(file)]
    elif editor in _GOTO:
        arguments = ["--goto", f"{file}:{line}"]
    elif editor in _COLON_LINE:
        arguments = [f"{file}:{line}"]
    _run([*command, *arguments])


def _run(command: list[str]) -> None:
    # ctrl+c belongs to the editor. The child gets the default handler, because ours is a function.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        done = subprocess.run(command, check=False)
    except OSError as error:
        raise NoEditorError(f"{command[0]} cannot be started: {error.strerror}") from None
    finally:
        signal.signal(signal.SIGINT, before)
    if done.returncode:
        raise NoEditorError(f"{command[0]} exited with code {done.returncode}")


def edit_text(name: str, text: str) -> str:
    """Open a text in the user's editor and return the edited text.

    The terminal must be free. The temporary file is named after `name`.

    Raises:
        NoEditorError: The editor could not be started or exited with an error, or the temporary file could not be used.
            The edited text is then discarded.
    """
    command = editor_command(os.environ)
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "_" for letter in name)
    try:
        with tempfile.TemporaryDirectory(prefix="agent-workbench-") as folder:
            file = Path(folder, f"{safe[:60] or 'case'}.json")
            file.write_bytes((text + "\n").encode("utf-8", "surrogatepass"))
            _run([*command, str(file)])
            return file.read_bytes().decode("utf-8", "replace").removesuffix("\n")
    except OSError as error:
        raise NoEditorError(f"the temporary file for the editor cannot be used: {error.strerror}") from None
