"""The reviewed cases as they are now, and what the user can do with each of them."""

from typing import TYPE_CHECKING

from workbench.editing.triage.entry import BY_CAUSE, standing
from workbench.results.document import Subject
from workbench.ui.review.key_lines import Offered
from workbench.ui.review.model import Given, Judgeable, Review
from workbench.ui.tree.outline import Row
from workbench.ui.triage.question import first_options

if TYPE_CHECKING:
    from workbench.editing.triage.entry import Entry
    from workbench.events.events import CaseName
    from workbench.store.execution import Execution
    from workbench.store.reasons import Cause
    from workbench.ui.screen.view import View


class ReviewedCases:
    """The reviewed cases, found by name, because the folder can be read again. `passes`: the cases had passed."""

    def __init__(self, view: "View", *, passes: bool) -> None:
        self.view, self._session, self._passes = view, view.session, passes

    def row(self, name: "CaseName") -> Row | None:
        """Return the row of a case, or None if the case no longer exists."""
        pair = self._session.verdicts.place(*name)
        return None if pair is None else self.view.rows.row_of(*pair)

    def record(self, name: "CaseName") -> "Execution | None":
        """Return the execution that decides the case's verdict, or None if it never ran or no longer exists."""
        row = self.row(name)
        return None if row is None else self._session.record(row)

    def subject(self, name: "CaseName") -> "Subject | None":
        """Return the data for the panes of a case, or None if the case no longer exists."""
        row = self.row(name)
        return None if row is None else self.view.subjects.subject(row)

    def cause(self, name: "CaseName") -> "Cause | None":
        """Return why a case failed or ended in an error, or None for other cases."""
        pair = self._session.verdicts.place(*name)
        return None if pair is None else self._session.verdicts.cause(*pair)

    def judgeable(self, name: "CaseName") -> Judgeable:
        """Return what the user can do with a case."""
        pair = self._session.verdicts.place(*name)
        match None if pair is None else self._session.verdicts.state(*pair):
            case "failed":
                return "verdict"
            case "passed":
                return "verdict" if self._passes else "passed"
            case "error":
                return "error"
        return "nothing"

    def offered(self, model: Review) -> Offered:
        """Return the actions that are possible for the current case of a review."""
        record, row = self.record(model.name), self.row(model.name)
        if row is None or record is None:
            why = "this case is no longer in its file" if row is None else "this case has not run"
            return Offered((), why, can_accept=False, exists=row is not None)
        if record.state in ("error", "cancelled", "not_evaluated"):
            word = "an error" if record.state == "error" else "this case"
            errors = model.errors()
            return Offered((), f"{word} has no verdict to judge", errors if errors > 1 else 0, can_accept=False)
        if not record.finished:
            return Offered((), "the case is running", can_accept=False)
        passed = record.state == "passed"
        options = tuple(option for option in first_options(record) if option.value != "right" or passed)
        cases = len(model.section.names)
        left = len(model.left()) if model.section.alike and cases > 1 else 0
        return Offered(options, left=left, cases=cases, whole=model.whole)

    def stamp(self, name: "CaseName") -> object:
        """Return a value that changes when the case's text or its verdict changes."""
        row, record = self.row(name), self.record(name)
        text = b"" if row is None else self._session.entry(row.evalset).document.text(row.case)
        return hash(text), None if record is None else (record.run_id, record.state, record.cause)

    def drawn(self, name: "CaseName") -> object:
        """Return a value that changes when the page of a case changes."""
        row = self.row(name)
        if row is None:
            return "gone"
        record, case = self._session.record(row), self._session.case(row.evalset, row.case)
        raw = None if case is None else repr(case.raw)
        return raw, None if record is None else (record.run_id, record.state, len(record.scores))

    def earlier(self, name: "CaseName") -> Given | None:
        """Return the user's verdict on the current answer of a case, from its triage file, or None."""
        found = self.entry_about(name)
        return None if found is None else Given(found.triage, found.by == BY_CAUSE)

    def entry_about(self, name: "CaseName") -> "Entry | None":
        """Return the newest triage entry about the current answer and verdict of a case, or None."""
        row, record = self.row(name), self.record(name)
        if row is None or record is None or not record.answer:
            return None
        said = self._session.verdicts.triage_of(row.evalset, row.case)
        current = (entry for entry in said if entry.triage and standing(entry, record) == "now")
        return max(current, key=lambda entry: entry.at, default=None)
