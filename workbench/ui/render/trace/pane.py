"""The pane "Trace": for each message of the user a tree with a waterfall of times."""

import contextlib
import gc
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from workbench.prices import Prices, money
from workbench.store import Turn
from workbench.text import one_line, plain
from workbench.trace.spans import Node, TurnTrace
from workbench.ui.render.document import Document, Subject, Target
from workbench.ui.render.judged import said
from workbench.ui.render.lines import Line, Segment, rule
from workbench.ui.render.rows import View, remark
from workbench.ui.render.trace.aside import aside_lines, note_lines
from workbench.ui.render.trace.reading import TraceRead, read_again
from workbench.ui.render.trace.row import Columns, Scale, duration, row_line
from workbench.ui.render.trace.sections import add_sections

_UNTIMED = "recorded without times: this is what its events tell"


def build(subject: Subject, view: View) -> Document:
    """The whole pane."""
    record = subject.record
    document = Document()
    if record is None or (not record.turns and not record.finished):
        document.add(remark("Nothing yet: the case has not run.", view))
        return document
    if not record.turns:
        document.add(remark("No turn took place.", view))
        return document
    add_trace(document, record.turns, subject.runs, subject.prices, view, going=not record.finished)
    return document


def add_trace(
    document: Document,
    turns: Sequence[Turn],
    runs: Path | None,
    prices: Prices | None,
    view: View,
    *,
    going: bool = False,
) -> None:
    """The turns of a conversation. `runs` is the folder that holds the folders of runs; `going`: the last turn may
    not be over, and then has no times yet."""
    with _without_collector():
        _add_turns(document, read_again(turns, runs, prices), view, going=going)


def _add_turns(document: Document, read: TraceRead, view: View, *, going: bool) -> None:
    turns, prices = read.turns, read.prices
    timed = any(trace.timed for trace in read.traces)
    columns = Columns.fitting(view.width, timed=timed, priced=bool(prices))
    for number, (turn, trace) in enumerate(zip(turns, read.traces, strict=True)):
        document.gap()
        document.turns.append(len(document.lines))
        document.add_place([f"user/{number}"], [_heading(read, number, view.width)])
        last = going and number == len(turns) - 1 and turn.spans is None
        document.add(_remarks(trace, view.width, going=last))
        _add_rows(document, read, number, columns, view)
    document.opening_item = _first_error(document, read)


def _heading(read: TraceRead, number: int, width: int) -> Line:
    trace, total = read.traces[number], read.totals[number][read.traces[number].root.number]
    end: list[str] = []
    if total.calls:
        end.append(f"{total.calls:,} model call{'' if total.calls == 1 else 's'}")
    if read.prices and total.calls and total.cost is not None:
        end.append(money(total.cost, read.prices.currency))
    if trace.timed and trace.root.seconds is not None:
        end.append(duration(trace.root.seconds))
    asked = one_line(said(read.turns[number].user), limit=200)
    title = (Segment(f"turn {number + 1}  ", "heading"), Segment(asked, "user"))
    ending = " · ".join(end) if width >= 50 else end[-1] if end else ""
    return rule(title, (Segment(ending, "muted"),) if ending else (), width)


def _remarks(trace: TurnTrace, width: int, *, going: bool) -> Iterator[Line]:
    if going:
        yield from note_lines("it is going on: times come with its end", width)
    elif not trace.timed:
        yield from note_lines(plain(trace.trouble) or _UNTIMED, width)
    if trace.root.error and not any(child.error == trace.root.error for child in trace.root.children):
        yield from note_lines(plain(trace.root.error), width, "status-error")
    if trace.root.note:
        yield from note_lines(f"not all could be watched: {plain(trace.root.note)}", width)
    if trace.lost:
        yield from note_lines(f"{trace.lost:,} more were too many to be told", width)
    if not trace.root.children and not going:
        yield from note_lines("nothing is known of what was done", width)


def _add_rows(document: Document, read: TraceRead, number: int, columns: Columns, view: View) -> None:
    trace, totals = read.traces[number], read.totals[number]
    scale = Scale(trace.root.start, trace.root.seconds or _reach(trace.root))
    currency = read.prices.currency if read.prices else ""
    for node, branches in _branches(trace.root):
        key = f"span/{number}/{node.number}"
        opened = view.is_open(key)
        line = row_line(node, branches, totals[node.number], columns, scale, currency, opened=opened)
        places = _places(node)
        document.add_item(
            key, (line,), opens=True, targets=_targets(node, places), aside=partial(aside_lines, read, node)
        )
        for place in places:
            document.places.setdefault(place, document.places[key])
        if opened:
            add_sections(document, read, node, key, view)


def _branches(root: Node) -> Iterator[tuple[Node, str]]:
    """The nodes in the turn in order, with the branches that lead to each."""
    waiting: list[tuple[Node, str, str]] = []

    def push(nodes: Sequence[Node], rest: str, *, top: bool) -> None:
        last = len(nodes) - 1
        for place in range(last, -1, -1):
            ends = place == last
            here, inside = ("", "") if top else ("└ ", "  ") if ends else ("├ ", "│ ")
            waiting.append((nodes[place], rest + here, rest + inside))

    push(root.children, "", top=True)
    while waiting:
        node, branch, rest = waiting.pop()
        yield node, branch
        push(node.children, rest, top=False)


def _reach(root: Node) -> float:
    """How long a turn took that has no end, as far as was seen."""
    return max((node.end or node.start for node in root.walk()), default=root.start) - root.start


def _places(node: Node) -> list[str]:
    """The names by which other panes point at the row, as those of the log."""
    call = node.facts.get("call")
    found = [f"call/{node.turn}/{call}", f"result/{node.turn}/{call}"] if isinstance(call, str) and call else []
    found += [f"event/{node.turn}/{event}" for event in node.events]
    return found


def _targets(node: Node, places: list[str]) -> tuple[Target, ...]:
    """Where the row's message stands in the conversation: of one inside of a tool that tool's, of an agent the first
    in it."""
    if not node.events:
        above = next((part for part in reversed(node.path[1:-1]) if part.events), None)
        near = above or next((part for part in node.walk() if part.events), None)
        places = [*places, *(_places(near) if near is not None else ())]
    names = (*places, f"user/{node.turn}")
    return (Target("Diff", names), Target("Log", names))


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """A trace of thousands of rows is made in one go, and all of it is kept: looking for garbage in between doubles
    the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _first_error(document: Document, read: TraceRead) -> int:
    """The innermost row of the first error, else the first row."""
    for trace in read.traces:
        for node in trace.root.walk():
            if node.error and node.kind != "turn" and not any(child.error for child in node.children):
                return document.item_named(f"span/{node.turn}/{node.number}") or 0
    return 0
