"""Reading and changing a case in the spelling of its file.

ADK accepts `user_content` and `userContent`. An edit must not turn one into the other.
"""

from collections.abc import Callable, Container
from functools import cache
from typing import Any

from pydantic.alias_generators import to_camel

from workbench.files.faults import snake
from workbench.files.invocation import OPAQUE
from workbench.text.json_values import mapping

Json = dict[str, Any]
_camel = cache(to_camel)


def key_in(value: Any, name: str) -> str | None:
    """Return how `value` spells the key `name` (given in snake_case), or None if it has none or is not an object.

    If both spellings are there, the camelCase one wins, as in ADK.
    """
    members, camel = mapping(value), _camel(name)
    return camel if camel in members else name if name in members else None


def spelled(name: str, *, camel: bool) -> str:
    """Return a key in camelCase or unchanged."""
    return to_camel(name) if camel else name


def key_for(value: Any, name: str, *, camel: bool) -> str:
    """Return the key `name` as `value` spells it. If `value` lacks it, use the requested spelling."""
    return key_in(value, name) or spelled(name, camel=camel)


def get(value: Any, name: str) -> Any:
    """Return the value of the key `name` in either spelling, or None if `value` has no such key or is not an object."""
    key = key_in(value, name)
    return None if key is None else value[key]


def put(value: Json, name: str, item: Any, *, camel: bool) -> None:
    """Set the key `name`, spelled as `key_for` says."""
    value[key_for(value, name, camel=camel)] = item


def drop(value: Json, name: str) -> None:
    """Remove the key `name` in either spelling."""
    key = key_in(value, name)
    if key is not None:
        del value[key]


def respelled(value: Any, spell: Callable[[str], str], opaque: Container[str] = OPAQUE) -> Any:
    """Return a copy with respelled keys, except inside the user's own data: the values of `opaque` keys."""
    if isinstance(value, list):
        return [respelled(item, spell, opaque) for item in value]
    if not isinstance(value, dict):
        return value
    return {spell(key): item if snake(key) in opaque else respelled(item, spell, opaque) for key, item in value.items()}


def is_camel(case: Any) -> bool:
    """Return whether a case (or any part of one) is written in camelCase.

    The first key with several words decides. User data such as arguments and state is ignored.
    """
    waiting = [case]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += reversed(value)
        elif isinstance(value, dict):
            for key in value:
                if snake(key) != key:
                    return True
                if "_" in key:
                    return False
            waiting += [item for key, item in reversed(value.items()) if snake(key) not in OPAQUE]
    return False
