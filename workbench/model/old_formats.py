"""ADK's two formats from before today's schema, read as ADK reads them.

*old_evalset*: a list of `{name, data: [turn…], initial_session?}`, each a case. *old_test*: a bare list of turns, all
of one case. A turn is `{query, reference?, expected_tool_use?, expected_intermediate_agent_responses?}`.

ADK gives the turns random ids and the time of reading; here they have neither, so that the same file is the same case
tomorrow. Where ADK would stop with a KeyError or TypeError of its converter, there is a breach at the place.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from workbench.model.breaches import Breach, nearest
from workbench.model.evalset_schema import SessionInput
from workbench.model.faults import Fault
from workbench.model.json_nodes import Node
from workbench.model.locating import faults_of
from workbench.model.places import Location, Places
from workbench.model.schema_words import breaches_of, describe

OldFormat = Literal["old_evalset", "old_test"]
Case = dict[str, Any]

_CASE_KEYS = frozenset({"name", "data", "initial_session"})
_TURN_KEYS = frozenset({"query", "reference", "expected_tool_use", "expected_intermediate_agent_responses"})
_TOOL_KEYS = frozenset({"tool_name", "tool_input"})
_RESPONSE_KEYS = frozenset({"author", "text"})
_SESSION_KEYS = frozenset({"app_name", "user_id", "state"})


def old_format_of(content: Any) -> OldFormat | None:
    """Which old format a file's content is in; None if it is in neither."""
    if not isinstance(content, list):
        return None
    objects = [item for item in content if isinstance(item, dict)]
    if any("query" in item for item in objects):
        return "old_test"
    if not content or any(map(_is_old_case, objects)):
        return "old_evalset"
    return "old_test" if any(nearest(key, _TURN_KEYS) for item in objects for key in item) else None


def _is_old_case(item: dict[str, Any]) -> bool:
    """Whether an object looks like an old case: turns below `data`, or no other keys than an old case has."""
    turns = item.get("data")
    if isinstance(turns, list) and turns:
        return any(not isinstance(turn, dict) or any(nearest(key, _TURN_KEYS) for key in turn) for turn in turns)
    return "data" in item or ("name" in item and all(nearest(key, _CASE_KEYS) for key in item))


def convert_case(item: Any, index: int) -> tuple[Case | None, list[Breach]]:
    """One item of an old evalset as a case of today's schema, None where ADK would fail on it, with what is wrong or
    odd at locations in the file."""
    reader = _OldReader()
    case = reader.case(item, (index,))
    return (None if reader.failed else case), reader.breaches


def convert_test(
    content: Any, eval_id: str, initial_session: dict[str, Any] | None
) -> tuple[Case | None, list[Breach]]:
    """The turns of an old test file as the one case that they are; None and breaches as in `convert_case`."""
    reader = _OldReader()
    case: Case = {"eval_id": eval_id, "conversation": reader.turns(content, ())}
    if initial_session:
        case["session_input"] = reader.session(initial_session, ())
    if not content:
        reader.wrong((), "the list is empty: a test file needs at least one turn")
    return (None if reader.failed else case), reader.breaches


def session_input(content: dict[str, Any]) -> dict[str, Any]:
    """What ADK makes of an initial session."""
    return {
        "app_name": content.get("app_name", ""),
        "user_id": content.get("user_id", ""),
        "state": content.get("state", {}),
    }


class _OldReader:
    """Converts, and notes what is wrong; what it returns is of use only if nothing `failed`."""

    def __init__(self) -> None:
        self.breaches: list[Breach] = []
        self._dropped: set[str] = set()

    @property
    def failed(self) -> bool:
        return any(breach.severity == "error" for breach in self.breaches)

    def wrong(self, location: Location, message: str) -> None:
        self.breaches.append(Breach(location, message))

    def case(self, item: Any, location: Location) -> Case:
        case: Case = {"eval_id": "", "conversation": []}
        if not self._object(item, location, "a case of the old format: an object with `name` and `data`"):
            return case
        if self._has(item, "name", location, _CASE_KEYS):
            case["eval_id"] = item["name"]
            if not isinstance(item["name"], str):
                self.wrong((*location, "name"), f"`name` must be text, not {describe(item['name'])}")
        if self._has(item, "data", location, _CASE_KEYS):
            case["conversation"] = self.turns(item["data"], (*location, "data"))
        session = item.get("initial_session", {})
        if session is None or isinstance(session, (bool, int, float)):
            self.wrong((*location, "initial_session"), f"`initial_session` must be an object, not {describe(session)}")
        elif session:
            case["session_input"] = self.session(session, (*location, "initial_session"))
        self._drops(item, _CASE_KEYS, location)
        return case

    def session(self, session: Any, location: Location) -> dict[str, Any]:
        if not self._object(session, location, "an object with `app_name`, `user_id` and `state`"):
            return {}
        made = session_input(session)
        for breach in breaches_of(SessionInput, made):
            self.breaches.append(Breach((*location, *breach.location), breach.message, breach.hint))
        self._drops(session, _SESSION_KEYS, location)
        return made

    def turns(self, data: Any, location: Location) -> list[dict[str, Any]]:
        return [self._turn(item, (*location, number)) for number, item in enumerate(self._items(data, location))]

    def _turn(self, item: Any, location: Location) -> dict[str, Any]:
        if not self._object(item, location, "a turn: an object with `query`"):
            return {}
        query = item["query"] if self._has(item, "query", location, _TURN_KEYS) else ""
        made = {
            "user_content": self._content("user", query, (*location, "query")),
            "final_response": self._content("model", item.get("reference", ""), (*location, "reference")),
            "intermediate_data": {
                "tool_uses": list(self._tool_uses(item, location)),
                "intermediate_responses": list(self._responses(item, location)),
            },
        }
        self._drops(item, _TURN_KEYS, location)
        return made

    def _content(self, role: str, text: Any, location: Location) -> dict[str, Any]:
        self._text(text, location)
        return {"role": role, "parts": [{} if text is None else {"text": text}]}

    def _tool_uses(self, turn: dict[str, Any], location: Location) -> Iterator[dict[str, Any]]:
        place = (*location, "expected_tool_use")
        for number, item in enumerate(self._items(turn.get("expected_tool_use", []), place)):
            here = (*place, number)
            if not self._object(item, here, "a tool call: an object with `tool_name` and `tool_input`"):
                continue
            call = {}
            if self._has(item, "tool_name", here, _TOOL_KEYS):
                self._text(item["tool_name"], (*here, "tool_name"))
                call["name"] = item["tool_name"]
            if self._has(item, "tool_input", here, _TOOL_KEYS):
                call["args"] = item["tool_input"]
                if not isinstance(item["tool_input"], dict | None):
                    found = describe(item["tool_input"])
                    self.wrong((*here, "tool_input"), f"`tool_input` must be an object, not {found}")
            self._drops(item, _TOOL_KEYS, here)
            yield {key: value for key, value in call.items() if value is not None}

    def _responses(self, turn: dict[str, Any], location: Location) -> Iterator[list[Any]]:
        place = (*location, "expected_intermediate_agent_responses")
        for number, item in enumerate(self._items(turn.get("expected_intermediate_agent_responses", []), place)):
            here = (*place, number)
            if not self._object(item, here, "a response: an object with `author` and `text`"):
                continue
            author = item["author"] if self._has(item, "author", here, _RESPONSE_KEYS) else ""
            text = item["text"] if self._has(item, "text", here, _RESPONSE_KEYS) else ""
            if not isinstance(author, str):
                self.wrong((*here, "author"), f"`author` must be text, not {describe(author)}")
            self._text(text, (*here, "text"))
            self._drops(item, _RESPONSE_KEYS, here)
            yield [author, [{} if text is None else {"text": text}]]

    # Checks

    def _items(self, value: Any, location: Location) -> list[Any]:
        if isinstance(value, list):
            return value
        if value not in ("", {}):  # ADK only loops over it, and those are over at once
            name = f"`{location[-1]}`" if location else "this"
            self.wrong(location, f"{name} must be a list, not {describe(value)}")
        return []

    def _object(self, value: Any, location: Location, wanted: str) -> bool:
        if not isinstance(value, dict):
            self.wrong(location, f"this must be {wanted}, not {describe(value)}")
        return isinstance(value, dict)

    def _has(self, item: dict[str, Any], key: str, location: Location, known: frozenset[str]) -> bool:
        if key not in item:
            meant_by = next((other for other in item if other not in known and nearest(other, known) == key), None)
            place = location if meant_by is None else (*location, meant_by)
            hint = f"Did you mean `{key}` by `{meant_by}`?" if meant_by else ""
            self.breaches.append(Breach(place, f"`{key}` is missing", hint, on_key=meant_by is not None))
        return key in item

    def _text(self, value: Any, location: Location) -> None:
        if value is not None and not isinstance(value, str):
            self.wrong(location, f"`{location[-1]}` must be text, not {describe(value)}")

    def _drops(self, item: dict[str, Any], known: frozenset[str], location: Location) -> None:
        """Warn of keys that ADK does not read, of each once a file: mock outputs stand on every call."""
        for key in item:
            if key in known or key in self._dropped:
                continue
            self._dropped.add(key)
            meant = nearest(key, known - item.keys())
            already = any(breach.location == (*location, key) for breach in self.breaches)
            if not already:
                hint = f"Did you mean `{meant}`?" if meant else ""
                message = f"the old format does not know the key `{key}` here: ADK drops it"
                self.breaches.append(Breach((*location, key), message, hint, "warning", on_key=True))


class OldCases:
    """Cases by position, like `current_cases.CurrentCases`; all are converted at once: such files are small."""

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
        """`tree` is asked for when there is a fault to be placed."""
        self.format = kind
        self._path = path
        self._tree = cache(tree)
        self._places = places
        self._content = content
        if kind == "old_test":
            self._converted = [convert_test(self._content, name, session)]
        else:
            self._converted = [convert_case(item, number) for number, item in enumerate(self._content)]
        self.ids = [name] if kind == "old_test" else self._names()

    def look(self, number: int, *, warnings: bool = True) -> tuple[dict[str, Any] | None, list[Fault]]:
        """The case at a position, in today's schema, and its faults."""
        case, breaches = self._converted[number]
        wanted = [breach for breach in breaches if warnings or breach.severity == "error"]
        return case, list(faults_of(self._path, wanted, self._tree(), self._places)) if wanted else []

    def raw(self, number: int) -> Any:
        """The JSON that the case was made of."""
        return self._content if self.format == "old_test" else self._content[number]

    def text(self, number: int) -> bytes:
        """The JSON that the case was made of, as text."""
        return json.dumps(self.raw(number)).encode()

    def mentions(self, word: str) -> bool:
        """Whether a word stands anywhere in the file."""
        return word in json.dumps(self._content, ensure_ascii=False)

    def fault(self, number: int, breach: Breach) -> Fault:
        """Something that is wrong with the case at a position, as a fault at its place."""
        above: Location = () if self.format == "old_test" else (number,)
        location = tuple("name" if step == "eval_id" else step for step in breach.location)
        moved = Breach((*above, *location), breach.message, breach.hint, breach.severity, breach.on_key)
        return next(faults_of(self._path, [moved], self._tree(), self._places))

    def _names(self) -> list[str]:
        names = [item.get("name") if isinstance(item, dict) else None for item in self._content]
        return [name if isinstance(name, str) else "" for name in names]
