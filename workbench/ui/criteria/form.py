"""The form of a criteria config: every field of its criteria, what the last run would be under them, and saving.

Changes stay in the form until they are saved, so that a threshold can be tried out. What cannot be saved stays too.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content as Text
from textual.events import Key, Paste
from textual.widgets import Static

from workbench.authoring.config_file import ConfigDraft, ConfigRejectedError
from workbench.authoring.criteria_change import ValueRefusedError, read_typed, with_value
from workbench.authoring.criteria_form import FormRow, rows_of
from workbench.authoring.saving import ChangedOnDiskError, Saver
from workbench.authoring.what_if import WhatIf
from workbench.model.json_edit import EditError
from workbench.model.places import Location
from workbench.text import one_line
from workbench.ui.criteria.adding import Chosen, items_for
from workbench.ui.criteria.changes import FormChanges
from workbench.ui.criteria.changing import ChangingScreen
from workbench.ui.criteria.look_ahead import LookAhead, Seen, stands_at
from workbench.ui.criteria.settling import save
from workbench.ui.criteria.value_field import FORMS, IN_NUMBERS, take, typed_value
from workbench.ui.criteria.wording import about, outlook_of_all
from workbench.ui.editing.values import UnreadableError, json_text
from workbench.ui.editing.wording import in_words
from workbench.ui.items import searching
from workbench.ui.keys import bindings
from workbench.ui.screens.pick import PickScreen


class CriteriaScreen(ChangingScreen):
    """Edits a draft. `why` says in safe words which file a draft is for and why; `saved` is called after each save."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("open", "close", "keys")]

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
        super().__init__(FormChanges(draft), keys)
        self._saver, self._why, self._saved = saver, why, saved
        self._look_ahead = LookAhead(what_if, lambda look: self.run_worker(look, group="look"), self._show_seen)
        self._seen = Seen()
        self._busy = self._leaving = False
        self._about = Static("", markup=False)
        self._about_room = VerticalScroll(self._about, classes="about", can_focus=False)
        self._reason = Static(why(draft), classes="why", markup=False)
        self._cases = Static("", classes="cases", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog criteria") as dialog:
            dialog.border_title = Text(f"criteria › {one_line(self.draft.file.name, limit=60)}")
            yield self._reason
            yield self.list
            yield self._about_room
            yield self.field
            yield self._cases
            yield self.message
            yield self.key_line
            yield self.field_line

    def on_mount(self) -> None:
        self.list.when_moved = self._moved
        self.show_changes()
        self.list.focus()

    # Moving

    def action_open(self) -> None:
        self.list.unfold()

    def action_close(self) -> None:
        # Out of the form only where nothing can be lost: it is the key that closes things.
        if not self.list.fold() and not self.changes.any:
            self.action_back()

    def action_back(self) -> None:
        if self._busy:
            return
        if self.changes.any and not self._leaving:
            self._leaving = True
            self.say("not saved: s saves it, esc once more drops it", warning=True)
            return
        self.dismiss(None)

    def action_keys(self) -> None:
        self.show_keys("criteria", "keys of the form")

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
        elif row.kind in FORMS:
            self._type(row)
        else:
            self.say("it is kept as it stands" if row.kind == "kept" else "")

    action_criteria_edit = action_enter

    def on_key(self, event: Key) -> None:
        if event.character is not None and event.character in IN_NUMBERS and self._type_over(event.character):
            event.stop()

    def on_paste(self, event: Paste) -> None:
        text = event.text.strip()
        if not self.field.display and IN_NUMBERS.issuperset(text) and self._type_over(text):
            event.stop()

    def _type_over(self, text: str) -> bool:
        """Open the field of the number under the cursor with this text in place of its value, if it is a number."""
        row = self.list.row
        if not text or self.field.display or row is None or row.kind not in ("threshold", "number"):
            return False
        self._type(row)
        self.field.load_text(text)
        self.field.move_cursor(self.field.document.end)
        return True

    def left_field(self) -> None:
        self._moved()
        self._look_ahead.at(self.draft, self.content)

    def on_text_area_changed(self) -> None:
        super().on_text_area_changed()
        row = self.list.row
        if self.field.display and row is not None and row.kind == "threshold":
            try:
                value = read_typed(row, self.field.text)
            except ValueRefusedError:
                return
            self._look_ahead.at(self.draft, with_value(self.content, row.location, value))

    def on_value_field_saved(self) -> None:
        row = self.list.row
        if row is None:
            return
        try:
            value = typed_value(self.field, row)
        except UnreadableError as error:
            self.field.point_at(error.line, error.column)
            self.say(f"line {error.line}, column {error.column}: {one_line(str(error))}", warning=True)
            return
        except ValueRefusedError as error:
            self.say(one_line(str(error)), warning=True)
            return
        self.out_of_field()
        if row.given and json_text(value) == json_text(row.value):
            self._moved()
            self.say("unchanged")
        else:
            self.change(lambda: self.changes.put(row, value))

    # Whole parts

    def action_criteria_add(self) -> None:
        items = items_for(self.content, self.list.row)
        screen = PickScreen("add", searching(items), placeholder="a purpose, a criterion, a rubric")
        self.app.push_screen(screen, self._add)

    def _add(self, chosen: Chosen | None) -> None:
        if chosen is None:
            return
        if chosen.preset is not None:
            new = self.changes.add_preset(chosen.preset, self.list.row)
            self.show_changes(at=("criteria", new[0]) if new else None)
            self.say(f"new: {', '.join(new)}" if new else "all of it is there already: nothing is changed")
        elif self.change(lambda: self.changes.add(chosen, self.list.row)) and chosen.rubric:
            self.action_enter()

    # Saving

    def action_criteria_save(self) -> None:
        if self._busy:
            return
        if self.draft.before is not None and not self.changes.names:
            self.say("nothing is changed")
            return
        self._busy = True
        self.run_worker(self._save(), group="save")

    async def _save(self) -> None:
        try:
            written = await save(self.app, self._saver, self.draft, self.content)
        except ConfigRejectedError as error:
            self._reject(error)
        except (ChangedOnDiskError, EditError, OSError) as error:
            self.say(in_words(error), warning=True)
        else:
            if written is None:
                self.say("nothing was written; it is still here", warning=True)
                return
            draft, saved = written
            self.changes.saved(draft)
            await self._saved()
            self._reason.update(Text(self._why(draft)))
            self.show_changes()
            name = one_line(draft.file.name)
            self.say(f"saved: {name}; u in the tree takes it back" if saved else f"{name} as it is now")
        finally:
            self._busy = False

    def _reject(self, error: ConfigRejectedError) -> None:
        fault = error.faults[0]
        row = next((row for row in self.list.all_rows if stands_at(row, fault)), None)
        if row is not None:
            self.list.show_rows(self.list.all_rows, at=row.location)
        self.say(one_line(f"not saved: {fault.message}. {fault.hint}".rstrip(". ")), warning=True)

    # What is shown

    def show_changes(self, *, at: Location | None = None) -> None:
        self._leaving = False
        self.list.changed = frozenset(self.changes.names)
        self.list.show_rows(rows_of(self.content), at=at)
        self._look_ahead.at(self.draft, self.content)

    def _show_seen(self, seen: Seen) -> None:
        if seen.trouble:
            self.say(seen.trouble, warning=True)
            return
        self._seen = seen
        self.list.marks = seen.marks(self.list.all_rows)
        self.list.refresh()
        self._cases.update(Text(outlook_of_all(seen.outlook) if seen.outlook is not None else ""))
        self._show_about()

    def _moved(self) -> None:
        # The warning is gone with the message: esc warns again before it drops the changes.
        self._leaving = False
        self.say("")
        self._show_about()

    def _show_about(self) -> None:
        row = self.list.row
        if row is None:
            self._about.update(Text("No criterion: nothing is judged. a adds one."))
            return
        lines = [*self._seen.told_of(row), about(row, self.list.all_rows)]
        self._about.update(Text("\n".join(lines)))

    def _type(self, row: FormRow) -> None:
        take(self.field, row)
        # A threshold is typed with the flips in sight; long texts take the room.
        small = row.kind in ("threshold", "number", "word")
        self._about_room.display = small
        # One line below the border.
        self.field.styles.height = 2 if small else "2fr"
        self.into_field("as JSON" if row.kind == "json" else "", key="enter" if small else "ctrl+o")

    def out_of_field(self) -> None:
        super().out_of_field()
        self._about_room.display = True
        self.say("")
