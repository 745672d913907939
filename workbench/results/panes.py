"""The four panes of a case, and a case as plain text. Every case has all panes, even before it has run."""

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from rich.text import Text

from workbench.results import evidence, history, judges, trace
from workbench.results.document import Document, Subject
from workbench.results.lines import Line, View, heading, pieces
from workbench.results.title import title, verdict
from workbench.store.execution import CaseRecord

Read = TypeVar("Read")
"""The subject of a pane: a case, or a conversation."""


class Pane(NamedTuple, Generic[Read]):
    """A pane of a case or conversation.

    `digit` is its key, and `title` its name in the strip. `build` lays out the whole pane for a subject. While a case
    runs, new lines should come at the end, because the screen follows them. With `by_turns`, the screen names and
    copies the turn at the cursor. With `aside`, the pane shows details of items. `opens` returns whether a subject
    opens in this pane unless the user chose one.
    """

    digit: str
    title: str
    build: Callable[[Read, View], Document]
    by_turns: bool = False
    aside: bool = False
    opens: Callable[[Read], bool] = lambda subject: False


PANES: tuple[Pane[Subject], ...] = (
    Pane("1", "Evidence", evidence.build, by_turns=True),
    Pane("2", "Judges", judges.build),
    Pane("3", "Trace", trace.build, by_turns=True, aside=True),
    Pane("4", "History", history.build, opens=lambda subject: subject.repeats is not None),
)


def panes_of(subject: Subject) -> tuple[Pane[Subject], ...]:
    """Return the panes of a subject, in order. A file and an unreadable case have only the first one."""
    return PANES[:1] if subject.record is None and subject.case is None else PANES


def plain_case(record: CaseRecord, width: int) -> Iterator[str]:
    """Yield a case as on the screen, as safe lines of at most `width` cells (at least 24)."""
    for line in case_lines(record, width, signs=True):
        yield line.plain.rstrip()


def case_lines(record: CaseRecord, width: int, *, signs: bool = False) -> Iterator[Line]:
    """Yield a case as styled lines: title and verdict, the evidence, and the judges without their prompts."""
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
