"""The cases that came out otherwise than when they were last reported, one line each: the end of a round of
`run --watch`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from workbench.cli.lines import label
from workbench.events import CaseRef
from workbench.repeats.change import Outcome, differs, outcome
from workbench.store import CaseRecord

Outcomes: TypeAlias = dict[CaseRef, Outcome]
"""How cases came out, by the first execution of each."""


def outcomes(records: Iterable[CaseRecord]) -> Outcomes:
    """Return how each case with a verdict came out; its executions are taken together."""
    found: dict[CaseRef, list[CaseRecord]] = {}
    for record in records:
        ref = record.ref
        if record.has_verdict:
            first = CaseRef(ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id)
            found.setdefault(first, []).append(record)
    return {ref: outcome(executions) for ref, executions in found.items()}


def changed_lines(before: Mapping[CaseRef, Outcome], now: Mapping[CaseRef, Outcome]) -> Iterator[str]:
    """`CHANGED agent/eval_set_id/eval_id passed -> failed`, of repeats `3/3 passed -> 0/3 passed`: regressions first.
    Safe text."""
    changed = [(ref, then, now[ref]) for ref, then in before.items() if ref in now and differs(then, now[ref])]
    changed.sort(key=lambda one: (one[2].rate.rate or 0.0) > (one[1].rate.rate or 0.0))
    for ref, then, today in changed:
        yield f"CHANGED {label(ref)} {then.words()} -> {today.words()}"
