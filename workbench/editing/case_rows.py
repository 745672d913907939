"""A case as rows for review and editing, each with its location in the JSON.

Rows are read from the case's JSON as it is in the file. Both spellings of keys and both forms of steps work:
`tool_uses` as written by hand, and `invocation_events` as ADK records them. A value of unexpected form becomes one row
with its JSON, so the user can fix it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from workbench.files.faults import Location
from workbench.files.spelling import get, is_camel, key_for, key_in

Kind: TypeAlias = Literal[
    "id", "turn", "user", "answer", "call", "args", "response", "text", "rubric", "scenario", "session", "odd", "frame"
]
Form: TypeAlias = Literal["heading", "word", "text", "json"]
"""Way to edit the value: read-only, on one line, over several lines, or as JSON."""


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One row of a case.

    `location` is the place of the value, or its future place if it is `missing`. `unit` is the item that is deleted,
    duplicated or moved with the row: the call, message, rubric or turn. `turn` counts from 0, or is None outside of
    turns. `author` is the agent of a call or text, the tool of a response, or the ID of a rubric; "" if unknown. Texts
    are raw, not yet safe for a terminal.
    """

    location: Location
    kind: Kind
    name: str
    value: Any
    form: Form
    unit: Location
    turn: int | None = None
    author: str = ""
    missing: bool = False


def rows_of(case: Any) -> list[CaseRow]:
    """Return the rows of a case: ID, turns or scenario, rubrics, session, final state."""
    return list(_Reader(case).rows()) if isinstance(case, dict) else [_odd((), "case", case, None)]


def frame_rows(frame: dict[str, Any]) -> list[CaseRow]:
    """Return the rows of an evalset's own fields: ID, name and description. `frame` is snake_case."""
    forms: dict[str, Form] = {"eval_set_id": "word", "name": "word", "description": "text"}
    return [
        CaseRow((key,), "frame", key.removeprefix("eval_set_"), frame.get(key), form, (key,), missing=key not in frame)
        for key, form in forms.items()
    ]


class _Reader:
    def __init__(self, case: dict[str, Any]) -> None:
        self._case = case
        self._camel = is_camel(case)

    def rows(self) -> Iterator[CaseRow]:
        case = self._case
        yield self._field((), case, "eval_id", "id", "word", kind="id")
        if "conversation" in case and case["conversation"] is not None:
            yield from self._each(("conversation",), case["conversation"], "conversation", self._turn, None)
        yield from self._scenario()
        yield from self._rubrics((), case, None)
        yield from self._session()

    def _key(self, value: Any, name: str) -> str:
        return key_for(value, name, camel=self._camel)

    def _field(
        self,
        above: Location,
        value: Any,
        key: str,
        name: str,
        form: Form,
        *,
        kind: Kind,
        unit: Location | None = None,
        turn: int | None = None,
        author: str = "",
    ) -> CaseRow:
        """Return the row of one field of an object."""
        location = (*above, self._key(value, key))
        missing = key_in(value, key) is None
        found = get(value, key)
        if form != "json" and not isinstance(found, str) and found is not None:
            form = "json"
        return CaseRow(location, kind, name, found, form, unit or location, turn, author, missing)

    def _each(
        self,
        location: Location,
        items: Any,
        name: str,
        read: Callable[[Location, dict[str, Any], int | None], Iterator[CaseRow]],
        turn: int | None,
    ) -> Iterator[CaseRow]:
        """Yield the rows of each object in a list. Any other item becomes its own row."""
        if items is None:
            return
        if not isinstance(items, list):
            yield _odd(location, name, items, turn)
            return
        for number, item in enumerate(items):
            if isinstance(item, dict):
                yield from read((*location, number), item, turn)
            else:
                yield _odd((*location, number), name, item, turn)

    def _turn(self, location: Location, turn: dict[str, Any], _: int | None) -> Iterator[CaseRow]:
        number = location[-1]
        assert isinstance(number, int)
        yield CaseRow(location, "turn", f"turn {number + 1}", None, "heading", location, number)
        yield from self._content(location, turn, "user_content", "user", number)
        data = get(turn, "intermediate_data")
        if data is not None:
            yield from self._steps((*location, self._key(turn, "intermediate_data")), data, number)
        yield from self._content(location, turn, "final_response", "answer", number)
        yield from self._rubrics(location, turn, number)

    def _content(self, above: Location, turn: Any, key: str, kind: Kind, number: int) -> Iterator[CaseRow]:
        content = get(turn, key)
        if content is None:
            return
        location = (*above, self._key(turn, key))
        parts = get(content, "parts")
        if not isinstance(parts, list) or not parts:
            yield _odd(location, kind, content, number)
            return
        for place, part in enumerate(parts):
            at = (*location, self._key(content, "parts"), place)
            unit = at if len(parts) > 1 else location
            yield from self._part(at, part, unit, number, "", kind)

    def _steps(self, location: Location, data: Any, turn: int) -> Iterator[CaseRow]:
        if not isinstance(data, dict):
            yield _odd(location, "steps", data, turn)
            return
        for key, read in (("tool_uses", self._call), ("tool_responses", self._response)):
            place = (*location, self._key(data, key))
            yield from self._each(place, get(data, key), key, read, turn)
        texts = get(data, "intermediate_responses")
        yield from self._responses((*location, self._key(data, "intermediate_responses")), texts, turn)
        events = (*location, self._key(data, "invocation_events"))
        yield from self._each(events, get(data, "invocation_events"), "event", self._event, turn)

    def _responses(self, location: Location, items: Any, turn: int) -> Iterator[CaseRow]:
        """Yield the rows of items in the form `[author, [part, …]]`."""
        if items is None:
            return
        if not isinstance(items, list):
            yield _odd(location, "intermediate_responses", items, turn)
            return
        for number, item in enumerate(items):
            at = (*location, number)
            if not (isinstance(item, list) and len(item) == 2 and isinstance(item[1], list) and item[1]):
                yield _odd(at, "text", item, turn)
                continue
            for place, part in enumerate(item[1]):
                inner = (*at, 1, place)
                yield from self._part(inner, part, inner if len(item[1]) > 1 else at, turn, str(item[0]), "text")

    def _event(self, location: Location, event: dict[str, Any], turn: int | None) -> Iterator[CaseRow]:
        content, author = get(event, "content"), str(get(event, "author") or "")
        parts = get(content, "parts")
        if not isinstance(parts, list) or not parts:
            yield _odd(location, "event", event, turn)
            return
        for place, part in enumerate(parts):
            at = (*location, self._key(event, "content"), self._key(content, "parts"), place)
            yield from self._part(at, part, at if len(parts) > 1 else location, turn, author, "text")

    def _part(
        self, at: Location, part: Any, unit: Location, turn: int | None, author: str, kind: Kind
    ) -> Iterator[CaseRow]:
        call, response = get(part, "function_call"), get(part, "function_response")
        if isinstance(call, dict):
            yield from self._call((*at, self._key(part, "function_call")), call, turn, unit, author)
        elif isinstance(response, dict):
            yield from self._response((*at, self._key(part, "function_response")), response, turn, unit, author)
        elif isinstance(get(part, "text"), str):
            name = "thought" if get(part, "thought") is True else kind
            yield self._field(at, part, "text", name, "text", kind=kind, unit=unit, turn=turn, author=author)
        else:
            yield CaseRow(at, "odd", kind, part, "json", unit, turn, author)

    def _call(
        self, location: Location, call: dict[str, Any], turn: int | None, unit: Location | None = None, author: str = ""
    ) -> Iterator[CaseRow]:
        unit = unit or location
        yield self._field(location, call, "name", "call", "word", kind="call", unit=unit, turn=turn, author=author)
        yield self._field(location, call, "args", "args", "json", kind="args", unit=unit, turn=turn)

    def _response(
        self,
        location: Location,
        response: dict[str, Any],
        turn: int | None,
        unit: Location | None = None,
        author: str = "",
    ) -> Iterator[CaseRow]:
        unit = unit or location
        name = get(response, "name")
        author = name if isinstance(name, str) else author
        field = partial(self._field, kind="response", unit=unit, turn=turn, author=author)
        yield field(location, response, "response", "result", "json")

    def _scenario(self) -> Iterator[CaseRow]:
        scenario = get(self._case, "conversation_scenario")
        if scenario is None:
            return
        location = (self._key(self._case, "conversation_scenario"),)
        if not isinstance(scenario, dict):
            yield _odd(location, "scenario", scenario, None)
            return
        field = partial(self._field, location, scenario, kind="scenario")
        yield field("starting_prompt", "prompt", "text")
        yield field("conversation_plan", "plan", "text")
        yield field("user_persona", "persona", "word")

    def _rubrics(self, above: Location, value: Any, turn: int | None) -> Iterator[CaseRow]:
        location = (*above, self._key(value, "rubrics"))
        yield from self._each(location, get(value, "rubrics"), "rubric", self._rubric, turn)

    def _rubric(self, location: Location, rubric: dict[str, Any], turn: int | None) -> Iterator[CaseRow]:
        content = get(rubric, "rubric_content")
        inner = (*location, self._key(rubric, "rubric_content"))
        name = get(rubric, "rubric_id")
        author = name if isinstance(name, str) else ""
        field = partial(self._field, kind="rubric", unit=location, turn=turn)
        if isinstance(content, dict):
            yield field(inner, content, "text_property", "rubric", "text", author=author)
        else:
            yield _odd(location, "rubric", rubric, turn)
        yield field(location, rubric, "rubric_id", "  id", "word")
        yield field(location, rubric, "type", "  type", "word")

    def _session(self) -> Iterator[CaseRow]:
        session = get(self._case, "session_input")
        location = (self._key(self._case, "session_input"),)
        if isinstance(session, dict):
            field = partial(self._field, location, session, kind="session")
            yield field("app_name", "app", "word", unit=location)
            yield field("user_id", "user id", "word", unit=location)
            if key_in(session, "session_id") is not None:
                yield field("session_id", "session id", "word")
            yield field("state", "state", "json")
        elif session is not None:
            yield _odd(location, "session", session, None)
        if get(self._case, "final_session_state") is not None:
            yield self._field((), self._case, "final_session_state", "final state", "json", kind="session")


def _odd(location: Location, name: str, value: Any, turn: int | None) -> CaseRow:
    return CaseRow(location, "odd", name, value, "json", location, turn)
