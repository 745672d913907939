"""The last page of a review: the verdicts, each with what to do next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from workbench.results.document import Document
from workbench.results.frame import WIDE
from workbench.results.lines import Line, cut_line, hang, pad, wrap


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of verdict with its number of cases, and the key and words of the next action (safe, "" for none)."""

    kind: str
    number: int
    label: str
    key: str = ""
    action: str = ""
    short: str = ""


def last_page(rows: Sequence[Row], by_cause: int, width: int) -> Document:
    """Return the page. Each row is an item, and `by_cause` verdicts were given to cases that were not seen."""
    document = Document()
    document.add([Text()])
    for row in rows:
        document.add_item(row.kind, [cut_line(_row(row, width), width)])
    if by_cause:
        document.gap()
        document.add(_unseen(by_cause, width))
    return document


def _row(row: Row, width: int) -> Line:
    wide = width >= WIDE
    left: Line = Text.assemble((f"{row.number:>5,}  ", "strong"), row.label)
    action = row.action if wide else row.short or row.action
    if not action:
        return left
    return Text.assemble(pad(left, 26), (f"{row.key or ' ':<2}", "hint"), (action, "label"))


def _unseen(number: int, width: int) -> Iterator[Line]:
    one = number == 1
    words = f"{number:,} of these verdicts {'was' if one else 'were'} given by cause (*), unseen. "
    words += f"{'It is' if one else 'They are'} not counted in judge agreement."
    return hang(Text(), wrap(Text.styled(words, "muted"), max(width - 4, 10)), 2)
