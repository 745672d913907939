"""The cells of the table, with a column for each criterion or for each past run."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workbench.files.evalset import first_message
from workbench.files.prices import money
from workbench.results.case_table import (
    CASE,
    COST,
    EMPTY,
    INPUT,
    TIME,
    TOKENS,
    Cell,
    Column,
    Rank,
    cost_cell,
    criterion_cell,
    criterion_columns,
    outcome_cell,
    seconds_cell,
    tokens_cell,
)
from workbench.results.cells import cell_len
from workbench.results.explain import reasons
from workbench.results.faces import BY_FUNCTION, FACES, FLAKY, FROZEN, STALE, Status, score_text
from workbench.results.frozen import frozen_mark
from workbench.results.judged import is_function
from workbench.store.details import known_details
from workbench.store.execution import Execution
from workbench.store.history.reading import load_summary
from workbench.store.history.run_list import list_runs
from workbench.store.history.summary import Summary
from workbench.store.rates import are_enough, case_votes
from workbench.store.reasons import UNKNOWN, judge_in
from workbench.text.counting import compared, counted, sign
from workbench.text.safe_text import one_line
from workbench.ui.screen.overview_contents import Spending
from workbench.ui.session import relative_times, run_labels
from workbench.ui.tree.labels import label
from workbench.ui.tree.outline import Pair
from workbench.ui.tree.verdicts import Verdicts

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry


Name: TypeAlias = tuple[str, str]
"""A case as (evalset file, case ID), which stays valid when the folder is read again."""
_ID_MEASURED = 100
_INPUT_KEPT = 300
"""Maximum number of characters of an input."""


class Cases:
    """The two columns of every table: the case with its newest verdict, and its input."""

    def __init__(self, entries: "Sequence[EvalsetEntry]", verdicts: Verdicts) -> None:
        self.entries, self.verdicts = entries, verdicts
        self._inputs: dict[Pair, str] = {}
        self._names: dict[Pair, str] = {}

    def name(self, pair: Pair) -> str:
        """Return the ID of a case as safe text, or "(no id)" if it is empty."""
        if pair not in self._names:
            self._names[pair] = label(self.entries[pair[0]].document.cases[pair[1]].eval_id) or "(no id)"
        return self._names[pair]

    def width(self, pairs: Iterable[Pair]) -> int:
        """Return the width of the longest ID in cells. Very long non-ASCII IDs are measured in part."""
        ids = (self.entries[evalset].document.cases[case].eval_id for evalset, case in pairs)
        return max((len(name) if name.isascii() else cell_len(name[:_ID_MEASURED]) for name in ids), default=0)

    def key(self, pair: Pair) -> Name:
        """Return a case as (evalset file, case ID)."""
        entry = self.entries[pair[0]]
        return entry.relative, entry.document.cases[pair[1]].eval_id

    def input(self, pair: Pair) -> str:
        """Return the beginning of a case's first message as one safe line, or "" if it has none."""
        if pair not in self._inputs:
            message = first_message(self.entries[pair[0]].document, pair[1])
            self._inputs[pair] = one_line(message, limit=_INPUT_KEPT)
        return self._inputs[pair]

    def unread(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Return the cases whose input has not been read yet."""
        return [pair for pair in pairs if pair not in self._inputs]

    def read(self, pairs: Iterable[Pair]) -> None:
        """Read the inputs of many cases. Call it in a thread."""
        for pair in pairs:
            self.input(pair)

    def keep_inputs(self, before: "Cases") -> None:
        """Copy the inputs that were read `before` the folder was read again. Changed and deleted cases are left out."""
        for pair, text in before._inputs.items():
            place = self.verdicts.place(*before.key(pair))
            if place is not None and self._text(place) == before._text(pair):
                self._inputs[place] = text

    def _text(self, pair: Pair) -> bytes:
        return self.entries[pair[0]].document.text(pair[1])

    def face(self, pair: Pair) -> tuple[str, Status]:
        """Return the glyph of a case's verdict, and its status."""
        state = self.verdicts.state(*pair)
        if state not in ("running", "queued") and self.verdicts.flaky(*pair):
            return FLAKY.glyph, state
        return FACES[state].glyph, state

    def cell(self, pair: Pair, column: Column) -> Cell:
        """Return the cell of the input column or of the case column. The latter has no text and sorts by verdict."""
        if column.kind == "input":
            text = self.input(pair)
            return Cell(text, None, Rank.VALUE, text.casefold()) if text else EMPTY
        state = self.verdicts.state(*pair)
        if state == "not_run":
            return EMPTY._replace(status=state)
        if state == "error":
            return Cell("", state, Rank.ERROR)
        # Cases that always fail come before flaky ones.
        return Cell("", state, Rank.VALUE, FACES[state].rank + (0.5 if self.verdicts.flaky(*pair) else 0.0))

    def explain(self, pair: Pair, column: Column) -> str:
        """Return an explanation of the cell: the input, or the case's full name and verdict."""
        if column.kind == "input":
            return f"input of {self.name(pair)}: {self.input(pair) or 'none'}"
        entry = self.entries[pair[0]]
        above = [entry.agent.name if entry.agent else "", entry.document.eval_set_id or entry.file.name]
        return f"{' › '.join([*map(label, filter(None, above)), self.name(pair)])}: {self.outcome(pair)}"

    def outcome(self, pair: Pair) -> str:
        """Return the verdict of a case with the reason, if it is known, as safe text."""
        record = self.verdicts.record(*pair)
        if record is None:
            return "not run"
        cause = record.cause
        if cause is not None and cause != UNKNOWN:
            why = f"{cause.text} {BY_FUNCTION.glyph}" if cause.by_function else cause.text
        else:
            details = known_details(record)  # Until they are read, the reason is missing.
            why = "" if details is None else next(iter(reasons(details)), "")
        words = f"{self._verdict(pair)}: {why}" if why else self._verdict(pair)
        mark = frozen_mark(record.frozen)
        return f"{words}, {mark}" if mark else words  # The mark may be cut, the reason not.

    def _verdict(self, pair: Pair) -> str:
        verdict = self.verdicts.by_case[pair]
        word = FACES[verdict.state].word
        if len(verdict.refs) == 1:
            return word
        rate = self.verdicts.rate(*pair)
        return f"{FLAKY.word if rate.flaky else word}, {rate.passed} of {rate.total} passed"


class CriteriaCells:
    """Columns for the newest verdicts: one for each criterion, one for time, and one for cost.

    `costs` has the costs computed so far. It is None without prices. The column then shows tokens, if any are known.
    """

    def __init__(self, cases: Cases, costs: Spending | None) -> None:
        self.columns: tuple[Column, ...] = (CASE, INPUT)
        self.cases, self._costs = cases, costs
        self._configured: dict[int, frozenset[str]] = {}

    title = "cases × criteria"
    shows_runs = False

    def update(self, pairs: Sequence[Pair]) -> None:
        """Update the columns for these cases."""
        entries, verdicts = self.cases.entries, self.cases.verdicts
        evalsets = dict.fromkeys(evalset for evalset, _ in pairs)
        configs = {number: [one.name for one in entries[number].criteria.config.criteria] for number in evalsets}
        self._configured = {number: frozenset(names) for number, names in configs.items()}
        records = [record for pair in pairs if (record := verdicts.record(*pair)) is not None]
        # Tokens take the place of costs without prices, if any of these executions reported some.
        tokens = (TOKENS,) if any(record.usage.tokens for record in records) else ()
        spent = tokens if self._costs is None else (COST,)
        criteria = criterion_columns((name for names in configs.values() for name in names), records)
        self.columns = (CASE, INPUT, *criteria, *spent, TIME)

    def cell(self, pair: Pair, column: Column) -> Cell:
        """Return the cell of a case in a column."""
        if column.kind in ("case", "input"):
            return self.cases.cell(pair, column)
        record = self.cases.verdicts.record(*pair)
        match column.kind:
            case "criterion":
                return criterion_cell(record, column.name, configured=column.name in self._configured[pair[0]])
            case "time":
                return seconds_cell(record)
            case "tokens":
                return tokens_cell(record)
        known, cost = self._costs.cost_of(record) if self._costs is not None and record is not None else (False, None)
        return cost_cell(record, cost, known=known)

    def explain(self, pair: Pair, column: Column) -> str:
        """Return safe text about a cell: its score and reason, or the time, calls and costs of the case."""
        if column.kind in ("case", "input"):
            return self.cases.explain(pair, column)
        record = self.cases.verdicts.record(*pair)
        if column.kind != "criterion":
            return f"{self.cases.name(pair)}: {self._used(record)}"
        head = f"{one_line(column.name, limit=60)} of {self.cases.name(pair)}: "
        # Until the details are read, the reason is missing.
        details = None if record is None else known_details(record)
        scores = details.metrics if details is not None else {} if record is None else record.scores
        result = scores.get(column.name)
        if result is None:
            if self.cell(pair, column).rank is Rank.NOT_APPLICABLE:
                return f"{head}not one of its criteria"
            return head + self.cases.outcome(pair)
        who = "function" if is_function(result) else "judge" if judge_in(result.details) else ""
        why = ": ".join(filter(None, (who, one_line(result.reason))))
        passed = result.status in ("passed", "failed") and score_text(result)
        return head + ", ".join(filter(None, (passed or FACES[result.status].word, why)))

    def _used(self, record: Execution | None) -> str:
        """Return an execution's time, calls, tokens and cost as text, or "no verdict yet"."""
        if record is None or not record.has_verdict:
            return "no verdict yet"
        usage = record.usage
        used = [f"{record.duration_seconds:.1f} s"]
        used += [counted(usage.model_calls, "model call")] if usage.model_calls else []
        if usage.input_tokens or usage.output_tokens:
            used.append(f"{counted(usage.input_tokens, 'token')} in, {usage.output_tokens:,} out")
        used += [counted(usage.judge_calls, "judge call")] if usage.judge_calls else []
        if self._costs is None:
            return ", ".join(used) + "; add [prices] to the settings to see costs"
        known, cost = self._costs.cost_of(record)
        if known:
            used.append("cost not known" if cost is None else money(cost, self._costs.currency))
        return ", ".join(used)


def pane_of(column: Column) -> str:
    """Return the name of the pane with the details of a column."""
    from workbench.criteria.registry import descriptions

    if column.kind == "time":
        return "Trace"
    if column.kind in ("cost", "tokens"):
        return "Judges"
    info = descriptions().get(column.name) if column.kind == "criterion" else None
    if info is None:
        return "Judges" if column.kind == "criterion" else "Evidence"
    return "Evidence" if info.shown_in & {"calls", "words"} else "Judges"


_MOST_RUNS = 20
"""Maximum number of runs in a table."""
_MAX_EXECUTIONS = 200_000
"""No more runs are read after this number of executions. Reading 10,000 takes about 0.1 s."""
_REASON = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict of a case in a run, from its worst execution, with the deciding score.

    `why` is the reason as raw text, "" if the case passed. `passed` and `total` count executions. `frozen` is whether
    recordings answered calls.
    """

    status: Status
    score: float | None
    threshold: float | None
    why: str
    passed: int = 0
    total: int = 1
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class RunOutcomes:
    """A run and its verdicts on the table's cases.

    `decided` is the number of cases that passed or failed. If `is_comparable`, they are at least half of the table's.
    """

    run_id: str
    started: str
    cases: Mapping[Name, Outcome]
    decided: int
    is_comparable: bool


def _outcome(executions: Sequence[Execution]) -> Outcome:
    worst = min(executions, key=lambda one: FACES[one.state].rank)
    found = worst.decisive
    score, threshold = (None, None) if found is None else (found.score, found.threshold or 0.0)
    passed = sum(one.state == "passed" for one in executions)
    why = "" if worst.state == "passed" else _why(worst)
    return Outcome(worst.state, score, threshold, why, passed, len(executions), worst.frozen is not None)


def _why(execution: Execution) -> str:
    """Return why an execution did not pass, as raw text: its error, else the first criterion with its status, or ""."""
    if (error := execution.broken_by) is not None:
        return (error.message or error.kind)[:_REASON]
    for name, result in execution.scores.items():
        if result.status == execution.state:
            return f"{name}: {result.reason}"[:_REASON]
    return ""


class RunCells:
    """Columns for the stored runs of some cases that were read so far, newest first, with the verdict of each case."""

    shows_runs = True

    def __init__(self, cases: Cases, wanted: Collection[Name]) -> None:
        self.cases, self._wanted = cases, frozenset(wanted)
        self.columns: tuple[Column, ...] = (CASE, INPUT)
        self._runs: dict[str, RunOutcomes] = {}
        self.is_complete = False

    @property
    def title(self) -> str:
        """The kind of columns, and whether runs are still being read."""
        return "cases × runs" if self.is_complete else "cases × runs, reading"

    def reading(self, state: Path, active: str) -> Iterator[RunOutcomes]:
        """Yield the newest runs with verdicts on these cases, without those read before.

        `active` is the ID of the active run, which is skipped, or "". Each step reads files, so call `next` in a
        thread.
        """
        known = {*self._runs, active}
        files = {file for file, _ in self._wanted}
        found = len(known) - 1
        executions = 0
        for entry in list_runs(state).runs:
            if found >= _MOST_RUNS or executions > _MAX_EXECUTIONS:
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

    def add(self, run: RunOutcomes) -> None:
        """Add a run that was read. Only the newest runs are kept."""
        runs = sorted([*self._runs.values(), run], key=lambda one: (one.started, one.run_id), reverse=True)
        self._runs = {one.run_id: one for one in runs[:_MOST_RUNS]}

    def _outcomes(self, summary: Summary) -> RunOutcomes:
        cases: dict[Name, list[Execution]] = {}
        for one in summary.executions.values():
            if one.ref.name in self._wanted and one.decides_case:
                cases.setdefault(one.ref.name, []).append(one)
        votes = case_votes(one for every in cases.values() for one in every)
        outcomes = {name: _outcome(every) for name, every in cases.items()}
        return RunOutcomes(summary.run_id, summary.started, outcomes, len(votes), are_enough(votes, self._wanted))

    def update(self, pairs: Sequence[Pair]) -> None:
        """Update the columns for the runs read so far."""
        now = relative_times.now()
        columns = [CASE, INPUT]
        for run in self._runs.values():
            title, mark = (
                run_labels.by_date(run.started, now, "%H:%M", "%-d %b", "%Y"),
                "" if run.is_comparable else STALE.glyph,
            )
            columns.append(Column("run", title, run.run_id, mark))
        self.columns = tuple(columns)

    def cell(self, pair: Pair, column: Column) -> Cell:
        """Return the cell of a case in a column."""
        if column.kind != "run":
            return self.cases.cell(pair, column)
        found = self._found(pair, column)
        if found is None:
            return EMPTY
        cell = outcome_cell(found.status, found.score, found.threshold)
        return cell if not found.frozen else cell._replace(shown=f"{FROZEN.glyph}{cell.text}")

    def explain(self, pair: Pair, column: Column) -> str:
        """Return safe text about a cell: the case, the run, and the verdict with its reason."""
        if column.kind != "run":
            return self.cases.explain(pair, column)
        run = self._runs[column.name]
        when = run_labels.exact_time(run.started, relative_times.now())
        head = f"{self.cases.name(pair)} in the run of {when}: "
        found = self._found(pair, column)
        decided = f"the run decided {run.decided:,} of these cases"
        few = "" if run.is_comparable else f"; {STALE.glyph} not comparable: {decided}"
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
        run = self._runs.get(column.name)
        return None if run is None else run.cases.get(self.cases.key(pair))
