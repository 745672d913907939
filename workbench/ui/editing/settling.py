"""Theirs, mine, or both by case: what is to become of an edit of a file that is not what it was."""

import asyncio
from collections.abc import Mapping
from typing import Any

from workbench.authoring.evalset_file import EvalsetFile
from workbench.authoring.merge import Difference, differences, merged
from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.model.json_edit import EditError
from workbench.text import one_line
from workbench.ui.dialogs.pick import Ask, PickScreen
from workbench.ui.editing.conflict import ConflictScreen
from workbench.ui.editing.drafts import Draft, write
from workbench.ui.items import Item, searching


class Settled:
    """What came of it: the draft to go on with, None if what it was about is not in the file any more."""

    def __init__(self, draft: Draft | None) -> None:
        self.draft = draft


async def settle(
    ask: Ask,
    saver: Saver,
    keys: Mapping[str, tuple[str, ...]],
    error: ChangedOnDiskError,
    draft: Draft,
    value: Any,
    label: str,
) -> Settled | None:
    """Asks, and writes what was chosen; None if the user went back, and nothing was written.

    Raises:
        OSError: it cannot be written.
    """
    mine = (await asyncio.to_thread(draft.after, value)).content
    theirs = error.theirs
    while True:
        content = await _chosen(ask, keys, draft, theirs, mine)
        if content is None:
            return None
        if content == b"":
            return Settled(None)
        try:
            if content != theirs:
                await asyncio.to_thread(write, saver, label, {draft.file: (theirs, content)})
        except ChangedOnDiskError as again:
            theirs = again.theirs
            continue
        return Settled(await asyncio.to_thread(_reopened, draft, content))


def _reopened(draft: Draft, content: bytes) -> Draft | None:
    try:
        return draft.reopened(EvalsetFile(content))
    except EditError:
        return None


async def _chosen(
    ask: Ask, keys: Mapping[str, tuple[str, ...]], draft: Draft, theirs: bytes | None, mine: bytes
) -> bytes | None:
    """The content that is to be; b"" for none, None if the user went back."""
    base = draft.evalset.content
    if theirs is None:
        return await _whole(ask, f"{draft.file.name} was deleted meanwhile", b"", mine, "leave it deleted")
    try:
        found: list[Difference] = await asyncio.to_thread(differences, base, theirs, mine)
    except ValueError as why:
        title = f"{draft.file.name} was changed meanwhile: {why}"
        return await _whole(ask, title, theirs, mine, "theirs: leave the file as it is now")
    if not found:
        return theirs
    chosen = await ask(ConflictScreen(draft.file.name, found, keys))
    if chosen is None:
        return None
    return await asyncio.to_thread(merged, theirs, found, chosen, mine)


async def _whole(ask: Ask, title: str, theirs: bytes, mine: bytes, leave: str) -> bytes | None:
    items = [
        Item("back to the edit", None, help="Nothing is written; what you typed is still there."),
        Item(leave, theirs, help="What you changed is given up."),
        Item("mine: write the file as it was here", mine, help="u takes it back."),
    ]
    found: bytes | None = await ask(PickScreen(one_line(title, limit=74), searching(items)))
    return found
