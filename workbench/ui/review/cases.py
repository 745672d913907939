"""The cases of a review by name: what is known of each, and what the user has said about it."""

from typing import TYPE_CHECKING

from workbench.editing.triage.entry import BY_CAUSE, standing
from workbench.ui.review.model import Given, Judgeable

if TYPE_CHECKING:
    from workbench.editing.triage.entry import Entry
    from workbench.events.events import CaseName
    from workbench.store.cause import Cause
    from workbench.store.execution import Execution
    from workbench.ui.session.session import Session
    from workbench.ui.tree.model import Tree
    from workbench.ui.tree.outline import Row


class ReviewedCases:
    """Cases in the folder as it is now. They have names, because the folder may be read again meanwhile."""

    def __init__(self, session: "Session", rows: "Tree") -> None:
        self._session, self._rows = session, rows

    def name(self, pair: tuple[int, int]) -> "CaseName":
        """Return the name of the case with these numbers of evalset and case."""
        entry = self._session.entry(pair[0])
        return entry.relative, entry.document.cases[pair[1]].eval_id

    def row(self, name: "CaseName") -> "Row | None":
        """Return the row of a case, or None if it is gone."""
        pair = self._session.verdicts.place(*name)
        return None if pair is None else self._rows.row_of(*pair)

    def record(self, name: "CaseName") -> "Execution | None":
        """Return the last verdict of a case, or None."""
        row = self.row(name)
        return None if row is None else self._session.record(row)

    def cause(self, name: "CaseName") -> "Cause | None":
        """Return why a case fails, or None if it does not."""
        pair = self._session.verdicts.place(*name)
        return None if pair is None else self._session.verdicts.cause(*pair)

    def judgeable(self, name: "CaseName", *, passes: bool) -> Judgeable:
        """Return what can be said about a case. `passes`: passed cases are reviewed."""
        pair = self._session.verdicts.place(*name)
        match None if pair is None else self._session.verdicts.state(*pair):
            case "failed":
                return "verdict"
            case "passed":
                return "verdict" if passes else "passed"
            case "error":
                return "error"
        return "nothing"

    # Whether a case has changed

    def stamp(self, name: "CaseName") -> object:
        """Return a value that changes with a case in its file, and with its verdict."""
        row, record = self.row(name), self.record(name)
        text = b"" if row is None else self._session.entry(row.evalset).document.text(row.case)
        return hash(text), None if record is None else (record.run_id, record.state, record.cause)

    def drawn(self, name: "CaseName") -> object:
        """Return a value that changes with what a page shows of a case."""
        row = self.row(name)
        if row is None:
            return "gone"
        record, case = self._session.record(row), self._session.case(row.evalset, row.case)
        raw = None if case is None else repr(case.raw)
        return raw, None if record is None else (record.run_id, record.state, len(record.scores))

    # What the user has said

    def earlier(self, name: "CaseName") -> Given | None:
        """Return the user's verdict on the current answer of a case, from its triage file."""
        found = self.entry_about(name)
        return None if found is None else Given(found.triage, found.by == BY_CAUSE)

    def entry_about(self, name: "CaseName") -> "Entry | None":
        """Return the newest entry with a choice about the current answer and verdict of a case."""
        row, record = self.row(name), self.record(name)
        if row is None or record is None or not (entries := self._said(row)):
            return None
        current = [entry for entry in entries if record.answer and standing(entry, record) == "now"]
        return max(current, key=lambda entry: entry.at, default=None)

    def _said(self, row: "Row") -> "list[Entry]":
        """Return the entries with a choice about a case."""
        entry = self._session.entry(row.evalset)
        said = self._session.verdicts.triage.entries_of(entry.file, entry.document.cases[row.case].eval_id)
        return [entry for entry in said if entry.triage]
