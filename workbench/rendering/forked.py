"""The tries of a fork beside the conversation that they repeat, turn by turn."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from workbench.counting import counted
from workbench.execution import CaseRecord
from workbench.forking.choices import Point
from workbench.forking.original import Original, events_with_answer
from workbench.json_values import mapping, parts_of
from workbench.model.invocation import content_text
from workbench.prices import Prices, judge_cost, money, total
from workbench.recordings.recording import ModelCall
from workbench.rendering.document import Document
from workbench.rendering.lines import Line, Segment, cut_line, hang_text, heading, pad, safe, wrap
from workbench.rendering.trace.conversation import part_words
from workbench.text import one_line

_NARROWEST_COLUMN = 26
_LONGEST = 4_000
"""Characters of a step that are shown."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the recorded conversation spent after a point: model calls, tokens, and money if it is known.

    Calls of plain Python agents are not `seen`.
    """

    calls: int = 0
    tokens: int = 0
    money: float | None = None
    currency: str = ""
    seen: bool = True


def cost_after(original: Original, point: Point, prices: Prices | None) -> Cost:
    """Return what the original spent from a point on."""
    start = point.call if point.call is not None else original.calls_of(point.turn).start
    models = [call.call for call in original.calls[start:] if isinstance(call.call, ModelCall)]
    tallies = [(str((model.request or {}).get("model") or ""), _tally(model)) for model in models]
    tokens = sum(tally["input_tokens"] + tally["output_tokens"] for _, tally in tallies)
    if not prices:
        return Cost(len(models), tokens, seen=original.has_models)
    return Cost(
        len(models),
        tokens,
        total(judge_cost(name, tally, prices) for name, tally in tallies),
        prices.currency,
        original.has_models,
    )


def _tally(model: ModelCall) -> dict[str, int]:
    usage = [mapping(mapping(response).get("usage_metadata")) for response in model.responses]
    read, written = (
        max((count for one in usage if type(count := one.get(name)) is int), default=0)
        for name in ("prompt_token_count", "candidates_token_count")
    )
    return {"calls": 1, "input_tokens": read, "output_tokens": written}


@dataclass(frozen=True, slots=True)
class Step:
    """A message, a call of a tool or its answer, as raw text. `author` is "" for the answer of a tool."""

    author: str
    text: str


@dataclass(frozen=True, slots=True)
class Column:
    """One of the conversations that are compared. `turns` has the steps of each turn, `users` the messages."""

    title: str
    users: tuple[str, ...]
    turns: tuple[tuple[Step, ...], ...]
    going: bool = False
    error: str = ""


def original_column(original: Original) -> Column:
    """Return the recorded conversation."""
    users = tuple(content_text(turn.user) for turn in original.turns)
    return Column("original", users, tuple(tuple(_steps(turn.events)) for turn in original.turns))


def try_column(record: CaseRecord | None, number: int) -> Column:
    """Return a try. `record` is None before it starts."""
    if record is None:
        return Column(f"try {number}", (), (), going=True)
    users = tuple(content_text(turn.user) for turn in record.turns)
    error = "" if record.error is None else record.error.message
    turns = tuple(tuple(_steps(events_with_answer(turn.actual, turn.acted, ""))) for turn in record.turns)
    return Column(f"try {number}", users, turns, not record.finished, error)


def first_difference(original: Column, tries: Iterable[Column]) -> int | None:
    """Return the first turn in which a try differs from the original, or None if none does."""
    found = (_differs(original, one) for one in tries)
    return min((turn for turn in found if turn is not None), default=None)


def compared(original: Column, tries: Sequence[Column], chosen: int, point: Point, width: int) -> Document:
    """Return the conversations turn by turn, side by side if they fit.

    Otherwise, only the original and the try with the index `chosen` are shown, one above the other in a narrow
    terminal. Turns before the fork are one line each.
    """
    columns = [original, *tries]
    if _column_width(width, len(columns)) < _NARROWEST_COLUMN:
        columns = [original, *tries[chosen : chosen + 1]]
    room = _column_width(width, len(columns))
    document = Document()
    differing = first_difference(original, tries)
    for turn in range(max(len(column.users) for column in columns)):
        mark: Line = (Segment("≠ first difference", "status-failed"),) if turn == differing else ()
        said = original.users[turn] if turn < len(original.users) else ""
        document.begin_turn([heading(f"turn {turn + 1}", width, mark)])
        if turn < point.turn:
            document.add(
                [cut_line((Segment(" as recorded  ", "muted"), safe(one_line(said, limit=200), "muted")), width)]
            )
        elif room < _NARROWEST_COLUMN:
            for column in columns:
                document.add(_stacked(column, original, turn, width))
        else:
            cells = [_cell(column, original, turn, room) for column in columns]
            document.add(_side_by_side(cells, room))
    return document


def _steps(events: Iterable[dict[str, Any]]) -> Iterator[Step]:
    for event in events:
        for part in parts_of(event.get("content")):
            is_answer = isinstance(part.get("function_response"), dict)
            yield Step("" if is_answer else str(event.get("author") or ""), part_words(part)[:_LONGEST])


def _differs(original: Column, one: Column) -> int | None:
    """Return the first turn that differs. A turn that is still going differs if it has other steps."""
    for turn, (user, steps) in enumerate(zip(one.users, one.turns, strict=False)):
        if turn >= len(original.turns):
            return turn
        texts, then = [step.text for step in steps], [step.text for step in original.turns[turn]]
        is_last = one.going and turn == len(one.turns) - 1
        if user != original.users[turn] or (texts != then[: len(texts)] if is_last else texts != then):
            return turn
    return None


def _column_width(width: int, columns: int) -> int:
    return (width - 3 * (columns - 1)) // columns


def _cell(column: Column, original: Column, turn: int, width: int) -> list[Line]:
    """Return a turn of a conversation, with the name of its column above."""
    return [(Segment(column.title, "label"),), *_turn(column, original, turn, width)]


def _turn(column: Column, original: Column, turn: int, width: int) -> Iterator[Line]:
    if turn >= len(column.users):
        why = column.error if turn == 0 else ""
        yield from wrap([safe(why, "status-error") if why else Segment(_without(column), "muted")], width)
        return
    if column is original or turn >= len(original.users) or column.users[turn] != original.users[turn]:
        said = Segment("▷ ", "user") if column is original else Segment("≠ ", "status-failed")
        yield from hang_text([said], [safe(column.users[turn], "user")], width, 2)
    then = original.turns[turn] if turn < len(original.turns) else ()
    for number, step in enumerate(column.turns[turn] if turn < len(column.turns) else ()):
        same = number < len(then) and then[number].text == step.text
        style = "" if column is original or not same else "muted"
        lead = "  " if column is original or same else "≠ "
        yield from hang_text([Segment(lead, "status-failed")], [safe(step.text, style)], width, 2)
    if column.error and turn == len(column.users) - 1:
        yield from hang_text([Segment("! ", "status-error")], [safe(column.error, "status-error")], width, 2)


def _without(column: Column) -> str:
    return "waits" if column.going else "no such turn"


def _stacked(column: Column, original: Column, turn: int, width: int) -> Iterator[Line]:
    yield (Segment(f" {column.title}", "label"),)
    for line in _turn(column, original, turn, width - 2):
        yield (Segment("  "), *line)


def _side_by_side(cells: Sequence[list[Line]], width: int) -> Iterator[Line]:
    blank: Line = ()
    for row in zip_longest(*cells, fillvalue=blank):
        line: list[Segment] = []
        for number, part in enumerate(row):
            if number:
                line.append(Segment(" │ ", "rule"))
            line += pad(part, width) if number < len(row) - 1 else part
        yield tuple(line)


def cost_words(cost: Cost, tries: int, *, judged: bool) -> str:
    """Return what the tries will probably cost, from the recorded calls after the point."""
    if not cost.seen:
        return "cost not known"
    if not cost.calls:
        return "no model call after this point" + (", but judges" if judged else "")
    words = f"about {counted(cost.calls * tries, 'model call')}"
    words += f", {counted(cost.tokens * tries, 'token')}" if cost.tokens else ""
    words += f", {money(cost.money * tries, cost.currency)}" if cost.money else ""
    return f"{words}, and judges" if judged else words
