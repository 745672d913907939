"""The editor: a case as rows in place of its panes, and below them the value under the cursor, which is edited there.

Each change is saved at once. What cannot be saved stays in the field, with the reason at its place.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.actions import BY_ID, footer
from workbench.authoring.case_edit import NotPossibleError, duplicate, move, remove
from workbench.authoring.case_parts import parts_for, with_part
from workbench.authoring.case_rows import CaseRow
from workbench.authoring.evalset_file import RejectedError
from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.model.json_edit import EditError
from workbench.model.places import Location
from workbench.text import one_line, plain
from workbench.ui.editing.drafts import CaseDraft, Draft, label_of, place_in_words, said, save_draft, unchanged
from workbench.ui.editing.field import ValueField
from workbench.ui.editing.key_help import key_items
from workbench.ui.editing.row_list import RowList
from workbench.ui.editing.values import LONGEST, UnreadableError, as_json, field_text, json_head, place_of
from workbench.ui.editing.wording import in_words
from workbench.ui.keys import bindings, bindings_of
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.widgets.footer import KeyLine
from workbench.ui.widgets.pick_list import Item

if TYPE_CHECKING:
    from workbench.ui.editing.settling import Settled

Settle = Callable[[ChangedOnDiskError, Draft, Any, str], "Awaitable[Settled | None]"]
"""Asks what is to become of a change to a file that somebody else changed; None: nothing was written."""
_SHOWN = 4_000
"""Characters of a value that are shown without going into it."""


class EditorScreen(ModalScreen[str | None]):
    """Edits a draft. `saved(file)` is called after each change; `settle` when the file is not what it was; `over` says
    which room to take. Ends with "undo", "redo" or "outside" where the main screen is to do that and come back, None
    if it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom", "next_turn", "previous_turn"),
        *bindings("enter", "open", "close", "back", "keys"),
        *bindings_of("editor"),
    ]

    def __init__(
        self,
        draft: Draft,
        saver: Saver,
        keys: Mapping[str, tuple[str, ...]],
        *,
        saved: Callable[[Path], Awaitable[None]],
        settle: Settle,
        at: Location | None = None,
        editing: bool = False,
        words: str = "",
        over: Callable[[], Region] | None = None,
    ) -> None:
        super().__init__()
        self.draft = draft
        self._saver, self._keys, self._saved, self._settle = saver, keys, saved, settle
        self._at, self._editing, self._words = at, editing, words
        self._over = over
        self._busy = False
        self._dropping = False
        self.list = RowList()
        self.field = ValueField()
        self._preview = Static("", classes="preview", markup=False)
        self._message = Static("", classes="message", markup=False)
        self._line = KeyLine([*footer("editor"), BY_ID["keys"]], keys)
        self._field_line = Static(" ctrl+o saves · esc leaves it as it was", classes="field-keys", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(classes="editor") as frame:
            frame.border_title = Content(f"edit › {one_line(self.draft.name, limit=60)}")
            yield self.list
            with Vertical(classes="value"):
                yield self._preview
                yield self.field
            yield self._message
        with Vertical(classes="bottom"):
            yield self._line
            yield self._field_line

    def on_mount(self) -> None:
        self._lie_over()
        self.field.display = self._field_line.display = False
        self.list.when_moved = self._show_value
        self.list.show_rows(self.draft.rows(), at=self._at)
        self.list.focus()
        if self._editing:
            self.action_enter()
        elif self._words:
            self._say(self._words)

    def on_resize(self) -> None:
        self.call_after_refresh(self._lie_over)

    def _lie_over(self) -> None:
        """Takes the room of the panes; where they are not seen, all of it."""
        region = self._over() if self._over is not None else Region()
        frame = self.query_one(".editor")
        frame.styles.width = region.width if region.width > 20 else "100%"
        frame.styles.margin = (region.y or 1, 0, 0, 0)

    @property
    def place(self) -> Location | None:
        """Where the cursor stands."""
        return self.list.row.location if self.list.row else None

    # Moving

    def action_move_down(self) -> None:
        self.list.move("down")

    def action_move_up(self) -> None:
        self.list.move("up")

    def action_page_down(self) -> None:
        self.list.move("page_down")

    def action_page_up(self) -> None:
        self.list.move("page_up")

    def action_top(self) -> None:
        self.list.move("top")

    def action_bottom(self) -> None:
        self.list.move("bottom")

    def action_next_turn(self) -> None:
        self.list.next_turn(1)

    def action_previous_turn(self) -> None:
        self.list.next_turn(-1)

    def action_close(self) -> None:
        self.action_back()

    def action_back(self) -> None:
        if not self._busy:
            self.dismiss(None)

    def action_keys(self) -> None:
        items = key_items("editor", self._keys)
        self.app.push_screen(PickScreen("keys of the editor", searching(items)), self._do)

    def _do(self, action: str | None) -> None:
        if action is not None:
            self.call_later(self.run_action, action)

    # One value

    def action_open(self) -> None:
        self.action_enter()

    def action_enter(self) -> None:
        """Into the field with the value under the cursor."""
        row = self.list.row
        if row is None or row.form == "heading":
            self.list.move("down")
        elif len(field_text(row)) > LONGEST:
            self._say("too long to be edited here: E opens the case in your editor")
        else:
            self.field.take(row)
            self._show_field(True)
            self._say("as JSON" if as_json(row) else "")

    action_edit_row = action_enter

    def on_row_view_picked(self) -> None:
        self.action_enter()

    def on_value_field_left(self) -> None:
        if self.field.changed and not self._dropping:
            self._dropping = True
            self._say("not saved: ctrl+o saves it, esc once more drops it")
            return
        self._show_field(False)
        self._show_value()

    def on_text_area_changed(self) -> None:
        self._dropping = False

    async def on_value_field_saved(self) -> None:
        row = self.field.row
        if row is None or self._busy:
            return
        try:
            value = self.field.value()
        except UnreadableError as error:
            self._point(error.line, error.column, str(error))
            return
        if unchanged(self.draft, row, value):
            self._show_field(False)
            self._show_value()
            self._say("unchanged")
            return
        self._save(said(self.draft, row, value), label_of(self.draft, row), row.location)

    # Whole parts

    def action_edit_add(self) -> None:
        row = self.list.row
        if row is None or not isinstance(self.draft, CaseDraft):
            self._say("there is nothing to add here")
            return
        parts = [Item(part.label, part.what, help=part.help) for part in parts_for(self.draft.value, row)]
        self.app.push_screen(PickScreen("add", searching(parts)), lambda what: self._add(row, what))

    def _add(self, row: CaseRow, what: Any) -> None:
        if what is not None:
            value, place = with_part(self.draft.value, row, what)
            label = f"{self.draft.name}: new {what.replace('_', ' ')}"
            self._save(value, label, place, go_on=True)

    def action_edit_duplicate(self) -> None:
        self._change("duplicate", lambda row: duplicate(self.draft.value, row))

    def action_edit_remove(self) -> None:
        self._change("delete", lambda row: (remove(self.draft.value, row), row.unit))

    def action_edit_earlier(self) -> None:
        self._change("move", lambda row: move(self.draft.value, row, -1))

    def action_edit_later(self) -> None:
        self._change("move", lambda row: move(self.draft.value, row, 1))

    def action_edit_undo(self) -> None:
        self._end_with("undo")

    def action_edit_redo(self) -> None:
        self._end_with("redo")

    def action_edit_whole(self) -> None:
        self._end_with("outside")

    def _end_with(self, what: str) -> None:
        if not self._busy:
            self.dismiss(what)

    def _change(self, verb: str, change: Callable[[CaseRow], tuple[Any, Location]]) -> None:
        row = self.list.row
        if row is None or self._busy:
            return
        if not isinstance(self.draft, CaseDraft):
            self._say("this can only be edited")
            return
        try:
            value, place = change(row)
        except NotPossibleError as error:
            self._say(str(error))
            return
        self._save(value, label_of(self.draft, row, verb), place)

    # Saving

    def _save(self, value: Any, label: str, at: Location, *, go_on: bool = False) -> None:
        self._busy = True
        self.run_worker(self._write(value, label, at, go_on), group="save")

    async def _write(self, value: Any, label: str, at: Location, go_on: bool) -> None:
        try:
            self.draft = await asyncio.to_thread(save_draft, self._saver, self.draft, value, label)
        except RejectedError as error:
            self._reject(error)
            return
        except ChangedOnDiskError as error:
            if not await self._settled(error, value, label):
                return
        except (EditError, OSError) as error:
            self._say(in_words(error), warning=True)
            return
        finally:
            self._busy = False
        await self._saved(self.draft.file)
        self._show_field(False)
        self.list.show_rows(self.draft.rows(), at=at)
        self._say(f"saved: {one_line(label, limit=80)}")
        if go_on:
            self._go_on()

    async def _settled(self, error: ChangedOnDiskError, value: Any, label: str) -> bool:
        """Lets the user choose between two versions; whether there is something left to go on with."""
        try:
            settled = await self._settle(error, self.draft, value, label)
        except OSError as trouble:
            self._say(in_words(trouble), warning=True)
            return False
        if settled is None:
            self._say("nothing was written; it is still here", warning=True)
            return False
        if settled.draft is None:
            await self._saved(self.draft.file)
            self.dismiss(None)
            return False
        self.draft = settled.draft
        return True

    def _go_on(self) -> None:
        """Into the first value of what was just added."""
        row = self.list.row
        if row is not None and row.form == "heading":
            self.list.move("down")
        self.action_enter()

    def _reject(self, error: RejectedError) -> None:
        breach, row = error.breaches[0], self.field.row
        sentence = f"{breach.message}. {breach.hint}".rstrip(". ")
        if not self.field.display or row is None:
            self._say(f"not saved: {one_line(str(error))}", warning=True)
            return
        inside = breach.location[: len(row.location)] == row.location and as_json(row)
        if inside and (place := place_of(self.field.text, breach.location[len(row.location) :])):
            self._point(*place, sentence)
        else:
            self._say(one_line(sentence), warning=True)

    def _point(self, line: int, column: int, message: str) -> None:
        self.field.point_at(line, column)
        self._say(f"line {line}, column {column}: {one_line(message)}", warning=True)

    # What is shown

    def _show_field(self, shown: bool) -> None:
        row = self.field.row
        self.query_one(".value").border_title = Content(place_in_words(row)) if shown and row is not None else None
        self._dropping = False
        self.field.display = self._field_line.display = shown
        self._preview.display = self._line.display = not shown
        self.set_class(shown, "-typing")
        (self.field if shown else self.list).focus()

    def _show_value(self) -> None:
        row = self.list.row
        text = ""
        if row is not None and row.form == "heading":
            text = "d duplicates the turn, D deletes it, < and > move it, + adds to it"
        elif row is not None and (row.missing or row.value is None):
            text = "not there: enter adds it"
        elif row is not None:
            text = row.value if isinstance(row.value, str) else json_head(row.value, _SHOWN + 1, indent=2)
        self._preview.update(Content(plain(text, limit=_SHOWN)))
        self._say("")

    def _say(self, text: str, *, warning: bool = False) -> None:
        self._message.set_class(warning, "-warning")
        self._message.update(Content(text))
