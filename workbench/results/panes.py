"""The four panes of a case. Every case has all of them, before and after it ran."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from workbench.results import history
from workbench.results.document import AsideWhen, Document, Subject
from workbench.results.evidence import pane as evidence
from workbench.results.judges import pane as judges
from workbench.results.rows import View
from workbench.results.trace import pane as trace

Read = TypeVar("Read")
"""The subject of a pane: a case, or a conversation."""


def never(subject: object) -> bool:
    """Return False, for panes that open only if the user chooses them."""
    return False


class Pane(NamedTuple, Generic[Read]):
    """A pane of a case or conversation.

    `digit` is its key, and `title` its name in the strip. `build` lays out the whole pane for a subject. A running
    case should add lines at the end, which the screen follows. `by_turns`: the reader is always in one of its turns,
    which is named and copied. `aside`: its items have details beside the document. With "always", the details go
    below if two columns do not fit. `opens`: whether a subject opens in it, unless a pane was chosen.
    """

    digit: str
    title: str
    build: Callable[[Read, View], Document]
    by_turns: bool = False
    aside: AsideWhen = "never"
    opens: Callable[[Read], bool] = never


PANES: tuple[Pane[Subject], ...] = (
    Pane("1", "Evidence", evidence.build, by_turns=True),
    Pane("2", "Judges", judges.build),
    Pane("3", "Trace", trace.build, by_turns=True, aside="always"),
    Pane("4", "History", history.build, opens=lambda subject: subject.repeats is not None),
)


def panes_of(subject: Subject) -> tuple[Pane[Subject], ...]:
    """Return the panes of a case, in order. A file and an unreadable case have only the first one, with their facts."""
    return PANES[:1] if subject.record is None and subject.case is None else PANES
