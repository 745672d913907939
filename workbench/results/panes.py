"""The four panes of a case, and their lines as plain text. Every case has all panes, before and after it ran."""

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from rich.text import Text

from workbench.results import evidence, history, judges, trace
from workbench.results.document import AsideWhen, Document, Subject
from workbench.results.lines import Line, View, heading, pieces
from workbench.results.title import title, verdict
from workbench.store.execution import CaseRecord

Read = TypeVar("Read")
"""The subject of a pane: a case, or a conversation."""


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
    opens: Callable[[Read], bool] = lambda subject: False


PANES: tuple[Pane[Subject], ...] = (
    Pane("1", "Evidence", evidence.build, by_turns=True),
    Pane("2", "Judges", judges.build),
    Pane("3", "Trace", trace.build, by_turns=True, aside="always"),
    Pane("4", "History", history.build, opens=lambda subject: subject.repeats is not None),
)


def panes_of(subject: Subject) -> tuple[Pane[Subject], ...]:
    """Return the panes of a case, in order. A file and an unreadable case have only the first one, with their facts."""
    return PANES[:1] if subject.record is None and subject.case is None else PANES


def plain_case(record: CaseRecord, width: int) -> Iterator[str]:
    """Yield everything that the screen shows of a case, in safe lines of at most `width` cells (24 at least)."""
    for line in case_lines(record, width, signs=True):
        yield line.plain.rstrip()


def case_lines(record: CaseRecord, width: int, *, signs: bool = False) -> Iterator[Line]:
    """Yield styled lines of a case: title and verdict, the evidence, and the judges without their prompts.

    With `signs`, words that differ are told apart without their styles.
    """
    subject, view = Subject(record), View(max(width, 24), full=True, signs=signs)
    ending = verdict(subject)
    name = title(subject, view.width - ending.cell_len - 8)
    lines: list[Line] = [heading(name, view.width, ending)]
    lines += evidence.build(subject, view).lines
    yield from [*lines, Text()]
    for line in judges.build(subject, view, prompts=False).lines:
        # Without hints about keys of the screen, and without lines that are empty then.
        rest = Text.assemble(*(piece for piece in pieces(line) if piece[1] != "hint"))
        if len(rest) == len(line) or rest.plain.strip():
            yield rest
    yield Text()
