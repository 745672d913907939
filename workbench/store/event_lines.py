"""Events as lines of JSON, safe for any data of an agent."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from workbench.events.event_json import to_json
from workbench.events.events import Event
from workbench.text.json_values import short_json

_DEEPEST = 200
"""Levels of foreign JSON that are stored. Readers of events need a few Python stack frames for each level."""


class Line(NamedTuple):
    """An event as it is written. `text` is its JSON form in ASCII."""

    event: Event
    text: str


def as_line(event: Event) -> Line:
    """Return the line of the event, without parts that are nested too deeply."""
    try:
        text = short_json(to_json(event))
    except RecursionError:
        text = ""
    if not text or (text.count("{") + text.count("[") > _DEEPEST and _is_too_deep(event)):
        event = _cut(event)
        text = short_json(to_json(event))
    return Line(event, text)


def _values(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass inside an event."""
    return {name: getattr(value, name) for name in value.__slots__}


def _is_too_deep(event: Event) -> bool:
    level: list[Any] = [event]
    for _ in range(_DEEPEST):
        level = [part for value in level for part in _parts(value)]
    return any(_parts(value) for value in level)


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, dict):
        return list(value.values())
    return list(_values(value).values()) if dataclasses.is_dataclass(value) else ()


def _cut(value: Any, levels: int = _DEEPEST) -> Any:
    """Return `value` without parts that are nested deeper than `levels`."""
    if isinstance(value, dict | list) and value and levels == 0:
        return f"… [nested deeper than {_DEEPEST} levels]"
    if isinstance(value, dict):
        return {key: _cut(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_cut(item, levels - 1) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {name: _cut(item, levels - 1) for name, item in _values(value).items()}
        return dataclasses.replace(value, **fields)
    return value
