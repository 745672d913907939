"""The panes of a case, in the order of their digits. A new pane is a module with `build` and one line here."""

from collections.abc import Callable
from typing import NamedTuple

from workbench.ui.render import diff, log, score_pane
from workbench.ui.render.document import Document, Subject
from workbench.ui.render.rows import View


class Pane(NamedTuple):
    """`tails`: what comes while the case runs comes at the end, so the pane may follow it."""

    title: str
    build: Callable[[Subject, View], Document]


PANES: tuple[Pane, ...] = (
    Pane("Diff", diff.build),
    Pane("Scores", score_pane.build),
    Pane("Log", log.build),
)
