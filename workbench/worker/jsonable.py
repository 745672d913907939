"""Values of an agent as JSON: as text that never fails, and as data from which an equal value can be made again.

Text is written like pydantic does (bytes as URL-safe base64, dates in ISO form, sets as lists). A value without a JSON
form becomes its `repr`, and never fails a case. In recorded calls, JSON data is stored unchanged. Any other value is an
object with the key `$form`, such as `{"$form": "bytes", "value": "…"}`. Reading such an object imports nothing and runs
no code of a project: a class is only looked up in modules that are imported already, and an instance is made without
its `__init__` or its validators.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import marshal
import math
import sys
import types
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

_DEEPEST = 100
"""Levels of nesting that remain in a value that could not be written unchanged."""
FORM = "$form"
_ONCE = (Iterator, AsyncIterator, Awaitable)
"""Types of values that can be read only once. No equal value can be made of them."""
_TOO_DEEP = "<nested too deeply>"
_CIRCULAR = "<circular reference>"
_Above = tuple[int, ...]
"""Ids of the values that a value is inside of."""
_STRICT = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_ATTRIBUTE_LIMIT = 4096
"""Maximum size of an exception's attribute, in characters of JSON."""
_MOST_ATTRIBUTES = 32
_MEMBERS: dict[Any, tuple[str, ...]] = {
    OSError: ("errno", "strerror", "filename", "filename2"),
    ImportError: ("name", "path"),
    StopIteration: ("value",),
    UnicodeDecodeError: ("encoding", "object", "start", "end", "reason"),
    UnicodeEncodeError: ("encoding", "object", "start", "end", "reason"),
}
"""Builtin class → the attributes that its instances have outside of their `__dict__`."""


def dumps(value: Any) -> str:
    """Return ASCII JSON without blanks. Never raises for a strange value."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        # The slow way replaces non-string keys, circular references and extreme nesting.
        return _ENCODER.encode(simplified(value))


def digest(text: str) -> str:
    """Return the digest of an ASCII text, as 20 hexadecimal digits. Stored values are named by it."""
    return hashlib.blake2b(text.encode("ascii"), digest_size=10).hexdigest()


def simplified(value: Any, above: _Above = ()) -> Any:
    """Return `value` with string keys only, no circular references, and at most `_DEEPEST` levels."""
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum)):
        return value
    if id(value) in above:
        return _CIRCULAR
    if len(above) >= _DEEPEST:
        return _TOO_DEEP
    inside = (*above, id(value))
    if isinstance(value, Mapping):
        return {_key(key): simplified(item, inside) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [simplified(item, inside) for item in value]
    return simplified(_replacement(value), inside)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return str(key.value) if isinstance(key, enum.Enum) else key
    if key is None or isinstance(key, (bool, int, float)):
        # json's own spelling: null, true, 1.5
        return json.dumps(key)
    return str(key)


def _replacement(value: Any) -> Any:
    """Return a simpler value for one that json does not know."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.urlsafe_b64encode(bytes(value)).decode("ascii")
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return f"PT{value.total_seconds()}S"
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
        return _attempt(value.model_dump, value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    if type(value).__module__ in ("decimal", "uuid", "pathlib", "fractions", "ipaddress"):
        return str(value)
    return shown(value)


def _attempt(dump: Any, value: Any) -> Any:
    try:
        dumped: dict[str, Any] = dump()
    except Exception:
        # The model cannot be dumped, but its repr is still useful.
        return shown(value)
    return dumped


def shown(value: Any) -> str:
    """Return `repr(value)`, or a text with the type's name if `repr` fails."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__}; its repr raises {type(error).__name__}>"


# Circular references are rare. They raise RecursionError and are handled then.
_ENCODER = json.JSONEncoder(default=_replacement, separators=(",", ":"), check_circular=False)


class UnknownFormError(ValueError):
    """A `$form` object that this version cannot read."""


def encoded(value: Any) -> Any:
    """Return a value as JSON data. The result shares no mutable object with `value`.

    Raises:
        TypeError: `value` contains a generator or another object that can be read only once.
    """
    return json.loads(encoded_text(value))


def encoded_text(value: Any) -> str:
    """Return a value as ASCII JSON without blanks. Raises TypeError, as `encoded`."""
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


def _encoded(value: Any, above: _Above = ()) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, _ONCE):
        raise TypeError(f"{type(value).__name__} can be read only once")
    if id(value) in above:
        return _form("object", _CIRCULAR)
    if len(above) > _DEEPEST:
        return _form("object", _TOO_DEEP)
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


def _mapping(value: Mapping[Any, Any], inside: _Above) -> Any:
    if all(type(key) is str for key in value) and FORM not in value:
        return {key: _encoded(item, inside) for key, item in value.items()}
    return _form("dict", [[_encoded(key, inside), _encoded(item, inside)] for key, item in value.items()])


def _number(value: float, inside: _Above) -> Any:
    return float(value) if math.isfinite(value) else _form("float", repr(float(value)))


def _items(form: str) -> Callable[[Any, _Above], Any]:
    return lambda value, inside: _form(form, [_encoded(item, inside) for item in value])


_PLAIN_ENCODERS: tuple[tuple[Any, Callable[[Any, _Above], Any]], ...] = (
    (str, lambda value, inside: str.__str__(value)),
    (bool, lambda value, inside: bool(value)),
    (int, lambda value, inside: int(value)),
    (float, _number),
)


def _member(value: enum.Enum, inside: _Above) -> Any:
    # For a process that has not imported the class, and for combined flags.
    plain = [encode(value, inside) for kind, encode in _PLAIN_ENCODERS if isinstance(value, kind)]
    return _form("enum", value.name, type=_name(value), **({"plain": plain[0]} if plain else {}))


_ENCODERS: tuple[tuple[Any, Callable[[Any, _Above], Any]], ...] = (
    (enum.Enum, _member),
    *_PLAIN_ENCODERS,
    (Mapping, _mapping),
    (list, lambda value, inside: [_encoded(item, inside) for item in value]),
    (tuple, _items("tuple")),
    (frozenset, _items("frozenset")),
    (set, _items("set")),
    ((bytes, bytearray), lambda value, inside: _form("bytes", base64.b64encode(value).decode("ascii"))),
    (datetime.datetime, lambda value, inside: _form("datetime", value.isoformat())),
    (datetime.date, lambda value, inside: _form("date", value.isoformat())),
    (datetime.time, lambda value, inside: _form("time", value.isoformat())),
    (datetime.timedelta, lambda value, inside: _form("timedelta", [value.days, value.seconds, value.microseconds])),
    (decimal.Decimal, lambda value, inside: _form("decimal", str(value))),
    (uuid.UUID, lambda value, inside: _form("uuid", str(value))),
)


def decoded(data: Any) -> Any:
    """Return the value for JSON data of `encoded`. Raise UnknownFormError if the data was changed, or is newer."""
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
    """Return whether a model's field has its default value, and whether that is a plain value such as a number."""
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
    "set": _many(set),
    "frozenset": _many(frozenset),
    "bytes": _one(str, lambda value: base64.b64decode(value, validate=True)),
    "datetime": _one(str, datetime.datetime.fromisoformat),
    "date": _one(str, datetime.date.fromisoformat),
    "time": _one(str, datetime.time.fromisoformat),
    "timedelta": _one(list, lambda value: datetime.timedelta(*value)),
    "decimal": _one(str, decimal.Decimal),
    "uuid": _one(str, uuid.UUID),
    "enum": _enum,
    "model": _model,
    "dataclass": _dataclass,
    "object": _one(str, _Object),
}


def encoded_error(error: BaseException) -> dict[str, Any]:
    """Return an exception as `{"types", "message", "attributes"?}`.

    `types` are its class and bases as `module.Class`, and `message` is its text. `attributes` are its small attributes
    that have a JSON form, with `args` if these are not just the text.
    """
    kinds = [kind for kind in type(error).__mro__ if issubclass(kind, BaseException) and kind is not BaseException]
    data = {"types": [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds], "message": message_of(error)}
    found = {name: form for name, value in _attributes(error, data["message"]) for form in _small(value)}
    return {**data, "attributes": found} if found else data


def _attributes(error: BaseException, message: Any) -> Iterator[tuple[str, Any]]:
    if error.args not in ((message,), ()):
        yield "args", list(error.args)
    for kind, names in _MEMBERS.items():
        if isinstance(error, kind):
            values = ((name, getattr(error, name, None)) for name in names)
            yield from ((name, value) for name, value in values if value is not None)
    for name, value in list(getattr(error, "__dict__", {}).items())[:_MOST_ATTRIBUTES]:
        if isinstance(name, str) and not name.startswith(("__", "_agent_workbench")):
            yield name, value


def _small(value: Any) -> Iterator[Any]:
    """Yield a value as JSON data if it is small and can be read back."""
    try:
        text = encoded_text(value)
    except Exception:
        return
    if len(text) <= _ATTRIBUTE_LIMIT and f'"{FORM}":"object"' not in text:
        yield json.loads(text)


def decoded_error(error: Mapping[str, Any]) -> Exception:
    """Return an exception for a recorded one (`encoded_error`), made without its class's `__init__`.

    Its class is the first of `types` that is an Exception of an imported module and can be made. A class made for this
    error gives it the recorded name and text if they would differ. Attributes that cannot be read are left out. If no
    class can be made, the result is a plain Exception with the text.
    """
    names, message = error["types"], error["message"]
    known: dict[str, Any] = {}
    for name, value in error.get("attributes", {}).items():
        with contextlib.suppress(UnknownFormError, RecursionError):
            known[name] = decoded(value)
    for name in names:
        kind = imported_class(name, Exception)
        made = _made(kind, message, known) if kind is not None else None
        if made is not None:
            return made if name == names[0] else _made(_named(type(made), names[0], message), message, known) or made
    return Exception(message)


def _made(kind: Any, message: str, attributes: dict[str, Any]) -> Exception | None:
    # A builtin base has the only `__new__` that is known to run no code of a project.
    base: Any = next(base for base in type.mro(kind) if base.__module__ == builtins.__name__)
    try:
        made = _with_attributes(base.__new__(kind, message), message, attributes)
        if message_of(made) != message:
            made = _with_attributes(base.__new__(_named(kind, "", message), message), message, attributes)
    except Exception:
        return None
    return made


def _with_attributes(error: Exception, message: str, attributes: dict[str, Any]) -> Exception:
    given = dict(attributes)
    args = given.pop("args", None)
    error.args = tuple(args) if isinstance(args, list) else (message,)
    members = {name: kind for kind, names in _MEMBERS.items() if isinstance(error, kind) for name in names}
    for name, value in given.items():
        if name in members:
            # Python checks the type of some of them.
            with contextlib.suppress(TypeError):
                vars(members[name])[name].__set__(error, value)
        else:
            error.__dict__[name] = value
    return error


def _named(kind: Any, name: str, message: str) -> type:
    """Return a subclass with this name and text."""
    own = name.rpartition(".")[2] or kind.__name__
    fields = {"__str__": lambda self: message, "__module__": kind.__module__, "__qualname__": own}
    return type(own, (kind,), fields)


def message_of(error: BaseException) -> str:
    """Return `str(error)`, or a text with the reason if that fails."""
    try:
        return str(error)
    except Exception as second:
        return f"its message cannot be shown, {type(second).__name__}"
