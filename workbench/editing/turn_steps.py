"""The steps of one turn in raw JSON, each with its place, so that single steps can be changed.

They may have either spelling and either form. `recorded` is the form that ADK writes (`invocation_events`), `authored`
the one written by hand (`tool_uses`, `tool_responses`, `intermediate_responses`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from workbench.files.invocation import ToolCall, content_text
from workbench.files.spelling import drop, get, put

Kind: TypeAlias = Literal["call", "response", "text", "other"]
Shape: TypeAlias = Literal["authored", "recorded"]
_LISTS: tuple[tuple[Kind, str], ...] = (
    ("call", "tool_uses"),
    ("response", "tool_responses"),
    ("text", "intermediate_responses"),
)


@dataclass(eq=False, slots=True)
class Step:
    """A step of a turn.

    `value` is the call or response object, or the part of a text (authored: `[author, parts]`). `part` is its item in
    the list of parts. `event` is its event: adjacent steps of one event stay together.
    """

    kind: Kind
    value: Any
    author: str = ""
    part: Any = None
    event: Any = None

    @property
    def id(self) -> str | None:
        """The ID that a call shares with its response."""
        found = get(self.value, "id")
        return found if isinstance(found, str) and found else None

    @property
    def name(self) -> str:
        """The tool's name."""
        return str(get(self.value, "name") or "")

    def as_call(self) -> ToolCall:
        """Return the step in the form that metrics compare."""
        args = get(self.value, "args")
        return ToolCall(self.name, args if isinstance(args, dict) else None, self.id, self.author)


@dataclass(eq=False, slots=True)
class TextItem:
    """A text with its author, one for each event or authored item, as ADK reads it."""

    author: str
    text: str
    steps: list[Step]


@dataclass(slots=True)
class Steps:
    """The steps of a turn.

    `every` has the order of the file. `texts` and `answers` (call → response) are views of it.
    """

    shape: Shape
    every: list[Step] = field(default_factory=list)
    texts: list[TextItem] = field(default_factory=list)
    answers: dict[Step, Step] = field(default_factory=dict)

    @property
    def calls(self) -> list[Step]:
        """The calls, in order."""
        return [step for step in self.every if step.kind == "call"]

    @property
    def responses(self) -> list[Step]:
        """The responses, in order."""
        return [step for step in self.every if step.kind == "response"]


def shape_of(turn: Any) -> Shape | None:
    """Return the form of a turn's steps, or None without steps."""
    data = get(turn, "intermediate_data")
    if get(data, "invocation_events") is not None:
        return "recorded"
    return "authored" if any(get(data, name) is not None for _, name in _LISTS) else None


def in_both_shapes(turn: Any) -> bool:
    """Return whether a turn has steps of both forms, of which ADK reads only one."""
    data = get(turn, "intermediate_data")
    events = get(data, "invocation_events")
    return events is not None and any(get(data, name) is not None for _, name in _LISTS)


def steps_of(turn: Any, default_shape: Shape = "authored") -> Steps:
    """Return the steps of a turn, which refer to the turn's own objects. Without steps, use `default_shape`."""
    steps = Steps(shape_of(turn) or default_shape)
    data = get(turn, "intermediate_data")
    if steps.shape == "recorded":
        for event in get(data, "invocation_events") or ():
            mine = list(_event_steps(event))
            steps.every += mine
            texts = [step for step in mine if step.kind == "text"]
            if texts:
                text = content_text({"parts": [step.part for step in texts]})
                steps.texts.append(TextItem(str(get(event, "author") or ""), text, texts))
    else:
        for kind, name in _LISTS:
            steps.every += [Step(kind, item, part=item) for item in get(data, name) or ()]
        for step in steps.every:
            if step.kind == "text" and (text := content_text({"parts": step.value[1]})):
                steps.texts.append(TextItem(str(step.value[0]), text, [step]))
    steps.answers = _answers(steps)
    return steps


def _event_steps(event: Any) -> Iterator[Step]:
    author = str(get(event, "author") or "")
    parts = get(get(event, "content"), "parts")
    if not parts:
        yield Step("other", None, author, None, event)
    for part in parts or ():
        call, response = get(part, "function_call"), get(part, "function_response")
        if call is not None:
            yield Step("call", call, author, part, event)
        elif response is not None:
            yield Step("response", response, author, part, event)
        else:
            yield Step("text" if get(part, "text") else "other", part, author, part, event)


def _answers(steps: Steps) -> dict[Step, Step]:
    """Return each call's response: by ID, else the next free one with its name."""
    found: dict[Step, Step] = {}
    by_id = {step.id: step for step in reversed(steps.responses) if step.id}
    for call in steps.calls:
        if call.id in by_id:
            found[call] = by_id.pop(call.id)
    taken = set(found.values())
    free: dict[str, list[Step]] = defaultdict(list)
    for step in reversed(steps.responses):
        if step not in taken:
            free[step.name].append(step)
    for call in steps.calls:
        if call not in found and free[call.name] and not (call.id and free[call.name][-1].id):
            found[call] = free[call.name].pop()
    return found


def with_steps(turn: Any, steps: Steps, every: Sequence[Step], *, camel: bool) -> None:
    """Write these steps into the turn that `steps` was read from, in its form."""
    data = get(turn, "intermediate_data")
    if data is None:
        data = {}
        put(turn, "intermediate_data", data, camel=camel)
    if steps.shape == "recorded":
        put(data, "invocation_events", list(_events(every)), camel=camel)
        return
    for kind, name in _LISTS:
        wanted = [step.part for step in every if step.kind == kind]
        before = get(data, name)
        if wanted or before:
            put(data, name, wanted, camel=camel)


def _events(every: Iterable[Step]) -> Iterator[Any]:
    runs: list[list[Step]] = []
    for step in every:
        if runs and step.event is not None and runs[-1][-1].event is step.event:
            runs[-1].append(step)
        else:
            runs.append([step])
    for run in runs:
        event = run[0].event
        parts = [step.part for step in run if step.part is not None]
        if parts == (get(get(event, "content"), "parts") or []):
            yield event
        else:
            yield {**event, "content": {**get(event, "content"), "parts": parts}}


def new_step(step: Step, shape: Shape, *, camel: bool, eval_id: str | None) -> Step:
    """Return a transcript's step in the form of the file, with `eval_id` as the call's ID.

    Fields that only the model's protocol needs, such as thought signatures, are left out.
    """
    key = {"call": "args", "response": "response"}.get(step.kind)
    value: Any = step.value
    if key is not None:
        value = {"id": eval_id} if eval_id else {}
        value |= {"name": step.name}
        if get(step.value, key) is not None:
            value[key] = get(step.value, key)
    if shape == "authored":
        return Step(step.kind, value, step.author, value)
    name = {"call": "function_call", "response": "function_response"}[step.kind]
    part: dict[str, Any] = {}
    put(part, name, value, camel=camel)
    role = "user" if step.kind == "response" else "model"
    return Step(
        step.kind, value, step.author, part, {"author": step.author, "content": {"role": role, "parts": [part]}}
    )


def new_text(item: TextItem, shape: Shape) -> Step:
    """Return a transcript's text in the form of the file."""
    part = {"text": item.text}
    if shape == "authored":
        value = [item.author, [part]]
        return Step("text", value, item.author, value)
    return Step("text", part, item.author, part, {"author": item.author, "content": {"role": "model", "parts": [part]}})


def set_text(parts: list[Any], text: str) -> list[Any]:
    """Return parts with `text` in the first text part, and without other text parts. Changes the part in place."""
    texts = [part for part in parts if get(part, "text")]
    if not texts:
        return [*parts, {"text": text}]
    texts[0]["text"] = text
    drop(texts[0], "thought")
    return [part for part in parts if part is texts[0] or not any(part is one for one in texts)]
