"""The controller of the table of cases."""

import asyncio
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from workbench.text.collecting import collector_paused
from workbench.ui.running.run import Run
from workbench.ui.screen.controller import Controller
from workbench.ui.screen.folder import Folder
from workbench.ui.screen.situation import WayBack
from workbench.ui.terminal.host import Host

if TYPE_CHECKING:
    from workbench.ui.screen.overview_contents import Spending
    from workbench.ui.screen.view import View
    from workbench.ui.table.model import Table
    from workbench.ui.table.screen import TableScreen
    from workbench.ui.table.sources import RunCells
    from workbench.ui.tree.outline import Pair
    from workbench.ui.tree.scope import Scope

_COSTS_AT_ONCE = 200
"""Number of executions whose costs are computed between two updates of the table."""


class CaseTable(Controller):
    """Actions that open and update the table. Its state is kept while the user looks at one of its cases."""

    def __init__(self, view: "View", folder: Folder, run: Run, host: Host) -> None:
        super().__init__(view)
        self._run, self._host = run, host
        self._table: Table | None = None
        self._page: TableScreen | None = None
        self._line = 0
        """The screen line of the cursor when the user opened a case from the table."""
        folder.when_loaded.append(self.loaded)
        view.tree_view.when_changed.append(self.changed)
        view.tree_view.when_arranged.append(self.arranged)

    def table(self) -> None:
        """Show the marked or current cases in a table."""
        if self.workspace() is not None:
            self.view.work(self._open, "open")

    def loaded(self) -> None:
        """Update the table after the folder was read again. The cursor stays.

        With criteria as columns, the sort order stays, too. Past runs are read again and sorted by verdict.
        """
        before = self._table
        if before is None:
            return
        place = before.name and self.session.verdicts.place(*before.name)
        self._table = self._new_table(before.scope_in(self.view.rows))
        self._table.adopt(before)
        self._table.load(self.view.rows.entries, self.view.rows.marks)
        if place:
            self._table.stand_on(place)
        if before.source.shows_runs:
            self._show_runs(self._table)
        if self._page is not None:
            self._page.replace(self._table)

    def changed(self, pairs: "set[Pair]") -> None:
        """Repaint the rows of these cases. Called after their verdicts changed."""
        if self._page is not None:
            self._page.show_changed(pairs)

    def arranged(self) -> None:
        """Filter and sort the table again after a run has ended or verdicts were loaded. During a run, do nothing."""
        table = self._table
        if table is None or self.session.store.activity.running:
            return
        table.load(self.view.rows.entries, self.view.rows.marks)
        if self._page is not None:
            self._page.show_rows()
        self._compute_costs()
        if table.source.shows_runs:
            self._show_runs(table)

    async def _open(self) -> None:
        # In a thread, so that keys still work meanwhile.
        await asyncio.to_thread(import_module, "workbench.ui.table.screen")
        from workbench.ui.table.model import table_scope

        scope = table_scope(self.view.rows, self.view.selected)
        if not scope:
            self.view.say("no cases here")
            return
        self._table = self._new_table(scope)
        self._table.load(self.view.rows.entries, self.view.rows.marks)
        cursor = self.view.rows.cursor
        self._line = 0
        if cursor is not None and cursor.case >= 0 and self._table.stand_on((cursor.evalset, cursor.case)):
            self._line = self._table.row
        self._push()
        self._compute_costs()

    def _new_table(self, scope: "Scope") -> "Table":
        from workbench.ui.table.model import Table
        from workbench.ui.table.sources import Cases, CriteriaCells

        cases = Cases(self.view.rows.entries, self.session.verdicts)
        return Table(scope, CriteriaCells(cases, self._costs), self.view.rows)

    @property
    def _costs(self) -> "Spending | None":
        """The known costs of executions, or None without prices."""
        return self.view.overviews.spending if self.session.prices else None

    def _push(self) -> None:
        from workbench.ui.table.screen import TableScreen

        assert self._table is not None
        self._page = TableScreen(
            self._table,
            self.session,
            self.view.rows,
            self.view.keys,
            self._host,
            line=self._line,
            open_case=self._open_case,
            turn=self._turn,
            run=self._run.run_cases,
            cancel=self._run.cancel_cases,
        )
        self.view.say_on_page = self._page.key_line.say
        self.view.push(self._page, self._left)

    def _left(self, _: object) -> None:
        """Drop the table after the user has left it."""
        self._table = self._page = self.view.say_on_page = None
        self.view.tree_view.refresh()
        self.view.show_state()

    def _open_case(self) -> None:
        from workbench.ui.table.sources import pane_of

        page, table = self._page, self._table
        if page is None or table is None or table.pair is None:
            return
        pair, self._line, self._page = table.pair, page.line, None
        self.view.say_on_page = None
        self.view.close_pages()
        self.view.show_state()
        self.view.open_case(*pair, pane_of(table.current), WayBack("the table", self._return))

    def _return(self) -> None:
        """Show the table again with the cursor on the case that is now selected in the tree."""
        cursor = self.view.rows.cursor
        if self._table is not None:
            if cursor is not None and cursor.case >= 0:
                self._table.stand_on((cursor.evalset, cursor.case))
            self._push()

    def _compute_costs(self) -> None:
        if self._costs is not None and self._table is not None:
            self.view.work(partial(self._read_costs, self._table, self._costs), "costs")

    async def _read_costs(self, table: "Table", known: "Spending") -> None:
        verdicts = self.session.verdicts
        records = (record for pair in table.rows if (record := verdicts.record(*pair)) is not None)
        missing = known.missing(records)
        for start in range(0, len(missing), _COSTS_AT_ONCE):
            await asyncio.to_thread(known.read, missing[start : start + _COSTS_AT_ONCE])
            if self._page is not None:
                self._page.refresh_cells()

    def _turn(self) -> None:
        """Switch between criteria and past runs."""
        from workbench.ui.table.sources import CriteriaCells

        table = self._table
        if table is None or self._page is None:
            return
        if not table.source.shows_runs:
            self._show_runs(table)
        else:
            table.replace_source(CriteriaCells(table.source.cases, self._costs))
            self._page.show_rows()

    def _show_runs(self, table: "Table") -> None:
        """Show the runs as columns, and read more of them in the background."""
        from workbench.ui.table.sources import RunCells

        cells = table.source
        if not isinstance(cells, RunCells):
            cells = RunCells(cells.cases, table.names_of(table.pairs))
            table.replace_source(cells)
        if self._page is not None:
            self._page.show_rows()
        self.view.work(partial(self._read_runs, table, cells), "runs")

    async def _read_runs(self, table: "Table", cells: "RunCells") -> None:
        state, running = self.session.state_dir, self.session.store.activity.running
        active = self.session.store.run.run_id if running else ""
        with collector_paused():
            reading = cells.reading(state, active)
            while (found := await asyncio.to_thread(next, reading, None)) is not None:
                if self._table is not table or table.source is not cells:
                    return
                cells.add(found)
                if self._page is not None:
                    cells.update(table.pairs)
                    self._page.show_rows()
        cells.is_complete = True
        if self._page is not None and table.source is cells:
            self._page.show_rows()
