"""Values of an agent as JSON text that never fails.

Text is written like pydantic does (bytes as URL-safe base64, dates in ISO form, sets as lists). A value without a JSON
form becomes its `repr`, and never fails a case. `value_forms` keeps what this loses.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import hashlib
import json
from collections.abc import Mapping
from typing import Any

DEEPEST = 100
"""Levels of nesting that remain in a value that could not be written unchanged."""
TOO_DEEP = "<nested too deeply>"
CIRCULAR = "<circular reference>"
Above = tuple[int, ...]
"""Ids of the values that a value is inside of."""


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


def simplified(value: Any, above: Above = ()) -> Any:
    """Return `value` with string keys only, no circular references, and at most `DEEPEST` levels."""
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, enum.Enum)):
        return value
    if id(value) in above:
        return CIRCULAR
    if len(above) >= DEEPEST:
        return TOO_DEEP
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
        return sorted(value, key=shown)  # Their own order of texts differs in each process.
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


def message_of(error: BaseException) -> str:
    """Return `str(error)`, or a text with the reason if that fails."""
    try:
        return str(error)
    except Exception as second:
        return f"its message cannot be shown, {type(second).__name__}"
