"""Things to add to a config: presets for a purpose, single criteria, and rubrics."""

from dataclasses import dataclass
from typing import Any

from workbench.authoring.criteria_change import Content, has_rubrics
from workbench.authoring.criteria_form import FormRow, field_of
from workbench.authoring.criteria_presets import PRESETS, Preset, guide, proposed
from workbench.metrics.registry import descriptions
from workbench.text import one_line
from workbench.ui.dialogs.items import Item


@dataclass(frozen=True, slots=True)
class Addition:
    """A thing to add: a preset, a criterion by name, or a rubric (of `criterion`)."""

    preset: Preset | None = None
    criterion: str = ""
    rubric: bool = False


def items_for(content: Content, row: FormRow | None) -> list[Item]:
    """Return the list to pick from. Each item says what it measures, costs and needs."""
    criteria: Any = content.get("criteria")
    there = set(criteria) if isinstance(criteria, dict) else set()
    found = []
    if row is not None and has_rubrics(row.criterion):
        rubric = Addition(criterion=row.criterion, rubric=True)
        found.append(Item(f"rubric for {row.criterion}", rubric, help="A statement that is true or false."))
    found.append(Item("presets", heading=True))
    for preset in PRESETS:
        names = ", ".join(preset.criteria)
        help_ = f"{preset.help}\n{names}\nCosts: {preset.cost}"
        found.append(Item(preset.name, Addition(preset), kind="preset", help=help_))
    found.append(Item("single criteria", heading=True))
    found += [
        Item(one_line(info.title), Addition(criterion=info.name), f"{info.name} {proposed(info.name)}", guide(info))
        for info in descriptions().values()
        if not info.informational and info.name not in there
    ]
    return found


def needed_options(criterion: str) -> list[Item]:
    """Return the options to pick from for a criterion that is invalid without any, else []."""
    info = descriptions()[criterion]
    fields = info.options.model_fields
    return [Item(name, name, help=field_of(name, fields[name]).help) for name in info.needs_one_of]
