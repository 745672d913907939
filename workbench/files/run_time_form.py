"""Run-time form of validated cases: JSON data without nulls and without keys that ADK drops.

User data (arguments, state) is not changed.
"""

import base64
from typing import Any

from workbench.files.invocation import OPAQUE
from workbench.files.schema import InvocationEvent, SessionInput


def normal_invocation(invocation: dict[str, Any]) -> dict[str, Any]:
    """Return a validated turn in its run-time form: no nulls, no keys that ADK drops, plain JSON values."""
    tidy: dict[str, Any] = normal(invocation)
    for event in tidy.get("intermediate_data", {}).get("invocation_events") or ():
        for key in event.keys() - InvocationEvent.__annotations__.keys():
            del event[key]
    return tidy


def normal_session(session: dict[str, Any]) -> dict[str, Any]:
    """Return a validated session input in its run-time form, without nulls. Unknown keys are not changed."""
    known = SessionInput.__annotations__
    tidy = {key: item for key, item in session.items() if item is not None or key not in known}
    return {**tidy, "events": normal(tidy["events"])} if "events" in tidy else tidy


def normal(value: Any) -> Any:
    """Return a validated value as JSON data without nulls, except in user data."""
    if isinstance(value, dict):
        return {key: item if key in OPAQUE else normal(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [normal(item) for item in value]
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode("ascii")
    return value
