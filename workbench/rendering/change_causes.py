"""The likely causes of a changed verdict, with the lines of files that differ."""

from collections.abc import Iterable, Iterator

from workbench.history.causes import ChangedFile
from workbench.history.compare import ComparedCase
from workbench.rendering.document import Document
from workbench.rendering.lines import Line, Segment, hang_text, safe
from workbench.rendering.rows import View, remark
from workbench.text import one_line

_CAUSE = 13


def add_causes(document: Document, compared: ComparedCase, view: View) -> set[str]:
    """Add the likely causes of a change with the changed lines of files. Return the kinds of the causes."""
    case = compared.case
    causes = case.causes if case is not None else ()
    kinds: set[str] = {cause.kind for cause in causes}
    for cause in causes:
        lead = [Segment(f" {cause.kind.replace('_', ' ')}", "label")]
        document.add(hang_text(lead, [safe(cause.what)], view.width - 1, _CAUSE))
    if compared.trouble:
        document.add(remark(f"The two runs cannot be compared: {one_line(compared.trouble)}", view))
    elif case is not None and case.change == "unfinished":
        document.add(remark("One of the runs has no verdict for this case, so any change is unknown.", view))
    elif not causes:
        document.add(remark("The cause is unknown: no recorded input differs.", view))
    document.add(file_lines([file for file in compared.files if file.kind in kinds], view))
    return kinds


def file_lines(files: Iterable[ChangedFile], view: View) -> Iterator[Line]:
    """Yield the files of agents that differ, with the lines that differ."""
    for file in files:
        yield ()
        lead = [Segment(f" {file.kind} ", "label")]
        yield from hang_text(lead, [safe(one_line(file.path), "strong")], view.width, len(file.kind) + 2)
        if not file.lines:
            yield from remark("Its content was not stored.", view)
        yield from difference_lines(file.lines, view, 3)


def difference_lines(lines: Iterable[str], view: View, gutter: int) -> Iterator[Line]:
    """Yield the lines of a unified diff in their colours."""
    for line in lines:
        style = {"+": "diff-extra", "-": "diff-missing", "@": "muted"}.get(line[:1], "")
        yield from hang_text([], [safe(line, style)], view.width, gutter)
