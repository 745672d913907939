"""Cursor, filter and split of the last session, restored when the folder is opened again."""

import asyncio
import contextlib

from workbench.ui.controllers.view import Controller, View
from workbench.ui.tree.outline import ALL, Row
from workbench.ui.view_state import ViewState, read_view_state, save_view_state


class Restoring(Controller):
    """What the user looked at last. Nothing is restored over what the user has done since the start."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._state = ViewState()

    async def restore_cursor(self, *, run_wanted: bool) -> None:
        """Restore the split, and the cursor if there is no filter. With `run_wanted`, everything runs: leave it there.

        A filter may depend on verdicts, which come later.
        """
        self._state = await asyncio.to_thread(read_view_state, self.session.state_dir)
        self.view.use_split(self._state.share)
        if run_wanted:
            self._state = ViewState(share=self._state.share)
        elif not self._state.filter:
            self._put_cursor()

    def restore_filter(self) -> None:
        """Restore the filter with its cursor, after the verdicts were shown."""
        if self._state.filter and self._is_untouched:
            self.view.set_filter(self._state.filter)
            self._put_cursor(always=True)

    def save(self) -> None:
        """Store what is shown now. If that fails, nothing is kept."""
        rows = self.view.rows
        if self.session.workspace is None or not rows.entries:
            return
        row = rows.cursor or ALL
        shown = row._replace(kind="case", repeat=-1) if row.kind == "repeat" else row
        # Marks are not kept, so a filter for them would show nothing.
        text = "" if rows.query.marked else rows.query.text
        state = ViewState(rows.names().of(shown), max(shown.case, 0), text, self.view.split_share)
        with contextlib.suppress(OSError):
            save_view_state(self.session.state_dir, state)

    @property
    def _is_untouched(self) -> bool:
        rows = self.view.rows
        return not self.view.covered and rows.query.empty and not len(rows.marks) and rows.cursor in (None, ALL)

    def _put_cursor(self, *, always: bool = False) -> None:
        if self._state.cursor and (always or self._is_untouched):
            row = self._row()
            if row != ALL:
                self.view.tree_view.go_to(row)
                self.view.show_row()

    def _row(self) -> Row:
        """Return the row of the cursor. If its case is gone, return the case that took its place."""
        rows, names = self.view.rows, self._state.cursor
        row = rows.names().row(names, rows.outline)
        if row.kind == "evalset" and len(names) > 2 and rows.outline.sizes[row.evalset]:
            return row._replace(kind="case", case=min(self._state.number, rows.outline.sizes[row.evalset] - 1))
        return row
