"""A case in plain text, for terminals and logs without a screen: the same lines, without their styles."""

from collections.abc import Iterator

from workbench.rendering import diff, score_pane
from workbench.rendering.document import Subject
from workbench.rendering.lines import Line, Segment, rule, text_of
from workbench.rendering.plain_judged import judged_lines
from workbench.rendering.rows import View
from workbench.rendering.title import title, verdict
from workbench.store import CaseRecord


def plain_case(record: CaseRecord, width: int) -> Iterator[str]:
    """Everything the screen shows of a case, in lines of at most `width` cells (24 at least) that are safe for a
    terminal."""
    for line in case_lines(record, width):
        yield text_of(line).rstrip()


def case_lines(record: CaseRecord, width: int) -> Iterator[Line]:
    """The same with styles: title and verdict, the diff turn by turn, the scores, what judges said. Nothing is folded
    but what judges were asked, word for word."""
    subject, view = Subject(record), View(max(width, 24), full=True)
    ending = verdict(subject)
    name = title(subject, view.width - sum(len(segment.text) for segment in ending) - 8)
    lines: list[Line] = [rule((Segment(name, "heading"),), ending, view.width)]
    lines += diff.build(subject, view).lines
    lines += [(), *score_pane.score_lines(subject, view, explained=False), *judged_lines(subject, view), ()]
    yield from lines
