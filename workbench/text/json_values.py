"""Readers for JSON data of unknown shape, and compact JSON text.

Readers never raise an error. If the data has another type, they return an empty value or None.
"""

import json
from collections.abc import Iterable
from typing import Any

# No check for circular data: everything that is stored was parsed from JSON or made by the workbench.
short_json = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
"""A function that returns JSON data as ASCII text without spaces."""


def mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else {}."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, without its other items, or [] if the value is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def parsed_objects(text: str) -> list[dict[str, Any]]:
    """Return the objects in a list that is given as JSON text, or [] for other texts."""
    try:
        return objects(json.loads(text))
    except (ValueError, RecursionError):
        return []


def string(value: Any) -> str:
    """Return the value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def strings(value: Any) -> tuple[str, ...]:
    """Return the strings in a list, without its other items, or () if the value is not a list."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def number(value: Any) -> float | None:
    """Return the value as a float, or None if it is a bool, too large, or no number."""
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:
        return None


ID_KEYS = ("evalId", "eval_id", "evalCaseId", "eval_case_id")
"""Keys with the ID of an eval case: ADK's, then those of google-agents-cli's datasets."""
_OF_DATASETS = frozenset({"prompt", "agent_data", "agentData", "user_scenario", "userScenario"})
_OF_EVALSETS = frozenset({"eval_id", "evalId", "conversation", "conversation_scenario", "conversationScenario"})


def case_id(case: Any) -> str:
    """Return the ID of an eval case, or "" if it has none."""
    members = mapping(case)
    return next((string(members[key]) for key in ID_KEYS if key in members), "")


def is_dataset_case(case: Any) -> bool:
    """Return whether an eval case has the format of google-agents-cli's datasets rather than of an evalset."""
    keys = mapping(case).keys()
    return not keys.isdisjoint(_OF_DATASETS) and keys.isdisjoint(_OF_EVALSETS)


def parts_of(content: Any) -> list[dict[str, Any]]:
    """Return the parts of a message (an ADK content), or [] for other values."""
    return objects(mapping(content).get("parts"))


def value_at(value: Any, location: Iterable[str | int]) -> Any:
    """Return the value at a location of keys and indices, or None if there is none."""
    for step in location:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


def without_nulls(value: Any) -> Any:
    """Return JSON data without keys whose value is null. Google's types write null for each unset field."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
