"""The cells of a table with a column for each stored run, the newest on the left."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.results.case_table import CASE, EMPTY, INPUT, Cell, Column, outcome_cell
from workbench.results.faces import FACES, FROZEN, STALE, Status
from workbench.store.execution import Execution
from workbench.store.history.reading import load_summary
from workbench.store.history.run_list import list_runs
from workbench.store.history.summary import Summary
from workbench.store.rates import are_enough, case_votes
from workbench.text.counting import compared, sign
from workbench.text.safe_text import one_line
from workbench.ui.session import relative_times, run_labels
from workbench.ui.table.sources import Cases, Name
from workbench.ui.tree.outline import Pair

MOST_RUNS = 20
_MAX_EXECUTIONS = 200_000
"""Maximum number of executions to read. A summary of 10,000 takes about 0.1 s."""
_REASON = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict of a case in a run: of its worst execution, with the score that decided it."""

    status: Status
    score: float | None
    threshold: float | None
    why: str
    passed: int = 0
    total: int = 1
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class RunOutcomes:
    """A run and its verdicts of the table's cases. It `is_comparable` if it decided at least half of them."""

    run_id: str
    started: str
    cases: Mapping[Name, Outcome]
    is_comparable: bool


class PastRuns:
    """The stored runs of some cases, as far as they are read."""

    def __init__(self, wanted: Collection[Name]) -> None:
        self._wanted = frozenset(wanted)
        self.runs: list[RunOutcomes] = []
        self.is_complete = False

    def reading(self, state: Path, active: str) -> Iterator[RunOutcomes]:
        """Yield the newest runs with a verdict of these cases, except those that were read already.

        `active` is the ID of a run that has not ended. Reads summaries, so call it and `next` in a thread.
        """
        known = {run.run_id for run in self.runs} | {active}
        files = {file for file, _ in self._wanted}
        return self._read(state, known, files)

    def add(self, run: RunOutcomes) -> None:
        """Add a run that was read."""
        self.runs = sorted([*self.runs, run], key=lambda one: (one.started, one.run_id), reverse=True)[:MOST_RUNS]

    def _read(self, state: Path, known: Collection[str], files: set[str]) -> Iterator[RunOutcomes]:
        found = len(known) - 1
        executions = 0
        for entry in list_runs(state).runs:
            if found >= MOST_RUNS or executions > _MAX_EXECUTIONS:
                return
            if entry.run_id in known or files.isdisjoint(entry.files):
                continue
            executions += entry.total
            try:
                summary, _ = load_summary(state, entry.run_id)
            except (OSError, ValueError):
                continue
            run = self._outcomes(summary)
            if run.cases:
                found += 1
                yield run

    def _outcomes(self, summary: Summary) -> RunOutcomes:
        cases: dict[Name, list[Execution]] = {}
        for one in summary.executions.values():
            if one.ref.name in self._wanted and one.decides_case:
                cases.setdefault(one.ref.name, []).append(one)
        votes = case_votes(one for every in cases.values() for one in every)
        outcomes = {name: _outcome(every) for name, every in cases.items()}
        return RunOutcomes(summary.run_id, summary.started, outcomes, are_enough(votes, self._wanted))


def _outcome(executions: Sequence[Execution]) -> Outcome:
    worst = min(executions, key=lambda one: FACES[one.state].rank)
    found = worst.decisive
    score, threshold = (None, None) if found is None else (found.score, found.threshold or 0.0)
    passed = sum(one.state == "passed" for one in executions)
    why = "" if worst.state == "passed" else _why(worst)
    return Outcome(worst.state, score, threshold, why, passed, len(executions), worst.frozen is not None)


def _why(execution: Execution) -> str:
    """Return why an execution did not pass: its error, or the first criterion that did not pass. Raw text."""
    if (error := execution.broken_by) is not None:
        return (error.message or error.kind)[:_REASON]
    for name, result in execution.scores.items():
        if result.status == execution.state:
            return f"{name}: {result.reason}"[:_REASON]
    return ""


class RunCells:
    """The verdict of each case in the newest stored runs."""

    def __init__(self, cases: Cases, runs: PastRuns) -> None:
        self.cases, self._runs = cases, runs
        self.columns: tuple[Column, ...] = (CASE, INPUT)
        self._by_id: dict[str, RunOutcomes] = {}

    @property
    def title(self) -> str:
        """The columns."""
        return "cases × runs" if self._runs.is_complete else "cases × runs, reading"

    def update(self, pairs: Sequence[Pair]) -> None:
        """Make the columns of the runs read so far."""
        now = relative_times.now()
        self._by_id = {run.run_id: run for run in self._runs.runs}
        columns = (
            Column(
                "run", run_labels.column_time(run.started, now), run.run_id, "" if run.is_comparable else STALE.glyph
            )
            for run in self._runs.runs
        )
        self.columns = (CASE, INPUT, *columns)

    def cell(self, pair: Pair, column: Column) -> Cell:
        """Return a cell."""
        if column.kind != "run":
            return self.cases.cell(pair, column)
        found = self._found(pair, column)
        if found is None:
            return EMPTY
        cell = outcome_cell(found.status, found.score, found.threshold)
        return cell if not found.frozen else cell._replace(shown=f"{FROZEN.glyph}{cell.text}")

    def explain(self, pair: Pair, column: Column) -> str:
        """Return a sentence about a cell."""
        if column.kind != "run":
            return self.cases.explain(pair, column)
        run = self._by_id[column.name]
        when = run_labels.exact_time(run.started, relative_times.now())
        head = f"{self.cases.name(pair)} in the run of {when}: "
        found = self._found(pair, column)
        few = (
            "" if run.is_comparable else f"; {STALE.glyph} not comparable: it decided {len(run.cases):,} of these cases"
        )
        if found is None:
            return f"{head}no verdict{few}"
        words = FACES[found.status].word
        if found.total > 1:
            words += f", {found.passed} of {found.total} passed"
        words += f", {FROZEN.glyph} {FROZEN.word}" if found.frozen else ""
        if found.score is not None and found.threshold is not None:
            shown, limit = compared(found.score, found.threshold, 2, 2)
            words += f", {shown} {sign(found.score, found.threshold)} {limit}"
        return head + ", ".join(filter(None, (words, one_line(found.why)))) + few

    def _found(self, pair: Pair, column: Column) -> Outcome | None:
        run = self._by_id.get(column.name)
        return None if run is None else run.cases.get(self.cases.key(pair))
