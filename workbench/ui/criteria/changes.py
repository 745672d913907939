"""What the editor holds of one config beside what the file says, and how it is changed and taken back."""

from collections.abc import Collection
from typing import NamedTuple

from workbench.authoring.config_file import ConfigDraft
from workbench.authoring.criteria_change import (
    Content,
    ValueRefusedError,
    changed_names,
    is_default,
    next_choice,
    stepped,
    with_criterion,
    with_rubric,
    with_value,
    without,
)
from workbench.authoring.criteria_form import FormRow
from workbench.authoring.criteria_presets import Preset, with_preset
from workbench.authoring.value_edit import moved
from workbench.model.places import Location
from workbench.ui.criteria.adding import Chosen


class _State(NamedTuple):
    """The content with all criteria, also those that are switched `off`."""

    content: Content
    off: frozenset[str] = frozenset()


class FormChanges:
    """The edited content of a config; `after` is what it says already, if that is not what the file says. Each method
    returns the location where the cursor goes, None for where it is.

    Raises:
        ValueRefusedError: that cannot be done; the message is safe and says why. Nothing is changed.
    """

    def __init__(self, draft: ConfigDraft, after: Content | None = None) -> None:
        self.draft = draft
        self._now = _State(draft.content) if after is None else _with_off(draft.content, after)
        self._back: list[tuple[_State, Location | None]] = []

    @property
    def content(self) -> Content:
        """What is shown: all criteria, also those that are off."""
        return self._now.content

    @property
    def off(self) -> frozenset[str]:
        """The criteria that are switched off."""
        return self._now.off

    @property
    def result(self) -> Content:
        """What the config is to say: without what is off."""
        if not self.off:
            return self.content
        criteria = {name: value for name, value in self.content["criteria"].items() if name not in self.off}
        return {**self.content, "criteria": criteria}

    def saved(self, draft: ConfigDraft) -> None:
        """Go on from what the file says now."""
        self.draft, self._now = draft, _State(draft.content)
        self._back.clear()

    @property
    def any(self) -> bool:
        """Whether something here is not in the file."""
        return self.result != self.draft.content

    @property
    def names(self) -> Collection[str]:
        """The criteria and keys that differ from the file."""
        return changed_names(self.draft.content, self.result)

    def undo(self) -> Location | None:
        """Take the last change back."""
        if not self._back:
            raise ValueRefusedError("nothing is changed here; u in the tree takes back what was saved")
        self._now, at = self._back.pop()
        return at

    def reset(self, row: FormRow | None) -> None:
        """Take back every change; that, too, can be undone."""
        self._take(_State(self.draft.content), row)

    # One value

    def put(self, row: FormRow, value: object) -> None:
        """Change the value of a row. A default that holds already is not written; a criterion that was off is on."""
        content = self.content if is_default(row, value) else with_value(self.content, row.location, value)
        self._take(_State(content, self.off - {row.criterion}), row)

    def switch(self, row: FormRow) -> None:
        """Switch a criterion off or on."""
        self._take(_State(self.content, self.off ^ {row.criterion}), row)

    def next_choice(self, row: FormRow) -> None:
        """Take the next of the choices of a row."""
        self.put(row, next_choice(row))

    def step(self, row: FormRow | None, step: float) -> None:
        """Raise or lower a number."""
        if row is None or row.kind not in ("threshold", "number"):
            raise ValueRefusedError("put the cursor on a threshold or another number first")
        self.put(row, stepped(row, step))

    # Whole parts

    def add(self, chosen: Chosen, row: FormRow | None) -> Location | None:
        """Add a criterion or a rubric; `add_preset` adds presets."""
        if not chosen.rubric:
            self._take(_State(with_criterion(self.content, chosen.criterion), self.off - {chosen.criterion}), row)
            return ("criteria", chosen.criterion)
        place = row.unit[-1] if row is not None and row.depth >= 2 else None
        content, at = with_rubric(self.content, chosen.criterion, place if isinstance(place, int) else None)
        self._take(_State(content, self.off), row)
        return at

    def add_preset(self, preset: Preset, row: FormRow | None) -> list[str]:
        """Add what is missing of a preset, and return the names of what was added. It takes the place of defaults that
        nobody wrote.
        """
        content, new = with_preset(self.content, preset, instead=self.draft.defaults and not self.any)
        self._take(_State(content, self.off - set(preset.criteria)), row)
        return new

    def remove(self, row: FormRow | None) -> None:
        """Remove what a row belongs to, or its value, so that the default holds."""
        if row is None or not row.unit or row.kind == "rubrics":
            raise ValueRefusedError("there is nothing to take out here")
        if row.kind == "kept":
            raise ValueRefusedError("it is kept as it stands")
        if not row.given and row.depth < 2:
            raise ValueRefusedError("it is not there: the default holds")
        # Type and description of a rubric need not be there; without its text or id it goes as a whole.
        alone = row.field.name in ("type", "description") and row.depth > 2
        self._take(_State(without(self.content, row.location if alone else row.unit), self.off), row)

    def move(self, row: FormRow | None, by: int) -> Location:
        """Move a rubric or criterion one place earlier (-1) or later (1)."""
        if row is None or not (row.depth >= 2 or row.kind == "threshold"):
            raise ValueRefusedError("rubrics and criteria can be moved: put the cursor on one")
        content, at = moved(self.content, row.unit, by)
        self._take(_State(content, self.off), row)
        return (*at, *row.location[len(row.unit) :])

    def _take(self, state: _State, row: FormRow | None) -> None:
        self._back.append((self._now, row.location if row else None))
        self._now = state


def _with_off(file: Content, after: Content) -> _State:
    """`after`, and switched off what only the file has."""
    own, edited = file.get("criteria"), after.get("criteria")
    if not isinstance(own, dict) or not isinstance(edited, dict):
        return _State(after)
    off = [name for name in own if name not in edited]
    # Those that are off stand where the file has them.
    criteria = {**{name: edited.get(name, own[name]) for name in own}, **edited} if off else edited
    return _State({**after, "criteria": criteria}, frozenset(off))
