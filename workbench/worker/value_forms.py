"""Values in recorded calls, as JSON data from which an equal value can be made again.

JSON data is stored unchanged. Any other value is an object with the key `$form`, such as
`{"$form": "bytes", "value": "…"}`. Reading such an object imports nothing and runs no code of a project: a class is
only looked up in modules that are imported already, and an instance is made without its `__init__` or its validators.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import json
import marshal
import math
import sys
import types
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

from .jsonable import CIRCULAR, DEEPEST, TOO_DEEP, Above, dumps, shown

FORM = "$form"
_ONCE = (Iterator, AsyncIterator, Awaitable)
"""Types of values that can be read only once. No equal value can be made of them."""
_STRICT = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class UnknownFormError(ValueError):
    """A `$form` object that this version cannot read."""


class Gone:
    """Type of `GONE`, which stands for a value of the state that a call deleted."""


GONE = Gone()


def encoded(value: Any) -> Any:
    """Return a value as JSON data. The result shares no mutable object with `value`.

    Raises:
        TypeError: `value` contains a generator or another object that can be read only once.
    """
    return json.loads(encoded_text(value))


def encoded_text(value: Any) -> str:
    """Return a value as ASCII JSON without blanks. Raise TypeError like `encoded`."""
    try:
        text = _STRICT.encode(value)
    except (TypeError, ValueError, RecursionError):
        return dumps(_encoded(value))
    # What JSON would change, such as a tuple, differs from what comes back. A member of an enum may be equal.
    is_kept = FORM not in text and json.loads(text) == value and _has_only_builtins(value)
    return text if is_kept else dumps(_encoded(value))


def _has_only_builtins(value: Any) -> bool:
    """Return whether a value that JSON can hold contains no instance of a subclass, such as an enum's of str."""
    try:
        # Much faster than a walk in Python. marshal refuses instances of subclasses.
        marshal.dumps(value)
    except ValueError:
        return False
    return True


def _encoded(value: Any, above: Above = ()) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, _ONCE):
        raise TypeError(f"{type(value).__name__} can be read only once")
    if id(value) in above:
        return _form("object", CIRCULAR)
    if len(above) > DEEPEST:
        return _form("object", TOO_DEEP)
    inside = (*above, id(value))
    for kind, encode in _ENCODERS:
        if isinstance(value, kind):
            return encode(value, inside)
    if _is_model(type(value)):
        given = {name: item for name, item in vars(value).items() if not _is_default(type(value), name, item)}
        given.update(getattr(value, "__pydantic_extra__", None) or {})
        fields = {str(name): _encoded(item, inside) for name, item in given.items()}
        return _form("model", fields, type=_name(value))
    if dataclasses.is_dataclass(value):
        fields = {field.name: _encoded(getattr(value, field.name, None), inside) for field in dataclasses.fields(value)}
        return _form("dataclass", fields, type=_name(value))
    return _form("object", shown(value), type=_name(value))


def _form(form: str, value: Any, **more: Any) -> dict[str, Any]:
    return {FORM: form, **more, "value": value}


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _mapping(value: Mapping[Any, Any], inside: Above) -> Any:
    if all(type(key) is str for key in value) and FORM not in value:
        return {key: _encoded(item, inside) for key, item in value.items()}
    return _form("dict", [[_encoded(key, inside), _encoded(item, inside)] for key, item in value.items()])


def _number(value: float, inside: Above) -> Any:
    return float(value) if math.isfinite(value) else _form("float", repr(float(value)))


def _items(form: str) -> Callable[[Any, Above], Any]:
    def encode(value: Any, inside: Above) -> Any:
        # The own order of texts in a set differs in each process.
        is_sorted = form != "tuple" and all(type(item) is str for item in value)
        return _form(form, [_encoded(item, inside) for item in (sorted(value) if is_sorted else value)])

    return encode


def _tuple(value: tuple[Any, ...], inside: Above) -> Any:
    names = getattr(type(value), "_fields", None)
    if not isinstance(names, tuple):
        return _items("tuple")(value, inside)
    fields = [[name, _encoded(item, inside)] for name, item in zip(names, value)]  # noqa: B905 (Python 3.9)
    return _form("namedtuple", fields, type=_name(value))


_PLAIN_ENCODERS: tuple[tuple[Any, Callable[[Any, Above], Any]], ...] = (
    (str, lambda value, inside: str.__str__(value)),
    (bool, lambda value, inside: bool(value)),
    (int, lambda value, inside: int(value)),
    (float, _number),
)


def _member(value: enum.Enum, inside: Above) -> Any:
    # For a process that has not imported the class, and for combined flags.
    plain = [encode(value, inside) for kind, encode in _PLAIN_ENCODERS if isinstance(value, kind)]
    return _form("enum", value.name, type=_name(value), **({"plain": plain[0]} if plain else {}))


_ENCODERS: tuple[tuple[Any, Callable[[Any, Above], Any]], ...] = (
    (enum.Enum, _member),
    *_PLAIN_ENCODERS,
    (Mapping, _mapping),
    (list, lambda value, inside: [_encoded(item, inside) for item in value]),
    (tuple, _tuple),
    (frozenset, _items("frozenset")),
    (set, _items("set")),
    ((bytes, bytearray), lambda value, inside: _form("bytes", base64.b64encode(value).decode("ascii"))),
    (datetime.datetime, lambda value, inside: _form("datetime", value.isoformat())),
    (datetime.date, lambda value, inside: _form("date", value.isoformat())),
    (datetime.time, lambda value, inside: _form("time", value.isoformat())),
    (datetime.timedelta, lambda value, inside: _form("timedelta", [value.days, value.seconds, value.microseconds])),
    (decimal.Decimal, lambda value, inside: _form("decimal", str(value))),
    (uuid.UUID, lambda value, inside: _form("uuid", str(value))),
    (Gone, lambda value, inside: _form("gone", None)),
)


def decoded(data: Any) -> Any:
    """Return the value for JSON data of `encoded`. Raise UnknownFormError for data that this version cannot read."""
    if isinstance(data, list):
        return [decoded(item) for item in data]
    if not isinstance(data, dict):
        return data
    if FORM not in data:
        return {key: decoded(item) for key, item in data.items()}
    form, value = data[FORM], data.get("value")
    decode = _DECODERS.get(form) if isinstance(form, str) else None
    if decode is None:
        raise UnknownFormError(f"`{FORM}` is {json.dumps(form)[:100]}, which is not known")
    try:
        made = decode(value, data.get("type"))
        return decoded(data["plain"]) if isinstance(made, _Object) and "plain" in data else made
    except UnknownFormError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError, KeyError) as error:
        raise UnknownFormError(f"a value of the form {form} cannot be read: {error}") from None


def imported_class(name: Any, base: type) -> type | None:
    """Return the class `module.Class` if an imported module defines it and it derives from `base`, or None.

    Nothing is imported, and no module's `__getattr__` is called.
    """
    parts = name.split(".") if isinstance(name, str) else []
    for end in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:end]))
        if isinstance(module, types.ModuleType):
            # Not `vars`, because that loads a lazy module.
            found: Any = object.__getattribute__(module, "__dict__").get(parts[end])
            for part in parts[end + 1 :]:
                found = type.__getattribute__(found, "__dict__").get(part) if _is_class(found) else None
            return found if _is_class(found) and base in type.mro(found) else None
    return None


def _is_class(value: Any) -> bool:
    """Return whether `value` is a class, without asking its metaclass."""
    return type in type.mro(type(value))


class _Object:
    """An object that can only be shown: the class of the recorded one is unknown or cannot be made."""

    def __init__(self, text: str, fields: dict[str, Any] | None = None) -> None:
        self.__dict__.update(fields or {})
        self._text, self._fields = text, fields

    def __repr__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Object) and (self._text, self._fields) == (other._text, other._fields)

    __hash__ = None  # type: ignore[assignment]


def _model(value: Any, name: Any) -> Any:
    fields = {key: decoded(item) for key, item in _typed(value, dict).items()}
    base: Any = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    kind: Any = imported_class(name, base) if isinstance(base, type) else None
    if kind is None:
        return _standing_in(name, fields)
    known = {key: field.default for key, field in kind.model_fields.items() if _is_default(kind, key, field.default)}
    known.update((key, item) for key, item in fields.items() if key in kind.model_fields)
    more = {key: item for key, item in fields.items() if key not in known}
    made = object.__new__(kind)
    object.__setattr__(made, "__dict__", known)
    object.__setattr__(made, "__pydantic_fields_set__", set(fields))
    object.__setattr__(made, "__pydantic_extra__", more if kind.model_config.get("extra") == "allow" else None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made


def _dataclass(value: Any, name: Any) -> Any:
    fields = {key: decoded(item) for key, item in _typed(value, dict).items()}
    kind = imported_class(name, object)
    if kind is None or not dataclasses.is_dataclass(kind):
        return _standing_in(name, fields)
    made = object.__new__(kind)
    for key, item in fields.items():
        object.__setattr__(made, key, item)
    return made


def _named_tuple(value: Any, name: Any) -> Any:
    fields = {key: decoded(item) for key, item in _typed(value, list)}
    # A class with the same fields, for a process that has not imported the recorded one.
    made: Any = collections.namedtuple(_typed(name, str).rpartition(".")[2], fields)  # type: ignore[misc]
    kind = imported_class(name, tuple)
    is_same = any(vars(base).get("_fields") == made._fields for base in (() if kind is None else type.mro(kind)))
    return tuple.__new__(kind if kind is not None and is_same else made, fields.values())


def _standing_in(name: Any, fields: dict[str, Any]) -> Any:
    return _Object(f"{str(name).rpartition('.')[2]}({', '.join(f'{k}={v!r}' for k, v in fields.items())})", fields)


def _enum(value: Any, name: Any) -> Any:
    kind: Any = imported_class(name, enum.Enum)
    members = {} if kind is None else type.__getattribute__(kind, "_member_map_")
    return members[value] if value in members else _Object(f"{str(name).rpartition('.')[2]}.{value}")


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _is_model(kind: type) -> bool:
    base: Any = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    return isinstance(base, type) and issubclass(kind, base)


def _is_default(kind: Any, name: str, value: Any) -> bool:
    """Return whether a model's field has its default value, and this is a plain value such as a number."""
    field = kind.model_fields.get(name)
    return field is not None and type(value) in (type(None), bool, int, float, str) and field.default == value


def _many(make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda value, name: make([decoded(item) for item in _typed(value, list)])


def _one(kind: type, make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda value, name: make(_typed(value, kind))


_DECODERS: dict[str, Callable[[Any, Any], Any]] = {
    "dict": lambda value, name: {decoded(key): decoded(item) for key, item in _typed(value, list)},
    "float": _one(str, float),
    "tuple": _many(tuple),
    "namedtuple": _named_tuple,
    "set": _many(set),
    "frozenset": _many(frozenset),
    "bytes": _one(str, lambda value: base64.b64decode(value, validate=True)),
    "datetime": _one(str, datetime.datetime.fromisoformat),
    "date": _one(str, datetime.date.fromisoformat),
    "time": _one(str, datetime.time.fromisoformat),
    "timedelta": _one(list, lambda value: datetime.timedelta(*value)),
    "decimal": _one(str, decimal.Decimal),
    "uuid": _one(str, uuid.UUID),
    "gone": lambda value, name: GONE,
    "enum": _enum,
    "model": _model,
    "dataclass": _dataclass,
    "object": _one(str, _Object),
}
