"""The points of a conversation, and what can be changed at one of them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from workbench.events.events import ForkChange
from workbench.files.invocation import content_text
from workbench.run.forking.fork import Change
from workbench.run.forking.original import Original, OriginalCall
from workbench.run.recordings.recording import ModelCall, ToolCall
from workbench.text.json_values import string


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a conversation: the start of a turn (from 0), or a call, by its index."""

    turn: int
    call: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be changed at a point. `text` is its present text; that of an answer is JSON."""

    kind: ForkChange
    agent: str = ""
    text: str = ""

    def change(self, text: str, *, whole: bool = False) -> Change:
        """Return the change to another text.

        Raises:
            ValueError: the text of an answer is no JSON.
        """
        value: Any = json.loads(text) if self.kind == "answer" else text
        return Change(self.kind, value, self.agent, whole)


def point_of(original: Original, names: Iterable[str]) -> Point | None:
    """Return the point that the panes know by one of these names, or None.

    Names are `call/TURN/ID`, `event/TURN/NUMBER`, `span/TURN/NUMBER` and `user/TURN`. The first known one counts.
    """
    for name in names:
        kind, _, rest = name.partition("/")
        turn, _, what = rest.partition("/")
        if not turn.isdecimal() or int(turn) >= len(original.turns):
            continue
        if kind == "user":
            return Point(int(turn))
        for index in original.calls_of(int(turn)):
            if _is_named(original.calls[index], kind, what):
                return Point(int(turn), index) if original.has_models else Point(int(turn))
    return None


def _is_named(call: OriginalCall, kind: str, name: str) -> bool:
    match kind, call.call:
        case "call", ToolCall() as tool:
            return bool(name) and tool.call == name
        case "span", ModelCall() as model:
            return bool(model.span) and str(model.span) == name
        case "event", ModelCall():
            return name.isdecimal() and call.before == int(name) and call.placed
    return False


def choices_at(original: Original, point: Point) -> tuple[Choice, ...]:
    """Return what can be changed at a point, the most likely first."""
    return tuple(_choices(original, point))


def _choices(original: Original, point: Point) -> Iterator[Choice]:
    if point.call is None:
        yield Choice("message", text=content_text(original.turns[point.turn].user))
    else:
        call = original.calls[point.call].call
        if isinstance(call, ToolCall):
            answer = (
                "" if call.error is not None or call.lost else json.dumps(call.answer, indent=2, ensure_ascii=False)
            )
            yield Choice("answer", call.agent, answer)
    start = point.call if point.call is not None else original.calls_of(point.turn).start
    # Agents that act from the point on come first.
    ahead = [call.call for call in (*original.calls[start:], *original.calls[:start])]
    models: dict[str, ModelCall] = {}
    for call in ahead:
        if isinstance(call, ModelCall) and call.agent:
            models.setdefault(call.agent, call)
    for agent, model in models.items():
        yield Choice("instruction", agent, instruction_sent(original, model))
    for agent, model in models.items():
        yield Choice("model", agent, string((model.request or {}).get("model")))
    yield Choice("nothing")


def instruction_sent(original: Original, model: ModelCall) -> str:
    """Return all instructions of a request, or "" if they are not known."""
    return string(original.recording.parts.get(string((model.request or {}).get("system"))))


def describe_point(original: Original, point: Point) -> str:
    """Return a point in a few words: `turn 2`, or `call 3 of 5 (print_label)`. Raw text."""
    if point.call is None:
        return f"turn {point.turn + 1}"
    name = original.calls[point.call].tool or "model"
    return f"call {point.call + 1} of {len(original.calls)} ({name})"
