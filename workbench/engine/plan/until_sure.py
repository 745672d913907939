"""Repeats until a pass rate is sure: how many executions of a case are worth starting, and which are not needed any
more.

All repeats are planned, up to the most that may be made. They start in rounds (each case's first, then each case's
second), never more of one case at a time than could decide it if all of them came out the same: what is asked beyond
that might be asked for nothing, as with the votes of a judge. As soon as a case is sure, those of its that have not
begun are dropped, and the others go on.
"""

from collections import Counter
from collections.abc import Iterable

from workbench.counting import counted
from workbench.events import CaseFinished, CaseName, CaseRef, Noticed
from workbench.rates import counts, fewest_for_sure, fewest_to_decide, pass_rate, sure


class UntilSure:
    """What is known so far. `threshold` is the pass rate to be made sure of; `max_judge_calls` the budget of the whole
    run, None: no limit."""

    def __init__(self, threshold: float, max_judge_calls: int | None) -> None:
        self._threshold = threshold
        self._max_judge_calls = max_judge_calls
        self._judge_calls = 0
        self._judged: set[CaseName] = set()
        """Cases whose executions ask judges."""
        self._passed: Counter[CaseName] = Counter()
        self._counted: Counter[CaseName] = Counter()
        self._sure: set[CaseName] = set()

    def take(self, event: CaseFinished) -> bool:
        """An execution has ended; whether there may be needless ones now that were not before."""
        case, usage, before = event.case.name, event.usage, (self._spent, len(self._judged), len(self._sure))
        self._judge_calls += usage.judge_calls
        if usage.judge_calls or usage.judge_calls_cached:
            self._judged.add(case)
        if counts(event.status, event.error):
            self._counted[case] += 1
            self._passed[case] += event.status == "passed"
            if sure(pass_rate(self._passed[case], self._counted[case]), self._threshold):
                self._sure.add(case)
        return before != (self._spent, len(self._judged), len(self._sure))

    def needless(self, waiting: Iterable[CaseRef]) -> tuple[CaseRef, ...]:
        """Those of the `waiting` executions that are not needed any more: of cases that are sure, and where the budget
        is spent of those that ask judges."""
        over = self._sure | self._judged if self._spent else self._sure
        return tuple(ref for ref in waiting if ref.name in over)

    def has_room(self, ref: CaseRef, under_way: int) -> bool:
        """Whether another execution is worth starting while so many of its case are under way."""
        case = ref.name
        return under_way < fewest_to_decide(self._passed[case], self._counted[case], self._threshold)

    @property
    def _spent(self) -> bool:
        return self._max_judge_calls is not None and self._judge_calls >= self._max_judge_calls


def too_few(threshold: float, runs: int) -> Noticed | None:
    """A word before the run where so few repeats can only show that the rate is lower."""
    needed = fewest_for_sure(threshold)
    if needed is None or runs >= needed:
        return None
    wanted = f"{threshold * 100:g} %"
    return Noticed(
        "warning",
        f"with at most {counted(runs, 'repeat')} a case can turn out to pass less often than {wanted}, but never"
        " surely as often",
        f"That takes {counted(needed, 'pass', 'passes')} in a row at least",
    )
