"""What the panes show of a case or evalset: read in a thread first, then taken from memory."""

import asyncio
from typing import TYPE_CHECKING

from workbench.store.details import known_details, read_details
from workbench.ui.session.session import Session
from workbench.ui.tree.outline import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench.results.changed_verdicts import Change
    from workbench.results.document import Subject
    from workbench.results.repeats import CaseRepeats
    from workbench.store.execution import Execution


class Subjects:
    """The data for the panes of each row. `change_of` returns how an execution's verdict changed, or None."""

    def __init__(self, session: Session, change_of: "Callable[[Execution | None], Change | None]") -> None:
        self._session = session
        self._change_of = change_of

    def is_read(self, row: Row) -> bool:
        """Return whether everything that the panes show of a case or evalset is in memory."""
        repeats = self._session.verdicts.repeats(row.evalset, row.case) if row.kind == "case" else 0
        return all(known_details(one) is not None for one in self._executions(row)) and (
            repeats < 2 or self.repeats_of(row) is not None
        )

    async def read(self, row: Row) -> None:
        """Load everything that the panes show of a case or evalset, in a thread."""
        executions = self._executions(row)
        account = self._session.verdicts.account_reader(row.evalset, row.case) if row.kind == "case" else None

        def read() -> None:
            if account is not None:
                account()
            for one in executions:
                read_details(one)

        await asyncio.to_thread(read)

    def subject(self, row: Row) -> "Subject":
        """Return the data for the panes of a case or evalset. Reads files first, unless the row `is_read`."""
        from workbench.results.document import Subject

        session, verdicts, record = self._session, self._session.verdicts, self._session.record(row)
        change = self._change_of(record)
        return Subject(
            None if record is None else read_details(record),
            session.entry(row.evalset),
            session.case(row.evalset, row.case) if row.case >= 0 else None,
            change=change,
            before=None if change is None else read_details(change.before),
            found=session.findings.faults_of(row.evalset, row.case),
            triage=verdicts.triage_of(row.evalset, row.case),
            state=session.state_dir,
            prices=session.prices,
            repeats=self.repeats_of(row),
            stale=verdicts.stale.get((row.evalset, row.case), ()),
            loading=session.is_loading,
        )

    def repeats_of(self, row: Row) -> "CaseRepeats | None":
        """Return the combined repeats of a case, or None if it was not repeated or its repeats are not read yet."""
        return self._session.verdicts.account(row.evalset, row.case) if row.kind == "case" else None

    def _executions(self, row: Row) -> "list[Execution]":
        """Return the execution of a row, if it ran, and the previous one if the verdict changed."""
        record = self._session.record(row)
        change = self._change_of(record)
        return [*([record] if record is not None else ()), *([change.before] if change is not None else ())]
