"""The list of runs on the screen, and its filter."""

from collections.abc import Sequence

from workbench.history.kept_runs import KeptRun
from workbench.rendering.cells import cell_len, cut, fit
from workbench.text import one_line
from workbench.ui import aging
from workbench.ui.history import words
from workbench.ui.widgets.rows import Piece, RowsOf

_WHEN, _BAR, _COUNTS, _CHANGE, _SECONDS, _CALLS, _COMMIT = 13, 8, 13, 5, 8, 13, 10
_SECONDS_FROM, _BAR_FROM, _COMMIT_FROM, _CALLS_FROM = 66, 74, 90, 110
"""The widths from which on these columns are shown."""

_LEAST = 6
"""Cells of a name that are always seen."""


class RunRows(RowsOf[KeptRun]):
    """Draws runs, and keeps which are marked, by the file that holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: list[KeptRun] = []
        self.baseline: str | None = None
        self.running = ""
        """The id of the run that is going on in this session."""

    def show_runs(self, runs: Sequence[KeptRun]) -> None:
        """Shows other runs; the cursor stays on its run if that is among them."""
        before = self.row.path if self.rows and self._cursor else None
        self.rows = runs
        place = next((number for number, run in enumerate(runs) if run.path == before), None) if before else None
        self.rows_changed()
        self._cursor = min(self._cursor, max(len(runs) - 1, 0)) if place is None else place
        self.scroll_to(y=max(0, self._cursor - self.size.height // 2), animate=False)
        self.show_cursor()
        self.when_moved()

    def toggle_mark(self) -> None:
        """Marks the run and goes one down, or unmarks it. Of more than two, the last two stay."""
        run = self.row_or_none
        if run is None or run.trouble:
            return
        if any(one.path == run.path for one in self.marked):
            self.marked = [one for one in self.marked if one.path != run.path]
        else:
            self.marked = [*self.marked, run][-2:]
        self.refresh()
        self.move("down")

    # RowView

    def is_marked(self, position: int) -> bool:
        return any(run.path == self.rows[position].path for run in self.marked)

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        run = self.rows[position]
        left: list[Piece] = [(fit(words.when(run.started, aging.now()), _WHEN), "label")]
        special = words.flags(run, baseline=self.baseline, running=self.running)
        if run.trouble:
            return [*left, (f"! {special[0]}  ", "error"), (one_line(run.run_id), "muted")], []
        right = list(self._right(run, width))
        marks = f"  {', '.join(special)}" if special else ""
        # What is special is worth more than the end of a name.
        room = width - _WHEN - sum(cell_len(text) for text, _ in right) - cell_len(marks) - 1
        left += [(cut(words.what(run), max(room, _LEAST)), ""), (marks, "accent")]
        return left, right

    def _right(self, run: KeptRun, width: int) -> list[Piece]:
        right: list[Piece] = []
        if width >= _BAR_FROM:
            right += [*words.meter(run.counts, _BAR), ("  ", "")]
        right += _column(words.counts(run.counts), _COUNTS)
        right += _column([words.change(run.better)], _CHANGE)
        if width >= _SECONDS_FROM:
            right += _column([(words.seconds(run.seconds), "muted")], _SECONDS)
        if width >= _CALLS_FROM:
            told = f"{words.short(run.tokens)} tokens" if run.tokens else f"{words.short(run.calls)} calls"
            right += _column([(told if run.calls or run.tokens else "", "muted")], _CALLS)
        if width >= _COMMIT_FROM:
            right += [("  ", ""), (fit(words.commit(run), _COMMIT - 1), "muted")]
        return right


def _column(pieces: list[Piece], width: int) -> list[Piece]:
    """The pieces at the right of so many cells."""
    taken = sum(cell_len(text) for text, _ in pieces)
    return [(" " * max(width - taken, 1), ""), *pieces]


_STATUSES = {"pass": "passed", "fail": "failed", **{name: name for name in ("error", "not_evaluated", "cancelled")}}


class RunFilter:
    """Words must all stand in a run's id, time, agents, evalsets, commit or flags; `:fail`, `:error`, `:cancelled`: it
    has such cases, `:pass`: it has no others; any other `:word` is a flag (`:baseline`, `:adk`, `:interrupted`)."""

    def __init__(self, text: str) -> None:
        tokens = text.lower().split()
        self._words = [token for token in tokens if not token.startswith(":")]
        self._flags = [token[1:] for token in tokens if len(token) > 1 and token.startswith(":")]

    def lets_through(self, run: KeptRun, flags: Sequence[str]) -> bool:
        """Whether the run is shown."""
        if not self._words and not self._flags:
            return True
        text = " ".join([run.run_id, run.started, *run.agents, *run.files, run.commit, *flags]).lower()
        return all(word in text for word in self._words) and all(self._has(flag, run, flags) for flag in self._flags)

    def _has(self, flag: str, run: KeptRun, flags: Sequence[str]) -> bool:
        names = [status for word, status in _STATUSES.items() if word.startswith(flag)]
        if "passed" in names:
            return run.total > 0 and run.counts.get("passed", 0) == run.total
        if names:
            return any(run.counts.get(name) for name in names)
        return any(word.startswith(flag) for one in flags for word in one.split())
