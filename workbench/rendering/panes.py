"""The panes of a case with their digits. A new pane is a module with `build` and one line here.

A digit means the same pane in every case. A case that lacks it says why. Its panes follow from its criteria and from
whether it has a simulated user, repeats or a changed verdict, not from its results.
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

    `digit` is its key, and `title` its name in the strip. `build` lays out the whole pane for a subject. A running
    case should add lines at the end, which the screen follows. `by_turns`: the reader is always in one of its turns,
    which is named and copied. `applies`: whether a case with these criteria has the pane. `absent`: why a case lacks
    it. `aside`: its items have details beside the document. With "always", the details go below if two columns do not
    fit. `opens`: a case with this pane opens in it, unless a pane was chosen.
    """

    digit: str
    title: str
    build: Callable[[Read, View], Document]
    by_turns: bool = False
    applies: Callable[[Read, frozenset[str]], bool] = always
    absent: str = ""
    aside: AsideWhen = "never"
    opens: bool = False


PANES: tuple[Pane[Subject], ...] = (
    Pane("1", "Diff", diff.build, by_turns=True),
    Pane("2", "Scores", score_pane.build),
    Pane("3", "Log", log.build),
    Pane("4", "Trace", trace.build, by_turns=True, aside="always"),
    Pane(
        "5",
        "Claims",
        claims.build,
        by_turns=True,
        applies=claims.applies,
        absent="no criterion of this case finds claims",
        aside="always",
    ),
    Pane("6", "Rubrics", rubrics.build, applies=rubrics.applies, absent="no criterion of this case has rubrics"),
    Pane("7", "Judge", judge_pane.build, applies=judge_pane.applies, absent="no criterion of this case asks a judge"),
    Pane(
        "8",
        "Simulator",
        simulator.build,
        by_turns=True,
        applies=simulator.applies,
        absent="this case has no simulated user",
        aside="beside",
    ),
    Pane("9", "Repeats", repeats.build, applies=repeats.applies, absent="no repeats; X repeats a case", opens=True),
    Pane(
        "0",
        "Change",
        change.build,
        by_turns=True,
        applies=change.applies,
        absent="this verdict has not changed",
    ),
)


def panes_of(subject: Subject) -> tuple[Pane[Subject], ...]:
    """Return the panes of a case, in order. A file and an unreadable case have only the first one, with their facts."""
    if _is_no_case(subject):
        return PANES[:1]
    criteria = criteria_of(subject)
    return tuple(pane for pane in PANES if pane.applies(subject, criteria))


def why_absent(digit: str, subject: Subject) -> str:
    """Return `6 Rubrics: no criterion of this case has rubrics`, for a pane that the subject lacks."""
    pane = next(pane for pane in PANES if pane.digit == digit)
    return f"{digit} {pane.title}: {'only readable cases have it' if _is_no_case(subject) else pane.absent}"


def _is_no_case(subject: Subject) -> bool:
    return subject.record is None and subject.case is None


def criteria_of(subject: Subject) -> frozenset[str]:
    """Return the names of a case's criteria: those of its run, or else those of its files."""
    record, entry = subject.record, subject.entry
    if record is not None and (record.criteria or record.metrics):
        return frozenset(record.criteria) | frozenset(record.metrics)
    if entry is not None:
        return frozenset(criterion.name for criterion in entry.criteria.config.criteria)
    return frozenset()
