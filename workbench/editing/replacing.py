"""Find and replace in a case: in its texts, in the names of its tools, or in the arguments of its calls.

Only these parts are searched. IDs, state, answers of tools and keys of the schema never change.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from workbench.editing.case_edit import with_value
from workbench.files.faults import Location, snake
from workbench.text.json_values import value_at

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

    An argument that is not a text, and an argument that equals a quoted text (`"12.50"`), become the JSON of `new`,
    or the text `new` if it is not JSON.
    """
    return [
        found for found in _Search(where, old, new).replacements(case, (), None, "") if not _same(found.old, found.new)
    ]


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
                    yield from self._name(item, place, turn)
                elif call and name == "args":
                    yield from self._argument(item, place, turn, str(value.get("name", "")))
                elif name in _TEXTS and isinstance(item, str):
                    yield from self._text(item, place, turn, name)
                elif name not in _SKIPPED:
                    yield from self.replacements(item, place, turn, tool)

    def _text(self, value: str, at: Location, turn: int | None, name: str) -> Iterator[Replacement]:
        if self.where == "text" and self.old in value:
            yield Replacement(at, turn, _holder(at) or name.replace("_", " "), value, value.replace(self.old, self.new))

    def _name(self, value: Any, at: Location, turn: int | None) -> Iterator[Replacement]:
        if self.where == "tool name" and value == self.old:
            yield Replacement(at, turn, "tool name", value, self.new)

    def _argument(self, value: Any, at: Location, turn: int | None, tool: str) -> Iterator[Replacement]:
        if self.where != "argument":
            return
        if isinstance(value, dict):
            for key, item in value.items():
                yield from self._argument(item, (*at, key), turn, tool)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                yield from self._argument(item, (*at, number), turn, tool)
        elif _json(value) == self.old:
            yield Replacement(at, turn, f"{tool}: {_path(at)}", value, _read(self.new))
        elif isinstance(value, str) and self.old in value:
            yield Replacement(at, turn, f"{tool}: {_path(at)}", value, value.replace(self.old, self.new))


def _is_call(value: Mapping[str, Any], at: Location) -> bool:
    """Return whether an object is a call of a tool or a tool's answer, in either form that ADK reads."""
    above = [snake(step) for step in at[-2:] if isinstance(step, str)]
    return isinstance(value.get("name"), str) and any(step in _CALLS for step in above)


def _holder(at: Location) -> str:
    """Return whose text this is: `user`, `answer`, or "" if it is neither."""
    names = {"user_content": "user", "final_response": "answer", "rubrics": "rubric"}
    return next((names[name] for step in at if isinstance(step, str) and (name := snake(step)) in names), "")


def _path(at: Location) -> str:
    """Return the place of a value in the arguments: `amount`, `items.0.id`."""
    start = at.index("args")
    return ".".join(map(str, at[start + 1 :]))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other
