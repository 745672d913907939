"""The trace of a case where nothing can be unfolded: the waterfall of each turn, and the path it took."""

from collections.abc import Iterator

from workbench.counting import counted
from workbench.rendering.document import Document
from workbench.rendering.lines import Line, Segment, cut_line
from workbench.rendering.rows import View
from workbench.rendering.trace.pane import add_trace
from workbench.rendering.trace.reading import read_again
from workbench.rendering.trace.sections import graph_lines
from workbench.store import CaseRecord

MOST_ROWS = 2_000
"""Rows of a case; the screen shows all of them."""


def trace_lines(record: CaseRecord, width: int) -> Iterator[Line]:
    """The lines; none where the case was not watched."""
    if not any(turn.spans is not None for turn in record.turns):
        return
    document = Document()
    add_trace(document, record.turns, None, None, View(width))
    yield from document.lines[:MOST_ROWS]
    if len(document.lines) > MOST_ROWS:
        yield (Segment(f" … {counted(len(document.lines) - MOST_ROWS, 'more row')}: the screen shows them", "fold"),)
    read = read_again(record.turns, None, None)
    for number, turn in enumerate(read.turns):
        if turn.way:
            yield ()
            yield (Segment(f" path of turn {number + 1}", "label"),)
            for line in graph_lines(read, turn.trace.root, width - 1):
                yield cut_line((Segment(" "), *line), width)
