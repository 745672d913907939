"""The unsaved changes of one config in the editor, with undo, and the items that can be added to the config."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.criteria.registry import descriptions
from workbench.editing.case_edit import moved
from workbench.editing.criteria_change import (
    PRESETS,
    ConfigDraft,
    Content,
    Preset,
    ValueRefusedError,
    changed_names,
    guide,
    has_rubrics,
    is_default,
    next_choice,
    proposed,
    stepped,
    with_criterion,
    with_preset,
    with_rubric,
    with_value,
    without,
)
from workbench.editing.criteria_form import FormRow, field_of
from workbench.editing.what_if import WhatIf
from workbench.files.faults import Location
from workbench.text.json_values import mapping
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item


@dataclass(frozen=True, slots=True)
class Addition:
    """An item to add: a preset, a criterion by name, or a rubric for `criterion`."""

    preset: Preset | None = None
    criterion: str = ""
    rubric: bool = False


def items_for(content: Content, row: FormRow | None) -> list[Item]:
    """Return the items that can be added. A criterion's help says what it measures, costs and needs."""
    criteria: Any = content.get("criteria")
    there = set(criteria) if isinstance(criteria, dict) else set()
    found = []
    if row is not None and has_rubrics(row.criterion):
        rubric = Addition(criterion=row.criterion, rubric=True)
        found.append(Item(f"rubric for {row.criterion}", rubric, help="A statement that is true or false."))
    found.append(Item("presets", heading=True))
    for preset in PRESETS:
        help_ = f"{preset.help}\n{', '.join(preset.criteria)}\nCosts: {preset.cost}"
        found.append(Item(preset.name, Addition(preset), kind="preset", help=help_))
    found.append(Item("single criteria", heading=True))
    found += [
        Item(one_line(info.title), Addition(criterion=info.name), f"{info.name} {proposed(info.name)}", guide(info))
        for info in descriptions().values()
        if not info.informational and info.name not in there
    ]
    return found


def needed_options(criterion: str) -> list[Item]:
    """Return the options of which a criterion needs at least one, or [] if it needs none."""
    info = descriptions()[criterion]
    fields = info.options.model_fields
    return [Item(name, name, help=field_of(name, fields[name]).help) for name in info.needs_one_of]


NOT_EDITABLE = "this form cannot change this value"
"""The message for values that this form cannot edit."""


class _State(NamedTuple):
    """The content with all criteria. `off` are the names of those that are turned off."""

    content: Content
    off: frozenset[str] = frozenset()


class FormChanges:
    """The edited content of a config. `after` is the initial content if it differs from the file.

    `what_if` has the last results of the evalsets that it governs. `name` is safe text. `obstacle` is safe text: why
    the config cannot be saved, or "". Some methods return the location for the cursor, or None to leave the cursor
    where it is.
    """

    def __init__(self, draft: ConfigDraft, after: Content | None = None, what_if: WhatIf | None = None) -> None:
        self.draft = draft
        self.what_if = what_if or WhatIf(())
        self.name = self.obstacle = ""
        self.file_name = one_line(draft.file.name)
        """The file's name in messages, as safe text. It has the folder if there are several configs."""
        self._state = _State(draft.content) if after is None else _with_off(draft.content, after)
        self._undo_stack: list[tuple[_State, Location | None]] = []

    @property
    def content(self) -> Content:
        """The content on the screen, with all criteria, including those that are off."""
        return self._state.content

    @property
    def off(self) -> frozenset[str]:
        """The criteria that are turned off."""
        return self._state.off

    @property
    def result(self) -> Content:
        """The content to save, without the criteria that are off."""
        if not self.off:
            return self.content
        criteria = {name: value for name, value in self.content["criteria"].items() if name not in self.off}
        return {**self.content, "criteria": criteria}

    def saved(self, draft: ConfigDraft) -> None:
        """Replace the draft with the saved file. Afterwards nothing is pending, and nothing can be undone."""
        self.draft, self._state = draft, _State(draft.content)
        self._undo_stack.clear()

    @property
    def pending(self) -> bool:
        """Whether the content or the order of its criteria differs from the file."""
        orders = [list(mapping(content.get("criteria"))) for content in (self.result, self.draft.content)]
        return self.result != self.draft.content or orders[0] != orders[1]

    @property
    def changed_names(self) -> Collection[str]:
        """The names of criteria and other keys that differ from the file."""
        return changed_names(self.draft.content, self.result)

    def undo(self) -> Location | None:
        """Undo the last change. Return the location where the user made it, or None if the cursor was on no row.

        Raises:
            ValueRefusedError: There is nothing to undo. The message is safe text.
        """
        if not self._undo_stack:
            raise ValueRefusedError("nothing to undo here; u in the tree undoes saved changes")
        self._state, at = self._undo_stack.pop()
        return at

    def reset(self, row: FormRow | None) -> None:
        """Go back to the content of the file. This can be undone."""
        self._take(_State(self.draft.content), row)

    def put(self, row: FormRow, value: object) -> None:
        """Change the value of a row, and turn its criterion on. A default is not written if the field is not set."""
        content = self.content if is_default(row, value) else with_value(self.content, row.location, value)
        self._take(_State(content, self.off - {row.criterion}), row)

    def switch(self, row: FormRow) -> None:
        """Turn a criterion on or off."""
        self._take(_State(self.content, self.off ^ {row.criterion}), row)

    def next_choice(self, row: FormRow) -> None:
        """Set a row to its next choice."""
        self.put(row, next_choice(row))

    def step(self, row: FormRow | None, step: float) -> None:
        """Raise or lower the number of a row. A negative `step` lowers it.

        Raises:
            ValueRefusedError: The row has no number. The message is safe text.
        """
        if row is None or row.kind not in ("threshold", "number"):
            raise ValueRefusedError("first put the cursor on a threshold or another number")
        self.put(row, stepped(row, step))

    def add(self, chosen: Addition, row: FormRow | None) -> Location | None:
        """Add a criterion or a rubric, and return its location. Presets are added with `add_preset`.

        Raises:
            ValueRefusedError: The criterion's rubrics are not a list. The message is safe text.
        """
        if not chosen.rubric:
            self._take(_State(with_criterion(self.content, chosen.criterion), self.off - {chosen.criterion}), row)
            return ("criteria", chosen.criterion)
        place = row.unit[-1] if row is not None and row.depth >= 2 else None
        content, at = with_rubric(self.content, chosen.criterion, place if isinstance(place, int) else None)
        self._take(_State(content, self.off), row)
        return at

    def add_preset(self, preset: Preset, row: FormRow | None) -> list[str]:
        """Add what is missing of a preset, turn its criteria on, and return the names of the added parts.

        If there is no config file and nothing was changed, the preset replaces the default criteria.
        """
        content, new = with_preset(self.content, preset, instead=self.draft.defaults and not self.pending)
        self._take(_State(content, self.off - set(preset.criteria)), row)
        return new

    def remove(self, row: FormRow | None) -> None:
        """Remove the criterion, rubric or value of a row. A removed value gets its default again.

        Raises:
            ValueRefusedError: The row has nothing that can be removed. The message is safe text.
        """
        if row is None or not row.unit or row.kind == "rubrics":
            raise ValueRefusedError("nothing to delete here")
        if row.kind == "kept":
            raise ValueRefusedError(NOT_EDITABLE)
        if not row.given and row.depth < 2:
            raise ValueRefusedError("nothing to delete: the default applies")
        # Type and description of a rubric are optional. Removing its text or ID removes the rubric.
        alone = row.field.name in ("type", "description") and row.depth > 2
        self._take(_State(without(self.content, row.location if alone else row.unit), self.off), row)

    def move(self, row: FormRow | None, by: int) -> Location:
        """Move a rubric or criterion one place up (-1) or down (1). Return the new location of the row.

        Raises:
            ValueRefusedError: The row is neither a rubric nor a criterion. The message is safe text.
        """
        if row is None or not (row.depth >= 2 or row.kind == "threshold"):
            raise ValueRefusedError("only rubrics and criteria can be moved: put the cursor on one")
        content, at = moved(self.content, row.unit, by)
        self._take(_State(content, self.off), row)
        return (*at, *row.location[len(row.unit) :])

    def _take(self, state: _State, row: FormRow | None) -> None:
        self._undo_stack.append((self._state, row.location if row else None))
        self._state = state


def _with_off(file: Content, after: Content) -> _State:
    """Return the state for the content `after`. Criteria that only `file` has are turned off."""
    own, edited = file.get("criteria"), after.get("criteria")
    if not isinstance(own, dict) or not isinstance(edited, dict):
        return _State(after)
    off = [name for name in own if name not in edited]
    # Criteria that are off keep their position in the file.
    criteria = {**{name: edited.get(name, own[name]) for name in own}, **edited} if off else edited
    return _State({**after, "criteria": criteria}, frozenset(off))
