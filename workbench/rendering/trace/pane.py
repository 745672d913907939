"""The pane "Trace": for each message of the user a tree with a waterfall of times."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from workbench.counting import counted
from workbench.prices import Prices, money
from workbench.rendering.document import Document, Subject
from workbench.rendering.judged import said
from workbench.rendering.lines import Line, Segment, rule
from workbench.rendering.rows import View, remark
from workbench.rendering.trace.aside import note_lines
from workbench.rendering.trace.reading import TraceRead, read_again
from workbench.rendering.trace.row import Columns, duration
from workbench.rendering.trace.waterfall import add_rows
from workbench.store import Turn
from workbench.text import one_line, plain
from workbench.trace.spans import TurnTrace

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
