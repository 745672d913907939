"""The panes of a case, in the order of their digits. A new pane is a module with `build` and one line here."""

from collections.abc import Callable
from typing import NamedTuple

from workbench.ui.render import diff, log, score_pane
from workbench.ui.render.document import Document, Subject
from workbench.ui.render.rows import View


class Pane(NamedTuple):
    """`title` is its name in the strip; `build` lays out the whole pane for a subject. What a running case adds is
    best added at the end, which the screen follows. `by_turns`: a reader is always in one of its turns, so that this
    turn is named, and copied."""

    title: str
    build: Callable[[Subject, View], Document]
    by_turns: bool = False


PANES: tuple[Pane, ...] = (
    Pane("Diff", diff.build, by_turns=True),
    Pane("Scores", score_pane.build),
    Pane("Log", log.build),
)
