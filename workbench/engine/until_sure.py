"""Repeats until a pass rate is sure: which executions are not needed any more.

All repeats are planned, up to the most that may be made. They start in rounds (each case's first, then each case's
second), and as soon as a case is sure those of its that have not begun are dropped, so that the others go on. Those
under way come to their end and count: up to `concurrency` - 1 more than were needed.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from workbench.events import CaseFinished, CaseRef, Noticed
from workbench.rates import counts, fewest_for_sure, pass_rate, sure

if TYPE_CHECKING:
    from workbench.engine.plan import PlanEntry

_Case: TypeAlias = tuple[str, str, str, str]


class UntilSure:
    """What is known so far. `threshold` is the pass rate to be made sure of; `max_judge_calls` the budget of the whole
    run, None: no limit."""

    def __init__(self, threshold: float, max_judge_calls: int | None) -> None:
        self._threshold = threshold
        self._max_judge_calls = max_judge_calls
        self._judge_calls = 0
        self._passed: Counter[_Case] = Counter()
        self._counted: Counter[_Case] = Counter()
        self._sure: set[_Case] = set()

    def take(self, event: CaseFinished) -> bool:
        """An execution has ended; whether there may be needless ones now that were not before."""
        case, spent = _case(event.case), self._spent
        self._judge_calls += event.usage.judge_calls
        if counts(event.status, event.error):
            self._counted[case] += 1
            self._passed[case] += event.status == "passed"
        if case not in self._sure and sure(pass_rate(self._passed[case], self._counted[case]), self._threshold):
            self._sure.add(case)
            return True
        return self._spent and not spent

    def needless(self, queued: Iterable[CaseRef]) -> tuple[CaseRef, ...]:
        """Those of the `queued` executions that are not needed any more: all, once the budget is spent."""
        return tuple(ref for ref in queued if self._spent or _case(ref) in self._sure)

    @property
    def _spent(self) -> bool:
        return self._max_judge_calls is not None and self._judge_calls >= self._max_judge_calls


def in_rounds(entries: "Iterable[PlanEntry]") -> "list[PlanEntry]":
    """Each case's first execution, then each case's second, and so on."""
    return sorted(entries, key=lambda entry: entry.ref.repeat)


def too_few(threshold: float, runs: int) -> Noticed | None:
    """A word before the run where so few repeats can only show that the rate is lower."""
    needed = fewest_for_sure(threshold)
    if needed is None or runs >= needed:
        return None
    wanted = f"{threshold * 100:g} %"
    return Noticed(
        "warning",
        f"with at most {runs} repeat{'s' * (runs > 1)} a case can turn out to pass less often than {wanted}, but never"
        " surely as often",
        f"That takes {needed} passes in a row at least",
    )


def _case(ref: CaseRef) -> _Case:
    return ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id
