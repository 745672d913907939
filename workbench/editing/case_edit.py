"""Changes of a case's JSON. Each operation returns a new case, and keys keep their spelling.

There are functions for values at a location, for whole parts of a case (move, copy, remove, add), and for find and
replace. Find and replace searches only texts, the names of tools and the arguments of calls. It never changes IDs,
state, the content of tool answers, or keys of the schema.
"""

import copy
import itertools
import json
import uuid
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from workbench.editing.case_rows import CaseRow
from workbench.files.faults import Location, snake
from workbench.files.spelling import get, is_camel, key_for, put, spelled
from workbench.text.json_values import value_at


def with_value(value: Any, location: Location, item: Any) -> Any:
    """Return `value` with `item` at a location.

    Objects on the way that are missing are created, and replace values that are not objects. Lists on the way must
    exist.
    """
    if not location:
        return item
    step, rest = location[0], location[1:]
    if isinstance(step, int):
        items = list(value)
        items[step] = with_value(items[step], rest, item)
        return items
    members = dict(value) if isinstance(value, dict) else {}
    members[step] = with_value(members.get(step), rest, item)
    return members


def with_item(value: Any, location: Location, item: Any) -> Any:
    """Return `value` with an item inserted at a location that ends with the position in a list.

    A missing list is created.

    Raises:
        NotPossibleError: there is another value instead of the list.
    """
    step = location[-1]
    assert isinstance(step, int)  # A position in a list.
    items = value_at(value, location[:-1]) or []
    if not isinstance(items, list):
        raise NotPossibleError(f"`{location[-2]}` is not a list: fix it first (E)")
    return with_value(value, location[:-1], [*items[:step], item, *items[step:]])


def without(value: Any, location: Location) -> Any:
    """Return `value` without the item at a location, or unchanged if there is none."""
    holder, step = value_at(value, location[:-1]), location[-1]
    if isinstance(holder, list) and isinstance(step, int):
        return with_value(value, location[:-1], [*holder[:step], *holder[step + 1 :]])
    if isinstance(holder, dict) and step in holder:
        return with_value(value, location[:-1], {key: item for key, item in holder.items() if key != step})
    return value


def moved(value: Any, location: Location, by: int) -> tuple[Any, Location]:
    """Return `value` with an item of a list or a field of an object moved by `by` positions, and its new location.

    Nothing moves if there is no such position.
    """
    above, step = location[:-1], location[-1]
    holder = value_at(value, above)
    keys: list[Any] = list(range(len(holder)) if isinstance(holder, list) else holder)
    place = keys.index(step) + by
    if not 0 <= place < len(keys):
        return value, location
    keys.insert(place, keys.pop(place - by))
    if isinstance(holder, list):
        return with_value(value, above, [holder[key] for key in keys]), (*above, place)
    return with_value(value, above, {key: holder[key] for key in keys}), location


def free_name(name: str, taken: Container[str]) -> str:
    """Return `name`, or `name` with the first free number: `late_parcel_2`."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one not in taken)


class NotPossibleError(ValueError):
    """The operation is not possible for this row. The message says why."""


def fresh_id() -> str:
    """Return a new ID for a turn: a random UUID, as in ADK."""
    return str(uuid.uuid4())


def can_remove(row: CaseRow) -> bool:
    """Return whether the item of a row can be deleted."""
    return bool(row.unit) and row.kind not in ("id", "frame") and not (row.missing and row.unit == row.location)


def can_duplicate(row: CaseRow) -> bool:
    """Return whether a case or turn can have several items like that of the row."""
    return bool(row.unit) and isinstance(row.unit[-1], int)


def remove(case: Any, row: CaseRow) -> Any:
    """Return the case without the item of a row: a message, a call, a rubric or a turn.

    Raises:
        NotPossibleError: every case has this item, or the item is missing already.
    """
    if row.kind in ("id", "frame"):
        raise NotPossibleError("every case has an id")
    if not can_remove(row):
        raise NotPossibleError("there is nothing here to delete")
    return without(case, row.unit)


def duplicate(case: Any, row: CaseRow) -> tuple[Any, Location]:
    """Return the case with the row's item duplicated, and the location of the copy, which comes right after the item.

    Copies of turns, calls and rubrics get new IDs, because IDs must be unique. A call without an ID gets none.

    Raises:
        NotPossibleError: a case or turn can have only one such item.
    """
    if not can_duplicate(row):
        whole = "a turn" if row.turn is not None else "a case"
        raise NotPossibleError(f"{whole} can only have one of these")
    duplicated = copy.deepcopy(value_at(case, row.unit))
    if row.unit == row.location and row.kind == "turn":
        put(duplicated, "invocation_id", fresh_id(), camel=is_camel(case))
    elif row.kind in ("call", "args"):
        _give_call_an_id(duplicated, value_at(case, row.unit[:-1]), camel=is_camel(case))
    elif row.kind == "rubric":
        taken = [get(rubric, "rubric_id") for rubric in value_at(case, row.unit[:-1])]
        name = free_name(str(get(duplicated, "rubric_id") or "rubric"), taken)
        put(duplicated, "rubric_id", name, camel=is_camel(case))
    *above, number = row.unit
    assert isinstance(number, int)
    place = (*above, number + 1)
    return with_item(case, place, duplicated), place


def _give_call_an_id(duplicated: Any, others: Any, *, camel: bool) -> None:
    """Replace the ID of a copied call, if it has one, because ADK pairs calls and responses by ID."""
    calls = [call for item in (duplicated, *others) for call in _calls_in(item)]
    taken = [get(call, "id") for call in calls]
    for call in _calls_in(duplicated):
        if isinstance(get(call, "id"), str):
            put(call, "id", free_name(get(call, "id"), taken), camel=camel)
            taken.append(get(call, "id"))


def _calls_in(item: Any) -> list[Any]:
    """Return the calls in an item of a list: the item itself in `tool_uses`, else the calls in a part or an event."""
    if not isinstance(item, dict):
        return []
    parts = get(get(item, "content"), "parts")
    inner = [get(part, "function_call") for part in (parts if isinstance(parts, list) else [item])]
    found = [call for call in inner if isinstance(call, dict)]
    return found or ([item] if isinstance(get(item, "name"), str) else [])


def move(case: Any, row: CaseRow, step: int) -> tuple[Any, Location]:
    """Return the case with the row's item moved up (-1) or down (1) in its list, and its new location.

    Raises:
        NotPossibleError: the item is the first or the last, or is not in a list.
    """
    if not can_duplicate(row):
        raise NotPossibleError("this cannot be moved")
    after, place = moved(case, row.unit, step)
    if place == row.unit:
        raise NotPossibleError("this is already the first" if step < 0 else "this is already the last")
    return after, place


PartKind: TypeAlias = Literal[
    "call", "answer", "text", "response", "turn", "user", "turn_rubric", "rubric", "session", "scenario", "final_state"
]


@dataclass(frozen=True, slots=True)
class Part:
    """A part to add, with a `label` for a list and a `help` text."""

    what: PartKind
    label: str
    help: str


_PARTS = {
    "call": Part("call", "tool call", "An expected tool call of this turn."),
    "answer": Part("answer", "expected answer", "The expected answer of this turn."),
    "text": Part("text", "intermediate text", "An expected text before the answer of this turn."),
    "response": Part("response", "tool response", "The result of a tool call, for information."),
    "turn": Part("turn", "turn", "A new turn with a user message, after this one."),
    "user": Part("user", "user message", "The message that starts this turn."),
    "turn_rubric": Part("turn_rubric", "turn rubric", "A yes-or-no question for a judge about this turn."),
    "rubric": Part("rubric", "case rubric", "A yes-or-no question for a judge about the case."),
    "session": Part("session", "session", "App, user and state at the start of the conversation."),
    "scenario": Part("scenario", "scenario", "A conversation plan for a simulated user."),
    "final_state": Part("final_state", "final state", "The expected session state at the end."),
}


def parts_for(case: dict[str, Any], row: CaseRow) -> list[Part]:
    """Return the parts that can be added at a row, the most likely first."""
    wanted: list[PartKind] = []
    if row.turn is not None and isinstance(turn := value_at(case, ("conversation", row.turn)), dict):
        wanted += ["user"] if get(turn, "user_content") is None else []
        wanted += ["call", "answer"] if get(turn, "final_response") is None else ["call"]
        wanted += ["text", "response", "turn", "turn_rubric"]
    elif isinstance(case.get("conversation"), list):
        wanted += ["turn"]
    elif case.get("conversation") is None and get(case, "conversation_scenario") is None:
        wanted += ["turn", "scenario"]
    if row.kind == "rubric" and row.turn is None:
        wanted.insert(0, "rubric")
    elif row.kind == "rubric":
        wanted.sort(key=lambda what: what != "turn_rubric")
    wanted += [] if "rubric" in wanted else ["rubric"]
    wanted += ["session"] if get(case, "session_input") is None else []
    wanted += ["final_state"] if get(case, "final_session_state") is None else []
    return [_PARTS[what] for what in wanted]


def with_part(case: dict[str, Any], row: CaseRow, what: PartKind) -> tuple[Any, Location]:
    """Return the case with an empty part added, and the location to edit.

    An item of a list goes after the row's item if that is in the same list, else to the end. A turn goes after the
    row's turn.

    Raises:
        NotPossibleError: the case has another value instead of the list.
    """
    return _Builder(case, row).part(what)


def new_case(eval_id: str, *, app: str, user: str, camel: bool, scenario: bool = False) -> dict[str, Any]:
    """Return a new case with one turn and an empty message, or with an empty scenario."""
    case: dict[str, Any] = {spelled("eval_id", camel=camel): eval_id}
    builder = _Builder(case, CaseRow((), "id", "", None, "word", ()), camel=camel)
    case, _ = builder.part("scenario" if scenario else "turn")
    session = {"app_name": app, "user_id": user, "state": {}}
    case[spelled("session_input", camel=camel)] = {spelled(key, camel=camel): value for key, value in session.items()}
    return case


_OF_CASE: dict[PartKind, tuple[str, dict[str, Any]]] = {
    "session": ("session_input", {"app_name": "", "user_id": "user", "state": {}}),
    "scenario": ("conversation_scenario", {"starting_prompt": "", "conversation_plan": ""}),
    "final_state": ("final_session_state", {}),
}


class _Builder:
    def __init__(self, case: dict[str, Any], row: CaseRow, *, camel: bool | None = None) -> None:
        self._case, self._row = case, row
        self._camel = is_camel(case) if camel is None else camel
        self._turn: Location = ("conversation", row.turn or 0)

    def part(self, what: PartKind) -> tuple[Any, Location]:
        if what in _OF_CASE:
            name, fields = _OF_CASE[what]
            return self._put((), name, self._spell(copy.deepcopy(fields)))
        match what:
            case "turn":
                turns = self._case.get("conversation") or []
                place = ("conversation", len(turns) if self._row.turn is None else self._row.turn + 1)
                turn = self._spell({"invocation_id": fresh_id(), "user_content": _content("user")})
                return with_item(self._case, place, turn), (*place, self._key({}, "user_content"))
            case "user":
                return self._put(self._turn, "user_content", _content("user"))
            case "answer":
                return self._put(self._turn, "final_response", _content("model"))
            case "call":
                return self._step("tool_uses", "function_call", {"name": "", "args": {}})
            case "response":
                return self._step("tool_responses", "function_response", {"name": self._last_call(), "response": {}})
            case "text" if self._recorded():
                return self._event({"text": ""})
            case "text":
                return self._listed(self._data(), "intermediate_responses", [self._author(), [{"text": ""}]])
            case _:
                return self._rubric(() if what == "rubric" else self._turn)

    def _put(self, above: Location, name: str, value: Any) -> tuple[Any, Location]:
        place = (*above, self._key(value_at(self._case, above), name))
        return with_value(self._case, place, value), place

    def _listed(self, above: Location, name: str, item: Any) -> tuple[Any, Location]:
        """Insert an item into a list: after the row's item if that is in the list, else at the end."""
        key = self._key(value_at(self._case, above), name)
        items = value_at(self._case, (*above, key)) or []
        own = self._row.unit[: len(above) + 2]
        inside = own[:-1] == (*above, key) and isinstance(own[-1], int)
        number = int(own[-1]) + 1 if inside else len(items) if isinstance(items, list) else 0
        place = (*above, key, number)
        return with_item(self._case, place, item), place

    def _step(self, name: str, member: str, value: dict[str, Any]) -> tuple[Any, Location]:
        if self._recorded():
            return self._event({spelled(member, camel=self._camel): value})
        return self._listed(self._data(), name, value)

    def _event(self, part: dict[str, Any]) -> tuple[Any, Location]:
        event = {"author": self._author(), "content": {"role": "model", "parts": [part]}}
        return self._listed(self._data(), "invocation_events", event)

    def _rubric(self, above: Location) -> tuple[Any, Location]:
        rubrics = get(value_at(self._case, above), "rubrics")
        taken = [get(rubric, "rubric_id") for rubric in (rubrics if isinstance(rubrics, list) else ())]
        content = {spelled("text_property", camel=self._camel): ""}
        rubric = {"rubric_id": free_name("rubric", taken), "rubric_content": content, "type": "FINAL_RESPONSE_QUALITY"}
        return self._listed(above, "rubrics", self._spell(rubric))

    def _data(self) -> Location:
        return (*self._turn, self._key(value_at(self._case, self._turn), "intermediate_data"))

    def _recorded(self) -> bool:
        """Return whether to write new steps as `invocation_events`: as this turn does, else as any other turn does."""
        own = value_at(self._case, self._data())
        if isinstance(own, dict) and own:
            return get(own, "invocation_events") is not None
        turns = self._case.get("conversation") or []
        return any(get(get(turn, "intermediate_data"), "invocation_events") is not None for turn in turns)

    def _author(self) -> str:
        if self._row.author and self._row.kind in ("call", "text"):
            return self._row.author
        app = get(get(self._case, "session_input"), "app_name")
        return app if isinstance(app, str) and app else "agent"

    def _last_call(self) -> str:
        if self._row.kind in ("call", "args"):
            call = value_at(self._case, self._row.location[:-1])
            return str(get(call, "name") or "")
        return ""

    def _key(self, value: Any, name: str) -> str:
        return key_for(value, name, camel=self._camel)

    def _spell(self, value: dict[str, Any]) -> dict[str, Any]:
        return {spelled(key, camel=self._camel): item for key, item in value.items()}


def _content(role: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": ""}]}


Where: TypeAlias = Literal["text", "tool name", "argument"]
"""Part of a case that is searched.

- `text`: messages, answers, the simulated user's prompt and plan, and rubrics. Any part of a text may match.
- `tool name`: the names of calls and of answers of tools. Only a whole name matches.
- `argument`: the values in the arguments of calls. Any part of a text may match. Another value matches if its JSON is
  the same as the searched text.
"""
PARTS: tuple[Where, ...] = get_args(Where)
_TEXTS = frozenset({"text", "starting_prompt", "conversation_plan", "text_property"})
_CALLS = frozenset({"tool_uses", "tool_responses", "function_call", "function_response"})
_SKIPPED = frozenset({"response", "state", "session_input", "final_session_state", "state_delta"})


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replaced value.

    `turn` counts from 0, or is None outside of turns. `what` names the value for the user. `old` and `new` are JSON
    values. Texts are raw.
    """

    location: Location
    turn: int | None
    what: str
    old: Any = field(hash=False)
    new: Any = field(hash=False)


def replacements(case: Any, where: Where, old: str, new: str) -> list[Replacement]:
    """Return all values of a case that would change if `old` were replaced by `new`, in the order of the file.

    If the JSON of an argument equals `old` (such as a number, or a text in quotes), the whole argument is replaced. It
    becomes `new` read as JSON, or the text `new` if that is not JSON.
    """
    found = _Search(where, old, new).replacements(case, (), None, "")
    return [one for one in found if type(one.old) is not type(one.new) or one.old != one.new]


def replaced(case: Any, chosen: Collection[Replacement]) -> Any:
    """Return the case with these values replaced. `case` is not changed."""
    for one in chosen:
        assert value_at(case, one.location) == one.old
        case = with_value(case, one.location, one.new)
    return case


@dataclass(frozen=True)
class _Search:
    where: Where
    old: str
    new: str

    def replacements(self, value: Any, at: Location, turn: int | None, tool: str) -> Iterator[Replacement]:
        """Yield the replacements in a part of a case. `tool` is the call whose arguments these are, or ""."""
        if isinstance(value, list):
            for number, item in enumerate(value):
                yield from self.replacements(item, (*at, number), number if at == ("conversation",) else turn, tool)
        elif isinstance(value, dict):
            call = _is_call(value, at)
            for key, item in value.items():
                name, place = snake(key), (*at, key)
                if call and name == "name":
                    if self.where == "tool name" and item == self.old:
                        yield Replacement(place, turn, "tool name", item, self.new)
                elif call and name == "args":
                    yield from self._argument(item, place, turn, str(value.get("name", "")))
                elif name in _TEXTS and isinstance(item, str):
                    yield from self._text(item, place, turn, name)
                elif name not in _SKIPPED:
                    yield from self.replacements(item, place, turn, tool)

    def _text(self, value: str, at: Location, turn: int | None, name: str) -> Iterator[Replacement]:
        if self.where == "text" and self.old in value:
            yield Replacement(at, turn, _holder(at) or name.replace("_", " "), value, value.replace(self.old, self.new))

    def _argument(self, value: Any, at: Location, turn: int | None, tool: str) -> Iterator[Replacement]:
        if self.where != "argument":
            return
        if isinstance(value, dict):
            for key, item in value.items():
                yield from self._argument(item, (*at, key), turn, tool)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                yield from self._argument(item, (*at, number), turn, tool)
        elif json.dumps(value, ensure_ascii=False) == self.old:
            yield Replacement(at, turn, f"{tool}: {_path(at)}", value, _read(self.new))
        elif isinstance(value, str) and self.old in value:
            yield Replacement(at, turn, f"{tool}: {_path(at)}", value, value.replace(self.old, self.new))


def _is_call(value: Mapping[str, Any], at: Location) -> bool:
    """Return whether an object is a call of a tool or a tool's answer, in either form that ADK reads."""
    above = [snake(step) for step in at[-2:] if isinstance(step, str)]
    return isinstance(value.get("name"), str) and any(step in _CALLS for step in above)


def _holder(at: Location) -> str:
    """Return `user`, `answer` or `rubric` for a text in a message, a final answer or a rubric, else ""."""
    names = {"user_content": "user", "final_response": "answer", "rubrics": "rubric"}
    return next((names[name] for step in at if isinstance(step, str) and (name := snake(step)) in names), "")


def _path(at: Location) -> str:
    """Return the dotted path of a value in the arguments: `amount`, `items.0.id`."""
    start = at.index("args")
    return ".".join(map(str, at[start + 1 :]))


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
