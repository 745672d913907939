"""Cells of a table of cases: their texts, and the order of a column."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple, TypeVar

from workbench.events.events import MetricResult
from workbench.results.faces import FACES, Status
from workbench.store.execution import Execution
from workbench.text.counting import amount, compared, cut_score

Item = TypeVar("Item")
_MINUTE = 60
_MANY = 100_000
_SMALL_COST = 0.001


class Rank(IntEnum):
    """The parts of a sorted column, the first at the top in both directions."""

    ERROR = 0
    VALUE = 1
    NOT_EVALUATED = 2
    NOT_APPLICABLE = 3
    EMPTY = 4


class Score(NamedTuple):
    """A score whose text is made when it is drawn. Most cells are only sorted."""

    glyph: str
    score: float
    threshold: float | None

    def __str__(self) -> str:
        return self.glyph + _cut(self.score, self.threshold)


class Cell(NamedTuple):
    """A cell. `status` decides its colour, `value` its place among the cells with a value."""

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


def criterion_cell(record: Execution | None, name: str, *, configured: bool) -> Cell:
    """Return `✗0.50`, ` 1.00`, `!`, `?` or `–`, or an empty cell without a verdict yet.

    `configured` says whether the case has this criterion according to its files.
    """
    result = record.scores.get(name) if record is not None else None
    if result is not None:
        return result_cell(result)
    if not configured:
        return NOT_APPLICABLE
    if record is None or not record.has_verdict:
        return EMPTY
    return {"error": ERROR, "not_evaluated": NOT_EVALUATED}.get(record.state, NOT_APPLICABLE)


def result_cell(result: MetricResult) -> Cell:
    """Return the cell of one result. Its score is cut, so that it never seems to reach its threshold."""
    match result.status:
        case "error":
            return ERROR
        case "not_evaluated":
            return NOT_EVALUATED
        case "not_applicable":
            return NOT_APPLICABLE
    return _scored(result.status, result.score, result.threshold)


def outcome_cell(status: Status, score: float | None, threshold: float | None) -> Cell:
    """Return the verdict of a whole case, `✓1.00` or `✗0.50`: glyph, and the score that decided it."""
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


def _scored(status: Status, score: float | None, threshold: float | None) -> Cell:
    glyph = FACES[status].glyph if status == "failed" else ""
    if score is None:
        return Cell(FACES[status].glyph, status, Rank.VALUE, float("-inf"))
    if status == "informational":
        return Cell(amount(score), status, Rank.VALUE, score)
    return Cell(Score(glyph, score, threshold), status, Rank.VALUE, score)


def _cut(score: float, threshold: float | None) -> str:
    """Return a score with two decimals, or fewer if it is large."""
    for places in (2, 1, 0):
        text = compared(score, threshold, places, places)[0] if threshold is not None else cut_score(score, places)
        if len(text) <= len("0.00"):
            break
    return text.removesuffix(".")


def seconds_cell(record: Execution | None) -> Cell:
    """Return `3.2 s`, or `2:04 m` from a minute on."""
    if record is None or not record.has_verdict:
        return EMPTY
    seconds = record.duration_seconds
    if seconds < _MINUTE:
        # Tenths are cut like scores.
        return Cell(f"{int(seconds * 10) / 10:.1f} s", None, Rank.VALUE, seconds)
    minutes, rest = divmod(int(seconds), _MINUTE)
    return Cell(f"{minutes}:{rest:02}", None, Rank.VALUE, seconds)


def tokens_cell(record: Execution | None) -> Cell:
    """Return `1,204` or `318k`: the tokens of the agent, the simulated user and the judges. None were reported: `–`."""
    if record is None or not record.has_verdict:
        return EMPTY
    found = record.usage.tokens
    if not found:
        return NOT_APPLICABLE
    return Cell(f"{found:,}" if found < _MANY else f"{found // 1000:,}k", None, Rank.VALUE, found)


def cost_cell(record: Execution | None, cost: float | None, *, known: bool) -> Cell:
    """Return `0.004`, `<.001`, or `?` if a price or a token count is missing. Not `known` yet: an empty cell."""
    if record is None or not record.has_verdict or not known:
        return EMPTY
    if cost is None:
        return NOT_EVALUATED
    text = "0" if not cost else "<.001" if cost < _SMALL_COST else f"{cost:.3f}" if cost < _MINUTE else f"{cost:,.0f}"
    return Cell(text, None, Rank.VALUE, cost)


def in_order(items: Iterable[Item], cell_of: Callable[[Item], Cell], *, descending: bool) -> list[Item]:
    """Return the items sorted by their cells. Errors come first and missing values last, in both directions.

    Items with equal cells keep their order.
    """
    parts: dict[Rank, list[tuple[Item, float | str]]] = {rank: [] for rank in Rank}
    for item in items:
        cell = cell_of(item)
        parts[cell.rank].append((item, cell.value))
    parts[Rank.VALUE].sort(key=lambda pair: pair[1], reverse=descending)
    return [item for rank in Rank for item, _ in parts[rank]]
