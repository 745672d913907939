"""The overview of the row under the cursor, drawn at a pace that leaves time for keys."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.ui.overview.contents import Contents
from workbench.ui.terminal.pace import seconds_for
from workbench.ui.tree.scope import Scope, scope_at, title_of

if TYPE_CHECKING:
    from textual.timer import Timer

    from workbench.ui.overview.right import RightSide
    from workbench.ui.session.session import Session
    from workbench.ui.tree.model import Tree

_SHORTEST = 0.5
"""Seconds between two updates."""
_SHARE = 10
"""An update is followed by a rest of this many times its own duration."""


class Showing:
    """Shows overviews on the right side, and updates them during a run.

    `set_timer` calls a function later. `painted` is told the number of lines that such an update painted.
    """

    def __init__(
        self,
        session: "Session",
        tree: "Tree",
        right: "RightSide",
        set_timer: "Callable[[float, Callable[[], None]], Timer]",
    ) -> None:
        self._tree, self._right, self._set_timer = tree, right, set_timer
        self.contents = Contents(session, tree)
        self._next = 0.0
        self._drawn: tuple[Scope, tuple[object, ...]] | None = None
        """The scope and the version of the figures that were drawn."""
        self._selected: tuple[object, str, Scope | None] = None, "", None
        """The cases of an item, with its key and what was drawn."""
        self._timer: Timer | None = None
        self.painted: Callable[[int], None] = _nothing

    @property
    def scope(self) -> Scope | None:
        """The cases of the row under the cursor, or None if it is a case."""
        row = self._tree.cursor
        return None if row is None or row.case >= 0 else scope_at(self._tree, row)

    @property
    def selected(self) -> Scope | None:
        """The cases of the item under the cursor, if the overview has the focus, or None without any."""
        if self._drawn is None or not (self._right.shows_overview and self._right.has_focus_within):
            return None
        pane = self._right.overview
        if self._selected[0] is not self._drawn or self._selected[1] != pane.item_key:
            cases = self.contents.cases_of(pane.item_key, self._drawn[0], pane.overview)
            self._selected = self._drawn, pane.item_key, cases
        return self._selected[2]

    def show(self) -> int:
        """Show the overview of the row under the cursor, which is not a case. Return the number of changed lines."""
        scope = self.scope
        if scope is None:
            return 0
        began = time.monotonic()
        self._drawn = scope, self.contents.figures.version(scope)
        title = f"Overview: {title_of(scope, self._tree)}"
        lines = self._right.show_overview(scope, title, self.contents.overview(scope))
        now = time.monotonic()
        self._next = now + max(_SHORTEST, (now - began) * _SHARE, seconds_for(lines))
        return lines

    def follow(self) -> None:
        """Show the overview of other cases, if marks or a filter chose others."""
        scope = self.scope
        if scope is not None and (self._drawn is None or self._drawn[0] != scope):
            self.show()

    def update(self) -> int:
        """Show the current figures now, or once it is time. Return the number of lines that changed now."""
        scope = self.scope
        if scope is None or self._drawn == (scope, self.contents.figures.version(scope)):
            return 0
        wait = self._next - time.monotonic()
        if wait <= 0:
            return self.show()
        if self._timer is None:
            self._timer = self._set_timer(wait, self._update_late)
        return 0

    def _update_late(self) -> None:
        self._timer = None
        if self._right.shows_overview:
            self.painted(self.show())


def _nothing(lines: int) -> None:
    """Do nothing. The default of `painted`."""
