"""The cases of a kept run as a list: the run itself, its evalsets, and below each its cases."""

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.events import CaseRef
from workbench.history.summary import Row, Summary
from workbench.ui.history.words import counts, evalset_name
from workbench.ui.status import FACES, Status
from workbench.ui.tree.labels import label, shown_score, style_of
from workbench.ui.tree.query import Query, parse_query
from workbench.ui.widgets.rows import Piece, RowView

_SCORE_FROM = 30


@dataclass(frozen=True, slots=True)
class Line:
    """The run (`name` ""), an evalset, or with `row` a case."""

    name: str = ""
    row: Row | None = None

    @property
    def ref(self) -> CaseRef | None:
        return None if self.row is None else CaseRef(*self.row["ref"])


def state_of(row: Row) -> Status:
    """A case that did not end has no verdict."""
    status = row["status"]
    return status if status in FACES else "not_run"


class CaseRows(RowView):
    """Draws the rows of a summary."""

    def __init__(self) -> None:
        super().__init__()
        self._summary = Summary()
        self._query = parse_query("")
        self._lines: list[Line] = [Line()]

    def show_run(self, summary: Summary) -> None:
        """Shows another run, from its first problem on."""
        self._summary = summary
        self._lay_out()
        if not self.next_problem(1):
            self.when_moved()

    def set_query(self, query: Query) -> None:
        """Only the cases that the text and the statuses let through."""
        self._query = query
        self._lay_out()
        self.move_to(self.cursor)
        self.when_moved()

    @property
    def line(self) -> Line:
        """The line under the cursor."""
        return self._lines[min(self.cursor, len(self._lines) - 1)]

    @property
    def cases(self) -> int:
        """How many cases the filter lets through."""
        return sum(line.row is not None for line in self._lines)

    def next_problem(self, step: int) -> bool:
        """To the next (1) or previous (-1) case that failed or erred, from the other end again where there is none
        further on; whether there is any."""
        count = len(self._lines)
        for distance in range(1, count + 1):
            place = (self.cursor + step * distance) % count
            row = self._lines[place].row
            if row is not None and state_of(row) in ("failed", "error", "not_run"):
                self.move_to(place)
                return True
        return False

    # RowView

    def row_count(self) -> int:
        return len(self._lines)

    def can_stop(self, position: int) -> bool:
        line = self._lines[position]
        return line.row is not None or not line.name

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        line = self._lines[position]
        if line.row is None:
            if line.name:
                return [("  ", ""), (label(line.name), "strong")], []
            return [("this run", "strong")], counts(self._summary.came_out()) if self._summary.rows else []
        state, (*_, eval_id, repeat) = state_of(line.row), line.row["ref"]
        left = [("    ", ""), (f"{FACES[state].glyph} ", style_of(state)), (label(str(eval_id)) or "(no id)", "")]
        if repeat != 1:
            left.append((f" #{repeat}", "muted"))
        word = "no end" if state == "not_run" else FACES[state].word
        right = [(word, style_of(state))]
        score = _worst(line.row)
        if score is not None and width >= _SCORE_FROM:
            right.insert(0, (f"{shown_score(*score)} ", "muted"))
        return left, right

    def _lay_out(self) -> None:
        self._lines = [Line()]
        name = ""
        for row in self._summary.rows.values():
            if not self._lets_through(row):
                continue
            agent, file, set_id, *_ = row["ref"]
            heading = " › ".join(filter(None, [str(agent) or "?", str(set_id) or evalset_name(str(file))]))
            if heading != name:
                name = heading
                self._lines.append(Line(heading))
            self._lines.append(Line(heading, row))
        self.rows_changed()

    def _lets_through(self, row: Row) -> bool:
        query = self._query
        text = "/".join(map(str, row["ref"])).lower()
        return all(word in text for word in query.words) and (not query.statuses or state_of(row) in query.statuses)


def _worst(row: Row) -> tuple[float, float] | None:
    """Score and threshold of the criterion that came out worst against its threshold."""
    scored = [
        (metric[0] - (metric[1] or 0.0), metric[0], metric[1] or 0.0)
        for metric in row["metrics"].values()
        if metric[0] is not None and metric[2] in ("passed", "failed")
    ]
    return min(scored)[1:] if scored else None
