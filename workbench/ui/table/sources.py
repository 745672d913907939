"""The cells of a table: the newest verdicts with a column for each criterion."""

from collections.abc import Sequence

from workbench.files.prices import money
from workbench.results.case_table import (
    CASE,
    COST,
    INPUT,
    TIME,
    TOKENS,
    Cell,
    Column,
    Rank,
    cost_cell,
    criterion_cell,
    criterion_columns,
    seconds_cell,
    tokens_cell,
)
from workbench.results.faces import FACES, score_text
from workbench.results.judged import is_function, judge_of
from workbench.store.details import known_details
from workbench.store.execution import Execution
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.screen.overview_contents import Spending
from workbench.ui.table.cases import Cases
from workbench.ui.tree.outline import Pair


class CriteriaCells:
    """The newest verdict of each case, with a column for each criterion, and those for cost and time.

    `costs` are known for a part of the cases while they are being computed. None: there are no prices.
    """

    def __init__(self, cases: Cases, costs: Spending | None) -> None:
        self.columns: tuple[Column, ...] = (CASE, INPUT)
        self.cases, self._costs = cases, costs
        self._configured: dict[int, frozenset[str]] = {}

    title = "cases × criteria"

    def update(self, pairs: Sequence[Pair]) -> None:
        """Compute the columns for these cases again."""
        entries, verdicts = self.cases.entries, self.cases.verdicts
        evalsets = dict.fromkeys(evalset for evalset, _ in pairs)
        configs = {number: [one.name for one in entries[number].criteria.config.criteria] for number in evalsets}
        self._configured = {number: frozenset(names) for number, names in configs.items()}
        records = [record for pair in pairs if (record := verdicts.record(*pair)) is not None]
        criteria = criterion_columns((name for names in configs.values() for name in names), records)
        self.columns = (CASE, INPUT, *criteria, *self._spent(records), TIME)

    def _spent(self, records: Sequence[Execution]) -> tuple[Column, ...]:
        """Return the column for cost, or else for tokens, if any of these executions reported some."""
        if self._costs is not None:
            return (COST,)
        return (TOKENS,) if any(record.usage.tokens for record in records) else ()

    def cell(self, pair: Pair, column: Column) -> Cell:
        """Return a cell."""
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
        """Return a sentence about a cell."""
        record = self.cases.verdicts.record(*pair)
        if column.kind in ("case", "input"):
            return self.cases.explain(pair, column)
        if column.kind != "criterion":
            return f"{self.cases.name(pair)}: {self._used(record)}"
        head = f"{one_line(column.name, limit=60)} of {self.cases.name(pair)}: "
        # The reason is added when the details were read.
        details = None if record is None else known_details(record)
        scores = details.metrics if details is not None else {} if record is None else record.scores
        result = scores.get(column.name)
        if result is None:
            cell = self.cell(pair, column)
            if cell.rank is Rank.NOT_APPLICABLE:
                return f"{head}not one of its criteria"
            return head + self.cases.outcome(pair)
        judge = judge_of(result)
        who = "function" if is_function(result) else "judge" if judge else ""
        why = ": ".join(filter(None, (who, one_line(result.reason))))
        passed = result.status in ("passed", "failed") and score_text(result)
        return head + ", ".join(filter(None, (passed or FACES[result.status].word, why)))

    def _used(self, record: Execution | None) -> str:
        """Return the time, calls, tokens and cost of a case."""
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
    """Return the name of the pane that has the details of a cell."""
    from workbench.criteria.registry import descriptions

    if column.kind == "time":
        return "Trace"
    if column.kind in ("cost", "tokens"):
        return "Judges"
    info = descriptions().get(column.name) if column.kind == "criterion" else None
    if info is None:
        return "Judges" if column.kind == "criterion" else "Evidence"
    return "Evidence" if info.shown_in & {"calls", "words"} else "Judges"
