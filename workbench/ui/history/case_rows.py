"""The cases of a kept run as a list: the run itself, its evalsets, and below each its cases."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from workbench.events import CaseError, CaseRef
from workbench.history.summary import Row, Summary, has_verdict
from workbench.rates import PassRate, pass_rate
from workbench.rates import counts as counting
from workbench.rendering.faces import FACES, FLAKY, Status
from workbench.repeats.wording import percent
from workbench.scores import cut_score, decisive
from workbench.ui.history.words import counts, evalset_name
from workbench.ui.tree.labels import label, style_of
from workbench.ui.tree.query import Query, parse_query
from workbench.ui.widgets.rows import Piece, RowView

_Case: TypeAlias = tuple[str, ...]
_SCORE_FROM = 30
_PROBLEMS = ("failed", "error")


@dataclass(frozen=True, slots=True)
class Line:
    """The run (`name` ""), an evalset, or with `row` an execution of a case; with `repeats` the case itself, of which
    these are all executions and `row` is the one that came out worst."""

    name: str = ""
    row: Row | None = None
    repeats: tuple[Row, ...] = ()
    below: bool = False
    """Whether it is one of several executions."""
    unfolded: bool = False
    """Whether its executions stand below it."""

    @property
    def ref(self) -> CaseRef | None:
        return None if self.row is None else CaseRef(*self.row["ref"])

    @property
    def refs(self) -> tuple[CaseRef, ...]:
        """All executions that it stands for."""
        return tuple(CaseRef(*row["ref"]) for row in self.repeats) or ((self.ref,) if self.ref is not None else ())


def state_of(run: Summary, row: Row) -> Status:
    """Return the status of a case in its run; `not_run` if neither its end nor that of the run is known."""
    if row["status"] is None and run.seconds is None:
        return "not_run"
    status = run.status_of(row)
    return status if status in FACES else "error"


class CaseRows(RowView):
    """Draws the rows of a summary."""

    def __init__(self) -> None:
        super().__init__()
        self._summary = Summary()
        self._query = parse_query("")
        self._unfolded: set[_Case] = set()
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

    def unfold(self) -> bool:
        """Shows the executions of the case under the cursor; whether it had any to show."""
        line = self.line
        if not line.repeats or line.unfolded:
            return False
        self._unfolded.add(_case(line.repeats[0]))
        self._lay_out()
        self.when_moved()
        return True

    def fold(self) -> bool:
        """Hides the executions of the case under the cursor, of which it may be one; whether any were shown."""
        line = self.line
        if line.row is None or not (line.below or line.unfolded):
            return False
        case = _case(line.row)
        self._unfolded.discard(case)
        self._lay_out()
        self.move_to(next(place for place, one in enumerate(self._lines) if one.row and _case(one.row) == case))
        self.when_moved()
        return True

    @property
    def cases(self) -> int:
        """How many cases the filter lets through."""
        return sum(line.row is not None and not line.below for line in self._lines)

    def next_problem(self, step: int) -> bool:
        """To the next (1) or previous (-1) case that failed or erred, from the other end again where there is none
        further on; whether there is any."""

        def is_problem(place: int) -> bool:
            line = self._lines[place]
            return line.row is not None and not line.below and self._state(line.row) in _PROBLEMS

        return self.next_where(is_problem, step)

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
        state, (*_, eval_id, repeat) = self._state(line.row), line.row["ref"]
        sign: Piece = (f"{FACES[state].glyph} ", style_of(state))
        if line.below:
            left = [("      ", ""), sign, (f"#{repeat}", "muted")]
        else:
            left = [("    ", ""), sign, (label(str(eval_id)) or "(no id)", "")]
        if line.repeats:
            left[0] = ("  ▾ " if line.unfolded else "  ▸ ", "muted")
            rate = _rate(line.repeats)
            if rate.flaky:
                left[1] = (f"{FLAKY.glyph} ", "flaky")
            return left, list(_repeated(rate, state, width))
        word = "no end" if state == "not_run" else FACES[state].word
        right = [(word, style_of(state))]
        score = decisive((metric[0], metric[1], metric[2]) for metric in line.row["metrics"].values())
        if score is not None and width >= _SCORE_FROM:
            right.insert(0, (f"{cut_score(score[0], 2, 2)} ", "muted"))
        return left, right

    def _lay_out(self) -> None:
        self._lines = [Line()]
        name = ""
        cases: dict[_Case, list[Row]] = {}
        for row in self._summary.rows.values():
            cases.setdefault(_case(row), []).append(row)
        for case, rows in cases.items():
            agent, file, set_id, _ = case
            shown = [row for row in rows if self._lets_through(row)]
            heading = " › ".join(filter(None, [str(agent) or "?", str(set_id) or evalset_name(str(file))]))
            if shown and heading != name:
                name = heading
                self._lines.append(Line(heading))
            several, unfolded = len(rows) > 1, case in self._unfolded
            if shown and several:
                decided = [row for row in rows if has_verdict(row)] or rows
                worst = min(decided, key=lambda row: FACES[self._state(row)].rank)
                self._lines.append(Line(heading, worst, tuple(rows), unfolded=unfolded))
            if unfolded or not several:
                self._lines += [Line(heading, row, below=several) for row in shown]
        self.rows_changed()

    def _state(self, row: Row) -> Status:
        return state_of(self._summary, row)

    def _lets_through(self, row: Row) -> bool:
        query = self._query
        text = "/".join(map(str, row["ref"])).lower()
        return all(word in text for word in query.words) and (not query.statuses or self._state(row) in query.statuses)


def _case(row: Row) -> _Case:
    return tuple(row["ref"][:4])


def _rate(rows: Sequence[Row]) -> PassRate:
    """How often a case passed, of the executions that count."""
    counted = [row["status"] == "passed" for row in rows if row["status"] and counting(row["status"], _error(row))]
    return pass_rate(sum(counted), len(counted))


def _error(row: Row) -> CaseError | None:
    return CaseError(*row["error"]) if row["error"] else None


def _repeated(rate: PassRate, state: Status, width: int) -> Iterator[Piece]:
    """`3/5 60 % flaky`, as in the tree of the main screen."""
    yield f"{rate.passed}/{rate.total} ", "muted"
    if width >= _SCORE_FROM and rate.rate is not None:
        yield f"{percent(rate.rate)} ", "muted"
    word = "no end" if state == "not_run" else FACES[state].word
    yield (FLAKY.word, "flaky") if rate.flaky else (word, style_of(state))
