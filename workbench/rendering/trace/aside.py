"""What is told beside the row under the cursor: the message that it belongs to, what it cost, and the way to it."""

from collections.abc import Iterator

from workbench.counting import counted
from workbench.prices import money
from workbench.rendering.lines import Line, Segment, cut_line, hang, labelled, rule, wrap
from workbench.rendering.trace.conversation import conversation_lines, own_events
from workbench.rendering.trace.reading import TraceRead
from workbench.rendering.trace.row import duration, name_of
from workbench.rendering.trace.sections import graph_lines
from workbench.text import one_line, plain
from workbench.trace.spans import Node

_WORDS = {"agent": "agent", "model": "model call", "tool": "tool call", "turn": "turn"}


def aside_lines(read: TraceRead, node: Node, width: int) -> Iterator[Line]:
    """Everything about one row, on lines of at most `width` cells."""
    return (cut_line(line, width) for line in _told(read, node, width))


def _told(read: TraceRead, node: Node, width: int) -> Iterator[Line]:
    turn = read.turns[node.turn]
    yield (Segment(f"{_WORDS[node.kind]} ", "label"), Segment(name_of(node), "strong"))
    yield from conversation_lines(turn.messages, own_events(node, turn.trace), width)
    yield rule((), (), width)
    for name, body in _facts(read, node):
        yield from labelled(name, [body], width)
    yield rule((Segment("path", "label"),), (), width)
    yield from graph_lines(read, node, width)


def _facts(read: TraceRead, node: Node) -> Iterator[tuple[str, Segment]]:
    trace, total = read.turns[node.turn].trace, read.turns[node.turn].totals[node.number]
    if node.error:
        yield "error", Segment(plain(node.error), "status-error")
    if node.note:
        yield "note", Segment(plain(node.note), "muted")
    if trace.timed:
        began = f"{duration(max(node.start - trace.root.start, 0.0))} into the turn"
        seconds = node.seconds
        yield "time", Segment(f"{'it never ended' if seconds is None else duration(seconds)}, {began}")
    if total.calls:
        told = f"{total.read:,} read, {total.written:,} written" if total.read or total.written else "not told"
        yield "tokens", Segment(told if node.kind == "model" else f"{told}, in {counted(total.calls, 'model call')}")
    if total.calls and read.prices:
        cost = "not known: no price or no tokens" if total.cost is None else money(total.cost, read.prices.currency)
        yield "cost", Segment(cost, "" if total.cost is not None else "muted")
    if node.events:
        yield "event", Segment("it gave what is lit above", "evidence-for")
    within = next((part for part in reversed(node.path[:-1]) if part.kind == "tool"), None)
    if within is not None:
        name = one_line(within.name, limit=100)
        yield "inside of", Segment(f"the tool {name}: no criterion of the trajectory sees it")


def note_lines(words: str, width: int, style: str = "muted") -> Iterator[Line]:
    """A remark under a heading."""
    return hang([], wrap([Segment(words, style)], max(width - 2, 10)), 1)
