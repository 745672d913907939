"""The table of cases: its columns, its cells, and the columns that fit into a width."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from workbench.criteria.description import short_title
from workbench.criteria.registry import descriptions
from workbench.events.events import MetricResult
from workbench.results.cells import cell_len
from workbench.results.faces import BY_FUNCTION, FACES, Status
from workbench.results.judged import is_function
from workbench.store.execution import Execution
from workbench.text.counting import amount, compared, cut_score

Item = TypeVar("Item")


class Rank(IntEnum):
    """Groups of cells in a sorted column, from top to bottom. The sort direction does not change their order."""

    ERROR = 0
    VALUE = 1
    NOT_EVALUATED = 2
    NOT_APPLICABLE = 3
    EMPTY = 4


class Score(NamedTuple):
    """A score that is formatted only when it is drawn, because most cells are only sorted."""

    glyph: str
    score: float
    threshold: float | None

    def __str__(self) -> str:
        # Two decimals, or fewer if the score is large.
        for places in (2, 1, 0):
            text = cut_score(self.score, places)
            if self.threshold is not None:
                text = compared(self.score, self.threshold, places, places)[0]
            if len(text) <= len("0.00"):
                break
        return self.glyph + text.removesuffix(".")


class Cell(NamedTuple):
    """A cell of the table. `status` decides its colour. Cells are sorted by `rank`, and within a rank by `value`."""

    shown: str | Score
    status: Status | None
    rank: Rank
    value: float | str = 0.0

    @property
    def text(self) -> str:
        """The text, safe to show."""
        return str(self.shown)


EMPTY = Cell("", None, Rank.EMPTY)
NOT_APPLICABLE = Cell(FACES["not_applicable"].glyph, "not_applicable", Rank.NOT_APPLICABLE)
NOT_EVALUATED = Cell(FACES["not_evaluated"].glyph, "not_evaluated", Rank.NOT_EVALUATED)
ERROR = Cell(FACES["error"].glyph, "error", Rank.ERROR)
_WITHOUT_SCORE = {"error": ERROR, "not_evaluated": NOT_EVALUATED, "not_applicable": NOT_APPLICABLE}


def criterion_cell(record: Execution | None, name: str, *, configured: bool) -> Cell:
    """Return the cell of a criterion: `✗0.50`, `1.00`, `!`, `?` or `–`.

    `configured` says whether the config of the case has this criterion. If so, the cell is blank until there is a
    verdict.
    """
    result = record.scores.get(name) if record is not None else None
    if result is not None:
        return result_cell(result)
    if not configured:
        return NOT_APPLICABLE
    if record is None or not record.has_verdict:
        return EMPTY
    return _WITHOUT_SCORE.get(record.state, NOT_APPLICABLE)


def result_cell(result: MetricResult) -> Cell:
    """Return the cell of one result. A score below its threshold is never rounded up to the threshold."""
    status, score = result.status, result.score
    if status in _WITHOUT_SCORE:
        return _WITHOUT_SCORE[status]
    if score is None:
        return Cell(FACES[status].glyph, status, Rank.VALUE, float("-inf"))
    if status == "informational":
        return Cell(amount(score), status, Rank.VALUE, score)
    glyph = FACES[status].glyph if status == "failed" else ""
    return Cell(Score(glyph, score, result.threshold), status, Rank.VALUE, score)


def outcome_cell(status: Status, score: float | None, threshold: float | None) -> Cell:
    """Return the verdict of a case: `✓1.00`, `✗0.50`, or only its glyph if no score decided it."""
    if status == "error":
        return ERROR
    if status not in ("passed", "failed"):
        return Cell(FACES[status].glyph, status, Rank.NOT_EVALUATED)
    face = FACES[status]
    if score is None:
        return Cell(face.glyph, status, Rank.VALUE, float("-inf") if status == "failed" else float("inf"))
    # Every failure is worse than every pass, whatever their thresholds are.
    value = score + (status == "passed") * 1e6
    return Cell(Score(face.glyph, score, threshold), status, Rank.VALUE, value)


def seconds_cell(record: Execution | None) -> Cell:
    """Return the duration: `3.2 s`, or `2:04` from a minute on. The cell is blank if there is no verdict yet."""
    if record is None or not record.has_verdict:
        return EMPTY
    seconds = record.duration_seconds
    if seconds < 60:
        # Tenths are cut like scores.
        return Cell(f"{int(seconds * 10) / 10:.1f} s", None, Rank.VALUE, seconds)
    minutes, rest = divmod(int(seconds), 60)
    return Cell(f"{minutes}:{rest:02}", None, Rank.VALUE, seconds)


def tokens_cell(record: Execution | None) -> Cell:
    """Return all reported tokens: `1,204`, `318k`, `–` without any, or a blank cell without a verdict."""
    if record is None or not record.has_verdict:
        return EMPTY
    found = record.usage.tokens
    if not found:
        return NOT_APPLICABLE
    return Cell(f"{found:,}" if found < 100_000 else f"{found // 1000:,}k", None, Rank.VALUE, found)


def cost_cell(record: Execution | None, cost: float | None, *, known: bool) -> Cell:
    """Return the cost: `0.004`, `<.001`, or `?` if a price or a token count is missing.

    The cell is blank if there is no verdict yet, and until costs are `known`.
    """
    if record is None or not record.has_verdict or not known:
        return EMPTY
    if cost is None:
        return NOT_EVALUATED
    text = "0" if not cost else "<.001" if cost < 0.001 else f"{cost:.3f}" if cost < 60 else f"{cost:,.0f}"
    return Cell(text, None, Rank.VALUE, cost)


def in_order(items: Iterable[Item], cell_of: Callable[[Item], Cell], *, descending: bool) -> list[Item]:
    """Return the items sorted by their cells. In both directions, errors come first and missing values last."""
    parts: dict[Rank, list[tuple[Item, float | str]]] = {rank: [] for rank in Rank}
    for item in items:
        cell = cell_of(item)
        parts[cell.rank].append((item, cell.value))
    parts[Rank.VALUE].sort(key=lambda pair: pair[1], reverse=descending)
    return [item for rank in Rank for item, _ in parts[rank]]


Kind: TypeAlias = Literal["case", "input", "criterion", "run", "cost", "tokens", "time"]
_LEAST_WIDTH = 5
"""Cells of a score with its glyph: `✗0.50`."""
_CASE, _INPUT = 22, 16
_MOST_CASE, _MOST_INPUT = 80, 64
"""Maximum widths of names and inputs, in cells. Wider columns would move the scores too far away from them."""
_CASE_IF_NARROW = 18


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table. `name` is the criterion, the run ID, or "". `title` is short, safe text."""

    kind: Kind
    title: str
    name: str = ""
    marks: str = ""
    """`ƒ` if a function judged, `~` if the run cannot be compared."""

    @property
    def largest_first(self) -> bool:
        """Whether the worst value is the largest one."""
        return self.kind in ("cost", "tokens", "time")

    @property
    def width(self) -> int:
        """The width in cells, including the arrow of the sort order, but not the gap on the left."""
        return max(_LEAST_WIDTH, cell_len(self.title) + cell_len(self.marks) + 1)


CASE, INPUT = Column("case", "case"), Column("input", "input")
COST, TOKENS, TIME = Column("cost", "cost"), Column("tokens", "tokens"), Column("time", "time")


def criterion_columns(configured: Iterable[str], records: Iterable[Execution]) -> list[Column]:
    """Return a column for each configured criterion, then for others with a result that counts. Titles are unique."""
    names = dict.fromkeys(configured)
    functions: set[str] = set()
    seen: set[int] = set()
    for record in records:
        for name, result in record.scores.items():
            if id(result) in seen:
                continue
            # Equal verdicts of stored cases share one object, so most are looked at only once.
            seen.add(id(result))
            if name not in names and result.status != "informational":
                names[name] = None
            if result.details and name not in functions and is_function(result):
                functions.add(name)
    columns: list[Column] = []
    taken: set[str] = set()
    for name in names:
        info = descriptions().get(name)
        first = title = info.short if info is not None else short_title(name)
        number = 2
        while title in taken:  # A second `tone` becomes `tone2`.
            title = f"{first[: 6 - len(str(number))]}{number}"
            number += 1
        taken.add(title)
        columns.append(Column("criterion", title, name, BY_FUNCTION.glyph if name in functions else ""))
    return columns


class Shown(NamedTuple):
    """A visible column: its number, and its width in cells without the gap on the left."""

    number: int
    width: int


class Layout(NamedTuple):
    """The visible columns. `first` is the number of the first scrolling column.

    `more_left` and `more_right` say whether columns are hidden on that side.
    """

    shown: tuple[Shown, ...]
    first: int
    more_left: bool
    more_right: bool


def reachable(columns: Sequence[Column], room: int, terminal: int) -> list[int]:
    """Return the numbers of the columns that a terminal of this width can show, if necessary by scrolling."""
    numbers = range(len(columns))
    if terminal >= 80:  # Narrower terminals hide the input, then cost and tokens.
        return list(numbers)
    kept = [number for number in numbers if columns[number].kind != "input"]
    needed = sum(columns[number].width + 1 for number in kept[1:])
    if needed + _CASE_IF_NARROW > room:
        kept = [number for number in kept if columns[number].kind not in ("cost", "tokens")]
    return kept


def lay_out(columns: Sequence[Column], room: int, terminal: int, names: int, first: int, cursor: int) -> Layout:
    """Choose the columns to show in `room` cells.

    The case and the input do not scroll. The others scroll no further than needed to show the column of the `cursor`.
    `terminal` is the width of the terminal, and `names` that of the longest case name. `first` is the first scrolling
    column so far.
    """
    numbers = reachable(columns, room, terminal)
    frozen = [number for number in numbers if columns[number].kind in ("case", "input")]
    rest = numbers[len(frozen) :]
    needed = sum(columns[number].width + 1 for number in rest)
    widths = _frozen_widths(len(frozen), room, needed, names)
    left = room - sum(widths) - (len(widths) - 1)
    start = next((place for place, number in enumerate(rest) if number >= first), 0)
    if cursor in rest:
        start = min(start, rest.index(cursor))
        while start < rest.index(cursor) and not _fits(columns, rest[start : rest.index(cursor) + 1], left):
            start += 1
    # No room stays empty on the right while there are columns on the left.
    while start and _fits(columns, rest[start - 1 :], left):
        start -= 1
    shown = [Shown(number, width) for number, width in zip(frozen, widths, strict=True)]
    end = start
    for number in rest[start:]:
        width = columns[number].width
        if left < width + 1:
            break
        shown.append(Shown(number, width))
        left -= width + 1
        end += 1
    # The last column that stays gets the remaining width, as far as it needs it.
    last = shown[len(frozen) - 1]
    most = _MOST_INPUT if columns[last.number].kind == "input" else max(names + 2, _CASE)
    shown[len(frozen) - 1] = last._replace(width=max(last.width, min(last.width + left, most)))
    first = rest[start] if rest else len(columns)
    return Layout(tuple(shown), first, start > 0, end < len(rest))


def _frozen_widths(count: int, room: int, needed: int, names: int) -> list[int]:
    """Return the widths of the columns that stay. The case is as wide as names need if all others still fit."""
    inputs = [_INPUT] if count > 1 else []
    least, beside = _CASE if inputs else _CASE_IF_NARROW, _INPUT + 1 if inputs else 0
    wanted = max(min(names + 2, _MOST_CASE), least)
    return [max(min(wanted, max(room - needed - beside, least), room - beside), 1), *inputs]


def _fits(columns: Sequence[Column], numbers: Sequence[int], room: int) -> bool:
    return sum(columns[number].width + 1 for number in numbers) <= room
