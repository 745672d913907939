"""Changing a case as a value: each operation gives a new case and leaves the old one as it was. Keys keep the spelling
that stands there."""

import copy
import uuid
from typing import Any

from workbench.authoring.case_rows import CaseRow
from workbench.authoring.value_edit import free_name, moved, value_at, with_item, without
from workbench.model.places import Location
from workbench.model.spelling import get, is_camel, put

"""Makes an id for a new turn."""


class NotPossibleError(ValueError):
    """What was asked for cannot be done with that row; the message says why."""


def fresh_id() -> str:
    """An id for a turn, as ADK makes them."""
    return str(uuid.uuid4())


def remove(case: Any, row: CaseRow) -> Any:
    """The case without what a row belongs to: a message, a call, a rubric, a turn.

    Raises:
        NotPossibleError: the row is part of every case.
    """
    if row.kind in ("id", "frame"):
        raise NotPossibleError("every case has an id")
    if row.missing and row.unit == row.location:
        raise NotPossibleError("there is nothing to delete")
    return without(case, row.unit)


def duplicate(case: Any, row: CaseRow) -> tuple[Any, Location]:
    """The case with what a row belongs to twice, and where the second one stands, right after the first. A turn gets an
    id of its own, and so does a rubric, for two of the same id are one for ADK.

    Raises:
        NotPossibleError: there can be one only.
    """
    *_, step = row.unit
    if not isinstance(step, int):
        whole = "a turn" if row.turn is not None else "a case"
        raise NotPossibleError(f"{whole} has one of these only")
    twin = copy.deepcopy(value_at(case, row.unit))
    if row.unit == row.location and row.kind == "turn":
        put(twin, "invocation_id", fresh_id(), camel=is_camel(case))
    elif row.kind in ("call", "args"):
        _give_call_an_id(twin, value_at(case, row.unit[:-1]), camel=is_camel(case))
    elif row.kind == "rubric":
        others = value_at(case, row.unit[:-1])
        taken = {get(rubric, "rubric_id") for rubric in others}
        put(twin, "rubric_id", free_name(str(get(twin, "rubric_id") or "rubric"), taken), camel=is_camel(case))
    place = (*row.unit[:-1], step + 1)
    return with_item(case, place, twin), place


def _give_call_an_id(twin: Any, others: Any, *, camel: bool) -> None:
    """A call that has an id gets one of its own: by it ADK knows which response is whose."""
    calls = [call for item in (twin, *others) for call in _calls_in(item)]
    taken = {get(call, "id") for call in calls}
    for call in _calls_in(twin):
        if isinstance(get(call, "id"), str):
            put(call, "id", free_name(get(call, "id"), taken), camel=camel)
            taken.add(get(call, "id"))


def _calls_in(item: Any) -> list[Any]:
    """The calls in a list's item: of `tool_uses` itself, of a part or of an event what they hold."""
    if not isinstance(item, dict):
        return []
    parts = get(get(item, "content"), "parts")
    inner = [get(part, "function_call") for part in (parts if isinstance(parts, list) else [item])]
    found = [call for call in inner if isinstance(call, dict)]
    return found or ([item] if isinstance(get(item, "name"), str) else [])


def move(case: Any, row: CaseRow, step: int) -> tuple[Any, Location]:
    """The case with what a row belongs to one place earlier (-1) or later (1) in its list, and where it stands now.

    Raises:
        NotPossibleError: it is the first or last already, or stands in no list.
    """
    if not isinstance(row.unit[-1], int):
        raise NotPossibleError("this has one place only")
    after, place = moved(case, row.unit, step)
    if place == row.unit:
        raise NotPossibleError("it is the first already" if step < 0 else "it is the last already")
    return after, place
