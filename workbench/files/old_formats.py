"""ADK's two formats older than the current schema, read as ADK reads them.

*old_evalset*: a list of `{name, data: [turn…], initial_session?}`, each one a case. *old_test*: a bare list of turns,
all of one case. A turn is `{query, reference?, expected_tool_use?, expected_intermediate_agent_responses?}`.

ADK gives the turns random IDs and the current time. Here they have neither, so the same file always gives the same
case. A value for which ADK's converter would raise a KeyError or TypeError is a breach.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypeAlias, TypeVar

from pydantic import BeforeValidator, with_config
from typing_extensions import TypedDict

from workbench.files.breaches import breaches_of, describe, faults_of, known_keys, type_at, unread_keys
from workbench.files.faults import Breach, Fault, Location, Places, below, nearest, nearest_hint
from workbench.files.json_text.json_nodes import Node
from workbench.files.schema import PLAIN, SessionInput

OldFormat = Literal["old_evalset", "old_test"]
Case = dict[str, Any]

Item = TypeVar("Item")
# ADK only loops over these, so an empty text or object works like an empty list.
Items: TypeAlias = Annotated[list[Item], BeforeValidator(lambda value: [] if value in ("", {}) else value)]


@with_config(PLAIN)
class OldToolUse(TypedDict, total=False):
    """An expected tool call."""

    tool_name: Required[str | None]
    tool_input: Required[dict[str, Any] | None]


@with_config(PLAIN)
class OldResponse(TypedDict, total=False):
    """An expected response of a sub-agent."""

    author: Required[str]
    text: Required[str | None]


@with_config(PLAIN)
class OldTurn(TypedDict, total=False):
    """One turn."""

    query: Required[str | None]
    reference: str | None
    expected_tool_use: Items[OldToolUse]
    expected_intermediate_agent_responses: Items[OldResponse]


@with_config(PLAIN)
class OldCase(TypedDict, total=False):
    """One case of an old evalset."""

    name: Required[str]
    data: Required[Items[OldTurn]]
    initial_session: Any
    """An object with `app_name`, `user_id` and `state`. An empty object, list or text means no session."""


@with_config(PLAIN)
class OldSession(TypedDict, total=False):
    """An initial session."""

    app_name: Any
    user_id: Any
    state: Any


_OBJECTS = {
    OldCase: "a case of the old format: an object with `name` and `data`",
    OldTurn: "a turn: an object with `query`",
    OldToolUse: "a tool call: an object with `tool_name` and `tool_input`",
    OldResponse: "a response: an object with `author` and `text`",
    OldSession: "an object with `app_name`, `user_id` and `state`",
}
_CASE_KEYS, _TURN_KEYS = known_keys(OldCase), known_keys(OldTurn)


def old_format_of(content: Any) -> OldFormat | None:
    """Return the old format of a file's content, or None if it has neither."""
    if not isinstance(content, list):
        return None
    objects = [item for item in content if isinstance(item, dict)]
    if any("query" in item for item in objects):
        return "old_test"
    if not content or any(map(_is_old_case, objects)):
        return "old_evalset"
    return "old_test" if any(nearest(key, _TURN_KEYS) for item in objects for key in item) else None


def _is_old_case(item: dict[str, Any]) -> bool:
    """Return whether an object looks like an old case.

    With `data`, it does unless `data` is a non-empty list of objects, none of which has a key of a turn. Without
    `data`, it needs a `name` and only keys of an old case. Misspelled keys count, too.
    """
    turns = item.get("data")
    if isinstance(turns, list) and turns:
        return any(not isinstance(turn, dict) or any(nearest(key, _TURN_KEYS) for key in turn) for turn in turns)
    return "data" in item or ("name" in item and all(nearest(key, _CASE_KEYS) for key in item))


def _convert_case(item: Any, index: int) -> tuple[Case | None, list[Breach]]:
    """Return one item of an old evalset as a case in the current schema, with its errors and warnings.

    The case is None if ADK would reject it. Breaches have their locations in the file.
    """
    session = item.get("initial_session", {}) if isinstance(item, dict) else {}
    breaches = _breaches_of(OldCase, item)
    if session is None or isinstance(session, (bool, int, float)):
        message = f"`initial_session` must be an object, not {describe(session)}"
        breaches.append(Breach(("initial_session",), message))
    elif session:
        breaches += below(("initial_session",), _session_breaches(session))
    if _has_error(breaches):
        return None, list(below((index,), breaches))
    case = {"eval_id": item["name"], "conversation": list(map(_turn, item["data"]))}
    if session:
        case["session_input"] = session_input(session)
    return case, list(below((index,), breaches))


def _convert_test(
    content: Any, eval_id: str, initial_session: dict[str, Any] | None
) -> tuple[Case | None, list[Breach]]:
    """Return the turns of an old test file as one case. The result has the same form as that of `_convert_case`."""
    breaches = _breaches_of(list[OldTurn], content)
    if initial_session:
        breaches += _session_breaches(initial_session)
    if not content:
        breaches.append(Breach((), "the list is empty; a test file needs at least one turn"))
    if _has_error(breaches):
        return None, breaches
    case: Case = {"eval_id": eval_id, "conversation": list(map(_turn, content))}
    if initial_session:
        case["session_input"] = session_input(initial_session)
    return case, breaches


def session_input(content: dict[str, Any]) -> dict[str, Any]:
    """Return the session input that ADK creates from an initial session."""
    return {
        "app_name": content.get("app_name", ""),
        "user_id": content.get("user_id", ""),
        "state": content.get("state", {}),
    }


def _turn(turn: dict[str, Any]) -> dict[str, Any]:
    calls = [{"name": call["tool_name"], "args": call["tool_input"]} for call in turn.get("expected_tool_use") or ()]
    responses = turn.get("expected_intermediate_agent_responses") or ()
    return {
        "user_content": {"role": "user", "parts": _parts(turn["query"])},
        "final_response": {"role": "model", "parts": _parts(turn.get("reference", ""))},
        "intermediate_data": {
            "tool_uses": [{key: value for key, value in call.items() if value is not None} for call in calls],
            "intermediate_responses": [[item["author"], _parts(item["text"])] for item in responses],
        },
    }


def _parts(text: str | None) -> list[dict[str, Any]]:
    return [{} if text is None else {"text": text}]


def _session_breaches(session: Any) -> list[Breach]:
    breaches = _breaches_of(OldSession, session)
    return breaches if _has_error(breaches) else [*breaches_of(SessionInput, session_input(session)), *breaches]


def _breaches_of(schema: Any, value: Any) -> list[Breach]:
    """Return the errors in a value of an old format, and one warning for each key name that ADK ignores.

    Such keys (mock outputs, for example) are often on every call.
    """
    breaches = []
    for breach in breaches_of(schema, value):
        words = _OBJECTS.get(type_at(schema, breach.location))
        message = breach.message.replace("must be an object", f"must be {words}") if words else breach.message
        breaches.append(replace(breach, message=message))
    reported = {breach.location: "" for breach in breaches}
    for location, known in unread_keys(schema, value):
        key = str(location[-1])
        if location not in reported and key not in reported.values():
            reported[location] = key
            message = f"the old format has no key `{key}` here: ADK ignores it"
            breaches.append(Breach(location, message, nearest_hint(key, known), "warning", on_key=True))
    return breaches


def _has_error(breaches: list[Breach]) -> bool:
    return any(breach.severity == "error" for breach in breaches)


class OldCases:
    """Cases by position, like `current_cases.CurrentCases`. All are converted at once, because such files are small."""

    def __init__(
        self,
        path: Path,
        content: list[Any],
        tree: Callable[[], Node],
        places: Places,
        kind: OldFormat,
        name: str,
        session: dict[str, Any] | None,
    ) -> None:
        """Convert the cases. `tree` is called only if a fault needs a place."""
        self.format = kind
        self._path = path
        self._tree = cache(tree)
        self._places = places
        self._content = content
        if kind == "old_test":
            self.ids = [name]
            self._converted = [_convert_test(content, name, session)]
        else:
            self._converted = [_convert_case(item, number) for number, item in enumerate(content)]
            names = (item.get("name") if isinstance(item, dict) else None for item in content)
            self.ids = [name if isinstance(name, str) else "" for name in names]

    def read_case(self, number: int, *, warnings: bool = True) -> tuple[dict[str, Any] | None, list[Fault]]:
        """Return the case at a position in the current schema (None if ADK would reject it), and its faults."""
        case, breaches = self._converted[number]
        wanted = [breach for breach in breaches if warnings or breach.severity == "error"]
        return case, list(faults_of(self._path, wanted, self._tree(), self._places)) if wanted else []

    def raw(self, number: int) -> Any:
        """Return the JSON that the case was made from."""
        return self._content if self.format == "old_test" else self._content[number]

    def text(self, number: int) -> bytes:
        """Return the JSON that the case was made from, as text."""
        return json.dumps(self.raw(number)).encode()

    def mentions(self, word: str) -> bool:
        """Return whether a word occurs anywhere in the file."""
        return word in json.dumps(self._content, ensure_ascii=False)

    def fault(self, number: int, breach: Breach) -> Fault:
        """Convert a breach of the case at a position to a fault with its place in the file."""
        above: Location = () if self.format == "old_test" else (number,)
        location = tuple("name" if step == "eval_id" else step for step in breach.location)
        moved = Breach((*above, *location), breach.message, breach.hint, breach.severity, breach.on_key)
        return next(faults_of(self._path, [moved], self._tree(), self._places))
