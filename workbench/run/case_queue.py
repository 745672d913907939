"""The queue of executions that have not started."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable

from workbench.events.events import CaseFinished, CaseName, CaseRef
from workbench.run.plan.plan import PlanEntry
from workbench.run.plan.source import AgentSource
from workbench.run.plan.until_sure import UntilSure


class CaseQueue:
    """The executions of `entries` that have not started, in their order.

    With `until` they start in rounds, one repeat of each case after the other. No more repeats of a case run at a time
    than are needed to decide it. Others might be unnecessary.
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
        """Let no more executions start."""
        self._closed = True
        self._room.set()

    def remove(self, ref: CaseRef) -> bool:
        """Remove an execution, and return whether it was still waiting."""
        if ref not in self._refs:
            return False
        self._refs.remove(ref)
        return True

    async def next(self) -> PlanEntry | None:
        """Return the next execution as soon as one may start, or None if none is left."""
        while not self._closed:
            found = self._first()
            if found is not None or not self._order:
                return found
            self._room.clear()
            await self._room.wait()
        return None

    def begin(self, ref: CaseRef) -> None:
        """Count an execution as running."""
        self._refs.discard(ref)
        self._under_way[ref.name] += 1

    def ended(self, ref: CaseRef) -> None:
        """Count a running execution as ended."""
        self._under_way[ref.name] -= 1
        if not self._under_way[ref.name]:
            del self._under_way[ref.name]
        self._room.set()

    def take(self, event: CaseFinished) -> tuple[CaseRef, ...]:
        """Remove and return the executions that this end of another one makes unnecessary."""
        if self._until is None or not self._until.take(event):
            return ()
        needless = self._until.needless(entry.ref for entry in self._order if entry.ref in self._refs)
        self._refs.difference_update(needless)
        return needless

    def did_not_pass(self, event: CaseFinished) -> bool:
        """Return whether this end of an execution shows that its case does not pass. Call `take` before."""
        name = event.case.name
        if event.status == "cancelled":
            return False
        if self._until is None:
            return event.status != "passed"
        is_last = self._under_way[name] <= 1 and all(ref.name != name for ref in self._refs)
        return self._until.falls_short(name, is_last=is_last)

    def clear(self) -> tuple[CaseRef, ...]:
        """Remove and return all executions whose agent has not run."""
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
