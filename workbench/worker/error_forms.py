"""Exceptions in recorded calls, as JSON data from which an exception with the same class and text can be made again.

As with values (`value_forms`), this imports nothing and runs no code of a project.
"""

from __future__ import annotations

import builtins
import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from .jsonable import message_of
from .value_forms import FORM, UnknownFormError, decoded, encoded_text, imported_class

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
    """Return a subclass with this name ("": the same name), whose instances have this text."""
    own = name.rpartition(".")[2] or kind.__name__
    fields = {"__str__": lambda self: message, "__module__": kind.__module__, "__qualname__": own}
    return type(own, (kind,), fields)
