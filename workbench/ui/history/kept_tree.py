"""The tree of cases with what one kept run said of them."""

from collections.abc import Sequence
from pathlib import Path

from workbench.agents.criteria_choice import CriteriaChoice
from workbench.agents.discovery import AgentFolder
from workbench.agents.workspace import EvalsetEntry, Workspace
from workbench.events import CaseRef
from workbench.history.summary import Row, Summary
from workbench.kept_records import brief_records
from workbench.model.criteria import CriteriaConfig
from workbench.model.evalset import CaseSummary, EvalsetDocument
from workbench.model.opening import Opened
from workbench.store import Store
from workbench.ui.history.words import counts, evalset_name, state_of
from workbench.ui.tree.case_tree import CaseTree
from workbench.ui.tree.verdicts import WHOLE_FILE, Verdicts
from workbench.ui.widgets.rows import Piece


class KeptTree(CaseTree):
    """A `CaseTree` of a run instead of a workspace. It needs no file but the run's."""

    def __init__(self) -> None:
        super().__init__(Verdicts(Store()), lambda: 0.0)
        self._summary = Summary()
        self._executions: dict[tuple[int, int], tuple[CaseRef, ...]] = {}

    def show_run(self, summary: Summary, file: Path) -> None:
        """Show a run, which `file` holds, from its first problem on."""
        self._summary, verdicts = summary, self.model.verdicts
        cases: dict[tuple[str, str], list[Row]] = {}
        for row in summary.rows.values():
            cases.setdefault((row["ref"][1], row["ref"][3]), []).append(row)
        ended = [rows for rows in cases.values() if any(state_of(summary, row) != "not_run" for row in rows)]
        told = [{**row, "status": _status(summary, row)} for rows in ended for row in rows]
        verdicts.store.records = brief_records(summary, file, told, verdicts.store.shelf)
        verdicts.recall(verdicts.store.records)
        self.load(_workspace(summary))
        numbers = {entry.relative: number for number, entry in enumerate(self.model.entries)}
        for (name, eval_id), rows in cases.items():
            place = verdicts.place(name, eval_id) or (numbers[name], WHOLE_FILE)
            self._executions[place] = tuple(CaseRef(*row["ref"]) for row in rows)
        if self.next_problem(1) is None:
            self.when_moved()

    @property
    def refs(self) -> tuple[CaseRef, ...]:
        """The executions that the row under the cursor stands for."""
        row = self.row
        if row is None or row.evalset < 0:
            return ()
        executions = self._executions.get((row.evalset, row.case), ())
        return executions[row.repeat - 1 : row.repeat] if row.kind == "repeat" else executions

    @property
    def ref(self) -> CaseRef | None:
        """The execution under the cursor; for a case with several, the one that decided it."""
        row, refs = self.row, self.refs
        record = self.model.verdicts.record(row.evalset, row.case, row.repeat) if row is not None and refs else None
        return record.ref if record is not None else next(iter(refs), None)

    def fold(self) -> bool:
        """Close the row under the cursor, or for a repeat its case. Return False if there is nothing to close."""
        row, outline = self.row, self.model.outline
        if row is not None and row.kind == "repeat" and row.parent is not None:
            self.go_to(row.parent)
        elif row is None or row.parent is None or (row.kind == "case" and not outline.is_open(row)):
            return False
        self.close_row()
        return True

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        left, right = super().row_pieces(position, width)
        match self.model.outline.row(position).kind:
            case "all":
                return [("this run", "strong")], counts(self._summary.came_out())
            case "case" if not right:
                return left, [("no end", "not-run")]
        return left, right


def _status(summary: Summary, row: Row) -> str:
    status = state_of(summary, row)
    return "cancelled" if status == "not_run" else status


def _workspace(summary: Summary) -> Workspace:
    """Return the agents, evalsets and cases that the run names, as if they were found in its folder."""
    root = Path(summary.root)
    ids: dict[tuple[str, str, str], dict[str, None]] = {}
    for agent, file, set_id, eval_id, _ in summary.rows:
        ids.setdefault((agent, file, set_id), {})[eval_id] = None
    agents = {name: AgentFolder(name, root / name, "python", root / name, "") for name, _, _ in ids if name}
    criteria = CriteriaChoice(CriteriaConfig(None, ()), "those of the run")
    entries = []
    for (agent, file, set_id), of_file in ids.items():
        document = EvalsetDocument(root / file, Opened((), frame={"eval_set_id": set_id or evalset_name(file)}))
        document.cases = tuple(map(CaseSummary, filter(None, of_file), range(len(of_file))))
        entries.append(EvalsetEntry(root / file, file, document, agents.get(agent), "", criteria))
    return Workspace(root, root, tuple(agents.values()), tuple(entries), ())
