"""A draft on its way into its file: written, settled where somebody else changed the file, and gone on with."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.model.json_edit import EditError
from workbench.ui.editing.drafts import Draft, save_draft
from workbench.ui.editing.wording import in_words

if TYPE_CHECKING:
    from workbench.ui.editing.settling import Settled

Settle = Callable[[ChangedOnDiskError, Draft, Any, str], "Awaitable[Settled | None]"]
"""Asks what is to become of a change to a file that somebody else changed; None: nothing was written."""


class Files(Protocol):
    """What the editor needs around its file."""

    async def reopen(self, *files: Path) -> None:
        """Shows files as they are on the disk now."""

    async def settle(self, error: ChangedOnDiskError, draft: Draft, value: Any, label: str) -> "Settled | None":
        """See `Settle`."""

    async def take_back(self, *, again: bool) -> str:
        """Undo or redo; what was done, in safe words."""

    async def reopened(self, draft: Draft) -> Draft | None:
        """The draft in the file as it is now; None if it is not there any more."""


class NotSavedError(Exception):
    """Nothing was written; the message is safe and says why."""


async def keep(files: Files, saver: Saver, draft: Draft, value: Any, label: str) -> Draft | None:
    """Writes a draft with a new value and shows its file; the draft as it goes on, None if it is not there any more.

    Raises:
        RejectedError: ADK would not read it.
        NotSavedError: it could not be written, or the user went back.
    """
    after: Draft | None
    try:
        after = await asyncio.to_thread(save_draft, saver, draft, value, label)
    except ChangedOnDiskError as error:
        after = await _settled(files, error, draft, value, label)
    except (EditError, OSError) as error:
        raise NotSavedError(in_words(error)) from None
    await files.reopen(draft.file)
    return after


async def _settled(files: Files, error: ChangedOnDiskError, draft: Draft, value: Any, label: str) -> Draft | None:
    try:
        settled = await files.settle(error, draft, value, label)
    except OSError as trouble:
        raise NotSavedError(in_words(trouble)) from None
    if settled is None:
        raise NotSavedError("nothing was written; it is still here")
    return settled.draft
