"""Changes of a case as a value: each operation returns a new case, with the spelling of keys preserved."""

import copy
import uuid
from typing import Any

from workbench.editing.case_rows import CaseRow
from workbench.editing.value_edit import free_name, moved, with_item, without
from workbench.files.faults import Location
from workbench.files.spelling import get, is_camel, put
from workbench.text.json_values import value_at


class NotPossibleError(ValueError):
    """The operation is not possible for this row. The message says why."""


def fresh_id() -> str:
    """Return an ID for a turn, as ADK makes them."""
    return str(uuid.uuid4())


def can_remove(row: CaseRow) -> bool:
    """Return whether the item of a row can be deleted."""
    return row.kind not in ("id", "frame") and not (row.missing and row.unit == row.location)


def can_duplicate(row: CaseRow) -> bool:
    """Return whether there can be several of the row's item."""
    return bool(row.unit) and isinstance(row.unit[-1], int)


def remove(case: Any, row: CaseRow) -> Any:
    """Return the case without the item of a row: a message, a call, a rubric or a turn.

    Raises:
        NotPossibleError: every case has this item.
    """
    if row.kind in ("id", "frame"):
        raise NotPossibleError("every case has an id")
    if not can_remove(row):
        raise NotPossibleError("there is nothing here to delete")
    return without(case, row.unit)


def duplicate(case: Any, row: CaseRow) -> tuple[Any, Location]:
    """Return the case with the row's item duplicated, and the place of the copy right after it.

    A turn and a rubric get a new ID, because ADK treats two with the same ID as one.

    Raises:
        NotPossibleError: there can only be one.
    """
    if not can_duplicate(row):
        whole = "a turn" if row.turn is not None else "a case"
        raise NotPossibleError(f"{whole} can only have one of these")
    duplicated = copy.deepcopy(value_at(case, row.unit))
    if row.unit == row.location and row.kind == "turn":
        put(duplicated, "invocation_id", fresh_id(), camel=is_camel(case))
    elif row.kind in ("call", "args"):
        _give_call_an_id(duplicated, value_at(case, row.unit[:-1]), camel=is_camel(case))
    elif row.kind == "rubric":
        others = value_at(case, row.unit[:-1])
        taken = {get(rubric, "rubric_id") for rubric in others}
        put(
            duplicated,
            "rubric_id",
            free_name(str(get(duplicated, "rubric_id") or "rubric"), taken),
            camel=is_camel(case),
        )
    *above, number = row.unit
    assert isinstance(number, int)
    place = (*above, number + 1)
    return with_item(case, place, duplicated), place


def _give_call_an_id(duplicated: Any, others: Any, *, camel: bool) -> None:
    """Give a copied call a new ID if it has one: ADK pairs calls and responses by ID."""
    calls = [call for item in (duplicated, *others) for call in _calls_in(item)]
    taken = {get(call, "id") for call in calls}
    for call in _calls_in(duplicated):
        if isinstance(get(call, "id"), str):
            put(call, "id", free_name(get(call, "id"), taken), camel=camel)
            taken.add(get(call, "id"))


def _calls_in(item: Any) -> list[Any]:
    """Return the calls in a list's item: the item itself in `tool_uses`, else the calls in a part or an event."""
    if not isinstance(item, dict):
        return []
    parts = get(get(item, "content"), "parts")
    inner = [get(part, "function_call") for part in (parts if isinstance(parts, list) else [item])]
    found = [call for call in inner if isinstance(call, dict)]
    return found or ([item] if isinstance(get(item, "name"), str) else [])


def move(case: Any, row: CaseRow, step: int) -> tuple[Any, Location]:
    """Return the case with the row's item moved up (-1) or down (1) in its list, and its new place.

    Raises:
        NotPossibleError: it is the first or the last item, or is not in a list.
    """
    if not isinstance(row.unit[-1], int):
        raise NotPossibleError("this cannot be moved")
    after, place = moved(case, row.unit, step)
    if place == row.unit:
        raise NotPossibleError("this is already the first" if step < 0 else "this is already the last")
    return after, place
