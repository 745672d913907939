"""The tries of a fork beside the original conversation, turn by turn, and their cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.files.prices import Prices, judge_cost, money, total
from workbench.results.document import Document
from workbench.results.error import error_lines
from workbench.results.lines import View, remark
from workbench.results.side_by_side import add_turns, is_same
from workbench.run.forking import Original, Point
from workbench.run.recordings.recording import ModelCall
from workbench.store.execution import CaseRecord, Turn
from workbench.text.counting import counted
from workbench.text.json_values import mapping


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of the recorded conversation after a point: model calls, tokens, and money (None if unknown).

    `seen` is False for plain Python agents, whose model calls are not recorded.
    """

    calls: int = 0
    tokens: int = 0
    money: float | None = None
    currency: str = ""
    seen: bool = True


_TOKENS = (
    ("prompt_token_count", "tool_use_prompt_token_count"),
    ("candidates_token_count", "thoughts_token_count"),
)
"""The counts of tokens that a model read, and of those that it wrote, as in `worker.spans.usage_of`."""


def cost_after(original: Original, point: Point, prices: Prices | None) -> Cost:
    """Return the cost of the original's model calls from a point on."""
    start = point.call if point.call is not None else original.calls_of(point.turn).start
    models = [call.call for call in original.calls[start:] if isinstance(call.call, ModelCall)]
    tallies = []
    for model in models:
        usage = [mapping(mapping(response).get("usage_metadata")) for response in model.responses]
        read, written = (
            max((sum(count for name in names if type(count := one.get(name)) is int) for one in usage), default=0)
            for names in _TOKENS
        )
        tally = {"calls": 1, "input_tokens": read, "output_tokens": written}
        tallies.append((str((model.request or {}).get("model") or ""), tally))
    tokens = sum(tally["input_tokens"] + tally["output_tokens"] for _, tally in tallies)
    found = Cost(len(models), tokens, seen=original.has_models)
    if not prices:
        return found
    cost = total(judge_cost(name, tally, prices) for name, tally in tallies)
    return replace(found, money=cost, currency=prices.currency)


def conversation(original: Original) -> list[Turn]:
    """Return the turns of the recorded conversation."""
    return [Turn(turn.user, list(turn.events), turn.actual) for turn in original.turns]


def first_difference(original: Sequence[Turn], record: CaseRecord, point: Point) -> int | None:
    """Return the index of the first turn that differs from the original, or None.

    The fork's own message and a turn that still runs are no differences. A turn that only one side has is one.
    """
    for number, turn in enumerate(record.turns):
        if number >= len(original):
            return number
        goes_on = turn.actual is None and not record.finished
        then = replace(original[number], user=turn.user) if number == point.turn else original[number]
        if not (goes_on or is_same(then, turn)):
            return number
    return len(record.turns) if record.finished and len(record.turns) < len(original) else None


def compared(original: Original, record: CaseRecord | None, number: int, point: Point, view: View) -> Document:
    """Return a try beside the original, in the layout of the evidence. `record` is None before the try starts."""
    document = Document()
    sides = replace(view, sides=("original", f"try {number}"))
    if record is not None and record.error is not None:
        document.add(error_lines(record.error, view))
        document.gap()
    turns = [] if record is None else record.turns
    ended = record is not None and record.finished
    then = conversation(original)[: None if ended else max(len(turns), point.turn)]
    add_turns(document, then, turns, record, sides, point.turn)
    if not turns and not ended:
        document.gap()
        document.add(remark(f"try {number} waits", view))
    return document


def cost_words(cost: Cost, tries: int, *, judged: bool) -> str:
    """Return the expected cost of the tries in words, estimated from the recorded calls after the point."""
    if not cost.seen:
        return "cost not known"
    if not cost.calls:
        return "no model call after this point" + (", only judges" if judged else "")
    words = f"about {counted(cost.calls * tries, 'model call')}"
    words += f", {counted(cost.tokens * tries, 'token')}" if cost.tokens else ""
    words += f", {money(cost.money * tries, cost.currency)}" if cost.money else ""
    return f"{words}, and judges" if judged else words
