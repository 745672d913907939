"""The two uses of the criteria editor, the options of the next run above its rows, and saving of a config."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from textual.content import Content as Text
from textual.widgets import Static

from workbench.editing.criteria_change import ConfigDraft, Content, changed_names, draft_of, edit_of, merged
from workbench.editing.saving import Saver
from workbench.files.json_text.json_edit import EditError
from workbench.files.run_options import PlaceChoice
from workbench.text.safe_text import one_line
from workbench.ui.actions import key_label
from workbench.ui.criteria.changes import FormChanges
from workbench.ui.dialogs.items import Item
from workbench.ui.dialogs.pick import Ask, PickScreen
from workbench.ui.editing.conflicts import Chosen, choose_version, save
from workbench.ui.session.next_run import PlaceOptions, RecordingOptions

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
    apply: Callable[[Sequence[FormChanges]], None] | None = None
    recordings: RecordingOptions | None = None
    place: PlaceOptions | None = None

    @property
    def is_for_next_run(self) -> bool:
        """Whether changes apply to the next run only."""
        return self.apply is not None


class NextRunLine(Static):
    """The use of recordings and the place of the next run. In the editor of a file, it is empty."""

    def __init__(self, mode: EditorMode, keys: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__("", classes="recordings", markup=False)
        self._mode, self._keys_of = mode, keys

    def on_mount(self) -> None:
        """Show the options."""
        self.display = self._mode.recordings is not None
        self._show()

    def switch_mode(self) -> str:
        """Switch to the next mode of recordings. Return a message."""
        options = self._mode.recordings
        if options is None:
            return _NO_RECORDINGS
        self._mode.recordings = options = replace(options, mode=options.next_mode)
        self._show()
        return options.help

    def switch_on_miss(self) -> str:
        """Switch what a call without a recording does: end in an error, or run live. Return a message, or ""."""
        options = self._mode.recordings
        if options is None:
            return _NO_RECORDINGS
        if not options.on_miss_words:
            return "only calls of frozen tools can lack a recording: K switches the recordings"
        self._mode.recordings = replace(options, live_on_miss=not options.live_on_miss)
        self._show()
        return ""

    def choose_place(self) -> str:
        """Let the user pick or type the place of the next run. Return a message, or ""."""
        options = self._mode.place
        if options is None:
            return "the place is set in the options of the next run: press esc, then o"

        def choose(place: PlaceChoice | None) -> None:
            if place is not None:
                self._mode.place = replace(options, chosen=place)
                self._show()

        what = "a place, written as for --on"
        screen = PickScreen("place of the next run", options.search(), placeholder=what, current=options.chosen)
        self.app.push_screen(screen, choose)
        return ""

    def _show(self) -> None:
        options = self._mode.recordings
        if options is None:
            return
        shown = [("freeze", "recordings", options.label)]
        if options.on_miss_words:
            shown.append(("on_miss", "on a miss", options.on_miss_words))
        if self._mode.place is not None:
            shown.append(("place", "place", self._mode.place.label))
        parts: list[str | tuple[str, str]] = []
        for action, name, words in shown:
            key = key_label(self._keys_of[action][0]) if self._keys_of[action] else ""
            parts += ["  " if parts else "", (f"{key} ", "$accent"), (f"{name} ", "$label"), words]
        self.update(Text.assemble(*parts))


_NO_RECORDINGS = "recordings belong to the options of the next run: press esc, then o"


async def save_config(saver: Saver, edit: FormChanges, ask: Ask) -> str | None:
    """Save a config and return a message about it. If the user goes back to the editor, return None.

    Raises:
        ConfigRejectedError, EditError, OSError: It cannot be saved.
    """
    draft, content = edit.draft, edit.result
    label, mine = await asyncio.to_thread(edit_of, draft, content)
    choose = partial(_choose, ask, draft, content, mine)
    saved = await save(saver, label, draft.file, draft.before, mine, choose)
    if saved is None:
        return None
    edit.saved(draft_of(draft.file, saved.content or b"", draft.metrics))
    name = edit.file_name
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
