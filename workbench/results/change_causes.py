"""The likely causes of a changed verdict, with the lines of files that differ."""

import re
from collections.abc import Iterable, Iterator

from rich.text import Text

from workbench.freshness.changed_files import ChangedFile
from workbench.results.compare.compare import ComparedCase
from workbench.results.document import Document
from workbench.results.lines import Line, hang_text, safe
from workbench.results.rows import View, remark
from workbench.text.safe_text import one_line

_CAUSE = 13
_PART = re.compile(r"@@ -[0-9,]+ \+([0-9]+)(?:,[0-9]+)? @@")


def add_causes(document: Document, compared: ComparedCase, view: View) -> set[str]:
    """Add the likely causes of a change with the changed lines of files. Return the kinds of the causes."""
    case = compared.case
    causes = case.causes if case is not None else ()
    kinds: set[str] = {cause.kind for cause in causes}
    for cause in causes:
        files = [file for file in compared.files if file.kind == cause.kind]
        if not any(file.path == cause.what for file in files):
            lead = Text.styled(f" {cause.kind.replace('_', ' ')}", "label")
            document.add(hang_text(lead, safe(cause.what), view.width - 1, _CAUSE))
        document.add(file_lines(files, view))
    if compared.trouble:
        document.add(remark(f"The two runs cannot be compared: {one_line(compared.trouble)}", view))
    elif case is not None and case.change == "unfinished":
        document.add(remark("One of the runs has no verdict for this case, so any change is unknown.", view))
    elif not causes:
        document.add(remark("The cause is unknown: no recorded input differs.", view))
    return kinds


def file_lines(files: Iterable[ChangedFile], view: View) -> Iterator[Line]:
    """Yield the files of agents that differ, each at its first changed line, with the lines that differ."""
    for file in files:
        first = next(filter(None, map(_line_number, file.lines)), "")
        place = one_line(f"{file.path}:{first}" if first else file.path)
        yield from hang_text(Text.styled(f" {file.kind}", "label"), safe(place, "strong"), view.width - 1, _CAUSE)
        if not file.lines:
            yield from remark("Its content was not stored.", view)
        yield from difference_lines(file.lines, view, 3)


def difference_lines(lines: Iterable[str], view: View, gutter: int) -> Iterator[Line]:
    """Yield the lines of a unified diff as `− old` and `+ new`, and between its parts the number of the next line."""
    begun = False
    for line in lines:
        if number := _line_number(line):
            if begun:
                yield from hang_text(Text(), Text.styled(f"line {number}", "muted"), view.width, gutter)
            begun = True
            continue
        begun = True
        sign, style = {"+": ("+ ", "diff-extra"), "-": ("− ", "diff-missing")}.get(line[:1], ("  ", ""))
        lead = Text.assemble(" " * gutter, (sign, style))
        yield from hang_text(lead, safe(line[1:], style), view.width, gutter + 2)


def _line_number(line: str) -> str:
    """Return the number of the first line of a part of a unified diff, if this is its heading, else ""."""
    found = _PART.match(line)
    return found[1] if found is not None else ""
