"""Changes of JSON values at a location. Each returns a new value and leaves the old one unchanged."""

import itertools
from collections.abc import Container
from typing import Any

from workbench.files.faults import Location
from workbench.text.json_values import value_at


def with_value(value: Any, location: Location, item: Any) -> Any:
    """Set a value at a location, creating missing objects on the way."""
    if not location:
        return item
    step, rest = location[0], location[1:]
    if isinstance(step, int):
        items = list(value)
        items[step] = with_value(items[step], rest, item)
        return items
    members = dict(value) if isinstance(value, dict) else {}
    members[step] = with_value(members.get(step), rest, item)
    return members


def with_item(value: Any, location: Location, item: Any) -> Any:
    """Insert an item into a list at `location`, creating a missing list."""
    step = location[-1]
    assert isinstance(step, int)  # A position in a list.
    items = value_at(value, location[:-1]) or []
    return with_value(value, location[:-1], [*items[:step], item, *items[step:]])


def without(value: Any, location: Location) -> Any:
    """Remove the value at a location, if there is one."""
    holder, step = value_at(value, location[:-1]), location[-1]
    if isinstance(holder, list) and isinstance(step, int):
        return with_value(value, location[:-1], [*holder[:step], *holder[step + 1 :]])
    if isinstance(holder, dict) and step in holder:
        return with_value(value, location[:-1], {key: item for key, item in holder.items() if key != step})
    return value


def moved(value: Any, location: Location, by: int) -> tuple[Any, Location]:
    """Move an item of a list or a field of an object by so many places, and return its new place.

    The first and the last cannot be moved further.
    """
    above, step = location[:-1], location[-1]
    holder = value_at(value, above)
    keys: list[Any] = list(range(len(holder)) if isinstance(holder, list) else holder)
    place = keys.index(step) + by
    if not 0 <= place < len(keys):
        return value, location
    keys.insert(place, keys.pop(place - by))
    if isinstance(holder, list):
        return with_value(value, above, [holder[key] for key in keys]), (*above, place)
    return with_value(value, above, {key: holder[key] for key in keys}), location


def free_name(name: str, taken: Container[str]) -> str:
    """Return `name`, or `name` with the first free number: `late_parcel_2`."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one not in taken)
