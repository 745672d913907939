"""Saving a file that somebody else may have changed meanwhile: theirs, mine, or parts of both."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from workbench.authoring.merge import differences, merged
from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.text import one_line
from workbench.ui.dialogs.pick import Ask, PickScreen
from workbench.ui.editing.conflict import ConflictScreen
from workbench.ui.items import Item, searching

Choose: TypeAlias = Callable[[bytes | None], Awaitable[bytes | None]]
"""Asks what a file is to hold, given what it holds now (None: it is gone). Returns b"" for no file, None to go back."""


class Saved(NamedTuple):
    """What the file holds now, b"" for no file, and whether that was written here."""

    content: bytes
    written: bool


async def save(
    saver: Saver, label: str, file: Path, before: bytes | None, after: bytes, choose: Choose
) -> Saved | None:
    """Write `after` in place of `before`. If the file holds something else by now, write what `choose` says. Return
    None if the user went back.

    Raises:
        OSError: it cannot be written.
    """
    content: bytes | None = after
    while content is not None:
        try:
            await asyncio.to_thread(saver.save, label, {file: (before, content or None)})
            return Saved(content, written=content != before)
        except ChangedOnDiskError as error:
            before = error.theirs
            content = await choose(before)
    return None


async def choose_cases(
    ask: Ask, keys: Mapping[str, tuple[str, ...]], file: Path, base: bytes, mine: bytes, theirs: bytes | None
) -> Any:
    """Ask which version of an evalset holds: case by case, or as a whole if its cases cannot be told apart."""
    if theirs is None:
        return await choose_version(ask, file, mine, theirs, leave="leave it deleted")
    try:
        found = await asyncio.to_thread(differences, base, theirs, mine)
    except ValueError as why:
        return await choose_version(ask, file, mine, theirs, why=str(why))
    if not found:
        return theirs
    chosen = await ask(ConflictScreen(file.name, found, keys))
    if chosen is None:
        return None
    return await asyncio.to_thread(merged, theirs, found, chosen, mine)


async def choose_version(
    ask: Ask,
    file: Path,
    mine: bytes,
    theirs: bytes | None,
    *,
    why: str = "",
    both: Item | None = None,
    leave: str = "theirs: leave the file as it is now",
) -> Any:
    """Ask which version of a whole file holds: return `mine`, `theirs`, the value of `both`, or None to go back.
    Without `leave`, theirs is not offered."""
    what = "deleted" if theirs is None else "changed"
    title = f"{file.name} was {what} meanwhile" + (f": {why}" if why else "")
    items = [Item("back to the edit", None, help="Nothing is written; what you typed is still there.")]
    items += [both] if both is not None else []
    items += [Item(leave, theirs or b"", help="What you changed is given up.")] if leave else []
    items.append(Item("mine: write the file as it was here", mine, help="u takes it back."))
    return await ask(PickScreen(one_line(title, limit=74), searching(items)))
