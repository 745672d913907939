"""The slots of the machines: how many cases may run on each, and which machine gets the next one."""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Generic, TypeVar

M = TypeVar("M", bound=Hashable)


class Slots(Generic[M]):
    """Running cases by machine. A machine that is reserved takes only the case that must be alone there.

    The next machine is found without a look at all of them. So call `resize` if an answer of `slots_of` changes.
    """

    def __init__(self, slots_of: Callable[[M], int]) -> None:
        self._slots_of = slots_of
        self._running: Counter[M] = Counter()
        self._alone: dict[M, object] = {}
        """Machines that a case has, or waits to have, for itself."""
        self._shares: dict[M, float] = {}
        """The share of free slots of each machine."""
        self._by_share: dict[float, dict[M, None]] = {}
        """The machines with each share, those first that have had it for the longest time."""
        self._order: list[float] = []
        """The keys of `_by_share`, the smallest first."""
        self._resized = False

    def add(self, machine: M) -> None:
        """Add a machine."""
        self._enter(machine, 1.0)

    def drop(self, machine: M) -> None:
        """Forget a machine."""
        self._leave(machine)
        self._running.pop(machine, None)
        self._alone.pop(machine, None)

    def resize(self) -> None:
        """Note that machines may have other numbers of slots now."""
        self._resized = True

    def running(self, machine: M) -> int:
        """Return the number of cases on a machine."""
        return self._running[machine]

    def free_share(self, machine: M, case: object = None) -> float:
        """Return the share of a machine's slots that `case` could take: 0 if none, 1 if all are free."""
        return self._share(machine) if self._alone.get(machine, case) is case else 0.0

    def by_share(self, case: object) -> Iterator[M]:
        """Yield the machines with free slots for a case, those with the largest share of them first.

        Take and give back no slot meanwhile.
        """
        if self._resized:
            self._resized = False
            for machine in tuple(self._shares):
                self._moved(machine)
        for share in reversed(self._order):
            if share <= 0:
                return
            for machine in self._by_share[share]:
                if self._alone.get(machine, case) is case:
                    yield machine

    def best(self, may_run: Callable[[M], bool], case: object) -> M | None:
        """Return the machine with the largest share of free slots for a case, or None if all are taken."""
        return next(filter(may_run, self.by_share(case)), None)

    def reserve(self, machines: Collection[M], case: object) -> M | None:
        """Return a machine on which nothing runs for a case that must be alone.

        If there is none, return None and keep the emptiest for it: no other case starts there.
        """
        own = [machine for machine, holder in self._alone.items() if holder is case and machine in machines]
        if not own:
            self.release(case)  # It may have waited for a machine that cannot be used any more.
        free = own or [machine for machine in machines if machine not in self._alone]
        if not free:
            return None
        emptiest = min(free, key=self.running)
        self._alone[emptiest] = case
        return emptiest if not self._running[emptiest] else None

    def take(self, machine: M) -> None:
        """Count one more case on a machine."""
        self._running[machine] += 1
        self._moved(machine)

    def give_back(self, machine: M) -> None:
        """Count one case less on a machine."""
        self._running[machine] -= 1
        self._moved(machine)

    def release(self, case: object) -> None:
        """Let others use the machine that a case had for itself."""
        for machine in [machine for machine, holder in self._alone.items() if holder is case]:
            del self._alone[machine]

    def _share(self, machine: M) -> float:
        slots = max(1, self._slots_of(machine))
        return max(0.0, (slots - self._running[machine]) / slots)

    def _moved(self, machine: M) -> None:
        """Note that the share of a machine may have changed."""
        share = self._share(machine)
        if self._shares.get(machine, share) != share:
            self._leave(machine)
            self._enter(machine, share)

    def _enter(self, machine: M, share: float) -> None:
        self._shares[machine] = share
        if share not in self._by_share:
            self._by_share[share] = {}
            insort(self._order, share)
        self._by_share[share][machine] = None

    def _leave(self, machine: M) -> None:
        share = self._shares.pop(machine, None)
        if share is None:
            return
        del self._by_share[share][machine]
        if not self._by_share[share]:
            del self._by_share[share]
            self._order.remove(share)


def even_slots(concurrency: int, cpus: int, all_cpus: int) -> int:
    """Return a machine's part of the cases at a time, by its processors, rounded up."""
    return max(1, -(-concurrency * cpus // max(1, all_cpus)))
