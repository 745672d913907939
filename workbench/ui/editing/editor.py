"""The editor of a case or evalset, with one row per value. It covers the panes.

The value under the cursor is shown below the rows and edited there. Each change is saved at once. If it cannot be
saved, the text stays in the field, and the cursor goes to the fault.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.widgets import Static

from workbench.criteria.registry import rubric_types
from workbench.editing.case_edit import (
    NotPossibleError,
    can_duplicate,
    can_remove,
    duplicate,
    move,
    parts_for,
    remove,
    with_part,
)
from workbench.editing.case_rows import CaseRow
from workbench.editing.evalset_file import RejectedError
from workbench.files.faults import Location
from workbench.text.safe_text import one_line, plain
from workbench.ui.actions import Action, footer
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.editing.drafts import (
    LONGEST,
    Draft,
    NotSavedError,
    UnreadableError,
    as_json,
    field_text,
    json_head,
    label_of,
    place_in_words,
    place_of,
    unchanged,
    with_row,
)
from workbench.ui.editing.field import FieldScreen, RowList
from workbench.ui.editing.files import Files
from workbench.ui.widgets.basics import Titled, start_work
from workbench.ui.widgets.footer import bindings, bindings_of

_LEAVES = "esc closes"
_SHOWN = 4_000
"""Maximum number of characters in the preview of a value."""
_PERSONAS = "EXPERT, NOVICE or EVALUATOR, or your own persona as JSON, starting with {"


def _hint(row: CaseRow) -> str:
    """Return a hint about the values of a rubric's type or a persona, or "" for other rows."""
    name = row.name.strip()
    if name == "type":
        return f"criteria read {', '.join(dict.fromkeys(rubric_types().values()))} and ignore other types"
    return _PERSONAS if name == "persona" else ""


def _footer(draft: Draft, row: CaseRow | None) -> list[Action]:
    """Return the actions of the footer for a row, without those that are not possible there.

    If the row cannot be duplicated, undo is left out, too.
    """
    if draft.number is None:
        # An evalset's own fields have no parts that could be added or deleted.
        return footer("editor", ("edit", "undo", "redo"))
    without = set()
    if row is not None and row.form == "heading":
        without.add("edit")
    if row is not None and not can_duplicate(row):
        without |= {"duplicate", "undo"}
    if row is not None and not can_remove(row):
        without.add("delete")
    return footer("editor", without=without)


class EditorScreen(FieldScreen[None]):
    """The editor of a draft.

    `outside` opens the draft in the user's own editor, and returns the new draft and a message. `over` returns the
    region to cover. `at` is the location where the cursor starts. With `editing`, the field there opens at once.
    """

    where = "editor"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("next_turn", "previous_turn", "open", "close"),
        *bindings_of("editor"),
    ]

    def __init__(
        self,
        draft: Draft,
        keys: Mapping[str, tuple[str, ...]],
        files: Files,
        outside: Callable[[Draft], Awaitable[tuple[Draft | None, str]]],
        over: Callable[[], Region],
        *,
        at: Location | None = None,
        editing: bool = False,
    ) -> None:
        self.list = RowList()
        super().__init__(self.list, keys, _footer(draft, None))
        self.draft = draft
        self._files, self._outside = files, outside
        self._at, self._editing, self._over = at, editing, over
        self._busy = self._fresh = False
        self._one_at_a_time = asyncio.Lock()
        self._preview = Static("", classes="preview", markup=False)
        self._value = Vertical(self._preview, self.field, classes="value")

    def compose(self) -> ComposeResult:
        """Lay out the rows, value, message and keys."""
        others = self.draft.evalset.ids if self.draft.number is not None else ()
        name = one_line(self.draft.name, limit=200)
        with Titled("edit › ", name, classes="editor", others=map(one_line, others)) as self._frame:
            self._frame.border_subtitle = _LEAVES
            yield self.list
            yield self._value
            yield self.message
        with Vertical(classes="bottom"):
            yield self.key_line
            yield self.field_line

    def on_mount(self) -> None:
        """Show the rows. With `editing`, open the field at once."""
        self._cover_panes()
        self.list.when_moved = self._show_value
        self._show_rows(self._at)
        self.list.focus()
        if self._editing:
            self.action_enter()

    def on_resize(self) -> None:
        """Cover the panes at their new size."""
        self.call_after_refresh(self._cover_panes)

    def _cover_panes(self) -> None:
        """Cover the panes, or the whole screen if they are not visible."""
        region = self._over()
        frame = self.query_one(".editor")
        frame.styles.width = region.width if region.width > 20 else "100%"
        frame.styles.margin = (region.y or 1, 0, 0, 0)

    def action_turn(self, step: int) -> None:
        """Go to the next (1) or previous (-1) turn."""
        self.list.next_turn(step)

    def action_back(self) -> None:
        """Close the editor."""
        if not self._busy:
            self.dismiss(None)

    action_close = action_back

    def action_enter(self) -> None:
        """Edit the value under the cursor in the field. On a heading, go to the next row."""
        row = self.list.row_or_none
        if row is None or row.form == "heading":
            self.list.move("down")
        elif len(field_text(row)) > LONGEST:
            self.say("too long for this field: E opens the case in your editor")
        else:
            self._fresh = False
            self._value.add_class("-typing")
            self._frame.border_subtitle = None
            self._value.border_title = Content(place_in_words(row))
            self._preview.display = False
            self.field.load(row)
            words = "as JSON" if as_json(row) else _hint(row)
            if row.form != "json" and as_json(row):
                words = "edited as JSON, because it has characters that a field cannot show"
            one_line_only = row.form == "word" and not as_json(row)
            self.into_field(words, key="enter or ctrl+o" if one_line_only else "ctrl+o")

    action_edit = action_open = action_enter

    def left_field(self) -> None:
        """Show the value again. If its part was just added, remove the part again."""
        self._show_value()
        if self._fresh:
            # Esc in the first field of a new part cancels adding it.
            start_work(self, partial(self._take_back, again=False), "back")

    def out_of_field(self) -> None:
        """Go back to the rows and show the value again."""
        super().out_of_field()
        self._value.border_title = None
        self._preview.display = True
        self._value.remove_class("-typing")
        self._frame.border_subtitle = _LEAVES

    async def on_edit_field_saved(self) -> None:
        """Save the text in the field."""
        row = self.field.row
        if row is None or self._busy:
            return
        try:
            value = self.field.value()
        except UnreadableError as error:
            self._point_at(error.line, error.column, str(error))
            return
        if unchanged(self.draft, row, value):
            self.out_of_field()
            self._show_value()
            self.say("unchanged")
            return
        self._save(with_row(self.draft, row, value), label_of(self.draft, row), row.location)

    def _point_at(self, line: int, column: int, message: str) -> None:
        """Put the field's cursor at a fault, and show it with its place."""
        self.field.point_at(line, column)
        self.say(f"line {line}, column {column}: {one_line(message)}", warning=True)

    def _reject(self, error: RejectedError) -> None:
        """Show why the value was rejected. If the fault is in the field, put the field's cursor there."""
        breach, row = error.breaches[0], self.field.row
        if not self.field.display or row is None:
            self.say(f"not saved: {one_line(str(error))}", warning=True)
            return
        sentence = f"{breach.message}. {breach.hint}".rstrip(". ")
        inside = breach.location[: len(row.location)] == row.location and as_json(row)
        if inside and (place := place_of(self.field.text, breach.location[len(row.location) :])):
            self._point_at(*place, sentence)
        else:
            self.say(one_line(sentence), warning=True)

    def action_add_part(self) -> None:
        """Let the user choose a part to add at the cursor."""
        row = self.list.row_or_none
        if row is None or self.draft.number is None:
            self.say("nothing can be added here")
            return
        parts = [Item(part.label, part.what, help=part.help) for part in parts_for(self.draft.value, row)]
        self.app.push_screen(PickScreen("add", searching(parts)), lambda what: self._add(row, what))

    def _add(self, row: CaseRow, what: Any) -> None:
        if what is None:
            return
        try:
            value, place = with_part(self.draft.value, row, what)
        except NotPossibleError as error:
            self.say(str(error))
            return
        self._save(value, f"{self.draft.name}: new {what.replace('_', ' ')}", place, go_on=True)

    def action_duplicate(self) -> None:
        """Duplicate the part under the cursor."""
        self._change("duplicate", lambda row: duplicate(self.draft.value, row))

    def action_delete(self) -> None:
        """Delete the part under the cursor."""
        self._change("delete", lambda row: (remove(self.draft.value, row), row.unit))

    def action_reorder(self, step: int) -> None:
        """Move the part under the cursor up (-1) or down (1)."""
        self._change("move", lambda row: move(self.draft.value, row, step))

    def _change(self, verb: str, change: Callable[[CaseRow], tuple[Any, Location]]) -> None:
        row = self.list.row_or_none
        if row is None or self._busy:
            return
        if self.draft.number is None:
            self.say("ID, name and description can be edited, but not added, moved or deleted")
            return
        try:
            value, place = change(row)
        except NotPossibleError as error:
            self.say(str(error))
            return
        self._save(value, label_of(self.draft, row, verb), place)

    # Undo, redo, and the user's editor

    def action_undo(self) -> None:
        """Undo the last edit."""
        start_work(self, partial(self._take_back, again=False), "back")

    def action_redo(self) -> None:
        """Redo the edit that was undone last."""
        start_work(self, partial(self._take_back, again=True), "back")

    def action_edit_outside(self) -> None:
        """Open the whole draft in the user's editor."""
        if not self._busy:
            start_work(self, self._edit_whole, "save")

    async def _take_back(self, *, again: bool) -> None:
        # Pressing undo twice quickly undoes two edits, one after the other.
        async with self._one_at_a_time:
            self._busy = True
            try:
                _, words = await self._files.take_back(again=again)
                after = await self._files.reopened(self.draft)
            finally:
                self._busy = False
            self._continue_with(after, self.place, words)

    async def _edit_whole(self) -> None:
        self._busy = True
        try:
            after, words = await self._outside(self.draft)
        finally:
            self._busy = False
        self._continue_with(after, self.place, words)

    def _save(self, value: Any, label: str, at: Location, *, go_on: bool = False) -> None:
        """Save a value, and go to the row `at`. With `go_on`, edit the first value of the part at that row."""
        self._busy = True
        start_work(self, partial(self._write, value, label, at, go_on), "save")

    async def _write(self, value: Any, label: str, at: Location, go_on: bool) -> None:
        try:
            after, words = await self._files.save(self.draft, value, label)
        except RejectedError as error:
            self._reject(error)
            return
        except NotSavedError as error:
            self.say(str(error), warning=True)
            return
        finally:
            self._busy = False
        self.out_of_field()
        self._continue_with(after, at, words)
        if go_on:
            row = self.list.row_or_none
            if row is not None and row.form == "heading":
                self.list.move("down")
            self.action_enter()
            self._fresh = bool(self.field.display)

    @property
    def place(self) -> Location | None:
        """The location of the row under the cursor, or None without rows."""
        return self.list.row.location if self.list.rows else None

    def _continue_with(self, draft: Draft | None, at: Location | None, words: str) -> None:
        """Show the updated draft. If it is None, because the case can no longer be read, close the editor."""
        if draft is None:
            if self.is_current:
                self.dismiss(None)
            return
        self.draft = draft
        self._show_rows(at)
        self.say(words)

    def _show_rows(self, at: Location | None) -> None:
        self.query_one(Titled).use_name(one_line(self.draft.name, limit=200))
        self.list.show_rows(self.draft.rows(), at=at)

    def _show_value(self) -> None:
        row, text = self.list.row_or_none, ""
        if row is not None and row.form == "heading":
            text = "d duplicates this turn, D deletes it, < and > move it, + adds a part"
        elif row is not None and (row.missing or row.value is None):
            text = "no value: enter adds one"
        elif row is not None:
            text = row.value if isinstance(row.value, str) else json_head(row.value, _SHOWN + 1, indent=2)
        self._preview.update(Content(plain(text, limit=_SHOWN)))
        self.key_line.show_keys(_footer(self.draft, row), self.keys_of)
        self.say("")
