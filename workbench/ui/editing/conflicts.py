"""Saving of a file that another program may have changed, the dialogs for conflicts, and error messages."""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from workbench.editing.saving import ChangedOnDiskError, Contents, Saver
from workbench.editing.whole_cases import FRAME, Difference, Side, differences, merged
from workbench.files.json_text.json_edit import EditError
from workbench.results.cells import fit
from workbench.text.safe_text import one_line, plain
from workbench.ui.actions import footer
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.dialogs.pick import Ask, PickScreen
from workbench.ui.dialogs.screens import RowsScreen
from workbench.ui.editing.drafts import json_text
from workbench.ui.widgets.footer import KeyLine, bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf

_LINES = 400
"""Maximum number of lines shown of a difference."""
_WHO = {"theirs": "changed on disk", "mine": "changed by you", "both": "changed by both"}


class Chosen(NamedTuple):
    """The content that the user chose for a file, or None if the file stays deleted."""

    content: bytes | None


Choose: TypeAlias = Callable[[bytes | None], Awaitable[Chosen | None]]
"""A function that lets the user choose a file's content, given the one on disk (None if deleted). None: go back."""


class Saved(NamedTuple):
    """The file's content after saving, or None if it was deleted. `written`: whether this program wrote it."""

    content: bytes | None
    written: bool


async def save(
    saver: Saver,
    label: str,
    file: Path,
    before: bytes | None,
    after: bytes,
    choose: Choose,
    complete: Callable[[Contents], Contents] = lambda contents: contents,
) -> Saved | None:
    """Replace the content `before` of a file with `after`, as an edit that can be undone.

    If the file has changed meanwhile, `choose` returns the content to write. If that is the content on disk, nothing is
    written. Return None if the user goes back. `complete` adds other files to the edit and runs in a thread. Errors of
    `choose` and `complete` are not caught.

    Raises:
        OSError: The file cannot be written.
    """
    while True:
        try:
            contents = await asyncio.to_thread(complete, {file: (before, after)})
            await asyncio.to_thread(saver.save, label, contents)
            return Saved(after, written=after != before)
        except ChangedOnDiskError as error:
            if error.file != file:
                continue  # Another file is read again.
            before = error.theirs
            chosen = await choose(before)
            if chosen is None:
                return None
            if chosen.content is None or chosen.content == before:
                return Saved(before, written=False)
            after = chosen.content


async def choose_cases(
    ask: Ask, keys: Mapping[str, tuple[str, ...]], file: Path, base: bytes, mine: bytes, theirs: bytes | None
) -> Any:
    """Let the user choose which version of each case to keep.

    If no case differs, choose the version on disk. If the file was deleted, or the cases cannot be compared, the choice
    is between whole files. Return `Chosen`, or None to go back.

    Raises:
        EditError, RejectedError: The versions cannot be merged.
    """
    if theirs is None:
        return await choose_version(ask, file, mine, theirs, leave="theirs: leave it deleted")
    try:
        found = await asyncio.to_thread(differences, base, theirs, mine)
    except ValueError as why:
        return await choose_version(ask, file, mine, theirs, why=str(why))
    if not found:
        return Chosen(theirs)
    sides = await ask(ConflictScreen(file.name, found, keys))
    return None if sides is None else Chosen(await asyncio.to_thread(merged, theirs, found, sides, mine))


async def choose_version(
    ask: Ask,
    file: Path,
    mine: bytes,
    theirs: bytes | None,
    *,
    why: str = "",
    both: Item | None = None,
    leave: str = "theirs: keep the version on disk",
) -> Any:
    """Let the user choose which version of a whole file to keep.

    Return `Chosen`, the value of the further item `both`, or None to go back. `leave` is the label for keeping
    `theirs`, or "" to leave that choice out. `why` is the reason why the versions cannot be merged, or "".
    """
    what = "deleted" if theirs is None else "changed"
    title = f"{file.name} was {what} on disk" + (f": {why}" if why else "")
    items = [Item("back to the editor", None, help="Writes nothing. Your edit is still there.")]
    items += [both] if both is not None else []
    items += [Item(leave, Chosen(theirs), help="Discards your edit.")] if leave else []
    items.append(Item("mine: write your version", Chosen(mine), help="Undo with u."))
    return await ask(PickScreen(one_line(title, limit=74), searching(items)))


class DifferenceList(RowsOf[Difference]):
    """The cases that differ, each with the version to keep."""

    def __init__(self, found: Sequence[Difference]) -> None:
        super().__init__(found)
        self.chosen: dict[str, Side] = {one.eval_id: one.proposed for one in found}

    def take(self, side: Side, *, everywhere: bool = False) -> None:
        """Choose a side for the case under the cursor, or for all cases with `everywhere`."""
        for one in self.rows if everywhere else [self.row]:
            self.chosen[one.eval_id] = side
        self.refresh()

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the chosen side of a case, its ID, and who changed it."""
        one = self.rows[position]
        side = self.chosen[one.eval_id]
        name = one_line(one.eval_id, limit=80) if one.eval_id != FRAME else "(evalset fields)"
        look = "accent" if one.who == "both" else "muted"
        return [(fit(side, 8), "strong"), (name, "")], [(_WHO[one.who], look)]


class ConflictScreen(RowsScreen[Mapping[str, Side] | None]):
    """A dialog that asks which version of each case to keep. Its result is the side by case ID, or None to go back."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("conflict")]
    where = "conflict"

    def __init__(self, file_name: str, found: Sequence[Difference], keys: Mapping[str, tuple[str, ...]]) -> None:
        self._list = DifferenceList(found)
        super().__init__(self._list, keys)
        self._title = f"{one_line(file_name, limit=50)} was changed on disk"
        self._versions = Static("", markup=False)
        self.text = self._scroll = VerticalScroll(self._versions, classes="versions", can_focus=False)

    def compose(self) -> ComposeResult:
        """Lay out the cases, both versions and the keys."""
        with Vertical(classes="dialog conflict") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content("enter saves · esc back to the editor")
            yield self._list
            yield self._scroll
            yield KeyLine(footer("conflict"), self.keys_of)

    def on_mount(self) -> None:
        """Show the first case."""
        self._list.when_moved = self._show
        self._list.focus()
        self._show()

    def action_switch_version(self) -> None:
        """Switch to the other version of the current or clicked case."""
        self._list.take("mine" if self._list.chosen[self._list.row.eval_id] == "theirs" else "theirs")

    on_row_view_picked = action_switch_version

    def action_take_theirs(self) -> None:
        """Choose the version on disk for the current case."""
        self._list.take("theirs")

    def action_take_mine(self) -> None:
        """Choose the user's version for the current case."""
        self._list.take("mine")

    def action_take_for_all(self) -> None:
        """Choose the current case's side for all cases."""
        self._list.take(self._list.chosen[self._list.row.eval_id], everywhere=True)

    def action_enter(self) -> None:
        """Close the dialog and return the chosen sides."""
        self.dismiss(self._list.chosen)

    def _show(self) -> None:
        one = self._list.row
        self._versions.update(_versions(one.theirs, one.mine))


def _versions(theirs: Any, mine: Any) -> Content:
    """Return the difference of both versions (theirs with `-`, mine with `+`), or the one that exists."""
    if theirs is None or mine is None:
        who, value = ("mine", mine) if theirs is None else ("theirs", theirs)
        return Content(f"only in {who}:\n\n{plain(json_text(value), limit=20_000)}")
    lines = unified_diff(plain(json_text(theirs)).split("\n"), plain(json_text(mine)).split("\n"), lineterm="", n=3)
    looks = {"-": "$status-failed", "+": "$status-passed", "@": "$status-muted"}
    parts: list[tuple[str, str]] = [("- theirs\n", looks["-"]), ("+ mine\n", looks["+"])]
    for line in islice(lines, 2, _LINES):
        parts.append((("⋯" if line[:1] == "@" else line) + "\n", looks.get(line[:1], "")))
    return Content.assemble(*parts, *(("…", "") for _ in islice(lines, 1)))


_REMEDIES = {
    errno.EACCES: "permission denied: change the permissions, then try again",
    errno.EPERM: "permission denied: change the permissions, then try again",
    errno.EROFS: "the file system is read-only: make it writable, then try again",
    errno.ENOSPC: "the disk is full: free some space, then try again",
    errno.EDQUOT: "your disk quota is used up: free some space, then try again",
    errno.ENOENT: "the file or its folder no longer exists",
    errno.EISDIR: "a folder with this name exists",
    errno.ELOOP: "the file is a link to itself",
}


def save_error_message(error: Exception, failed: str = "not saved") -> str:
    """Return a safe line: `failed`, the reason and any known remedy. For an `EditError`, it is only the reason."""
    if isinstance(error, ChangedOnDiskError):
        what = "deleted" if error.theirs is None else "changed"
        return one_line(f"{failed}: {error.file.name} was {what} on disk meanwhile")
    if isinstance(error, EditError):
        return one_line(str(error))
    if not isinstance(error, OSError):
        return one_line(f"{failed}: {error}")
    remedy = _REMEDIES.get(error.errno or 0, error.strerror or str(error))
    name = str(error.filename or "").rpartition("/")[2]
    return one_line(f"{failed}: {remedy}" + (f" ({name})" if name else ""))
