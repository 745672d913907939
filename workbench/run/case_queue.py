"""The queue of executions that have not started, and the repeats that are still needed to establish a pass rate."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable

from workbench.events.events import CaseFinished, CaseName, CaseRef
from workbench.run.plan.plan import PlanEntry
from workbench.run.plan.source import AgentSource
from workbench.store.rates import counts, fewest_to_decide, pass_rate, sure


class UntilSure:
    """The pass rates so far in a run with `--until-sure`.

    A case is decided when its pass rate is certainly above or below `threshold`. `max_judge_calls` is the budget of the
    whole run, or None.
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
        """Return the `waiting` executions of decided cases, and of cases that ask judges if the budget is spent."""
        over = self._sure | self._judged if self._spent else self._sure
        return tuple(ref for ref in waiting if ref.name in over)

    def falls_short(self, case: CaseName, *, is_last: bool) -> bool:
        """Return whether a case certainly does not pass often enough, or is undecided after its last repeat."""
        found = sure(pass_rate(self._passed[case], self._counted[case]), self._threshold)
        return found == "below" or (is_last and found is None)

    def has_room(self, ref: CaseRef, under_way: int) -> bool:
        """Return whether the execution `ref` may start while `under_way` others of its case run."""
        case = ref.name
        return under_way < fewest_to_decide(self._passed[case], self._counted[case], self._threshold)

    @property
    def _spent(self) -> bool:
        return self._max_judge_calls is not None and self._judge_calls >= self._max_judge_calls


class CaseQueue:
    """The executions of `entries` that have not started, in their order.

    With `until` they start in rounds, one repeat of each case after the other. No more repeats of a case run at a time
    than are needed to decide it. Further repeats might be unnecessary.
    """

    def __init__(self, entries: Iterable[PlanEntry], until: UntilSure | None = None) -> None:
        ordered = list(entries) if until is None else sorted(entries, key=lambda entry: entry.ref.repeat)
        self._order = deque(ordered)
        self._refs = {entry.ref for entry in ordered}
        self._until = until
        self._under_way: Counter[CaseName] = Counter()
        self._room = asyncio.Event()
        self._closed = False

    def close(self) -> None:
        """Start no more executions: `next` returns None from now on."""
        self._closed = True
        self._room.set()

    def remove(self, ref: CaseRef) -> bool:
        """Remove an execution, and return whether it was still waiting."""
        was_waiting = ref in self._refs
        self._refs.discard(ref)
        return was_waiting

    def waits(self, ref: CaseRef) -> bool:
        """Return whether an execution may still start: it was not removed, and the queue is not closed."""
        return not self._closed and ref in self._refs

    async def next(self) -> PlanEntry | None:
        """Return the next execution as soon as one may start, or None if none is left or the queue is closed."""
        while not self._closed:
            found = self._first()
            if found is not None or not self._order:
                return found
            self._room.clear()
            await self._room.wait()
        return None

    def begin(self, ref: CaseRef) -> None:
        """Count an execution as running instead of waiting."""
        self._refs.discard(ref)
        self._under_way[ref.name] += 1

    def ended(self, ref: CaseRef) -> None:
        """Count a running execution as ended."""
        self._under_way[ref.name] -= 1
        if not self._under_way[ref.name]:
            del self._under_way[ref.name]
        self._room.set()

    def take(self, event: CaseFinished) -> tuple[CaseRef, ...]:
        """Count a finished execution. Remove and return the waiting ones that it makes unnecessary."""
        if self._until is None or not self._until.take(event):
            return ()
        needless = self._until.needless(entry.ref for entry in self._order if entry.ref in self._refs)
        self._refs.difference_update(needless)
        return needless

    def did_not_pass(self, event: CaseFinished) -> bool:
        """Return whether a finished execution shows that its case does not pass. Call `take` with the event first.

        With `until`, a case also does not pass if it is undecided after its last repeat.
        """
        name = event.case.name
        if event.status == "cancelled":
            return False
        if self._until is None:
            return event.status != "passed"
        is_last = self._under_way[name] <= 1 and all(ref.name != name for ref in self._refs)
        return self._until.falls_short(name, is_last=is_last)

    def clear(self) -> tuple[CaseRef, ...]:
        """Remove and return all waiting executions that would run an agent."""
        waiting = (entry for entry in self._order if isinstance(entry.source, AgentSource))
        cleared = tuple(entry.ref for entry in waiting if entry.ref in self._refs)
        self._refs.difference_update(cleared)
        return cleared

    def _first(self) -> PlanEntry | None:
        held: list[PlanEntry] = []
        found: PlanEntry | None = None
        while self._order and found is None:
            entry = self._order.popleft()
            if entry.ref not in self._refs:
                continue
            if self._until is None or self._until.has_room(entry.ref, self._under_way[entry.ref.name]):
                found = entry
            else:
                held.append(entry)
        self._order.extendleft(reversed(held))
        return found
