"""Cursor and split of the last session, restored when the folder is opened again."""

import asyncio
import contextlib

from workbench.ui.main.view_state import ViewState, read_view_state, save_view_state
from workbench.ui.session.view import Controller
from workbench.ui.tree.outline import ALL, Row


class Restoring(Controller):
    """What the user looked at last, without the filter, which would hide cases.

    Nothing is restored over what the user has done since the start.
    """

    async def restore(self, *, run_wanted: bool) -> None:
        """Restore the split and the cursor. With `run_wanted`, everything runs: leave the cursor there."""
        state = await asyncio.to_thread(read_view_state, self.session.state_dir)
        self.view.use_split(state.share)
        if state.cursor and not run_wanted and self._is_untouched:
            row = self._row(state)
            if row != ALL:
                self.view.tree_view.go_to(row)
                self.view.show_row()

    def save(self) -> None:
        """Store what is shown now. If that fails, nothing is kept."""
        rows = self.view.rows
        if self.session.workspace is None or not rows.entries:
            return
        row = rows.cursor or ALL
        shown = row.parent or ALL if row.kind in ("repeat", "passed") else row
        state = ViewState(rows.names().of(shown), max(shown.case, 0), self.view.split_share)
        with contextlib.suppress(OSError):
            save_view_state(self.session.state_dir, state)

    @property
    def _is_untouched(self) -> bool:
        rows = self.view.rows
        return not self.view.occupied and rows.query.empty and not len(rows.marks) and rows.cursor in (None, ALL)

    def _row(self, state: ViewState) -> Row:
        """Return the row of the cursor. If its case is gone, return the case that took its place."""
        rows, names = self.view.rows, state.cursor
        row = rows.names().row(names, rows.outline)
        if row.kind == "evalset" and len(names) > 2 and rows.outline.sizes[row.evalset]:
            return row._replace(kind="case", case=min(state.number, rows.outline.sizes[row.evalset] - 1))
        return row
