"""Events as JSON data and back: the fields of the dataclass under their names, behind its own name as the tag.

The journal is written so, and worker processes (which run in the agent's interpreter and cannot import this) do the
same.
"""

import dataclasses
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from workbench.events import Event

_TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}


def to_json(event: Event) -> dict[str, Any]:
    """The event as JSON data; `{"event": <class name>, …fields}`."""
    return {"event": type(event).__name__, **_plain_fields(event)}


def from_json(data: Mapping[str, Any]) -> Event:
    """The event that `to_json` wrote.

    Raises:
        ValueError: unknown event name, a missing field, or a value of the wrong shape. Unknown fields are ignored, so
            that a journal written by a newer version can be read as far as it is understood.
    """
    kind = _TYPES.get(str(data.get("event")))
    if kind is None:
        raise ValueError(f"unknown event {data.get('event')!r}")
    event: Event = _build(kind, data)
    return event


def sentences(value: Any) -> tuple[str, ...]:
    """Return the texts of a foreign list of texts; nothing of anything else."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _plain_fields(value: Any) -> dict[str, Any]:
    # This is done for each event of a run: what a kind of value is made of is worked out once.
    kind = type(value)
    names, get, not_plain = _MADE_OF.get(kind) or _made_of(kind)
    data = dict(zip(names, get(value), strict=True))
    for name in not_plain:
        data[name] = _plain_value(data[name])
    return data


def _plain_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain_value(item) for item in value]
    known = type(value) in _MADE_OF or dataclasses.is_dataclass(value)
    return _plain_fields(value) if known else value


_MADE_OF: dict[type[Any], tuple[tuple[str, ...], Callable[[Any], Iterable[Any]], tuple[str, ...]]] = {}
"""Kind of value → the names of its fields, what gives their values, and those that are not JSON data as they stand."""


def _made_of(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[Any], Iterable[Any]], tuple[str, ...]]:
    fields = dataclasses.fields(kind)
    names = tuple(item.name for item in fields)
    get = operator.attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    _MADE_OF[kind] = names, get, tuple(item.name for item in fields if not _is_plain(item.type))
    return _MADE_OF[kind]


def _is_plain(hint: Any) -> bool:
    """Whether a value of this type is JSON data as it stands."""
    if isinstance(hint, types.UnionType):
        return all(map(_is_plain, get_args(hint)))
    return hint in (str, int, float, bool, types.NoneType) or get_origin(hint) in (dict, Literal)


_HINTS: dict[type[Any], dict[str, Any]] = {}


def _hints(kind: type[Any]) -> dict[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def _build(kind: type[Any], data: Any) -> Any:
    if not isinstance(data, Mapping):
        raise ValueError(f"{kind.__name__} must be an object, not {type(data).__name__}")
    hints = _hints(kind)
    values = {name: _read(hints[name], data[name]) for name in hints if name in data}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _read(hint: Any, value: Any) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _read(next(member for member in get_args(hint) if member is not type(None)), value)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"expected a list, got {type(value).__name__}")
        return tuple(_read(get_args(hint)[0], item) for item in value)
    if dataclasses.is_dataclass(hint):
        return _build(hint, value)  # type: ignore[arg-type]
    if origin is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{value!r} is none of {', '.join(map(str, get_args(hint)))}")
        return value
    wanted = {float: (int, float), int: int, str: str, bool: bool, dict: dict}.get(origin or hint)
    if wanted is not None and not isinstance(value, wanted):  # type: ignore[arg-type]
        raise ValueError(f"expected {hint}, got {type(value).__name__}")
    return value
