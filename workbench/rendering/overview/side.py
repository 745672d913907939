"""The column beside a wide overview: the slowest and the most expensive cases."""

from collections.abc import Iterator, Sequence

from workbench.execution import Execution
from workbench.rendering.cells import cell_len, cut_name
from workbench.rendering.charts.figures import seconds_text
from workbench.rendering.lines import BLANK, Line, Segment, pad, wrap
from workbench.rendering.overview.facts import Overview
from workbench.text import one_line


def side_lines(overview: Overview, width: int) -> Iterator[Line]:
    """Yield the lines of the column."""
    slow = [(share.record, seconds_text(share.amount)) for share in overview.slowest]
    yield from _listed("Slowest", slow, "no times yet", width)
    if overview.spent.dear or overview.spent.why_unknown:
        yield BLANK
        yield from _listed("Most expensive", overview.spent.dear, overview.spent.why_unknown, width)


def _listed(title: str, cases: Sequence[tuple[Execution, str]], otherwise: str, width: int) -> Iterator[Line]:
    yield (Segment(title, "heading"),)
    names = [_name(record) for record, _ in cases]
    for name, (_, amount) in zip(names, cases, strict=True):
        room = width - cell_len(amount)
        yield (*pad((Segment(cut_name(name, max(room - 1, 1), names)),), room), Segment(amount, "label"))
    if not cases and otherwise:
        yield from wrap([Segment(otherwise, "muted")], width)


def _name(record: Execution) -> str:
    ref = record.ref
    return one_line(f"{ref.eval_id} #{ref.repeat}" if ref.repeat > 1 else ref.eval_id, limit=200)
