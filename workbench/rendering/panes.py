"""The panes of a case, in the order of their digits. A new pane is a module with `build` and one line here.

A case's panes follow from its criteria and from whether it has a simulated user, not from its results. So a digit means
the same before, during and after a run. It means the same in all cases of an evalset, except simulated ones.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from workbench.rendering import change, claims, diff, judge_pane, log, repeats, rubrics, score_pane, simulator
from workbench.rendering.document import AsideWhen, Document, Subject
from workbench.rendering.rows import View
from workbench.rendering.trace import pane as trace

Read = TypeVar("Read")
"""The subject of a pane: a case, or a conversation."""


def always(subject: object, criteria: frozenset[str]) -> bool:
    """Return True, for panes of every case."""
    return True


class Pane(NamedTuple, Generic[Read]):
    """A pane of a case or conversation.

    `title` is its name in the strip. `build` lays out the whole pane for a subject. A running case should add lines at
    the end, which the screen follows. `by_turns`: the reader is always in one of its turns, which is named and copied.
    `applies`: whether a case with these criteria has the pane. `aside`: its items have details beside the
    document. With "always", the details go below if two columns do not fit. `opens`: a case with this pane opens
    in it, unless another pane was requested.
    """

    title: str
    build: Callable[[Read, View], Document]
    by_turns: bool = False
    applies: Callable[[Read, frozenset[str]], bool] = always
    aside: AsideWhen = "never"
    opens: bool = False


PANES: tuple[Pane[Subject], ...] = (
    Pane("Diff", diff.build, by_turns=True),
    Pane("Scores", score_pane.build),
    Pane("Claims", claims.build, by_turns=True, applies=claims.applies, aside="always"),
    Pane("Rubrics", rubrics.build, applies=rubrics.applies),
    Pane("Judge", judge_pane.build, applies=judge_pane.applies),
    Pane("Simulator", simulator.build, by_turns=True, applies=simulator.applies, aside="beside"),
    Pane("Log", log.build),
    Pane("Trace", trace.build, by_turns=True, aside="always"),
    Pane("Change", change.build, by_turns=True, applies=change.applies),
    Pane("Repeats", repeats.build, applies=repeats.applies, opens=True),
)


def panes_of(subject: Subject) -> tuple[Pane[Subject], ...]:
    """Return the panes of a case, in order."""
    if subject.record is None and subject.case is None:
        return tuple(pane for pane in PANES if pane.applies is always)
    criteria = criteria_of(subject)
    return tuple(pane for pane in PANES if pane.applies(subject, criteria))


def criteria_of(subject: Subject) -> frozenset[str]:
    """Return the names of a case's criteria: those of its run, or else those of its files."""
    record, entry = subject.record, subject.entry
    if record is not None and (record.criteria or record.metrics):
        return frozenset(record.criteria) | frozenset(record.metrics)
    if entry is not None:
        return frozenset(criterion.name for criterion in entry.criteria.config.criteria)
    return frozenset()
