"""The pane "Diff": the reasons for a verdict, turn by turn, or the expected turns of a case that has not run."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from workbench.execution import CaseRecord, Turn
from workbench.model.invocation import content_text
from workbench.rendering.anchors import add_pieces, anchors
from workbench.rendering.calls import value_lines
from workbench.rendering.document import Document, Item, Subject
from workbench.rendering.file_view import case_faults, fault_lines, file_document
from workbench.rendering.frozen_miss import case_error_lines
from workbench.rendering.lines import Line, Segment, cut_line, hang
from workbench.rendering.reference import case_setting, criteria_part
from workbench.rendering.rows import GUTTER, View, remark
from workbench.rendering.scores import reason_line, verdict_head
from workbench.rendering.status import badge
from workbench.rendering.thawed import thawed_lines
from workbench.rendering.title import left_out
from workbench.rendering.turn import turn_pieces, turn_status
from workbench.text import one_line

_FIRST_ROWS = 8
"""Rows of a turn that are visible on any screen when it opens."""
_VALUES = 3
"""Indentation of values that differ."""
_DIFFERENT = frozenset({"diff-differs", "diff-missing", "diff-extra", "diff-moved"})


def build(subject: Subject, view: View) -> Document:
    """Return the whole pane."""
    record = subject.record
    if record is None and subject.case is None:
        return file_document(subject.entry, view, subject.found)
    document = Document()
    if record is not None:
        document.add(_over_the_case(subject, record, view))
    ran = record is not None and record.state != "queued"
    if not ran:
        document.add(case_faults(subject, view))
        if subject.entry is not None:
            document.add(criteria_part(subject.entry, view))
    # A turn that failed is the evidence. The setting of its case is below it.
    opening = _opening(record, bool(document.lines)) if record is not None and record.finished else None
    setting = list(_setting(subject, view, ran))
    if opening is None:
        document.add(setting)
    above = bool(document.lines)
    _add_turns(document, subject, view, ran, above=above)
    if opening is not None and setting:
        document.gap()
        document.add(setting)
    if record is not None and document.turns:
        # How answers drifted is above the turns, and may be why one failed.
        document.opening = None if record.drifted else _opening(record, bool(above))
        if document.items and document.opening is not None:
            document.opening_item = _opening_item(document, document.turns[document.opening])
    return document


def _opening_item(document: Document, start: int) -> int:
    """Return the first item that differs in the first rows of the turn at line `start`, else the turn's first item."""
    below = [number for number, item in enumerate(document.items) if item.start >= start]
    near = (number for number in below if document.items[number].start < start + _FIRST_ROWS)
    differing = (number for number in near if _differs(document, document.items[number]))
    return next(differing, below[0] if below else 0)


def _differs(document: Document, item: Item) -> bool:
    lines = document.lines[item.start : item.end]
    return any(segment.style in _DIFFERENT for line in lines for segment in line)


def _setting(subject: Subject, view: View, ran: bool) -> Iterator[Line]:
    """Yield what `check` found, and the setting of the case besides its turns."""
    if ran and subject.found and subject.entry is not None:
        yield from fault_lines(subject.found, subject.entry, view)
    if subject.case is not None:
        yield from case_setting(subject.case, view, ran=ran)


def _over_the_case(subject: Subject, record: CaseRecord, view: View) -> Iterator[Line]:
    """Yield the verdicts and errors of the case as a whole that are in no turn.

    The line over the pane has the scores for which it has room. They are repeated only in full.
    """
    yield from case_error_lines(record, subject.state, view, "K")
    if record.thawed is not None:
        yield from thawed_lines(record.thawed, view, drifted=bool(record.drifted))
    below = {result.name for result in left_out(subject, view.width - 1)}
    for result in record.metrics.values():
        in_turns = {turn.metrics[result.name].status for turn in record.turns if result.name in turn.metrics}
        if result.status not in ("failed", "error", "not_evaluated") or result.status in in_turns:
            continue
        values = list(value_lines(result.details, View(view.width - _VALUES + GUTTER, view.full)))
        if view.full or result.name in below or record.broken_by is not None or values:
            yield from verdict_head(result, view, reason=not values)
            yield from hang([], values, _VALUES)
        elif result.reason:
            yield from reason_line(result, view)


def _add_turns(document: Document, subject: Subject, view: View, ran: bool, *, above: bool) -> None:
    record, case = subject.record, subject.case
    expected: tuple[dict[str, Any], ...] | None = record.expected if record is not None and ran else None
    if expected is None and case is not None:
        expected = case.turns
    turns = record.turns if record is not None and ran else []
    total = max(len(turns), len(expected or ()))
    running = record is not None and record.state == "running"
    groups = _passed_turns(turns) if not running else {}
    alone = ran and not running and total == 1 and not above and not view.full
    # The line over the pane has the scores of the whole case: with one turn, they are those of the turn.
    scores = {result.name for result in left_out(subject, view.width - 1)} if total == 1 else None
    for index in range(total):
        turn = turns[index] if index < len(turns) else None
        if turn is not None and index in groups and _add_group(document, groups[index], index, turn, total, view):
            continue
        document.begin_turn(spaced=index - 1 not in groups or view.is_open(_group_key(groups[index - 1])))
        reference = expected[index] if expected is not None and index < len(expected) else None
        if expected is not None and reference is None:
            reference = {}
        title = f"turn {index + 1} of {total}" if expected is not None or not running else f"turn {index + 1}"
        pieces = turn_pieces(
            title, index, turn, reference, view, running=running, judged=ran, headed=not alone, scores=scores
        )
        add_pieces(document, pieces)
    if ran and not total:
        document.gap()
        document.add(remark("No turn yet." if running else "No turn took place.", view))


def _passed_turns(turns: Sequence[Turn]) -> dict[int, range]:
    """Return each turn that passed in a case in which another one did not, with its neighbours that passed, too."""
    statuses = [turn_status(turn) for turn in turns]
    found: dict[int, range] = {}
    if any(status in ("failed", "error") for status in statuses):
        for passed, several in groupby(range(len(turns)), key=lambda index: statuses[index] == "passed"):
            group = list(several)
            if passed:
                found |= dict.fromkeys(group, range(group[0], group[-1] + 1))
    return found


def _add_group(document: Document, group: range, index: int, turn: Turn, total: int, view: View) -> bool:
    """Add ` ▸ turns 1 to 2 of 5  ✓ PASS`, once for all turns of a group. Each of them begins there.

    Return False if the group is unfolded. Then only the cursor's line for folding it is added, if there is a cursor.
    """
    key = _group_key(group)
    opened, selectable = view.is_open(key), anchors(index, turn).user is not None
    if opened and (view.full or not selectable or index > group.start):
        return False
    if index > group.start:
        document.turns.append(document.turns[-1])
        return True
    words = f"turns {group.start + 1} to {group.stop}" if len(group) > 1 else f"turn {index + 1}"
    said = "" if len(group) > 1 else f"  {_said_by_user(turn)}"
    lead = Segment(f" {'▾' if opened else '▸'} {words} of {total}  ", "fold")
    line = cut_line((lead, *badge("passed"), Segment(said, "muted")), view.width)
    if opened:
        document.gap()
    else:
        document.begin_turn(spaced=bool(document.turns))
    if selectable:
        document.add_item(key, [line], opens=True)
    else:
        document.add([line])
    return not opened


def _group_key(group: range) -> str:
    return f"diff/{group.start}/turns"


def _said_by_user(turn: Turn) -> str:
    try:
        return one_line(content_text(turn.user))
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""


def _opening(record: CaseRecord, above: bool) -> int | None:
    """Return the first turn to show: the running or the first failed one.

    None if nothing failed in a turn, or if an error is shown above the turns.
    """
    if record.state == "running":
        return len(record.turns) - 1 if record.turns else None
    if record.state == "failed" or (record.state == "error" and not above):
        for index, turn in enumerate(record.turns):
            if turn_status(turn) in ("failed", "error"):
                return index
    return None
