"""The pane "Trace": for each message of the user a tree with a waterfall of times.

Rows are made when they come in sight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from workbench.counting import counted
from workbench.prices import Prices, money
from workbench.rendering.document import Document, Item, Subject, Target
from workbench.rendering.judged import said
from workbench.rendering.lines import Line, Segment, rule
from workbench.rendering.rows import View, remark
from workbench.rendering.trace.aside import aside_lines, note_lines
from workbench.rendering.trace.reading import TraceRead, TurnRead, read_again
from workbench.rendering.trace.row import Columns, Scale, duration, row_line
from workbench.rendering.trace.sections import add_sections
from workbench.store import Turn
from workbench.text import one_line, plain
from workbench.trace.spans import Node, TurnTrace


def add_rows(document: Document, read: TraceRead, turn: TurnRead, columns: Columns, view: View) -> None:
    """The rows of a turn, with what those open that are unfolded."""
    rows = _Rows(read, turn, columns, _scale(turn.trace.root), view)
    first = 0
    for number in [number for number, key in enumerate(turn.keys) if view.is_open(key)]:
        document.add_rows(rows, range(first, number + 1))
        add_sections(document, read, turn.nodes[number], turn.keys[number], view)
        first = number + 1
    document.add_rows(rows, range(first, len(turn.keys)))


@dataclass(frozen=True, slots=True)
class _Rows:
    """By their numbers in the turn."""

    read: TraceRead
    turn: TurnRead
    columns: Columns
    scale: Scale
    view: View

    @property
    def keys(self) -> list[str]:
        return self.turn.keys

    def line(self, number: int) -> Line:
        turn, prices = self.turn, self.read.prices
        node, opened = turn.nodes[number], self.view.is_open(turn.keys[number])
        total, currency = turn.totals[node.number], prices.currency if prices else ""
        return row_line(node, turn.branches[number], total, self.columns, self.scale, currency, opened=opened)

    def item(self, number: int, start: int) -> Item:
        node, key = self.turn.nodes[number], self.turn.keys[number]
        aside = partial(aside_lines, self.read, node)
        return Item(key, start, start + 1, opens=True, targets=_targets(node), aside=aside, heads=True)

    def names(self, number: int) -> list[str]:
        return _places(self.turn.nodes[number])


def _scale(root: Node) -> Scale:
    """The time of the turn; of one that has no end, as far as was seen."""
    reach = root.seconds
    if not reach:
        reach = max((node.end or node.start for node in root.walk()), default=root.start) - root.start
    return Scale(root.start, reach)


def _places(node: Node) -> list[str]:
    """The names by which other panes point at the row, as those of the log."""
    call = node.facts.get("call")
    found = [f"call/{node.turn}/{call}", f"result/{node.turn}/{call}"] if isinstance(call, str) and call else []
    found += [f"event/{node.turn}/{event}" for event in node.events]
    return found


def _targets(node: Node) -> tuple[Target, ...]:
    """Where the row's message stands in the conversation: of one inside of a tool that tool's, of an agent the first
    in it."""
    places = _places(node)
    if not node.events:
        above = next((part for part in reversed(node.path[1:-1]) if part.events), None)
        near = above or next((part for part in node.walk() if part.events), None)
        places += _places(near) if near is not None else ()
    names = (*places, f"user/{node.turn}")
    return (Target("Diff", names), Target("Log", names))


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
    read = read_again(turns, runs, prices)
    timed = any(turn.trace.timed for turn in read.turns)
    columns = Columns.fitting(view.width, timed=timed, priced=bool(prices))
    for number, turn in enumerate(read.turns):
        document.gap()
        document.turns.append(len(document.lines))
        document.add_place([f"user/{number}"], [_heading(read, number, view.width)])
        last = going and number == len(turns) - 1 and turn.turn.spans is None
        document.add(_remarks(turn.trace, view.width, going=last))
        add_rows(document, read, turn, columns, view)
    first_error = next(filter(None, (turn.first_error for turn in read.turns)), "")
    document.opening_item = document.item_named(first_error) or 0


def _heading(read: TraceRead, number: int, width: int) -> Line:
    turn = read.turns[number]
    trace, total = turn.trace, turn.totals[turn.trace.root.number]
    end: list[str] = []
    if total.calls:
        end.append(counted(total.calls, "model call"))
    if read.prices and total.calls and total.cost is not None:
        end.append(money(total.cost, read.prices.currency))
    if trace.timed and trace.root.seconds is not None:
        end.append(duration(trace.root.seconds))
    asked = one_line(said(turn.turn.user), limit=200)
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
