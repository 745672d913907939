"""The cases that came out otherwise than when they were last reported, one line each: the end of a round of
`run --watch`."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from workbench.events import CaseName, CaseRef
from workbench.rendering.plain_lines import label
from workbench.repeats.change import Outcome, differs, outcome
from workbench.store import CaseRecord

Outcomes: TypeAlias = dict[CaseName, tuple[CaseRef, Outcome]]
"""How cases came out, with the first execution of each. The agent of a case may have been another one before."""


def outcomes(records: Iterable[CaseRecord]) -> Outcomes:
    """Return how each case with a verdict came out; its executions are taken together."""
    found: dict[CaseName, list[CaseRecord]] = {}
    for record in records:
        if record.has_verdict:
            found.setdefault(record.ref.name, []).append(record)
    return {case: (replace(executions[0].ref, repeat=1), outcome(executions)) for case, executions in found.items()}


def changed_lines(before: Outcomes, now: Outcomes) -> Iterator[str]:
    """`CHANGED agent/eval_set_id/eval_id passed -> failed`, of repeats `3/3 passed -> 0/3 passed`: regressions first.
    Safe text."""
    both = [(now[case][0], then, now[case][1]) for case, (_, then) in before.items() if case in now]
    changed = [(ref, then, today) for ref, then, today in both if differs(then, today)]
    changed.sort(key=lambda one: (one[2].rate.rate or 0.0) > (one[1].rate.rate or 0.0))
    for ref, then, today in changed:
        yield f"CHANGED {label(ref)} {then.words()} -> {today.words()}"
