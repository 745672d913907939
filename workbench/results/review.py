"""The lines of a review: the head of a page, the row of keys, and the last page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

from workbench.results.cells import cell_len, cut, cut_name
from workbench.results.document import Document, Subject
from workbench.results.evidence import place_in_case
from workbench.results.evidence_frame import WIDE
from workbench.results.faces import BY_FUNCTION, TRIAGED
from workbench.results.lines import Line, cut_line, hang, joined, pad, wrap
from workbench.results.title import short_verdict, title, title_parts, verdict


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a case in a review.

    `number` counts the cause among `causes`, and `position` the case among `cases`, both from 1. `causes` is 0 if the
    user reviews passes. `cause` is safe text. `given` is the label of the user's verdict, or "". `others` are the names
    of all cases of the cause, from which a cut name stays different. They are read at most once.
    """

    cause: str
    number: int
    causes: int
    position: int
    cases: int
    by_function: bool = False
    given: str = ""
    others: Iterable[str] = ()


def head_lines(subject: Subject, place: Place, width: int, *, in_pane: bool = False) -> list[Line]:
    """Return a line for the cause, a line for the case, and a rule. With `in_pane`, return only the first line."""
    if in_pane:
        return [_cause_line(place, width)]
    return [_cause_line(place, width), _case_line(subject, place, width), Text.styled("─" * width, "rule")]


def done_lines(cases: int, width: int) -> list[Line]:
    """Return the line above the last page, and a rule."""
    left: Line = Text.assemble((" Review", "heading"), ("  done", "strong"))
    return [_ends(left, Text.styled(f"{cases:,}/{cases:,} ", "label"), width), Text.styled("─" * width, "rule")]


def _cause_line(place: Place, width: int) -> Line:
    counts = f"{place.number}/{place.causes}" if width < WIDE else f"cause {place.number} of {place.causes}"
    counts = counts if place.causes else ""
    position = f"{place.position:,}/{place.cases:,}" if width < WIDE else f"case {place.position:,} of {place.cases:,}"
    right: Line = Text.styled(f"{position} ", "label")
    left: Line = Text.assemble(
        (" Review", "heading"), (f" {counts}" if width < WIDE or not counts else f"  {counts}", "label")
    )
    sign: Line = Text.styled(f" {BY_FUNCTION.glyph}", BY_FUNCTION.variable) if place.by_function else Text()
    gap = " " if width < WIDE else "  "
    room = width - left.cell_len - right.cell_len - sign.cell_len - len(gap) - 1
    return _ends(Text.assemble(left, (f"{gap}{cut(place.cause, room)}", "strong"), sign), right, width)


def _case_line(subject: Subject, place: Place, width: int) -> Line:
    record = subject.record
    turn = place_in_case(record) if record is not None else ""
    shown = verdict(subject)
    if width < WIDE and record is not None:
        shown = short_verdict(shown)
    ending: Line = Text.assemble(shown, (f"{' ' if width < WIDE else '  '}{turn}" if turn else "", "label"), " ")
    if place.given:
        ending = Text.assemble((f"{TRIAGED.glyph} {place.given}  ", TRIAGED.variable), ending)
    room = width - ending.cell_len - 2
    parts = title_parts(subject)
    name = cut_name(parts[-1], room, place.others) if width < WIDE and parts else title(subject, room, place.others)
    return _ends(Text.styled(f" {name}", "name"), ending, width)


def _ends(left: Line, right: Line, width: int) -> Line:
    """Return a line with one part at each end. If necessary, the left one is cut."""
    room = width - right.cell_len
    return pad(cut_line(left, max(room - 1, 1)), room) + right if room > 1 else cut_line(left, width)


def message_line(text: str, right: Line, width: int, *, warning: bool = False) -> Line:
    """Return the line above the keys: the last event as safe text, and on the `right` the key that undoes the event."""
    if not text and not right:
        return Text()
    shown = cut(text, width - right.cell_len - 3)
    gap = " " * max(width - cell_len(shown) - right.cell_len - 2, 1)
    return Text.assemble((f" {shown}", "status-not-evaluated" if warning else "strong"), gap, right, " ")


def key_words(key: str, label: str) -> Line:
    """Return a key and its label: `d judge wrong`. A letter inside the label is underlined."""
    place = label.find(key) if len(key) == 1 and key.isalpha() else -1
    if place > 0:
        words: Line = Text.assemble((label[:place], "label"), (key, "underlined"), (label[place + 1 :], "label"))
    else:
        words = Text.styled(label, "label")
    return Text.assemble((key, "hint"), " ", words)


def key_row(parts: Sequence[Line], width: int) -> Line:
    """Return the keys on one line, spaced as widely as possible. If they do not fit, the last ones are left out."""
    kept = [part for part in parts if part]
    for gap in (4, 3, 2):
        line = _spaced(kept, gap)
        if line.cell_len <= width:
            return line
    while len(kept) > 1 and _spaced(kept, 2).cell_len > width:
        kept.pop()
    return cut_line(_spaced(kept, 2), width)


def width_of(parts: Sequence[Line]) -> int:
    """Return the minimum width of a line with these keys, in cells."""
    return _spaced(filter(None, parts), 2).cell_len


def _spaced(parts: Iterable[Line], gap: int) -> Line:
    return Text.assemble(" ", joined(parts, " " * gap, ""))


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of verdict with its number of cases and label, then the key, label and short label of the next action."""

    kind: str
    number: int
    label: str
    key: str = ""
    action: str = ""
    short: str = ""


def last_page(rows: Sequence[Row], by_cause: int, width: int) -> Document:
    """Return the last page of a review. Each row is an item. `by_cause` counts verdicts on unseen cases."""
    document = Document()
    document.add([Text()])
    for row in rows:
        line = Text.assemble((f"{row.number:>5,}  ", "strong"), row.label)
        if action := row.action if width >= WIDE else row.short or row.action:
            line = Text.assemble(pad(line, 26), (f"{row.key or ' ':<2}", "hint"), (action, "label"))
        document.add_item(row.kind, [cut_line(line, width)])
    if by_cause:
        document.gap()
        words = f"{by_cause:,} of these verdicts {'was' if by_cause == 1 else 'were'} given by cause (*), unseen. "
        words += f"{'It is' if by_cause == 1 else 'They are'} not counted in judge agreement."
        document.add(hang(Text(), wrap(Text.styled(words, "muted"), max(width - 4, 10)), 2))
    return document
