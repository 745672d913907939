"""Comparison of one turn of a case with its transcript, and acceptance of the differences."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from workbench.criteria.call_rows import CallRules, call_rows
from workbench.criteria.json_difference import ABSENT, hashable, heaviest_pairs, lcs_pairs
from workbench.editing.case_edit import free_name
from workbench.editing.turn_steps import (
    Shape,
    Step,
    StepChanges,
    TextItem,
    new_step,
    new_text,
    set_text,
    steps_of,
    with_steps,
)
from workbench.files.invocation import content_text
from workbench.files.spelling import drop, get, put

HunkKind: TypeAlias = Literal[
    "argument",
    "arguments",
    "call added",
    "call removed",
    "order",
    "result",
    "text",
    "text added",
    "text removed",
    "answer",
    "state",
]
Pair: TypeAlias = tuple[int | None, int | None]
"""Positions of the same item in the reference and in the transcript; None if one of them lacks it."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """The smallest difference that can be accepted alone.

    `turn` counts from 0. For the end state, it is the number of turns, and `steps` are the keys in the state.
    `expected` and `actual` are positions among the calls or texts of the reference and of the transcript. `what`
    describes the effect of accepting the hunk. `old` and `new` are JSON values, `ABSENT` for none. All texts are raw.
    """

    turn: int
    kind: HunkKind
    expected: int | None = None
    actual: int | None = None
    argument: str = ""
    steps: tuple[str, ...] = ()
    tool: str = field(default="", compare=False)
    """The tool of a call, or the agent that says a text."""
    what: str = field(default="", compare=False)
    old: Any = field(default=ABSENT, compare=False)
    new: Any = field(default=ABSENT, compare=False)


class TurnComparison:
    """A turn's JSON in the file's spelling, compared with an invocation in snake_case. `accept` changes the turn."""

    def __init__(
        self, number: int, turn: dict[str, Any], actual: Mapping[str, Any] | None, *, camel: bool, default_shape: Shape
    ) -> None:
        self._number, self._turn, self._actual, self._camel = number, turn, actual, camel
        self._expected_steps, self._actual_steps = steps_of(turn, default_shape), steps_of(actual)

    def hunks(self) -> Iterator[Hunk]:
        """Yield the differences: calls and results, order of calls, texts, answer."""
        for expected, actual in self._call_pairs:
            yield from self._call_hunks(expected, actual)
        order = [actual for _, actual in sorted(self._common)]
        if order != sorted(order):
            old, new = ([step.name for step in side.calls] for side in (self._expected_steps, self._actual_steps))
            yield self._hunk("order", "use the actual order of the calls", old, new)
        for expected, actual in self._text_pairs:
            yield from self._text_hunks(expected, actual)
        before, after = (content_text(_content(side, "final_response")) for side in (self._turn, self._actual))
        if before != after:
            what = "replace the answer" if before and after else "expect this answer" if after else "expect no answer"
            yield self._hunk("answer", what, before or ABSENT, after or ABSENT)

    def _hunk(self, kind: HunkKind, what: str, old: Any, new: Any, **where: Any) -> Hunk:
        return Hunk(self._number, kind, what=what, old=old, new=new, **where)

    def _call_hunks(self, expected: int | None, actual: int | None) -> Iterator[Hunk]:
        if expected is None:
            assert actual is not None  # A pair has at least one.
            call = self._actual_steps.calls[actual]
            what = f"add the call {call.name}"
            yield self._hunk("call added", what, ABSENT, _args(call), tool=call.name, actual=actual)
        elif actual is None:
            call = self._expected_steps.calls[expected]
            what = f"remove the call {call.name}"
            yield self._hunk("call removed", what, _args(call), ABSENT, tool=call.name, expected=expected)
        else:
            yield from self._argument_hunks(expected, actual)
            yield from self._result_hunks(expected, actual)

    def _argument_hunks(self, expected: int, actual: int) -> Iterator[Hunk]:
        call = self._expected_steps.calls[expected]
        old, new = _args(call), _args(self._actual_steps.calls[actual])
        where: dict[str, Any] = {"expected": expected, "actual": actual, "tool": call.name}
        if not isinstance(old, dict) or not isinstance(new, dict):
            if hashable(old) != hashable(new):
                yield self._hunk("arguments", f"{call.name}: all arguments", old, new, **where)
            return
        for name in [*old, *(name for name in new if name not in old)]:
            one, other = old.get(name, ABSENT), new.get(name, ABSENT)
            if hashable(one) != hashable(other):
                verb = "add" if one is ABSENT else "remove" if other is ABSENT else "change"
                yield self._hunk("argument", f"{call.name}: {verb} {name}", one, other, argument=name, **where)

    def _result_hunks(self, expected: int, actual: int) -> Iterator[Hunk]:
        """Yield a changed tool result, if both sides have one. No criterion compares results."""
        one = self._expected_steps.answers.get(self._expected_steps.calls[expected])
        other = self._actual_steps.answers.get(self._actual_steps.calls[actual])
        if one is None or other is None:
            return
        old, new = get(one.value, "response"), get(other.value, "response")
        if hashable(old) != hashable(new):
            what = f"{one.name}: change the result"
            yield self._hunk("result", what, old, new, tool=one.name, expected=expected, actual=actual)

    def _text_hunks(self, expected: int | None, actual: int | None) -> Iterator[Hunk]:
        one = None if expected is None else self._expected_steps.texts[expected]
        other = None if actual is None else self._actual_steps.texts[actual]
        author = one.author if one is not None else other.author if other is not None else ""
        where: dict[str, Any] = {"expected": expected, "actual": actual, "tool": author}
        what = f"this text of {author or 'the agent'}"
        if one is None:
            assert other is not None  # A pair has at least one.
            yield self._hunk("text added", f"add {what}", ABSENT, other.text, **where)
        elif other is None:
            yield self._hunk("text removed", f"remove {what}", one.text, ABSENT, **where)
        elif one.text != other.text:
            yield self._hunk("text", f"change {what}", one.text, other.text, **where)

    @cached_property
    def _call_pairs(self) -> list[Pair]:
        sides = [[step.as_call() for step in side.calls] for side in (self._expected_steps, self._actual_steps)]
        return [(row["expected_index"], row["actual_index"]) for row in call_rows(sides[0], sides[1], CallRules())]

    @cached_property
    def _text_pairs(self) -> list[Pair]:
        expected, actual = self._expected_steps.texts, self._actual_steps.texts
        equal = lcs_pairs([(one.author, one.text) for one in expected], [(one.author, one.text) for one in actual])
        pairs: list[Pair] = []
        above, left = 0, 0

        def alike(row: int, column: int) -> float:
            return 1.0 if expected[row].author == actual[column].author else 0.0

        for below, right in [*equal, (len(expected), len(actual))]:
            rows, columns = list(range(above, below)), list(range(left, right))
            found = heaviest_pairs(rows, columns, alike)
            pairs += found
            pairs += [(row, None) for row in rows if row not in {pair[0] for pair in found}]
            pairs += [(None, column) for column in columns if column not in {pair[1] for pair in found}]
            if below < len(expected):
                pairs.append((below, right))
            above, left = below + 1, right + 1
        return pairs

    @property
    def _common(self) -> list[tuple[int, int]]:
        pairs = self._call_pairs
        return [(expected, actual) for expected, actual in pairs if expected is not None and actual is not None]

    def accept(self, wanted: Collection[Hunk]) -> None:
        """Accept these hunks in the turn. Hunks of other turns are ignored."""
        mine = [hunk for hunk in self.hunks() if hunk in wanted]
        changes = self._changes()
        for hunk in mine:
            match hunk.kind:
                case "argument" | "arguments" | "result":
                    self._set(hunk)
                case "text":
                    self._say(hunk, changes)
                case "call removed" | "text removed":
                    changes.removed.update(self._steps_of(hunk))
                case "answer":
                    self._answer()
        if any(hunk.kind == "order" for hunk in mine):
            changes.reorder(self._common)
        for hunk in mine:
            self._add(hunk, changes)
        if changes.changed:
            with_steps(self._turn, self._expected_steps, changes.every, camel=self._camel)

    def _changes(self) -> StepChanges:
        partners: dict[Step, Step] = {}
        for expected, actual in self._common:
            partners[self._actual_steps.calls[actual]] = self._expected_steps.calls[expected]
        for one, other in self._text_pairs:
            if one is not None and other is not None:
                partners[self._actual_steps.texts[other].steps[-1]] = self._expected_steps.texts[one].steps[-1]
        return StepChanges(self._expected_steps, self._actual_steps, partners)

    def _set(self, hunk: Hunk) -> None:
        assert hunk.expected is not None
        call = self._expected_steps.calls[hunk.expected]
        if hunk.kind == "result":
            call, name = self._expected_steps.answers[call], "response"
        elif hunk.kind == "argument":
            args = get(call.value, "args")
            if hunk.new is ABSENT:
                del args[hunk.argument]
            else:
                args[hunk.argument] = hunk.new
            return
        else:
            name = "args"
        if hunk.new is ABSENT:
            drop(call.value, name)
        else:
            put(call.value, name, hunk.new, camel=self._camel)

    def _say(self, hunk: Hunk, changes: StepChanges) -> None:
        assert hunk.expected is not None
        item = self._expected_steps.texts[hunk.expected]
        if self._expected_steps.shape == "authored":
            item.steps[0].value[1] = set_text(item.steps[0].value[1], hunk.new)
            return
        kept = set_text([step.part for step in item.steps], hunk.new)
        changes.removed.update(step for step in item.steps if not any(step.part is part for part in kept))

    def _steps_of(self, hunk: Hunk) -> list[Step]:
        """Return the reference's steps of a hunk: the steps of its text, or its call and the call's response."""
        assert hunk.expected is not None
        if hunk.kind == "text removed":
            return self._expected_steps.texts[hunk.expected].steps
        call = self._expected_steps.calls[hunk.expected]
        return [step for step in (call, self._expected_steps.answers.get(call)) if step is not None]

    def _add(self, hunk: Hunk, changes: StepChanges) -> None:
        if hunk.actual is None or hunk.kind not in ("call added", "text added"):
            return
        if hunk.kind == "text added":
            item: TextItem = self._actual_steps.texts[hunk.actual]
            changes.add_text(item.steps[-1], new_text(item, self._expected_steps.shape))
            return
        call = self._actual_steps.calls[hunk.actual]
        recorded = self._expected_steps.shape == "recorded"
        response = self._actual_steps.answers.get(call) if recorded or self._expected_steps.responses else None
        named = recorded or response is not None or any(step.id for step in self._expected_steps.calls)
        call_id = free_name(call.id, changes.ids) if named and call.id else None
        made = [step for step in (call, response) if step is not None]
        shape = self._expected_steps.shape
        changes.add_call(call, *(new_step(step, shape, camel=self._camel, call_id=call_id) for step in made))

    def _answer(self) -> None:
        actual = _content(self._actual, "final_response")
        text = content_text(actual)
        if not text:
            drop(self._turn, "final_response")
            return
        content = _content(self._turn, "final_response")
        parts = [part for part in (actual or {}).get("parts") or () if part.get("text")]
        if content is None:
            content = {"role": "model"}
            put(self._turn, "final_response", content, camel=self._camel)
        expected = get(content, "parts") or []
        if len(parts) == 1:
            wanted = set_text(expected, text)
        else:
            items = [{key: part[key] for key in ("text", "thought") if part.get(key)} for part in parts]
            wanted = [*items, *(part for part in expected if not get(part, "text"))]
        put(content, "parts", wanted, camel=self._camel)


def _args(call: Step) -> Any:
    args = get(call.value, "args")
    return ABSENT if args is None else args


def _content(value: Any, name: str) -> dict[str, Any] | None:
    found = get(value, name)
    return found if isinstance(found, dict) else None
