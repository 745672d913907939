"""A config that somebody else changed while it was edited here: theirs, mine, or both."""

import asyncio
from dataclasses import replace
from typing import Any

from textual.app import App

from workbench.authoring.config_file import ConfigDraft, draft_of, save_config
from workbench.authoring.criteria_change import Content, changed_names, merged
from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.model.json_edit import EditError
from workbench.text import one_line
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.items import Item, searching


async def save(app: App[Any], saver: Saver, draft: ConfigDraft, content: Content) -> tuple[ConfigDraft, bool] | None:
    """Writes a draft, and asks where somebody else changed the file; see `settle`.

    Raises:
        ConfigRejectedError, ChangedOnDiskError, EditError, OSError: it cannot be written.
    """
    try:
        return await asyncio.to_thread(save_config, saver, draft, content), True
    except ChangedOnDiskError as error:
        return await settle(app, saver, error, draft, content)


async def settle(
    app: App[Any], saver: Saver, error: ChangedOnDiskError, draft: ConfigDraft, content: Content
) -> tuple[ConfigDraft, bool] | None:
    """Asks what is to be, and writes it; the draft to go on with and whether anything was written, None if the user
    went back to the edit.

    Raises:
        ConfigRejectedError, ChangedOnDiskError, EditError, OSError: it cannot be written.
    """
    theirs = _read(draft, error.theirs)
    title = one_line(f"{draft.file.name} was {'deleted' if error.theirs is None else 'changed'} meanwhile", limit=74)
    chosen = await app.push_screen_wait(PickScreen(title, searching(_items(draft, theirs, content))))
    if chosen == "theirs" and theirs is not None:
        return theirs, False
    if chosen == "both" and theirs is not None:
        both = merged(draft.content, theirs.content, content)
        return await asyncio.to_thread(save_config, saver, theirs, both), True
    if chosen == "mine":
        if error.theirs is None:
            return await asyncio.to_thread(save_config, saver, replace(draft, before=None), content), True
        return await asyncio.to_thread(save_config, saver, draft, content, over=error.theirs), True
    return None


def _read(draft: ConfigDraft, theirs: bytes | None) -> ConfigDraft | None:
    try:
        return None if theirs is None else draft_of(draft.file, theirs)
    except EditError:
        return None


def _items(draft: ConfigDraft, theirs: ConfigDraft | None, content: Content) -> list[Item]:
    items = [Item("back to the edit", None, help="Nothing is written; what you changed is still there.")]
    if theirs is not None:
        they, you = (changed_names(draft.content, one) for one in (theirs.content, content))
        both = sorted(set(they) & set(you))
        who = f"They changed {', '.join(they) or 'the layout only'}; you {', '.join(you) or 'nothing'}."
        if both:
            who += f" Of what both changed ({', '.join(both)}), yours is taken."
        items.append(Item("both: theirs, with your changes in it", "both", help=one_line(who)))
        items.append(Item("theirs: leave the file as it is now", "theirs", help="What you changed is given up."))
    items.append(Item("mine: write the file as it is here", "mine", help="u in the tree takes it back."))
    return items
