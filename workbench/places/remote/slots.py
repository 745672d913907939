"""The slots of the machines: how many cases may run on each, and which machine gets the next one."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Generic, TypeVar

M = TypeVar("M", bound=Hashable)


class Slots(Generic[M]):
    """Running cases by machine. A machine that is reserved takes only the case that must be alone there."""

    def __init__(self, slots_of: Callable[[M], int]) -> None:
        self._slots_of = slots_of
        self._running: Counter[M] = Counter()
        self._alone: dict[M, object] = {}
        """Machines that a case has, or waits to have, for itself."""

    def running(self, machine: M) -> int:
        """Return the number of cases on a machine."""
        return self._running[machine]

    def free_share(self, machine: M, case: object = None) -> float:
        """Return the share of a machine's slots that `case` could take: 0 if none, 1 if all are free."""
        slots = max(1, self._slots_of(machine))
        if self._alone.get(machine, case) is not case:
            return 0.0
        return max(0.0, (slots - self._running[machine]) / slots)

    def best(self, machines: Iterable[M], case: object) -> M | None:
        """Return the machine with the largest share of free slots for a case, or None if all are taken."""
        found = max(machines, key=lambda machine: self.free_share(machine, case), default=None)
        return found if found is not None and self.free_share(found, case) > 0 else None

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

    def give_back(self, machine: M) -> None:
        """Count one case less on a machine."""
        self._running[machine] -= 1

    def release(self, case: object) -> None:
        """Let others use the machine that a case had for itself."""
        for machine in [machine for machine, holder in self._alone.items() if holder is case]:
            del self._alone[machine]

    def drop(self, machine: M) -> None:
        """Forget a machine."""
        self._running.pop(machine, None)
        self._alone.pop(machine, None)


def even_slots(concurrency: int, cpus: int, all_cpus: int) -> int:
    """Return a machine's part of the cases at a time, by its processors, rounded up."""
    return max(1, -(-concurrency * cpus // max(1, all_cpus)))
