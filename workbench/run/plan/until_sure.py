"""Repeats until a pass rate is sure: which executions of a case are worth starting.

All repeats up to the limit are planned. They start in rounds: the first repeat of each case, then the second of each
case. No more repeats of a case run at a time than are needed to decide it if all had the same result. When a case is
decided, its waiting repeats are dropped, and running ones finish.
"""

from collections import Counter
from collections.abc import Iterable

from workbench.events.events import CaseFinished, CaseName, CaseRef, Noticed
from workbench.store.rates import counts, fewest_for_sure, fewest_to_decide, pass_rate, sure
from workbench.text.counting import counted, exact_percent


class UntilSure:
    """The pass rates so far.

    `threshold` is the pass rate to establish. `max_judge_calls` is the budget of the whole run, or None.
    """

    def __init__(self, threshold: float, max_judge_calls: int | None) -> None:
        self._threshold = threshold
        self._max_judge_calls = max_judge_calls
        self._judge_calls = 0
        self._judged: set[CaseName] = set()
        """Cases whose criteria ask judges."""
        self._passed: Counter[CaseName] = Counter()
        self._counted: Counter[CaseName] = Counter()
        self._sure: set[CaseName] = set()

    def take(self, event: CaseFinished) -> bool:
        """Count an execution that has ended, and return whether more executions may be unnecessary now."""
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
        """Return the `waiting` executions that are unnecessary.

        These are executions of decided cases, and of cases that ask judges if the budget is spent.
        """
        over = self._sure | self._judged if self._spent else self._sure
        return tuple(ref for ref in waiting if ref.name in over)

    def falls_short(self, case: CaseName, *, is_last: bool) -> bool:
        """Return whether a case surely does not pass often enough, or is undecided after its last repeat."""
        found = sure(pass_rate(self._passed[case], self._counted[case]), self._threshold)
        return found == "below" or (is_last and found is None)

    def has_room(self, ref: CaseRef, under_way: int) -> bool:
        """Return whether another execution may start while `under_way` executions of its case run."""
        case = ref.name
        return under_way < fewest_to_decide(self._passed[case], self._counted[case], self._threshold)

    @property
    def _spent(self) -> bool:
        return self._max_judge_calls is not None and self._judge_calls >= self._max_judge_calls


def too_few(threshold: float, runs: int) -> Noticed | None:
    """Return a warning if so few repeats can never show that the rate is reached."""
    needed = fewest_for_sure(threshold)
    if needed is None or runs >= needed:
        return None
    wanted = exact_percent(threshold)
    return Noticed(
        "warning",
        f"{counted(runs, 'repeat')} of a case can show a pass rate below {wanted}, but can never confirm {wanted}",
        f"Allow more repeats: to confirm it takes at least {counted(needed, 'pass', 'passes')} in a row",
    )
