"""Conversion of events to JSON data and back, and to lines of JSON with limited nesting."""

import dataclasses
import functools
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from workbench.events.events import Event
from workbench.text.json_values import short_json

ValueT = TypeVar("ValueT")

_TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}


def to_json(event: Event) -> dict[str, Any]:
    """Return the event as JSON data: `{"event": <class name>, …fields}`."""
    return {"event": type(event).__name__, **fields_as_json(event)}


def from_json(data: Mapping[str, Any]) -> Event:
    """Return the event that `to_json` wrote. Fields that only newer versions know are ignored.

    Raises:
        ValueError: the event name is unknown, a required field is missing, or a value has the wrong shape.
    """
    kind = _TYPES.get(str(data.get("event")))
    if kind is None:
        raise ValueError(f"unknown event {data.get('event')!r}")
    event: Event = read_fields(kind, data)
    return event


Writer: TypeAlias = Callable[[Any], Any]
"""A function from a value of one type to its JSON data."""
_WRITERS: dict[type[Any], tuple[tuple[str, ...], Callable[[Any], Iterable[Any]], list[tuple[str, Writer]]]] = {}
"""Dataclass → its field names, a getter for all values, and writers for fields that are not JSON data."""


def fields_as_json(value: Any) -> dict[str, Any]:
    """Return the fields of an event, or of a dataclass inside one, as JSON data."""
    kind = type(value)
    # This runs for each event, so the fields of a dataclass are worked out only once.
    names, get, writers = _WRITERS.get(kind) or _writers(kind)
    data = dict(zip(names, get(value), strict=True))
    for name, write in writers:
        data[name] = write(data[name])
    return data


def _writers(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[Any], Iterable[Any]], list[tuple[str, Writer]]]:
    hints = get_type_hints(kind)
    names = tuple(hints)
    get = operator.attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    found = ((name, _writer(hint)) for name, hint in hints.items())
    _WRITERS[kind] = names, get, [(name, write) for name, write in found if write is not None]
    return _WRITERS[kind]


def _writer(hint: Any) -> Writer | None:
    """Return the writer for values of a type, or None if they are already JSON data."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = next(filter(None, map(_writer, get_args(hint))), None)
        return None if inner is None else lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        each = _writer(get_args(hint)[0])
        return list if each is None else lambda value: list(map(each, value))
    return fields_as_json if dataclasses.is_dataclass(hint) else None


Reader: TypeAlias = Callable[[Any], Any]
"""A function from JSON data to a value of one type. It raises ValueError if the data has another shape."""
_READERS: dict[type[Any], list[tuple[str, Reader]]] = {}


def read_fields(kind: type[ValueT], data: Any) -> ValueT:
    """Return an instance of the dataclass `kind` from the output of `fields_as_json`. Unknown fields are ignored.

    Raises:
        ValueError: a required field is missing, or a value has the wrong shape.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"{kind.__name__} must be an object, not {type(data).__name__}")
    if kind not in _READERS:  # They are cached, because a run may have a million events.
        _READERS[kind] = [(name, _reader(hint)) for name, hint in get_type_hints(kind).items()]
    values = {name: read(data[name]) for name, read in _READERS[kind] if name in data}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _reader(hint: Any) -> Reader:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = _reader(next(member for member in get_args(hint) if member is not type(None)))
        return lambda value: None if value is None else inner(value)
    if dataclasses.is_dataclass(hint):
        return lambda value: read_fields(hint, value)  # type: ignore[arg-type]
    if origin is tuple:
        return functools.partial(_read_list, _reader(get_args(hint)[0]))
    if origin is Literal:
        choices = get_args(hint)

        def read_choice(value: Any) -> Any:
            if value not in choices:
                raise ValueError(f"{value!r} is not one of {', '.join(map(str, choices))}")
            return value

        return read_choice
    known: dict[Any, Any] = {float: (int, float), int: int, str: str, bool: bool, dict: dict}
    wanted = known.get(origin or hint, object)

    def read_plain(value: Any) -> Any:
        if not isinstance(value, wanted):
            raise ValueError(f"expected {getattr(hint, '__name__', hint)}, got {type(value).__name__}")
        return value

    return read_plain


def _read_list(read: Reader, value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {type(value).__name__}")
    return tuple(map(read, value))


_DEEPEST = 200
"""Maximum nesting of stored JSON. Readers of events need a few Python stack frames for each level."""


class Line(NamedTuple):
    """An event and its JSON text in ASCII."""

    event: Event
    text: str


def as_line(event: Event) -> Line:
    """Return the event and its JSON text. In both, a note replaces parts that are nested too deeply."""
    try:
        text = short_json(to_json(event))
    except RecursionError:
        text = ""
    if text and text.count("{") + text.count("[") <= _DEEPEST:
        return Line(event, text)
    cut = _cut(event)
    return Line(event, text) if text and cut == event else Line(cut, short_json(to_json(cut)))


def _cut(value: Any, levels: int = _DEEPEST) -> Any:
    """Return `value` with a note instead of each part that is nested deeper than `levels`."""
    if isinstance(value, dict | list) and value and levels == 0:
        return f"… [nested deeper than {_DEEPEST} levels]"
    if isinstance(value, dict):
        return {key: _cut(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_cut(item, levels - 1) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (field.name for field in dataclasses.fields(value))
        return dataclasses.replace(value, **{name: _cut(getattr(value, name), levels - 1) for name in names})
    return value
