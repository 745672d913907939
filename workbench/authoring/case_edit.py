"""Changing a case as a value: each operation gives a new case and leaves the old one as it was. Keys keep the spelling
that stands there."""

import copy
import uuid
from collections.abc import Callable
from typing import Any

from workbench.authoring.case_rows import CaseRow, value_at
from workbench.authoring.spelling import get, is_camel, put
from workbench.model.places import Location

Fresh = Callable[[], str]
"""Makes an id for a new turn."""


class NotPossibleError(ValueError):
    """What was asked for cannot be done with that row; the message says why."""


def fresh_id() -> str:
    """An id for a turn, as ADK makes them."""
    return str(uuid.uuid4())


def with_value(case: Any, location: Location, value: Any) -> Any:
    """The case with `value` at a location. Objects that are missing on the way are made."""
    if not location:
        return value
    step, rest = location[0], location[1:]
    if isinstance(step, int):
        items = list(case)
        items[step] = with_value(items[step], rest, value)
        return items
    members = dict(case) if isinstance(case, dict) else {}
    members[step] = with_value(members.get(step), rest, value)
    return members


def without(case: Any, location: Location) -> Any:
    """The case without what stands at a location."""
    above, step = value_at(case, location[:-1]), location[-1]
    if isinstance(step, int):
        return with_value(case, location[:-1], [*above[:step], *above[step + 1 :]])
    return with_value(case, location[:-1], {key: item for key, item in above.items() if key != step})


def with_item(case: Any, location: Location, item: Any) -> Any:
    """The case with an item more in a list: `location` is where it comes to stand. A list that is missing is made."""
    step = location[-1]
    assert isinstance(step, int)  # of a list
    items = value_at(case, location[:-1]) or []
    return with_value(case, location[:-1], [*items[:step], item, *items[step:]])


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


def duplicate(case: Any, row: CaseRow, fresh: Fresh = fresh_id) -> tuple[Any, Location]:
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
        put(twin, "invocation_id", fresh(), camel=is_camel(case))
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
    *_, number = row.unit
    if not isinstance(number, int):
        raise NotPossibleError("this has one place only")
    items = value_at(case, row.unit[:-1])
    if not 0 <= number + step < len(items):
        raise NotPossibleError("it is the first already" if step < 0 else "it is the last already")
    moved = list(items)
    moved[number], moved[number + step] = moved[number + step], moved[number]
    return with_value(case, row.unit[:-1], moved), (*row.unit[:-1], number + step)


def free_name(name: str, taken: Any) -> str:
    """`name`, or with the first number behind it that nobody has: `late_parcel_2`."""
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
