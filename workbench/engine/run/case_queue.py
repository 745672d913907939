"""Executions that have not begun, and which of them is to begin next."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable

from workbench.engine.plan.plan import PlanEntry
from workbench.engine.plan.until_sure import UntilSure
from workbench.events import CaseFinished, CaseName, CaseRef


class CaseQueue:
    """All of `entries` to begin with, in their order. With `until` they begin in rounds, and no more of a case are
    under way than can decide it: what is asked beyond that might be asked for nothing."""

    def __init__(self, entries: Iterable[PlanEntry], until: UntilSure | None = None) -> None:
        ordered = list(entries) if until is None else sorted(entries, key=lambda entry: entry.ref.repeat)
        self._order = deque(ordered)
        self._refs = {entry.ref for entry in ordered}
        self._until = until
        self._under_way: Counter[CaseName] = Counter()
        self._room = asyncio.Event()
        self._closed = False

    def close(self) -> None:
        """None of them is to begin any more."""
        self._closed = True
        self._room.set()

    def remove(self, ref: CaseRef) -> bool:
        """It will not begin; False if it has, or never waited."""
        if ref not in self._refs:
            return False
        self._refs.remove(ref)
        return True

    async def next(self) -> PlanEntry | None:
        """The next one, as soon as one may begin; it is under way from here on. None: there is none any more."""
        while not self._closed:
            found = self._first()
            if found is not None or not self._order:
                return found
            self._room.clear()
            await self._room.wait()
        return None

    def begin(self, ref: CaseRef) -> None:
        """It does not wait any more."""
        self._refs.discard(ref)
        self._under_way[ref.name] += 1

    def ended(self, ref: CaseRef) -> None:
        """One that had begun came to its end, whichever that is."""
        self._under_way[ref.name] -= 1
        if not self._under_way[ref.name]:
            del self._under_way[ref.name]
        self._room.set()

    def take(self, event: CaseFinished) -> tuple[CaseRef, ...]:
        """Those that are not needed any more, now that one has ended so; they are gone from here."""
        if self._until is None or not self._until.take(event):
            return ()
        needless = self._until.needless(entry.ref for entry in self._order if entry.ref in self._refs)
        self._refs.difference_update(needless)
        return needless

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
