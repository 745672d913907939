"""The queue of executions that have not started, and the repeats that are still needed to establish a pass rate."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable

from workbench.events.events import CaseFinished, CaseName, CaseRef
from workbench.run.plan.plan import PlanEntry
from workbench.run.plan.source import AgentSource
from workbench.store.rates import counts, fewest_to_decide, pass_rate, sure


class CaseQueue:
    """The executions of `entries` that have not started, in their order.

    With `until` (`--until-sure`), a case is decided when its pass rate is certainly above or below this rate. The
    executions then start in rounds, one repeat of each case after the other. No more repeats of a case run at a time
    than are needed to decide it, because further repeats might be unnecessary. `max_judge_calls` is the budget of the
    whole run, or None.
    """

    def __init__(
        self, entries: Iterable[PlanEntry], until: float | None = None, max_judge_calls: int | None = None
    ) -> None:
        ordered = list(entries) if until is None else sorted(entries, key=lambda entry: entry.ref.repeat)
        self._order = deque(ordered)
        self._refs = {entry.ref for entry in ordered}
        self._until = until
        self._max_judge_calls = max_judge_calls
        self._judge_calls = 0
        self._judged: set[CaseName] = set()
        """Cases whose criteria ask judges."""
        self._passed: Counter[CaseName] = Counter()
        self._counted: Counter[CaseName] = Counter()
        self._sure: set[CaseName] = set()
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
        if self._until is None:
            return ()
        case, usage, before = event.case.name, event.usage, (self._spent, len(self._judged), len(self._sure))
        self._judge_calls += usage.judge_calls
        if usage.judge_calls or usage.judge_calls_cached:
            self._judged.add(case)
        if counts(event.status, event.error):
            self._counted[case] += 1
            self._passed[case] += event.status == "passed"
            if sure(pass_rate(self._passed[case], self._counted[case]), self._until):
                self._sure.add(case)
        if before == (self._spent, len(self._judged), len(self._sure)):
            return ()
        # Decided cases, and cases that ask judges if the budget is spent.
        over = self._sure | self._judged if self._spent else self._sure
        waiting = (entry.ref for entry in self._order if entry.ref in self._refs)
        needless = tuple(ref for ref in waiting if ref.name in over)
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
        found = sure(pass_rate(self._passed[name], self._counted[name]), self._until)
        return found == "below" or (is_last and found is None)

    def clear(self) -> tuple[CaseRef, ...]:
        """Remove and return all waiting executions that would run an agent."""
        waiting = (entry for entry in self._order if isinstance(entry.source, AgentSource))
        cleared = tuple(entry.ref for entry in waiting if entry.ref in self._refs)
        self._refs.difference_update(cleared)
        return cleared

    @property
    def _spent(self) -> bool:
        return self._max_judge_calls is not None and self._judge_calls >= self._max_judge_calls

    def _first(self) -> PlanEntry | None:
        held: list[PlanEntry] = []
        found: PlanEntry | None = None
        while self._order and found is None:
            entry = self._order.popleft()
            if entry.ref not in self._refs:
                continue
            name = entry.ref.name
            if self._until is None or self._under_way[name] < fewest_to_decide(
                self._passed[name], self._counted[name], self._until
            ):
                found = entry
            else:
                held.append(entry)
        self._order.extendleft(reversed(held))
        return found
