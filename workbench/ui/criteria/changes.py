"""What stands in the form beside what the file says: changes are made here, and are had back until saved."""

from collections.abc import Collection

from workbench.authoring.config_file import ConfigDraft
from workbench.authoring.criteria_change import (
    Content,
    ValueRefusedError,
    changed_names,
    moved,
    next_choice,
    stepped,
    with_criterion,
    with_rubric,
    with_value,
    without,
)
from workbench.authoring.criteria_form import FormRow
from workbench.authoring.criteria_presets import Preset, with_preset
from workbench.model.places import Location
from workbench.ui.criteria.adding import Chosen


class FormChanges:
    """Each method gives the location where the cursor goes, None for where it is.

    Raises:
        ValueRefusedError: that cannot be done; the message is safe and says why. Nothing is changed.
    """

    def __init__(self, draft: ConfigDraft) -> None:
        self.draft, self.content = draft, draft.content
        self._back: list[tuple[Content, Location | None]] = []

    def saved(self, draft: ConfigDraft) -> None:
        """Goes on from what the file says now."""
        self.draft, self.content = draft, draft.content
        self._back.clear()

    @property
    def any(self) -> bool:
        """Whether something here is not in the file."""
        return self.content != self.draft.content

    @property
    def names(self) -> Collection[str]:
        """The criteria and keys that differ from the file."""
        return changed_names(self.draft.content, self.content)

    def undo(self) -> Location | None:
        """The last change is taken back."""
        if not self._back:
            raise ValueRefusedError("nothing is changed here; u in the tree takes back what was saved")
        self.content, at = self._back.pop()
        return at

    def reset(self, row: FormRow | None) -> None:
        """Everything is as in the file; that, too, can be had back."""
        self._take(self.draft.content, row)

    # One value

    def put(self, row: FormRow, value: object) -> None:
        """A row says another value."""
        self._take(with_value(self.content, row.location, value), row)

    def next_choice(self, row: FormRow | None) -> None:
        """The next of the choices of a row."""
        if row is None or row.kind not in ("flag", "choice"):
            raise ValueRefusedError("space is for what has choices: enter edits this")
        self.put(row, next_choice(row))

    def step(self, row: FormRow | None, step: float) -> None:
        """A number is moved."""
        if row is None or row.kind not in ("threshold", "number"):
            raise ValueRefusedError("put the cursor on a threshold or another number first")
        self.put(row, stepped(row, step))

    # Whole parts

    def add(self, chosen: Chosen, row: FormRow | None) -> Location | None:
        """A criterion or a rubric more; what a preset adds says `add_preset`."""
        if not chosen.rubric:
            self._take(with_criterion(self.content, chosen.criterion), row)
            return ("criteria", chosen.criterion)
        place = row.unit[-1] if row is not None and row.depth >= 2 else None
        content, at = with_rubric(self.content, chosen.criterion, place if isinstance(place, int) else None)
        self._take(content, row)
        return at

    def add_preset(self, preset: Preset, row: FormRow | None) -> list[str]:
        """What is missing of a preset; the names of what was added. It takes the place of defaults that nobody
        wrote."""
        content, new = with_preset(self.content, preset, instead=self.draft.defaults and not self.any)
        self._take(content, row)
        return new

    def remove(self, row: FormRow | None) -> None:
        """What a row belongs to goes, or its value, so that the default holds."""
        if row is None or not row.unit or row.kind == "rubrics":
            raise ValueRefusedError("there is nothing to take out here")
        if row.kind == "kept":
            raise ValueRefusedError("it is kept as it stands")
        if not row.given and row.depth < 2:
            raise ValueRefusedError("it is not there: the default holds")
        # Type and description of a rubric need not be there; without its text or id it goes as a whole.
        alone = row.field.name in ("type", "description") and row.depth > 2
        self._take(without(self.content, row.location if alone else row.unit), row)

    def move(self, row: FormRow | None, by: int) -> Location:
        """A rubric or criterion stands one place earlier (-1) or later (1)."""
        if row is None or not (row.depth >= 2 or row.kind == "threshold"):
            raise ValueRefusedError("rubrics and criteria can be moved: put the cursor on one")
        content, at = moved(self.content, row.unit, by)
        self._take(content, row)
        return (*at, *row.location[len(row.unit) :])

    def _take(self, content: Content, row: FormRow | None) -> None:
        self._back.append((self.content, row.location if row else None))
        self.content = content
