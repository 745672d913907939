"""ADK's rules for a case that no single field holds, and the last step to the form that moves at run time.

`evalset_schema` has looked at the value first; here both shapes of `intermediate_data` are held apart, a case has
exactly one of `conversation` and `conversation_scenario`, and personas are looked up.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench.model.evalset_schema import PREBUILT_PERSONAS, InvocationEvent

Location = tuple[str | int, ...]
"""Keys and list positions from the value that was validated down to the one meant."""

# Objects that belong to the user: tool arguments, state. Nothing in them is ours to drop or rename.
_OPAQUE = frozenset({"args", "response", "state", "part_metadata", "tool_declarations", "final_session_state"})
_EVENT_KEYS = frozenset(InvocationEvent.__annotations__)


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a value breaks, at a location inside it."""

    location: Location
    message: str
    hint: str = ""


def case_breaches(case: dict[str, Any]) -> Iterator[Breach]:
    """What is wrong with a case whose fields are all right. `case` is what `EvalCase` validated."""
    conversation, scenario = case.get("conversation"), case.get("conversation_scenario")
    if conversation is None and scenario is None:
        yield Breach((), "a case needs `conversation` or `conversation_scenario`, and this one has neither")
    elif conversation is not None and scenario is not None:
        yield Breach(
            ("conversation_scenario",), "a case has either `conversation` or `conversation_scenario`, never both"
        )
    for number, invocation in enumerate(conversation or ()):
        for breach in invocation_breaches(invocation):
            yield Breach(("conversation", number, *breach.location), breach.message, breach.hint)
    persona = scenario.get("user_persona") if scenario else None
    if isinstance(persona, str) and persona not in PREBUILT_PERSONAS:
        yield Breach(
            ("conversation_scenario", "user_persona"),
            f"no prebuilt persona is called {persona!r}",
            f"There are {', '.join(PREBUILT_PERSONAS)}, or an object with id, description and behaviors",
        )


def invocation_breaches(invocation: dict[str, Any]) -> Iterator[Breach]:
    """The same for one turn. `invocation` is what `Invocation` validated."""
    data = invocation.get("intermediate_data")
    if data and "invocation_events" in data and len(data) > 1:
        other = next(key for key in data if key != "invocation_events")
        yield Breach(
            ("intermediate_data", other),
            f"`{other}` beside `invocation_events`: these are two ways to write the same thing",
            "Keep `invocation_events`, or `tool_uses`, `tool_responses` and `intermediate_responses`",
        )


def normal_invocation(invocation: dict[str, Any]) -> dict[str, Any]:
    """A validated turn as it moves at run time: no nulls, no keys that ADK drops, plain JSON values."""
    tidy: dict[str, Any] = normal(invocation)
    events = tidy.get("intermediate_data", {}).get("invocation_events")
    for event in events or ():
        for key in event.keys() - _EVENT_KEYS:
            del event[key]
    return tidy


def normal(value: Any) -> Any:
    """A validated value as JSON data without nulls; what belongs to the user (arguments, state) stays untouched."""
    if isinstance(value, dict):
        return {key: item if key in _OPAQUE else normal(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [normal(item) for item in value]
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode("ascii")
    return value
