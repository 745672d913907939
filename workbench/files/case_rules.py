"""ADK's rules for a case that span several fields.

`schema` validates the single fields first. The rules here: `intermediate_data` uses only one of its two shapes,
a case has exactly one of `conversation` and `conversation_scenario`, and a named persona exists.
"""

import difflib
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from pydantic.alias_generators import to_camel

from workbench.files.breaches import breaches_of, unread_keys
from workbench.files.faults import Breach, below, nearest, nearest_hint
from workbench.files.schema import PREBUILT_PERSONAS, EvalCase, InvocationEvent, SessionEvent, SessionInput, UserPersona
from workbench.files.spelling import get

_CASE_KEYS = frozenset(EvalCase.__annotations__)
_SESSION_KEYS = frozenset(SessionInput.__annotations__)
_EVENT_KEYS = frozenset(InvocationEvent.__annotations__)
_SESSION_EVENT_KEYS = frozenset(SessionEvent.__annotations__)
_MOST_COMPARED = 200
"""Maximum number of unknown keys of one object that are compared with the known ones; each comparison takes time."""
_EDITOR_KEYS = frozenset({"invocationIndex", "toolUseIndex"})
"""Keys that ADK's own web editor leaves on events. Nothing reads them."""


def case_breaches(case: dict[str, Any]) -> Iterator[Breach]:
    """Yield the errors and warnings of a case that `EvalCase` validated."""
    conversation, scenario = case.get("conversation"), case.get("conversation_scenario")
    odd_keys = case.keys() - _CASE_KEYS
    if conversation is None and scenario is None:
        yield _neither(odd_keys)
    elif conversation is not None and scenario is not None:
        message = "a case may have `conversation` or `conversation_scenario`, but this case has both"
        yield Breach(("conversation_scenario",), message, on_key=True)
    elif conversation == []:
        yield Breach(("conversation",), "the conversation has no turns, so there is nothing to judge", "", "warning")
    yield from mistyped(odd_keys, _CASE_KEYS)
    session = case.get("session_input") or {}
    yield from below(("session_input",), mistyped(session.keys() - _SESSION_KEYS, _SESSION_KEYS))
    for number, event in enumerate(session.get("events") or ()):
        place = ("session_input", "events", number)
        if not event["author"]:
            hint = 'Write "user", "model", or the name of an agent'
            yield Breach((*place, "author"), "this event has no author", hint)
        yield from below(place, mistyped(event.keys() - _SESSION_EVENT_KEYS, _SESSION_EVENT_KEYS))
    for number, invocation in enumerate(conversation or ()):
        yield from below(("conversation", number), invocation_breaches(invocation))
    if scenario and scenario.get("user_persona") is not None:
        yield from below(("conversation_scenario", "user_persona"), _persona_breaches(scenario["user_persona"]))


def invocation_breaches(invocation: dict[str, Any]) -> Iterator[Breach]:
    """Yield the errors and warnings of a turn that `Invocation` validated."""
    data = invocation.get("intermediate_data")
    if not data or "invocation_events" not in data:
        return
    hint = "Keep `invocation_events`, or `tool_uses`, `tool_responses` and `intermediate_responses`"
    for other in data.keys() - {"invocation_events"}:
        message = f"`{other}` and `invocation_events` both hold the steps of this turn"
        yield Breach(("intermediate_data", other), message, hint, on_key=True)
    for number, event in enumerate(data["invocation_events"]):
        for key in event.keys() - _EVENT_KEYS - _EDITOR_KEYS:
            yield dropped(("intermediate_data", "invocation_events", number, key), _EVENT_KEYS)


def dropped(location: tuple[str | int, ...], known: frozenset[str]) -> Breach:
    """Return the warning for a key (the last step of `location`) that ADK ignores."""
    key = str(location[-1])
    hint = nearest_hint(key, known)
    return Breach(location, f"ADK does not know the key `{key}` here and drops it", hint, "warning", on_key=True)


def dropped_keys(schema: Any, value: Any) -> Iterator[Breach]:
    """Yield a warning for each key of a value that ADK ignores."""
    return (dropped(location, known) for location, known in unread_keys(schema, value))


def two_spellings(case: Any) -> Iterator[Breach]:
    """Yield a warning for each key that a case (JSON) or its session input has in both snake_case and camelCase."""
    session = get(case, "session_input")
    for location, value, known in (((), case, _CASE_KEYS), (("session_input",), session, _SESSION_KEYS)):
        for key in sorted(value.keys() & known) if isinstance(value, dict) else ():
            camel = to_camel(key)
            if key != camel and camel in value:
                message = f"`{key}` and `{camel}` are the same key in two spellings: ADK reads `{camel}`"
                yield Breach((*location, key), message, "Keep one", "warning", on_key=True)


def _neither(odd_keys: set[str]) -> Breach:
    message = "this case has neither `conversation` nor `conversation_scenario`"
    for key in islice(odd_keys, _MOST_COMPARED):
        if meant := nearest(key, frozenset({"conversation", "conversation_scenario"})):
            return Breach((key,), message, f"Did you mean `{meant}` instead of `{key}`?", on_key=True)
    return Breach((), message)


def mistyped(odd_keys: Iterable[str], known: Collection[str]) -> Iterator[Breach]:
    """Yield a warning for each key that is kept but that nothing reads, if it looks misspelled."""
    for key in islice(odd_keys, _MOST_COMPARED):
        meant = nearest(key, known)
        if meant and meant not in ("conversation", "conversation_scenario"):
            message = f"`{key}` is kept, but nothing reads it"
            yield Breach((key,), message, f"Did you mean `{meant}`?", "warning", on_key=True)


def _persona_breaches(persona: Any) -> Iterator[Breach]:
    if isinstance(persona, str):
        if persona not in PREBUILT_PERSONAS:
            known = ", ".join(PREBUILT_PERSONAS)
            meant = difflib.get_close_matches(persona.upper(), PREBUILT_PERSONAS, n=1)
            hint = f"Did you mean {meant[0]}?" if meant else f"Use one of {known}, or write an object"
            yield Breach((), f"`{persona}` is not a prebuilt persona", hint)
        return
    yield from breaches_of(UserPersona, persona) or dropped_keys(UserPersona, persona)
