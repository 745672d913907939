"""The panes of a case, in the order of their digits. A new pane is a module with `build` and one line here.

Which of them a case has follows from its criteria and from whether a simulated user leads it, not from what came out:
so a digit means the same before, during and after a run, and in all cases of an evalset but for the simulated ones.
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
    """Every case has it."""
    return True


class Pane(NamedTuple, Generic[Read]):
    """`title` is its name in the strip; `build` lays out the whole pane for a subject. What a running case adds is
    best added at the end, which the screen follows. `by_turns`: a reader is always in one of its turns, so that this
    turn is named, and copied. `applies`: whether a case with these criteria has it. `aside`: its items have more to
    tell, which is seen beside the document, or, if "always", below it where there is no room for two columns.
    `opens`: a case that has it opens in it, as long as no other pane was asked for."""

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
    """The panes of a case, in order."""
    if subject.record is None and subject.case is None:
        return tuple(pane for pane in PANES if pane.applies is always)
    criteria = criteria_of(subject)
    return tuple(pane for pane in PANES if pane.applies(subject, criteria))


def criteria_of(subject: Subject) -> frozenset[str]:
    """The names of a case's criteria: those it was run with, else those of its files."""
    record, entry = subject.record, subject.entry
    if record is not None and (record.criteria or record.metrics):
        return frozenset(record.criteria) | frozenset(record.metrics)
    if entry is not None:
        return frozenset(criterion.name for criterion in entry.criteria.config.criteria)
    return frozenset()
