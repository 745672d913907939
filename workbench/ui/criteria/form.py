"""The criteria editor: all fields of one or more configs, with the results of the last run below them.

Users can try out thresholds, because changes stay in the editor until they are applied, saved or discarded.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content as Text
from textual.events import Key, Paste
from textual.widgets import Static

from workbench.editing.criteria_change import ConfigRejectedError, ValueRefusedError, new_faults, read_typed, with_value
from workbench.editing.criteria_form import FormRow, file_row, metric_rows, rows_of
from workbench.editing.saving import Saver
from workbench.editing.what_if import is_free
from workbench.files.faults import Fault, Location
from workbench.files.json_text.json_edit import EditError
from workbench.text.safe_text import one_line
from workbench.ui.actions import footer
from workbench.ui.criteria.changes import NOT_EDITABLE, Addition, FormChanges, items_for, needed_options
from workbench.ui.criteria.form_list import FORMS, FormList, judge_items, take, typed_value
from workbench.ui.criteria.mode import EditorMode, Ending, NextRunLine, save_config
from workbench.ui.criteria.preview import PreviewPanel, concerns_row
from workbench.ui.dialogs.items import searching
from workbench.ui.dialogs.pick import PickScreen
from workbench.ui.editing.conflicts import save_error_message
from workbench.ui.editing.drafts import UnreadableError, json_text
from workbench.ui.editing.field import FieldScreen
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import bindings, bindings_of

STEP = 0.05
"""Step of the keys that raise and lower a threshold or fraction. Whole numbers change by 1."""
IN_NUMBERS = frozenset("0123456789.,")
"""Characters that start typing on a number's row. A comma is accepted here and later rejected with a reason."""
_LONGEST = 12


class CriteriaScreen(FieldScreen[Ending | None]):
    """The editor of configs. `mode` says whether changes apply to the next run or to the files."""

    where = "criteria"
    verb = ("accepts", "accepted")

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("criteria"), *bindings("open", "close", "keys")]

    def __init__(
        self, edits: Sequence[FormChanges], mode: EditorMode, saver: Saver, keys: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.list = FormList()
        super().__init__(self.list, keys, footer("criteria"))
        self.edits, self.mode, self._saver = edits, mode, saver
        self._busy = False
        self._warned = False
        """Whether the user was just warned that changes would be lost."""
        warn = partial(self.say, warning=True)
        self._previews = PreviewPanel(edits, self.list, warn, lambda work: start_work(self, work, "look"))
        self._typed_row: FormRow | None = None
        """The row of the number being typed."""
        self._needs_value = False
        """Whether the field edits the required option of a criterion that was just added."""
        self._reason = Static(mode.why(edits[0].draft), classes="why", markup=False)
        self._next_run = NextRunLine(mode, keys)

    def compose(self) -> ComposeResult:
        """Lay out the rows, their explanation, the field and the keys."""
        with Vertical(classes="dialog criteria") as dialog:
            dialog.border_title = Text(self.mode.title)
            ways = "r runs · o applies" if self.mode.is_for_next_run else "ctrl+o saves"
            dialog.border_subtitle = Text(f"{ways} · esc discards")
            yield self._reason
            yield self._next_run
            yield self.list
            yield self._previews.about
            yield self.field
            yield self._previews.cases
            yield self.message
            yield self.key_line
            yield self.field_line

    def on_mount(self) -> None:
        """Show the rows."""
        self.list.when_moved = self._moved
        if self.mode.is_for_next_run:
            self.list.fold_all(_rows(self.edits))
        self.show_changes()
        self.list.focus()

    @property
    def changes(self) -> FormChanges:
        """The changes of the config under the cursor, or of the first config if there are no rows."""
        row = self.list.row_or_none
        return self.edits[row.file if row is not None else 0]

    def action_open(self) -> None:
        """Unfold the row, or move down if it has nothing to unfold."""
        self._end_typing()
        self.list.unfold()

    def action_close(self) -> None:
        """Fold the group around the cursor. If nothing can be folded and nothing has changed, close the editor."""
        self._end_typing()
        # The key that folds rows must not discard changes.
        if not self.list.fold() and not self._pending:
            self.action_back()

    @property
    def _pending(self) -> bool:
        """Whether a config has unsaved changes."""
        return any(edit.pending for edit in self.edits)

    def action_back(self) -> None:
        """Drop the number being typed. If there is none, discard all changes and close. Warn first about a file."""
        if self.list.typed:
            self._type_number("")
            self._previews.update_all()
        elif self._pending and not self.mode.is_for_next_run and not self._warned and not self._busy:
            self._warned = True
            self.say("not saved: ctrl+o saves, esc again discards the changes", warning=True)
        elif not self._busy:
            self.dismiss(None)

    def action_apply(self) -> None:
        """In the options of the next run, apply the changes and close the editor."""
        self._apply("applied", "ctrl+o saves these criteria")

    def action_run(self) -> None:
        """In the options of the next run, apply the changes and run the cases."""
        self._apply("run", "r works in the options of the next run: press esc, then o")

    def action_try_head(self) -> None:
        """In the options of the next run, apply the changes and try the working tree against HEAD."""
        self._apply("try", "W works in the options of the next run: press esc, then o")

    def _apply(self, ending: Ending, otherwise: str) -> None:
        """Apply the changes to the next run and close the editor. If they would stop a run, show why and stay open.

        If the editor changes a file, only show the message `otherwise`.
        """
        if self.mode.apply is None:
            self.say(otherwise)
        elif self._end_typing():
            for edit in self.edits:
                try:
                    faults = new_faults(edit.draft, edit.result)
                except EditError as error:
                    self.say(save_error_message(error), warning=True)
                    return
                if faults:
                    self._reject(edit, faults[0], "not applied")
                    return
            self.mode.apply(self.edits)
            self.dismiss(ending)

    def action_save(self) -> None:
        """Write the changed configs to their files. If the editor is for a file, also create a missing file."""
        if not self._end_typing() or self._busy:
            return
        in_file = not self.mode.is_for_next_run
        wanted = [edit for edit in self.edits if edit.pending or (in_file and edit.draft.before is None)]
        obstacle = next((edit.obstacle for edit in wanted if edit.obstacle), "")
        if obstacle or not wanted:
            self.say(obstacle or "no changes", warning=bool(obstacle))
            return
        self._busy = True
        start_work(self, partial(self._save, wanted), "save")

    async def _save(self, wanted: Sequence[FormChanges]) -> None:
        """Save configs up to the first that is not saved. Say which were saved, which were not, and why."""
        done: list[str] = []
        problem: Exception | None = None
        try:
            try:
                for edit in wanted:
                    if (message := await save_config(self._saver, edit, self.app.push_screen_wait)) is None:
                        break
                    done.append(message)
            except (ConfigRejectedError, EditError, OSError) as error:
                problem = error
            if done:
                await self.mode.saved()
                self._reason.update(Text(self.mode.why(self.changes.draft)))
                self.show_changes()
        finally:
            self._busy = False
        left = ", ".join(edit.file_name for edit in wanted[len(done) :])
        what = "; ".join([*done, f"not saved: {left}"]) if done else "not saved"
        if not left:
            self.say("; ".join(done))
        elif isinstance(problem, ConfigRejectedError):
            self._reject(edit, problem.faults[0], what)
        else:
            reason = "your changes are still here" if problem is None else save_error_message(problem)
            self.say(f"{what}: {reason.removeprefix('not saved: ')}", warning=True)

    def _reject(self, edit: FormChanges, fault: Fault, what: str) -> None:
        """Show a fault that makes a config unusable, and put the cursor on its row."""
        file = self.edits.index(edit)
        row = next((row for row in self.list.all_rows if row.file == file and concerns_row(row, fault)), None)
        if row is not None:
            self.list.go_to(row)
        self.say(one_line(f"{what}: {fault.message}. {fault.hint}".rstrip(". ")), warning=True)

    def action_enter(self) -> None:
        """Edit the value under the cursor in the field, or use its next choice.

        If a number is being typed, only accept it. On the heading of rubrics, add a rubric. Without rows, ask what to
        add.
        """
        row = self.list.row_or_none
        if self.list.typed:
            self._end_typing()
        elif row is None:
            self.action_add()
        elif row.kind in ("flag", "choice"):
            self.action_switch()
        elif row.kind == "rubrics":
            self._add(Addition(criterion=row.criterion, rubric=True))
        elif row.kind in FORMS:
            self._type(row)
        else:
            self.say(NOT_EDITABLE if row.kind == "kept" else "")

    action_edit = action_enter

    def on_key(self, event: Key) -> None:
        """Add typed digits to the number on the row under the cursor, or delete its last digit on backspace."""
        typed, character = self.list.typed, event.character or ""
        if self.field.display:
            return
        if event.key == "backspace" and typed:
            self._type_number(typed[:-1])
        elif character and character in IN_NUMBERS and self._takes_numbers and len(typed) < _LONGEST:
            self._type_number(typed + character)
        else:
            return
        event.stop()

    def on_paste(self, event: Paste) -> None:
        """Add a pasted number to the row of a number, or show why it is not accepted."""
        if not self.field.display and self._takes_numbers:
            event.stop()
            text = event.text.strip()
            if not text or not IN_NUMBERS.issuperset(text) or len(self.list.typed + text) > _LONGEST:
                self.say(f"not a number: {one_line(text, limit=40)}")
            else:
                self._type_number(self.list.typed + text)

    @property
    def _takes_numbers(self) -> bool:
        """Whether the row under the cursor has a number."""
        row = self.list.row_or_none
        return row is not None and (row.kind == "threshold" or row.field.numeric)

    def _type_number(self, text: str) -> None:
        """Show a number while it is typed on its row, and preview it if it is valid."""
        self.list.typed, self._typed_row = text, self.list.row_or_none if text else None
        self.list.refresh()
        if self._typed_row is not None:
            with suppress(ValueRefusedError):
                self._preview_value(self._typed_row, read_typed(self._typed_row, text))

    def _preview_value(self, row: FormRow, value: object) -> None:
        self._previews.update(row.file, with_value(self.edits[row.file].result, row.location, value))

    def _end_typing(self) -> bool:
        """Use the typed number, if there is one. If it is not valid, drop it, show why and return False."""
        text, row = self.list.typed, self._typed_row
        self._type_number("")
        if row is None:
            return True
        try:
            value = read_typed(row, text)
        except ValueRefusedError as error:
            self.say(one_line(f"{error}: {row.criterion or row.field.name} is unchanged"), warning=True)
            return False
        return self.change(lambda: self.edits[row.file].put(row, value), at=self.list.row_or_none)

    def action_switch(self) -> None:
        """Turn the criterion on or off, switch to the next choice, or pick a judge."""
        row = self.list.row_or_none
        if row is None or not self._end_typing():
            return
        if row.kind == "threshold" and row.criterion:
            self.change(lambda: self.changes.switch(row))
        elif row.field.name == "judge_model":
            screen = PickScreen("which judge?", searching(judge_items(self.list.all_rows)), current=row.value)
            self.app.push_screen(screen, lambda model: self._choose_judge(row, model))
        elif row.kind in ("flag", "choice"):
            self.change(lambda: self.changes.next_choice(row))
        else:
            self.say("this value has no choices: enter edits it" if row.kind in FORMS else "no choices here")

    def _choose_judge(self, row: FormRow, model: str | None) -> None:
        if model == "":
            self._type(row)
        elif model is not None:
            self.change(lambda: self.changes.put(row, model))

    def action_step(self, step: int) -> None:
        """Raise (1) or lower (-1) the number under the cursor by one step."""
        self.change(lambda: self.changes.step(self.list.row_or_none, step * STEP))

    def change(self, change: Callable[[], Location | None], *, at: FormRow | None = None) -> bool:
        """Accept the number being typed, then make a change and show it. If either fails, show why and return False.

        The cursor goes to the row `at`, or else to the location that `change` returns.
        """
        if not self._end_typing():
            return False
        try:
            place = change()
        except ValueRefusedError as error:
            self.say(str(error))
            return False
        self.show_changes(at=at.location if at is not None else place)
        return True

    def on_edit_field_saved(self) -> None:
        """Set the row to the value typed into the field, or show why the text is not accepted."""
        row = self.list.row_or_none
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
        self._needs_value = False
        self.out_of_field()
        if row.given and json_text(value) == json_text(row.value):
            self._moved()
            self.say("unchanged")
        else:
            self.change(lambda: self.changes.put(row, value))

    def action_add(self) -> None:
        """Let the user pick a preset, criterion or rubric, and add it."""
        if self._end_typing():
            items = items_for(self.changes.content, self.list.row_or_none)
            screen = PickScreen("add", searching(items), placeholder="a preset, criterion or rubric")
            self.app.push_screen(screen, self._add)

    def _add(self, chosen: Addition | None) -> None:
        if chosen is None:
            return
        if chosen.preset is not None:
            new = self.changes.add_preset(chosen.preset, self.list.row_or_none)
            self.show_changes(at=("criteria", new[0]) if new else None)
            self.say(f"added: {', '.join(new)}" if new else "no changes: the config already has these criteria")
        elif options := () if chosen.rubric else needed_options(chosen.criterion):
            screen = PickScreen(f"{chosen.criterion}: which option first?", searching(options))
            self.app.push_screen(screen, partial(self._add_with, chosen))
        elif self.change(lambda: self.changes.add(chosen, self.list.row_or_none)) and chosen.rubric:
            self.action_enter()

    def _add_with(self, chosen: Addition, option: str | None) -> None:
        """Add a criterion, and let the user type the value of the `option` that was picked.

        If the user leaves without a value, the criterion is removed again.
        """
        if option is None or not self.change(lambda: self.changes.add(chosen, self.list.row_or_none)):
            return
        self.show_changes(at=("criteria", chosen.criterion, option))
        self._needs_value = True
        self.action_enter()

    def action_delete(self) -> None:
        """Delete the criterion, rubric or value under the cursor."""
        self.change(lambda: self.changes.remove(self.list.row_or_none))

    def action_reorder(self, step: int) -> None:
        """Move the rubric or criterion under the cursor up (-1) or down (1)."""
        self.change(lambda: self.changes.move(self.list.row_or_none, step))

    def action_undo(self) -> None:
        """Undo the last change."""
        self.change(self.changes.undo)

    def action_reset(self) -> None:
        """Go back to the saved content of the config under the cursor."""
        self._type_number("")
        self.change(lambda: self.changes.reset(self.list.row_or_none))

    def action_switch_recordings(self) -> None:
        """Switch to the next mode of recordings."""
        self.say(self._next_run.switch_mode())

    def action_on_miss(self) -> None:
        """Switch what a call without a recording does: end in an error, or run live."""
        self.say(self._next_run.switch_on_miss())

    def action_place(self) -> None:
        """Let the user pick or type the place of the next run."""
        self.say(self._next_run.choose_place())

    def show_changes(self, *, at: Location | None = None) -> None:
        """Show the edited content, and move the cursor to the location `at`, if it is given."""
        self._warned = False
        for file, edit in enumerate(self.edits):
            self.list.changed[file], self.list.off[file] = edit.changed_names, edit.off
        self.list.show_rows(_rows(self.edits), at=at)
        self._previews.update_all()

    def _moved(self) -> None:
        # The next message hides the warning, so esc must warn again before it discards changes.
        self._warned = False
        self.say("")
        self._end_typing()
        self._previews.show()
        self.key_line.show_keys(footer("criteria", self._useful_here()), self.keys_of)

    def _useful_here(self) -> tuple[str, ...]:
        """Return the actions to show first in the footer for the row under the cursor."""
        row = self.list.row_or_none
        ending = "options" if self.mode.is_for_next_run else "save"
        if row is None or row.kind in ("heading", "kept", "file", "rubrics"):
            return "new_case", ending
        if row.kind == "threshold":
            return "mark", "more", "less"
        has_choices = row.kind in ("flag", "choice") or row.field.name == "judge_model"
        return "mark" if has_choices else "edit", "new_case", ending

    def _type(self, row: FormRow) -> None:
        take(self.field, row)
        # While a threshold is typed, its effect stays visible. Long texts need that space.
        small = row.kind in ("threshold", "number", "word")
        self._previews.about.display = small
        # The border and one line.
        self.field.styles.height = 2 if small else "2fr"
        self.into_field("as JSON" if row.kind == "json" else "", key="enter" if small else "ctrl+o")

    def on_text_area_changed(self) -> None:
        """Preview the value in the field, if stored scores are enough to compute its effect."""
        super().on_text_area_changed()
        row = self.list.row_or_none
        if self.field.display and row is not None and (row.kind == "threshold" or is_free(row.criterion)):
            try:
                value = typed_value(self.field, row)
            except (UnreadableError, ValueRefusedError):
                return
            self._preview_value(row, value)

    def left_field(self) -> None:
        """Show the preview without the typed value. If a new criterion needs the value, remove the criterion again."""
        if self._needs_value:
            self._needs_value = False
            self.change(self.changes.undo)
            self.say("not added: it needs a value")
            return
        self._moved()
        self._previews.update_all()

    def out_of_field(self) -> None:
        """Close the field and go back to the rows."""
        super().out_of_field()
        self._previews.about.display = True
        self.say("")


def _rows(edits: Sequence[FormChanges]) -> list[FormRow]:
    """Return the rows of all configs. A config with a name begins with a row for it."""
    rows = []
    for file, edit in enumerate(edits):
        if edit.name:
            rows.append(file_row(file, edit.name))
        metrics = edit.draft.metrics
        rows += () if metrics is None else metric_rows(edit.content, metrics, file)
        rows += rows_of(edit.content, file)
    return rows
