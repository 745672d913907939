"""The table of tool faults: what agents did when a tool failed, by tool and by the way it failed.

All text is safe for a terminal.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from workbench.events.events import CaseStatus, FaultHandling, FaultOutcome, FaultWay, PlannedCase, ToolFault
from workbench.results.cells import cell_len
from workbench.results.faces import BY_FUNCTION, FACES
from workbench.run.injection.outcome import STATUS, WAYS
from workbench.store.execution import Execution
from workbench.store.judge_details import is_without_model, judged_by
from workbench.text.safe_text import one_line

WORDS: Final[Mapping[FaultOutcome, str]] = {
    "crashed": "crashed",
    "made_up": "made up",
    "off_recording": "off recording",
    "silent": "silent",
    "reported": "reported",
    "recovered": "recovered",
    "not_evaluated": "not evaluated",
    "no_result": "no result",
    "not_called": "not called",
}
"""Outcomes in the words of tables, worst first."""
_GAP = "  "
_INDENT = "    "
_WIDTH = 78
"""Cells of the widest line with a tool beside its cells. With the summary's indent, it fits into 80."""


class Outcome(NamedTuple):
    """One outcome in a cell: how many executions had it, and whether a function decided one of them."""

    outcome: FaultOutcome
    times: int
    by_function: bool

    @property
    def text(self) -> str:
        """`✓ recovered`, `✗ made upƒ`: the glyph of its status, its words, and a sign if a function decided."""
        glyph = "–" if self.outcome == "not_called" else FACES[STATUS[self.outcome]].glyph
        return f"{glyph} {WORDS[self.outcome]}{BY_FUNCTION.glyph if self.by_function else ''}"


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A row of the table. `cells` has the outcomes of each way, worst first; empty if nothing ran yet."""

    agent: str
    tool: str
    cells: Mapping[FaultWay, tuple[Outcome, ...]]


def has_faults(records: Iterable[Execution]) -> bool:
    """Return whether these are the executions of a matrix of tool faults."""
    return any(record.planned.fault is not None for record in records)


def fault_rows(records: Iterable[Execution]) -> list[FaultRow]:
    """Return the rows of the table, in the order of the plan. Executions of the same agent and tool share a row."""
    found: dict[tuple[str, str], dict[FaultWay, list[Execution]]] = {}
    for record in records:
        fault = record.planned.fault
        if fault is not None:
            ways = found.setdefault((record.ref.agent, fault.tool), {way: [] for way in WAYS})
            ways[fault.way].append(record)
    return [
        FaultRow(agent, tool, {way: outcomes(own) for way, own in ways.items()})
        for (agent, tool), ways in found.items()
    ]


def outcomes(records: Iterable[Execution]) -> tuple[Outcome, ...]:
    """Return the outcomes of executions with faults, worst first."""
    counts: Counter[FaultOutcome] = Counter()
    functions: set[FaultOutcome] = set()
    for record in records:
        if record.planned.fault is None or not record.finished:
            continue
        outcome = outcome_of(record)
        counts[outcome] += 1
        if record.handling is not None and by_function(record.handling):
            functions.add(outcome)
    return tuple(Outcome(name, counts[name], name in functions) for name in WORDS if counts[name])


def outcome_of(record: Execution) -> FaultOutcome:
    """Return what the agent did. An execution that was cancelled or could not start has no result."""
    return "no_result" if record.handling is None else record.handling.outcome


def by_function(handling: FaultHandling) -> bool:
    """Return whether a function decided, not a language model."""
    return is_without_model(judged_by(handling.details))


def fault_title(planned: PlannedCase) -> str:
    """Return `search · timeout`, or "" for an execution without a fault."""
    fault = planned.fault
    return "" if fault is None else f"{one_line(fault.tool, limit=100)} · {WAYS[fault.way].title}"


def fault_words(fault: ToolFault) -> str:
    """Return `find_order failed (timeout)`. Safe text."""
    return f"{one_line(fault.tool, limit=100)} failed ({WAYS[fault.way].title})"


def handling_text(handling: FaultHandling) -> str:
    """Return `made up (function): reason`."""
    text = f"{WORDS[handling.outcome]}{' (function)' if by_function(handling) else ''}"
    return f"{text}: {one_line(handling.reason)}" if handling.reason else text


def cell_text(cell: Sequence[Outcome]) -> str:
    """Return `✓ recovered`, or with counts if several executions share the cell: `! crashed 1, ✓ recovered 2`."""
    several = sum(outcome.times for outcome in cell) > 1
    return ", ".join(f"{outcome.text} {outcome.times:,}" if several else outcome.text for outcome in cell)


class TableLine(NamedTuple):
    """A line of the table. A heading has no `spans`; others have the start, end and status of each cell."""

    text: str
    spans: tuple[tuple[int, int, CaseStatus], ...] = ()


def table_lines(records: Iterable[Execution]) -> Iterator[TableLine]:
    """Yield the table as lines of text. Each agent has a heading above its tools.

    If the table is too wide, each tool has a line of its own above its cells.
    """
    rows = fault_rows(records)
    names = [f"  {one_line(row.tool, limit=60)}" for row in rows]
    cells = [[row.cells[way] for way in WAYS] for row in rows]
    titles = [way.title for way in WAYS.values()]
    texts = [titles, *([cell_text(cell) for cell in line] for line in cells)]
    columns = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    first = max(map(cell_len, names), default=0)
    above = first + sum(columns) + len(_GAP) * len(columns) > _WIDTH
    first = len(_INDENT) if above else first
    yield TableLine(_laid_out(["", *titles], [first, *columns]).text)
    agent: str | None = None
    for row, name, line in zip(rows, names, cells, strict=True):
        if row.agent != agent:
            agent = row.agent
            yield TableLine(one_line(agent, limit=100) or "?")
        if above:
            yield TableLine(name)
        statuses = [None, *(STATUS[cell[0].outcome] if cell else None for cell in line)]
        yield _laid_out(["" if above else name, *map(cell_text, line)], [first, *columns], statuses)


def _laid_out(texts: Sequence[str], widths: Sequence[int], statuses: Iterable[CaseStatus | None] = ()) -> TableLine:
    line, spans = "", []
    for text, width, status in itertools.zip_longest(texts, widths, statuses):
        if status is not None:
            spans.append((len(line), len(line) + len(text), status))
        line += text + " " * (width - cell_len(text)) + _GAP
    return TableLine(line.rstrip(), tuple(spans))


def counts_text(records: Iterable[Execution], *, signs: bool = False) -> str:
    """Return `3 crashed, 2 made up, 10 recovered`, or "" if nothing ended.

    With `signs`, each outcome has the sign of its cells: `3! crashed, 2✗ made up, 10✓ recovered`.
    """
    return ", ".join(
        f"{outcome.times:,}{outcome.text[:1] if signs else ''} {WORDS[outcome.outcome]}"
        for outcome in outcomes(records)
    )
