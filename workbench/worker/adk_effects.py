"""Everything that an ADK tool does through its context: changed state, saved artifacts and other actions.

These effects are recorded around the call itself. The events of a turn do not show them, because ADK merges the actions
of parallel calls into one event, with those of the callbacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from google.adk.events.event_actions import EventActions
from google.genai import types

from .calls import Calls
from .jsonable import digest, dumps
from .value_forms import UnknownFormError, decoded, encoded_text

_OWN_CALL = "$call"
"""Placeholder for the ID of the function call, which differs in each conversation."""
_SEPARATE = {"state_delta", "artifact_delta"}
_MOST_VERSIONS = 100


class Effects:
    """The actions and the state of a context before a call, to find what the call changes. The context may be None."""

    def __init__(self, context: Any) -> None:
        actions = EventActions() if context is None else context.actions
        # As text, because a tool may change a value in place.
        self._state = {name: dumps(value) for name, value in actions.state_delta.items()}
        values = _session_state(context).items()
        self._values = {name: (value, dumps(value)) for name, value in values if type(value) in (list, dict, set)}
        self._artifacts = dict(actions.artifact_delta)
        self._actions = _others(actions)

    async def taken(self, context: Any, calls: Calls | None) -> dict[str, Any] | None:
        """Return the effects of the call, or None without effects, context or `calls`. `calls` stores their values.

        Raises:
            LookupError: a saved artifact cannot be loaded.
            TooLargeError: a value is too large to be stored.
            TypeError: a value can be read only once, such as a generator.
            Exception: any exception of the artifact service.
        """
        if calls is None or context is None:
            return None
        actions = context.actions
        found: dict[str, Any] = {}
        state = {
            name: value
            for name, value in actions.state_delta.items()
            if name not in self._state or self._state[name] != dumps(value)
        }
        if state:
            found["state"] = calls.text_piece(encoded_text(state))
        # Before google-adk 2.13, a change in place is in no delta and is gone after the turn.
        now = _session_state(context)
        in_place = {
            name: value
            for name, (value, text) in self._values.items()
            if name not in state and now.get(name) is value and dumps(value) != text
        }
        if in_place:
            found["in_place"] = calls.text_piece(encoded_text(in_place))
        saved = {
            name: version for name, version in actions.artifact_delta.items() if self._artifacts.get(name) != version
        }
        if saved:
            found["artifacts"] = [await _artifact(context, calls, name, version) for name, version in saved.items()]
        others = {name: value for name, value in _others(actions).items() if self._actions.get(name) != value}
        if others:
            found["actions"] = calls.piece(_with_call(others, context.function_call_id, _OWN_CALL))
        return found or None

    async def apply(self, effects: dict[str, Any], context: Any) -> None:
        """Apply the effects of a recorded call, if there is a context. Raise UnknownFormError if one cannot be read."""
        if context is None:
            return
        for name, value in (effects.get("state") or {}).items():
            context.state[name] = decoded(value)
        for name, value in (effects.get("in_place") or {}).items():
            _change(_session_state(context), name, decoded(value))
        for artifact in effects.get("artifacts") or ():
            await _save(context, artifact)
        recorded = _with_call(effects.get("actions") or {}, _OWN_CALL, context.function_call_id)
        if recorded:
            _apply_actions(context.actions, recorded)


def _session_state(context: Any) -> dict[str, Any]:
    """Return the session's own state, from which tools get values, or {} without a session."""
    state = getattr(getattr(getattr(context, "_invocation_context", None), "session", None), "state", None)
    return state if isinstance(state, dict) else {}


def _change(state: dict[str, Any], name: str, value: Any) -> None:
    """Replace a value of the state: in place if its type stays, because other code may refer to the same object."""
    before = state.get(name)
    if isinstance(before, list) and isinstance(value, list):
        before[:] = value
    elif isinstance(before, (dict, set)) and type(before) is type(value):
        before.clear()
        before.update(value)
    else:
        state[name] = value


def _others(actions: Any) -> dict[str, Any]:
    """Return all set actions except state and artifacts, as JSON data."""
    fields = vars(actions).items()
    found = {name: value for name, value in fields if not (value is None or value in ({}, []) or name in _SEPARATE)}
    # Most calls set none of them.
    return json.loads(dumps(found)) if found else found


def _with_call(actions: dict[str, Any], old: str | None, new: str | None) -> dict[str, Any]:
    """Return the actions with the call's ID `old` replaced by `new` where it is a key in one of them."""
    return {
        name: {(new if key == old else key): item for key, item in value.items()} if isinstance(value, dict) else value
        for name, value in actions.items()
    }


async def _artifact(context: Any, calls: Calls, name: str, version: int) -> dict[str, Any]:
    part = await context.load_artifact(name, version)
    if part is None:
        raise LookupError(f"the artifact {name} cannot be loaded")
    content = part.model_dump(mode="json", exclude_none=True)
    mime = next((data.mime_type for data in (part.inline_data, part.file_data) if data is not None), None)
    return {"name": name, "version": version, "mime": mime or "text/plain", "content": calls.piece(content)}


async def artifact_digests(context: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the digest of each artifact's newest version, or "" if it is missing.

    Return {} if ADK raises ValueError for one of them, as it does without an artifact service.
    """
    found: dict[str, str] = {}
    for name in names:
        try:
            part = await context.load_artifact(name)
        except ValueError:
            return {}
        found[name] = "" if part is None else digest(dumps(part.model_dump(mode="json", exclude_none=True)))
    return found


async def _save(context: Any, artifact: dict[str, Any]) -> None:
    """Save a recorded artifact until its version is the recorded one. Raise UnknownFormError if it cannot be read."""
    try:
        part = types.Part.model_validate_json(json.dumps(artifact["content"]))
    except ValueError as error:
        raise UnknownFormError(
            f"the content of the artifact {artifact['name']} is no part of a message: {error}"
        ) from None
    version = artifact.get("version")
    for _ in range(_MOST_VERSIONS):
        saved = await context.save_artifact(artifact["name"], part)
        if version is None or saved >= version:
            return


def _apply_actions(actions: Any, recorded: dict[str, Any]) -> None:
    known: list[str] = [name for name in recorded if name in EventActions.model_fields and name not in _SEPARATE]
    try:
        made = EventActions.model_validate({name: recorded[name] for name in known})
        if "requested_auth_configs" in known:
            from google.adk.auth.auth_tool import AuthConfig

            # Not a field's type in each version.
            asked = made.requested_auth_configs
            made.requested_auth_configs = {call: AuthConfig.model_validate(config) for call, config in asked.items()}
    except ValueError as error:
        raise UnknownFormError(f"the recorded actions are not valid in ADK: {error}") from None
    for name in known:
        value, before = getattr(made, name), getattr(actions, name)
        if isinstance(value, dict) and isinstance(before, dict):
            before.update(value)
        else:
            setattr(actions, name, value)
