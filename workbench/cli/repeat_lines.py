"""The table of cases that were executed more than once: how often each passed, and which are flaky."""

from collections.abc import Iterator, Sequence

from workbench.cli.lines import label
from workbench.repeats.account import CaseRepeats, accounts
from workbench.repeats.wording import figures, mark, remarks
from workbench.store import Store
from workbench.ui.cells import cell_len, cut

_LISTED = 200
_NAME = 60
"""Cells of the longest name that others are aligned with."""


def repeats_of(store: Store) -> list[CaseRepeats]:
    """The cases of the newest run that were executed more than once, in the order of its plan."""
    return accounts(store.current_records(), store.run.until_sure)


def repeat_lines(cases: Sequence[CaseRepeats]) -> Iterator[tuple[str, bool]]:
    """A line for each case, and whether it is flaky: flaky ones first, then those that pass least. Safe text."""
    ordered = sorted(cases, key=by_need)
    rows = [(cut(label(case.ref), _NAME), [*figures(case), mark(case)], list(remarks(case))) for case in ordered]
    name = max((cell_len(row[0]) for row in rows), default=0)
    widths = [max((len(row[1][column]) for row in rows if len(row[1]) == 4), default=0) for column in range(4)]
    for case, (shown, told, more) in zip(ordered[:_LISTED], rows, strict=False):
        parts = [part.ljust(width) for part, width in zip(told, widths, strict=False)] if len(told) == 4 else told
        line = f"{shown}{' ' * (name - cell_len(shown))}  {'  '.join(parts)}"
        yield f"{line}  {', '.join(more)}".rstrip(), case.flaky
    if len(rows) > _LISTED:
        yield f"and {len(rows) - _LISTED} more that pass more often", False


def by_need(case: CaseRepeats) -> tuple[bool, float]:
    """Sorts what needs a look first: flaky, then seldom passing."""
    return not case.flaky, case.rate.rate if case.rate.rate is not None else -1.0
