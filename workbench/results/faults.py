"""The table of tool faults: how agents reacted to failing tools, by tool and by kind of failure.

The printed table has a row for each tool. On the screen, a row can also be a single case. All text is safe for a
terminal.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from workbench.events.events import CaseStatus, FaultHandling, FaultOutcome, FaultWay, PlannedCase, ToolFault
from workbench.results.cells import cell_len, cut, fit
from workbench.results.faces import BY_FUNCTION, FACES, Status
from workbench.run.fault_outcome import STATUS, WAYS
from workbench.store.execution import Execution
from workbench.store.reasons import is_without_model, judged_by
from workbench.text.counting import counted
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
    "cancelled": "cancelled",
    "not_called": "not called",
}
"""Names of outcomes in tables, the worst first."""
_GAP = "  "
_INDENT = "    "
_WIDTH = 78
"""Maximum width, in cells, of a line with the tool beside its outcomes. The summary's indent makes it 80."""


class Outcome(NamedTuple):
    """An outcome in a cell: the number of executions that had it, and whether a function decided any of them."""

    outcome: FaultOutcome
    times: int
    by_function: bool

    @property
    def text(self) -> str:
        """The glyph and the name of the outcome, with `ƒ` if a function decided: `✓ recovered`, `✗ made upƒ`."""
        glyph = "–" if self.outcome == "not_called" else FACES[STATUS[self.outcome]].glyph
        return f"{glyph} {WORDS[self.outcome]}{BY_FUNCTION.glyph if self.by_function else ''}"


def outcomes(records: Iterable[Execution]) -> tuple[Outcome, ...]:
    """Return the outcomes of finished executions with faults, the worst first."""
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
    """Return how the agent reacted to the fault, `cancelled`, or `no_result` if the execution could not start."""
    if record.state == "cancelled":
        return "cancelled"
    return "no_result" if record.handling is None else record.handling.outcome


def by_function(handling: FaultHandling) -> bool:
    """Return whether the outcome was decided by a function, not by a language model."""
    return is_without_model(judged_by(handling.details))


def fault_title(planned: PlannedCase) -> str:
    """Return the tool and how it fails: `search · timeout`, or "" for an execution without a fault."""
    fault = planned.fault
    return "" if fault is None else f"{one_line(fault.tool, limit=100)} · {WAYS[fault.way].title}"


def fault_words(fault: ToolFault) -> str:
    """Return how a tool failed, as safe text: `find_order failed (timeout)`."""
    return f"{one_line(fault.tool, limit=100)} failed ({WAYS[fault.way].title})"


def handling_text(handling: FaultHandling) -> str:
    """Return the outcome with its reason: `made up (function): reason`."""
    text = f"{WORDS[handling.outcome]}{' (function)' if by_function(handling) else ''}"
    return f"{text}: {one_line(handling.reason)}" if handling.reason else text


def cell_text(cell: Sequence[Outcome]) -> str:
    """Return the outcomes of a cell: `✓ recovered`, or for several executions `! crashed 1, ✓ recovered 2`."""
    several = sum(outcome.times for outcome in cell) > 1
    return ", ".join(f"{outcome.text} {outcome.times:,}" if several else outcome.text for outcome in cell)


class TableLine(NamedTuple):
    """A line of the table. `spans` has the start, end and status of each cell. Headings have none."""

    text: str
    spans: tuple[tuple[int, int, CaseStatus], ...] = ()


def table_lines(records: Iterable[Execution]) -> Iterator[TableLine]:
    """Yield the table as lines of text, with agents above their tools. In a wide table, tools are above their cells."""
    rows = fault_rows(records)
    names = [f"  {cut(row.name, 60)}" for row in rows]
    cells = [[outcomes(row.cells[way]) for way in WAYS] for row in rows]
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
    """Return the number of executions by outcome: `3 crashed, 2 made up, 10 recovered`, or "" if none has finished.

    With `signs`, each number is followed by a glyph: `3! crashed, 2✗ made up, 10✓ recovered`.
    """
    return ", ".join(
        f"{outcome.times:,}{outcome.text[:1] if signs else ''} {WORDS[outcome.outcome]}"
        for outcome in outcomes(records)
    )


Cell: TypeAlias = tuple[Execution, ...]
"""The executions of a cell, the worst first."""

_SHORT_WORDS: Final[Mapping[FaultOutcome, str]] = {
    **WORDS,
    "off_recording": "off rec.",
    "not_evaluated": "not ev.",
    "not_called": "no call",
}
"""Names of outcomes as in `WORDS`, but in at most nine cells."""
_PROBLEMS: Final[frozenset[FaultOutcome]] = frozenset({"crashed", "made_up", "off_recording", "silent", "no_result"})
_RANKS = {outcome: rank for rank, outcome in enumerate(WORDS)}
_GRID_INDENT = 2
_LEAST = 11
"""The minimum width of a column, which keeps it from changing with each result."""


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row of the table: a heading without cells, or the cells of a tool or case. `name` is safe text.

    `agent` and `tool` are raw. `tool` is "" in the heading of an agent.
    """

    name: str
    agent: str
    tool: str = ""
    cells: Mapping[FaultWay, Cell] = field(default_factory=dict)

    @property
    def is_heading(self) -> bool:
        """Whether the row has no cells."""
        return not self.cells


def fault_rows(records: Iterable[Execution]) -> list[GridRow]:
    """Return a row for each tool of each agent, in the order of the plan."""
    return [row for row in grid_rows(records, by_case=False) if not row.is_heading]


def grid_rows(records: Iterable[Execution], *, by_case: bool) -> list[GridRow]:
    """Return the rows in the order of the plan: agents with their tools, and with `by_case` the cases of each tool."""
    found: dict[str, dict[str, dict[tuple[str, str], dict[FaultWay, list[Execution]]]]] = {}
    for record in records:
        fault = record.planned.fault
        if fault is not None:
            case = record.ref.name if by_case else ("", "")
            of_tool = found.setdefault(record.ref.agent, {}).setdefault(fault.tool, {})
            of_tool.setdefault(case, {}).setdefault(fault.way, []).append(record)
    rows = []
    for agent, tools in found.items():
        rows.append(GridRow(one_line(agent, limit=100) or "?", agent))
        for tool, cases in tools.items():
            name = one_line(tool, limit=100)
            if by_case:
                rows.append(GridRow(name, agent, tool))
            for (_, eval_id), ways in cases.items():
                cells = {way: tuple(sorted(ways.get(way, ()), key=_rank)) for way in WAYS}
                rows.append(GridRow(one_line(eval_id, limit=200) if by_case else name, agent, tool, cells))
    return rows


def _rank(record: Execution) -> int:
    return _RANKS[outcome_of(record)] if record.finished else len(_RANKS)


def is_problem(cell: Cell) -> bool:
    """Return whether the agent failed to handle a fault in this cell, or an execution ended without a result."""
    return any(record.finished and outcome_of(record) in _PROBLEMS for record in cell)


def status_of(cell: Cell) -> Status:
    """Return the status of the worst outcome in a cell. Without an outcome, return `running` or `queued`."""
    ended = [record for record in cell if record.finished]
    if ended:
        return STATUS[outcome_of(ended[0])]
    return "running" if any(record.state == "running" for record in cell) else "queued"


class Columns(NamedTuple):
    """The widths of the name and of each kind of failure. `short` is the form of their texts.

    `above` puts names above their cells.
    """

    name: int
    ways: tuple[int, ...]
    short: bool
    above: bool

    def titles(self) -> list[str]:
        """Return the titles of the kinds of failure, each as wide as its column."""
        return [fit(way.title, width - 1) + " " for way, width in zip(WAYS.values(), self.ways, strict=True)]


def columns_for(rows: Sequence[GridRow], width: int) -> Columns:
    """Return the columns with the longest texts that fit into `width` cells. Names get the remaining width."""
    longest = max((cell_len(row.name) for row in rows if not row.is_heading), default=0) + _GRID_INDENT + 2
    beside = min(longest, 24 + _GRID_INDENT + 2)
    for first in (beside, _GRID_INDENT - 1):
        for short in (False, True):
            least = {way: _LEAST if short else max(_LEAST, len(WAYS[way].title)) for way in WAYS}
            texts = {way: [text_of(row.cells[way], short=short) for row in rows if row.cells] for way in WAYS}
            ways = tuple(max([least[way], *map(cell_len, texts[way])]) + 1 for way in WAYS)
            spare = width - (first + sum(ways) - 1)
            if spare >= 0:
                above = first < beside
                return Columns(first if above else min(first + spare, longest), ways, short, above)
    share = max((width - 1) // len(WAYS), 2)
    return Columns(1, (share,) * len(WAYS), True, True)


def text_of(cell: Cell, *, short: bool) -> str:
    """Return the text of a cell: `✓ recovered`. Several executions give `✗ made up 2, ✓ recovered 1` or `2✗ 1✓`.

    Until an execution has finished, it is the glyph of the cell's status. An empty cell has the text "".
    """
    ended = outcomes(cell)
    if not cell:
        return ""
    if not ended:
        return FACES[status_of(cell)].glyph
    if not short and all(record.finished for record in cell):
        return cell_text(ended)
    if len(cell) > 1:
        signs = Counter[str]()
        for one in ended:
            signs[one.text[:1]] += one.times
        found = [f"{times:,}{sign}" for sign, times in signs.items()]
        rest = len(cell) - sum(signs.values())
        return " ".join([*found, *([f"{rest:,}{FACES['queued'].glyph}"] if rest else [])])
    (one,) = ended
    sign = BY_FUNCTION.glyph if one.by_function else ""
    return f"{one.text[:1]} {_SHORT_WORDS[one.outcome]}{sign}"


def about_cell(row: GridRow, way: FaultWay) -> tuple[str, str]:
    """Return a description of a cell, `find_order · timeout: 2 made up`, and the reason of its worst outcome or ""."""
    cell = row.cells.get(way, ())
    ended = outcomes(cell)
    parts = [WORDS[one.outcome] if len(cell) == 1 else f"{one.times:,} {WORDS[one.outcome]}" for one in ended]
    waiting = sum(not record.finished for record in cell)
    if waiting:
        word = FACES[status_of(tuple(record for record in cell if not record.finished))].word
        several = f"{waiting:,} {word if waiting == len(cell) else 'to come'}"
        parts.append(word if len(cell) == 1 else several)
    tool = one_line(row.tool, limit=100)
    name = tool if row.name == tool else f"{tool} · {row.name}"
    first = f"{name} · {WAYS[way].title}: {', '.join(parts) or 'not run'}"
    worst = cell[0] if cell else None
    if worst is None or worst.handling is None:
        return first, ""
    who = f"{BY_FUNCTION.glyph} " if by_function(worst.handling) else ""
    return first, f"{who}{one_line(worst.handling.reason)}"


def progress_text(records: Sequence[Execution]) -> str:
    """Return the progress: `7 of 15 faults`, or `15 faults` if all have finished."""
    ended = sum(record.finished for record in records)
    return counted(len(records), "fault") if ended == len(records) else f"{ended:,} of {counted(len(records), 'fault')}"
