"""The form of a criteria config: every field of its criteria, what the last run would be under them, and saving.

Changes stay in the form until they are saved, so that a threshold can be tried out. What cannot be saved stays too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content as Text
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.actions import footer
from workbench.authoring.case_rows import CaseRow
from workbench.authoring.case_rows import Form as TextForm
from workbench.authoring.config_file import ConfigDraft, ConfigRejectedError, faults_of_draft, save_config
from workbench.authoring.criteria_change import (
    Content,
    ValueRefusedError,
    changed_names,
    moved,
    next_choice,
    read_typed,
    stepped,
    with_criterion,
    with_rubric,
    with_value,
    without,
)
from workbench.authoring.criteria_form import FormRow, rows_of
from workbench.authoring.criteria_presets import with_preset
from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.authoring.what_if import Outlook, WhatIf
from workbench.model.criteria import parse_config
from workbench.model.faults import Fault
from workbench.model.json_edit import EditError
from workbench.model.places import Location, json_path
from workbench.text import one_line
from workbench.ui.criteria.adding import Chosen, items_for
from workbench.ui.criteria.form_list import FormList
from workbench.ui.criteria.settling import settle
from workbench.ui.criteria.wording import about, outlook_of_all, outlook_of_criterion
from workbench.ui.editing.field import ValueField
from workbench.ui.editing.key_help import key_items
from workbench.ui.editing.values import UnreadableError, json_text
from workbench.ui.editing.wording import in_words
from workbench.ui.keys import bindings, bindings_of
from workbench.ui.screens.pick import PickScreen, searching
from workbench.ui.widgets.footer import KeyLine

STEP, FINE_STEP = 0.05, 0.01
_FORMS: Mapping[str, TextForm] = {"threshold": "word", "number": "word", "word": "word", "text": "text", "json": "json"}


class CriteriaScreen(ModalScreen[None]):
    """Edits a draft. `why` says in safe words which file a draft is for and why; `saved` is called after each save."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("move_down", "move_up", "page_down", "page_up", "top", "bottom"),
        *bindings("enter", "open", "close", "back", "keys"),
        *bindings_of("criteria"),
    ]

    def __init__(
        self,
        draft: ConfigDraft,
        saver: Saver,
        what_if: WhatIf,
        keys: Mapping[str, tuple[str, ...]],
        *,
        why: Callable[[ConfigDraft], str],
        saved: Callable[[], Awaitable[object]],
    ) -> None:
        super().__init__()
        self.draft, self.content = draft, draft.content
        self._saver, self._what_if, self._keys, self._why, self._saved = saver, what_if, keys, why, saved
        self._back: list[tuple[Content, Location | None]] = []
        self._outlook: Outlook | None = None
        self._faults: tuple[Fault, ...] = ()
        self._busy = self._leaving = self._dropping = self._looking = False
        self._wanted: Content | None = None
        self.list = FormList()
        self.field = ValueField()
        self._about = Static("", markup=False)
        self._about_room = VerticalScroll(self._about, classes="about", can_focus=False)
        self._reason = Static(why(draft), classes="why", markup=False)
        self._cases = Static("", classes="cases", markup=False)
        self._message = Static("", classes="message", markup=False)
        self._line = KeyLine(footer("criteria"), keys)
        self._field_line = Static("", classes="field-keys", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog criteria") as dialog:
            dialog.border_title = Text(f"criteria › {one_line(self.draft.file.name, limit=60)}")
            yield self._reason
            yield self.list
            yield self._about_room
            yield self.field
            yield self._cases
            yield self._message
            yield self._line
            yield self._field_line

    def on_mount(self) -> None:
        self.field.display = self._field_line.display = False
        self.list.when_moved = self._moved
        self._show()
        self.list.focus()

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

    def action_open(self) -> None:
        self.list.unfold()

    def action_close(self) -> None:
        # Out of the form only where nothing can be lost: it is the key that closes things.
        if not self.list.fold() and self.content == self.draft.content:
            self.action_back()

    def action_back(self) -> None:
        if self._busy:
            return
        if self.content != self.draft.content and not self._leaving:
            self._leaving = True
            self._say("not saved: s saves it, esc once more drops it", warning=True)
            return
        self.dismiss(None)

    def action_keys(self) -> None:
        items = key_items("criteria", self._keys)
        self.app.push_screen(PickScreen("keys of the form", searching(items)), self._do)

    def _do(self, action: str | None) -> None:
        if action is not None:
            self.call_later(self.run_action, action)

    # One value

    def action_enter(self) -> None:
        """Into the field with the value under the cursor, or to its next choice."""
        row = self.list.row
        if row is None:
            self.action_criteria_add()
        elif row.kind in ("flag", "choice"):
            self.action_criteria_next()
        elif row.kind == "rubrics":
            self._add(Chosen(criterion=row.criterion, rubric=True))
        elif row.kind in _FORMS:
            self._type(row)
        else:
            self._say("it is kept as it stands" if row.kind == "kept" else "")

    action_criteria_edit = action_enter

    def on_row_view_picked(self) -> None:
        self.action_enter()

    def on_key(self, event: Key) -> None:
        row = self.list.row
        digit = event.character is not None and event.character in "0123456789."
        if digit and row is not None and row.kind in ("threshold", "number") and not self.field.display:
            event.stop()
            self._type(row)
            self.field.load_text(event.character or "")
            self.field.move_cursor(self.field.document.end)

    def _type(self, row: FormRow) -> None:
        value = row.value
        if row.kind in ("threshold", "number") and value is not None:
            value = f"{value:g}" if isinstance(value, float) else str(value)
        missing = not row.given or value is None
        form = _FORMS[row.kind]
        if form != "json" and not missing and not isinstance(value, str):
            form = "json"
        self.field.take(CaseRow(row.location, "odd", row.field.name, value, form, row.unit, missing=missing))
        self._show_field(row)

    def action_criteria_next(self) -> None:
        row = self.list.row
        if row is None or row.kind not in ("flag", "choice"):
            self._say("space is for what has choices: enter edits this")
            return
        self._take(with_value(self.content, row.location, next_choice(row)))

    def action_criteria_more(self) -> None:
        self._step(STEP)

    def action_criteria_less(self) -> None:
        self._step(-STEP)

    def action_criteria_more_fine(self) -> None:
        self._step(FINE_STEP)

    def action_criteria_less_fine(self) -> None:
        self._step(-FINE_STEP)

    def _step(self, step: float) -> None:
        row = self.list.row
        if row is None or row.kind not in ("threshold", "number"):
            self._say("put the cursor on a threshold or another number first")
            return
        self._take(with_value(self.content, row.location, stepped(row, step)))

    def on_value_field_left(self) -> None:
        if self.field.changed and not self._dropping:
            self._dropping = True
            self._say("not taken: ctrl+o takes it, esc once more drops it")
            return
        self._show_field(None)
        self._moved()
        self._look_ahead(self.content)

    def on_text_area_changed(self) -> None:
        self._dropping = False
        row = self.list.row
        if self.field.display and row is not None and row.kind == "threshold":
            try:
                self._look_ahead(with_value(self.content, row.location, read_typed(row, self.field.text)))
            except ValueRefusedError:
                return

    def on_value_field_saved(self) -> None:
        row = self.list.row
        if row is None:
            return
        try:
            json_typed = row.kind == "json" or (self.field.row is not None and self.field.row.form == "json")
            value = self.field.value() if json_typed else read_typed(row, self.field.text)
        except UnreadableError as error:
            self.field.point_at(error.line, error.column)
            self._say(f"line {error.line}, column {error.column}: {one_line(str(error))}", warning=True)
            return
        except ValueRefusedError as error:
            self._say(one_line(str(error)), warning=True)
            return
        self._show_field(None)
        if row.given and json_text(value) == json_text(row.value):
            self._moved()
            self._say("unchanged")
        else:
            self._take(with_value(self.content, row.location, value))

    # Whole parts

    def action_criteria_add(self) -> None:
        items = items_for(self.content, self.list.row)
        screen = PickScreen("add", searching(items), placeholder="a purpose, a criterion, a rubric")
        self.app.push_screen(screen, self._add)

    def _add(self, chosen: Chosen | None) -> None:
        if chosen is None:
            return
        if chosen.preset is not None:
            instead = self.draft.defaults and self.content == self.draft.content
            content, new = with_preset(self.content, chosen.preset, instead=instead)
            at: Location | None = ("criteria", new[0]) if new else None
            self._take(content, at=at)
            self._say(f"new: {', '.join(new)}" if new else "all of it is there already: nothing is changed")
        elif chosen.rubric:
            row = self.list.row
            place = row.unit[-1] if row is not None and row.depth >= 2 else None
            after = place if isinstance(place, int) else None
            try:
                content, at = with_rubric(self.content, chosen.criterion, after)
            except ValueRefusedError as error:
                self._say(str(error), warning=True)
                return
            self._take(content, at=at)
            self.action_enter()
        else:
            self._take(with_criterion(self.content, chosen.criterion), at=("criteria", chosen.criterion))

    def action_criteria_remove(self) -> None:
        row = self.list.row
        if row is None or not row.unit or row.kind == "rubrics":
            self._say("there is nothing to take out here")
        elif row.kind == "kept":
            self._say("it is kept as it stands")
        elif not row.given and row.depth < 2:
            self._say("it is not there: the default holds")
        elif row.field.name in ("type", "description") and row.depth > 2:
            # Of a rubric these need not be there; without its text or id it goes as a whole.
            self._take(without(self.content, row.location))
        else:
            self._take(without(self.content, row.unit))

    def action_criteria_earlier(self) -> None:
        self._move(-1)

    def action_criteria_later(self) -> None:
        self._move(1)

    def _move(self, by: int) -> None:
        row = self.list.row
        if row is None or not (row.depth >= 2 or row.kind == "threshold"):
            self._say("rubrics and criteria can be moved: put the cursor on one")
            return
        content, at = moved(self.content, row.unit, by)
        self._take(content, at=(*at, *row.location[len(row.unit) :]))

    def action_criteria_undo(self) -> None:
        if not self._back:
            self._say("nothing is changed here; u in the tree takes back what was saved")
            return
        self.content, at = self._back.pop()
        self._show(at=at)

    def action_criteria_reset(self) -> None:
        self._take(self.draft.content)

    def _take(self, content: Content, *, at: Location | None = None) -> None:
        """Takes a changed content into the form; what was there before can be had back."""
        row = self.list.row
        self._back.append((self.content, row.location if row else None))
        self.content = content
        self._show(at=at)

    # Saving

    def action_criteria_save(self) -> None:
        if self._busy:
            return
        if self.draft.before is not None and not changed_names(self.draft.content, self.content):
            self._say("nothing is changed")
            return
        self._busy = True
        self.run_worker(self._save(), group="save")

    async def _save(self) -> None:
        try:
            written = await self._written()
        except ConfigRejectedError as error:
            self._reject(error)
        except (ChangedOnDiskError, EditError, OSError) as error:
            self._say(in_words(error), warning=True)
        else:
            if written is None:
                self._say("nothing was written; it is still here", warning=True)
                return
            self.draft, saved = written
            self.content = self.draft.content
            self._back.clear()
            await self._saved()
            self._reason.update(Text(self._why(self.draft)))
            self._show()
            name = one_line(self.draft.file.name)
            self._say(f"saved: {name}; u in the tree takes it back" if saved else f"{name} as it is now")
        finally:
            self._busy = False

    async def _written(self) -> tuple[ConfigDraft, bool] | None:
        try:
            return await asyncio.to_thread(save_config, self._saver, self.draft, self.content), True
        except ChangedOnDiskError as error:
            return await settle(self.app, self._saver, error, self.draft, self.content)

    def _reject(self, error: ConfigRejectedError) -> None:
        fault = error.faults[0]
        row = next((row for row in self.list.all_rows if _stands_at(row, fault)), None)
        if row is not None:
            self.list.show_rows(self.list.all_rows, at=row.location)
        self._say(one_line(f"not saved: {fault.message}. {fault.hint}".rstrip(". ")), warning=True)

    # What is shown

    def _show(self, *, at: Location | None = None) -> None:
        self._leaving = False
        self.list.changed = frozenset(changed_names(self.draft.content, self.content))
        self.list.show_rows(rows_of(self.content), at=at)
        self._look_ahead(self.content)

    def _look_ahead(self, content: Content) -> None:
        """Works out, off the loop, what the last run would be and what is wrong with what stands here: one look at a
        time, and after it only the newest content, so that a key held down builds no queue."""
        self._wanted = content
        if not self._looking:
            self._looking = True
            look: Any = self._look
            self.run_worker(look, group="look")

    async def _look(self) -> None:
        try:
            while self._wanted is not None:
                content, self._wanted = self._wanted, None
                await self._look_at(content)
        finally:
            self._looking = False

    async def _look_at(self, content: Content) -> None:
        try:
            outlook, faults = await asyncio.to_thread(self._worked_out, content)
        except EditError as error:
            self._say(in_words(error), warning=True)
            return
        self._outlook, self._faults = outlook, faults
        self.list.marks = {
            row.location: "failed" if any(fault.severity == "error" for fault in found) else "not-evaluated"
            for row in self.list.all_rows
            if (found := [fault for fault in faults if _stands_at(row, fault)])
        }
        self.list.refresh()
        self._cases.update(Text(outlook_of_all(outlook)))
        self._show_about()

    def _worked_out(self, content: Content) -> tuple[Outlook, tuple[Fault, ...]]:
        config = parse_config(self.draft.file, self.draft.bytes_of(content))
        return self._what_if.under(config), faults_of_draft(self.draft, content)

    def _moved(self) -> None:
        self._say("")
        self._show_about()

    def _show_about(self) -> None:
        row = self.list.row
        if row is None:
            self._about.update(Text("No criterion: nothing is judged. a adds one."))
            return
        lines = [
            f"{'!' if fault.severity == 'error' else '?'} {one_line(fault.message)}. {one_line(fault.hint)}".rstrip(
                ". "
            )
            for fault in self._faults
            if _stands_at(row, fault)
        ]
        if row.kind == "threshold" or row.field.name in ("match_type", "ignore_args"):
            lines += outlook_of_criterion(self._outlook, row.criterion)
        self._about.update(Text("\n".join([*lines, about(row, self.list.all_rows)])))

    def _show_field(self, row: FormRow | None) -> None:
        self._dropping = False
        self.field.display = self._field_line.display = row is not None
        self._line.display = row is None
        # A threshold is typed with the flips in sight; long texts take the room.
        small = row is not None and row.kind in ("threshold", "number", "word")
        self._about_room.display = row is None or small
        self.field.styles.height = 1 if small else "2fr"
        keys = "enter takes it" if small else "ctrl+o takes it"
        self._field_line.update(Text(f" {keys} · esc leaves it as it was"))
        self._say("as JSON" if row is not None and row.kind == "json" else "")
        (self.list if row is None else self.field).focus()

    def _say(self, text: str, *, warning: bool = False) -> None:
        self._message.set_class(warning, "-warning")
        self._message.update(Text(text))


def _in_words(fault: Fault) -> str:
    mark = "!" if fault.severity == "error" else "?"
    return f"{mark} {one_line(fault.message)}. {one_line(fault.hint)}".rstrip(". ")


def _stands_at(row: FormRow, fault: Fault) -> bool:
    """Whether a fault is about the value of a row; one about a whole criterion is about its first row."""
    here = json_path(row.location)
    inside = fault.json_path.startswith((f"{here}.", f"{here}["))
    if row.kind == "threshold":
        return fault.json_path in (here, json_path(row.unit))
    return bool(row.location) and (fault.json_path == here or (inside and row.kind in ("json", "kept")))
