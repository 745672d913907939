"""A case in plain text, for terminals and logs without a screen: the lines of its panes without styles."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from workbench.results.document import Subject
from workbench.results.evidence import pane as evidence
from workbench.results.judges import pane as judges
from workbench.results.lines import Line, heading, pieces
from workbench.results.rows import View
from workbench.results.title import title, verdict
from workbench.store.execution import CaseRecord


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
    yield from [*lines, Text(), *_without_hints(judges.build(subject, view, prompts=False).lines), Text()]


def _without_hints(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines without hints about keys of the screen. Drop lines that are empty then."""
    for line in lines:
        rest = Text.assemble(*(piece for piece in pieces(line) if piece[1] != "hint"))
        if len(rest) == len(line) or rest.plain.strip():
            yield rest
