"""Changes of JSON values at a location: each returns a new value and leaves the old one as it was."""

import itertools
from collections.abc import Container
from typing import Any

from workbench.model.places import Location


def value_at(value: Any, location: Location) -> Any:
    """Return what stands at a location; None if nothing does."""
    for step in location:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


def with_value(value: Any, location: Location, item: Any) -> Any:
    """Put an item at a location. Objects that are missing on the way are made."""
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
    """Insert an item into a list: `location` is where it comes to stand. A list that is missing is made."""
    step = location[-1]
    assert isinstance(step, int)  # of a list
    items = value_at(value, location[:-1]) or []
    return with_value(value, location[:-1], [*items[:step], item, *items[step:]])


def without(value: Any, location: Location) -> Any:
    """Take out what stands at a location, if anything does."""
    holder, step = value_at(value, location[:-1]), location[-1]
    if isinstance(holder, list) and isinstance(step, int):
        return with_value(value, location[:-1], [*holder[:step], *holder[step + 1 :]])
    if isinstance(holder, dict) and step in holder:
        return with_value(value, location[:-1], {key: item for key, item in holder.items() if key != step})
    return value


def moved(value: Any, location: Location, by: int) -> tuple[Any, Location]:
    """Move an item of a list or a member of an object by so many places, and return where it is then. The first and the
    last stay where they are."""
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
    """Return `name`, or with the first number behind it that nobody has: `late_parcel_2`."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one not in taken)
