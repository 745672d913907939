"""What may stand beside `threshold` in a criterion, and how each value is read: as pydantic reads it for ADK."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")
"""In the order of ADK's numbers 0, 1, 2."""
_TRUE = ("1", "true", "t", "yes", "y", "on")
_FALSE = ("0", "false", "f", "no", "n", "off")


@dataclass(frozen=True, slots=True)
class Option:
    """One key: `read` turns its JSON value into the one to use and raises ValueError where ADK refuses it;
    `choices` are what a picker offers, empty where the value is free."""

    name: str
    help: str
    read: Callable[[Any], Any]
    choices: tuple[str, ...] = ()


def read_match_type(value: Any) -> str:
    """EXACT, IN_ORDER or ANY_ORDER, from a name in any case with blanks or dashes, or from 0, 1, 2 (also 1.0, true)."""
    if isinstance(value, str):
        name = value.strip().upper().replace("-", "_").replace(" ", "_")
        if name in MATCH_TYPES:
            return name
    elif isinstance(value, int | float) and value in (0, 1, 2):
        return MATCH_TYPES[int(value)]
    raise ValueError("expected EXACT, IN_ORDER or ANY_ORDER (or 0, 1, 2)")


def read_flag(value: Any) -> bool:
    """A yes or no: true, false, 1, 0, or one of the words that pydantic takes for them."""
    if isinstance(value, str) and value.lower() in _TRUE + _FALSE:
        return value.lower() in _TRUE
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    raise ValueError("expected true or false")


def read_text(value: Any) -> str:
    """A string."""
    if isinstance(value, str):
        return value
    raise ValueError("expected text")


def read_object(value: Any) -> dict[str, Any]:
    """A JSON object."""
    if isinstance(value, dict):
        return value
    raise ValueError("expected an object")


def read_list(value: Any) -> list[Any]:
    """A JSON list."""
    if isinstance(value, list):
        return value
    raise ValueError("expected a list")
