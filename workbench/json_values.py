"""Readers for JSON of unknown shape. They never raise: a value of another kind counts as empty."""

from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: Any) -> str:
    """Return a text, or ""."""
    return value if isinstance(value, str) else ""


def case_id(case: Any) -> str:
    """Return the id of an eval case."""
    members = mapping(case)
    return string(members.get("evalId", members.get("eval_id")))


def parts_of(content: Any) -> list[dict[str, Any]]:
    """Return the parts of a message."""
    return objects(mapping(content).get("parts"))
