"""The keys that change what stands in the form of the criteria."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual.binding import BindingType

from workbench.actions import footer
from workbench.authoring.config_file import ConfigDraft
from workbench.authoring.criteria_change import Content, ValueRefusedError
from workbench.model.places import Location
from workbench.ui.criteria.changes import FormChanges
from workbench.ui.criteria.form_list import FormList
from workbench.ui.editing.field_screen import FieldScreen
from workbench.ui.keys import bindings_of

STEP, FINE_STEP = 0.05, 0.01


class ChangingScreen(FieldScreen[None]):
    """A subclass shows what has changed."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("criteria")]

    verb = ("takes", "taken")

    def __init__(self, changes: FormChanges, keys: Mapping[str, tuple[str, ...]]) -> None:
        self.list = FormList()
        super().__init__(self.list, keys, footer("criteria"))
        self.changes = changes

    @property
    def draft(self) -> ConfigDraft:
        """The file as it was read, or saved last."""
        return self.changes.draft

    @property
    def content(self) -> Content:
        """What stands in the form."""
        return self.changes.content

    def show_changes(self, *, at: Location | None = None) -> None:
        """Shows what stands in the form now, with the cursor on a location."""
        raise NotImplementedError

    def change(self, change: Callable[[], Location | None]) -> bool:
        """Makes a change and shows it; False (and why) if it cannot be made."""
        try:
            at = change()
        except ValueRefusedError as error:
            self.say(str(error))
            return False
        self.show_changes(at=at)
        return True

    def action_criteria_next(self) -> None:
        self.change(lambda: self.changes.next_choice(self.list.row))

    def action_criteria_more(self) -> None:
        self.change(lambda: self.changes.step(self.list.row, STEP))

    def action_criteria_less(self) -> None:
        self.change(lambda: self.changes.step(self.list.row, -STEP))

    def action_criteria_more_fine(self) -> None:
        self.change(lambda: self.changes.step(self.list.row, FINE_STEP))

    def action_criteria_less_fine(self) -> None:
        self.change(lambda: self.changes.step(self.list.row, -FINE_STEP))

    def action_criteria_remove(self) -> None:
        self.change(lambda: self.changes.remove(self.list.row))

    def action_criteria_earlier(self) -> None:
        self.change(lambda: self.changes.move(self.list.row, -1))

    def action_criteria_later(self) -> None:
        self.change(lambda: self.changes.move(self.list.row, 1))

    def action_criteria_undo(self) -> None:
        self.change(self.changes.undo)

    def action_criteria_reset(self) -> None:
        self.change(lambda: self.changes.reset(self.list.row))
