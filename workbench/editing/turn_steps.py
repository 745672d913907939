"""The steps of one turn in raw JSON, each with its place, so that single steps can be changed.

The steps may have either spelling and either form. `recorded` is the form that ADK writes (`invocation_events`),
`authored` the one written by hand (`tool_uses`, `tool_responses`, `intermediate_responses`).
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    `value` is the call or response object, or the part of a text (authored: `[author, parts]`). `part` is the item of
    the file's list that contains it. `event` is its event: adjacent steps of one event stay together.
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
    """One text of a turn with its author: from an invocation event, or from an intermediate response."""

    author: str
    text: str
    steps: list[Step]


@dataclass(slots=True)
class Steps:
    """The steps of a turn.

    `every` has the order of the file. `texts` and `answers` (call → response) refer to steps in it.
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
    return shape_of(turn) == "recorded" and any(get(data, name) is not None for _, name in _LISTS)


def steps_of(turn: Any, default_shape: Shape = "authored") -> Steps:
    """Return the steps of a turn, which refer to the turn's own objects. Without steps, the form is `default_shape`."""
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
    """Map each call to its response: the one with its ID, else the next unused response of its tool.

    A call and a response with different IDs do not belong together.
    """
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
    for _, steps in itertools.groupby(every, lambda step: id(step if step.event is None else step.event)):
        run = list(steps)
        event = run[0].event
        parts = [step.part for step in run if step.part is not None]
        if parts == (get(get(event, "content"), "parts") or []):
            yield event
        else:
            yield {**event, "content": {**get(event, "content"), "parts": parts}}


def new_step(step: Step, shape: Shape, *, camel: bool, call_id: str | None) -> Step:
    """Return a transcript's call or response in the form of the file, with `call_id` as its ID.

    Fields that only the model's protocol needs, such as thought signatures, are left out.
    """
    key = {"call": "args", "response": "response"}.get(step.kind)
    value: Any = step.value
    if key is not None:
        value = {"id": call_id} if call_id else {}
        value |= {"name": step.name}
        if get(step.value, key) is not None:
            value[key] = get(step.value, key)
    if shape == "authored":
        return Step(step.kind, value, step.author, value)
    name = {"call": "function_call", "response": "function_response"}[step.kind]
    part: dict[str, Any] = {}
    put(part, name, value, camel=camel)
    role = "user" if step.kind == "response" else "model"
    event = {"author": step.author, "content": {"role": role, "parts": [part]}}
    return Step(step.kind, value, step.author, part, event)


def new_text(item: TextItem, shape: Shape) -> Step:
    """Return a transcript's text in the form of the file."""
    part = {"text": item.text}
    if shape == "authored":
        value = [item.author, [part]]
        return Step("text", value, item.author, value)
    return Step("text", part, item.author, part, {"author": item.author, "content": {"role": "model", "parts": [part]}})


def set_text(parts: list[Any], text: str) -> list[Any]:
    """Return parts with `text` in the first text part, which is changed in place, and without other text parts.

    If no part has text, a new part is added.
    """
    texts = [part for part in parts if get(part, "text")]
    if not texts:
        return [*parts, {"text": text}]
    texts[0]["text"] = text
    drop(texts[0], "thought")
    return [part for part in parts if part is texts[0] or not any(part is one for one in texts)]


class StepChanges:
    """The reference's steps while they are changed. `partners` maps actual steps to expected ones."""

    def __init__(self, expected: Steps, actual: Steps, partners: Mapping[Step, Step]) -> None:
        self._expected, self._actual = expected, actual
        self._partners = dict(partners)
        self._every = list(expected.every)
        self._answers = dict(expected.answers)
        self.removed: set[Step] = set()

    @property
    def every(self) -> list[Step]:
        """The new list of steps."""
        return [step for step in self._every if step not in self.removed]

    @property
    def changed(self) -> bool:
        """Whether the steps or their order have changed."""
        return self.every != self._expected.every

    @property
    def ids(self) -> set[str]:
        """IDs that calls and responses already use."""
        return {step.id for step in self.every if step.kind in ("call", "response") and step.id}

    def reorder(self, common: Sequence[tuple[int, int]]) -> None:
        """Put common calls, given as positions (expected, actual), and their responses into the transcript's order.

        A call that only the reference has stays behind the call before it.
        """
        place = dict(common)
        self._every = self.every
        keys: dict[Step, tuple[int, int]] = {}
        previous = -1
        for number, call in enumerate(self._expected.calls):
            previous = place.get(number, previous)
            keys[call] = (previous, number)
        calls = [step for step in self._every if step.kind == "call"]
        calls_now = sorted(calls, key=keys.__getitem__)
        self._refill(calls, calls_now)
        answered = [self._answers[call] for call in calls_now if call in self._answers]
        answered = [step for step in answered if step in set(self._every)]
        self._refill([step for step in self._every if step in set(answered)], answered)
        for call in calls_now:
            response = self._answers.get(call)
            if response in self._every and self._every.index(response) < self._every.index(call):
                self._every.remove(response)
                self._every.insert(self._every.index(call) + 1, response)

    def add_call(self, actual: Step, call: Step, response: Step | None = None) -> None:
        """Add a call and its response after the last preceding call that the reference has, too.

        Without such a call, they go before the first call, or if the reference has no call, after the last preceding
        step.
        """
        at = 0
        before = self._before(actual, "call")
        if before is not None:
            at = self._every.index(before) + 1
            while at < len(self._every) and self._every[at].kind == "response":
                at += 1
        elif any(step.kind == "call" for step in self._every):
            at = next(place for place, step in enumerate(self._every) if step.kind == "call")
        else:
            anything = self._before(actual, None)
            at = self._event_end(0 if anything is None else self._every.index(anything) + 1)
        self._every.insert(at, call)
        self._partners[actual] = call
        if response is not None:
            self._every.insert(at + 1, response)
            self._answers[call] = response

    def add_text(self, actual: Step, text: Step) -> None:
        """Add a text after the step that precedes it in the transcript, between its neighbors among the texts."""
        before, after = self._before(actual, "text"), self._after(actual)
        lowest = 0 if before is None else self._every.index(before) + 1
        highest = len(self._every) if after is None else self._event_end(self._every.index(after), -1)
        anything = self._before(actual, None)
        at = 0 if anything is None else self._every.index(anything) + 1
        if anything in self._answers and self._answers[anything] in self._every:
            at = max(at, self._every.index(self._answers[anything]) + 1)
        at = self._event_end(min(max(at, lowest), max(lowest, highest)))
        if at > highest >= lowest:
            at = highest
        self._every.insert(at, text)
        self._partners[actual] = text

    def _before(self, actual: Step, kind: str | None) -> Step | None:
        found = None
        for step in self._actual.every:
            if step is actual:
                return found
            if kind in (None, step.kind) and step in self._partners:
                found = self._partners[step]
        return found

    def _after(self, actual: Step) -> Step | None:
        place = self._actual.every.index(actual)
        found = (self._partners.get(step) for step in self._actual.every[place + 1 :] if step.kind == "text")
        return next((step for step in found if step is not None), None)

    def _event_end(self, at: int, by: int = 1) -> int:
        """Return `at`, or if it is inside an event, the end (`by` is 1) or the start (-1) of the event."""
        while 0 < at < len(self._every):
            event = self._every[at].event
            if event is None or self._every[at - 1].event is not event:
                break
            at += by
        return at

    def _refill(self, before: Sequence[Step], after: Sequence[Step]) -> None:
        """Put the steps `after` at the places of the steps `before`, one by one."""
        slots = [self._every.index(step) for step in before]
        for slot, step in zip(slots, after, strict=True):
            self._every[slot] = step
