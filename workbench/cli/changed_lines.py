"""The cases that came out otherwise than the time before, one line each: what `run --watch` ends a round with."""

from collections.abc import Iterable, Iterator, Mapping

from workbench.cli.lines import label
from workbench.events import CaseRef
from workbench.repeats.change import Outcome, differs, outcome
from workbench.store import CaseRecord

_Cases = dict[CaseRef, list[CaseRecord]]


def changed_lines(before: Mapping[CaseRef, CaseRecord], now: Iterable[CaseRecord]) -> Iterator[str]:
    """`CHANGED agent/eval_set_id/eval_id passed -> failed`, of repeats `3/3 passed -> 0/3 passed`: regressions first.
    Safe text."""
    earlier, later = _by_case(before.values()), _by_case(now)
    changed: list[tuple[CaseRef, Outcome, Outcome]] = []
    for ref, records in later.items():
        if ref in earlier:
            then, today = outcome(earlier[ref]), outcome(records)
            if differs(then, today):
                changed.append((ref, then, today))
    changed.sort(key=lambda one: (one[2].rate.rate or 0.0) > (one[1].rate.rate or 0.0))
    for ref, then, today in changed:
        yield f"CHANGED {label(ref)} {then.words()} -> {today.words()}"


def _by_case(records: Iterable[CaseRecord]) -> _Cases:
    found: _Cases = {}
    for record in records:
        ref = record.ref
        if record.has_verdict:
            first = CaseRef(ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id)
            found.setdefault(first, []).append(record)
    return found
