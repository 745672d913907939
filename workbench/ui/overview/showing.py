"""The overview of the row under the cursor, drawn at a pace that leaves time for keys."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.ui.overview.contents import Contents
from workbench.ui.overview.scope import Scope, name_of, scope_of, title_of
from workbench.ui.terminal.pace import seconds_for

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
        self._drawn: tuple[object, ...] = ()
        """The scope and the version of the figures that were drawn."""
        self._timer: Timer | None = None
        self.painted: Callable[[int], None] = _nothing

    @property
    def scope(self) -> Scope | None:
        """The cases of the row under the cursor, or None if it is a case."""
        return scope_of(self._tree)

    def show(self) -> int:
        """Show the overview of the row under the cursor, which is not a case. Return the number of changed lines."""
        scope = self.scope
        if scope is None:
            return 0
        began = time.monotonic()
        self._drawn = scope, self.contents.figures.version(scope)
        lines = self._right.show_overview(
            scope, title_of(scope, name_of(scope, self._tree)), self.contents.overview(scope)
        )
        now = time.monotonic()
        self._next = now + max(_SHORTEST, (now - began) * _SHARE, seconds_for(lines))
        return lines

    def follow(self) -> None:
        """Show the overview of other cases, if marks or a filter chose others."""
        scope = self.scope
        if scope is not None and (not self._drawn or self._drawn[0] != scope):
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
