"""The queue of stale cases with the work that each needs. It runs nothing itself."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from workbench.events.events import CaseName
from workbench.freshness.watcher import Saved
from workbench.project.cost_estimate import Estimate, Limit
from workbench.store.inputs import EFFECTS, Change, Effect


@dataclass(frozen=True)
class Job:
    """Cases to process together, in this order and with the same effect (`depth`)."""

    depth: Effect
    keys: tuple[CaseName, ...]


@dataclass
class JobQueue:
    """Stale cases and the work they need.

    `armed` are the cases that a save may run, or None for all. Above the cost `limit`, a job waits for confirmation.
    """

    armed: frozenset[CaseName] | None = None
    limit: Limit = field(default_factory=Limit)
    depths: dict[CaseName, Effect] = field(default_factory=dict)
    """Stale case → the effect that it needs."""
    changes: dict[CaseName, tuple[Change, ...]] = field(default_factory=dict)
    """Stale case → the changed inputs."""
    blocked: frozenset[CaseName] = frozenset()
    held: set[CaseName] = field(default_factory=set)
    """Stale cases that wait for another save, because the user cancelled them or they could not start."""
    edited: set[CaseName] = field(default_factory=set)
    under_way: dict[CaseName, Effect] = field(default_factory=dict)
    waiting: Estimate | None = None
    """The estimated cost of the job that waits for confirmation, or None."""
    allowed: bool = False
    """Whether the user has confirmed the cost since the last save."""

    def take(self, saved: Saved) -> set[CaseName]:
        """Add a save, and return the cases whose current execution is obsolete because of it."""
        obsolete = set()
        for key in saved.impact.gone:
            self.drop(key)
            if self.under_way.pop(key, None) is not None:
                obsolete.add(key)
        for key, depth in saved.impact.depths.items():
            if key in self.under_way:
                obsolete.add(key)
                depth = _deeper(depth, self.under_way.pop(key))
            self.depths[key] = _deeper(depth, self.depths.get(key))
            self.changes[key] = tuple(dict.fromkeys((*self.changes.get(key, ()), *saved.impact.changes[key])))
        self.blocked = saved.blocked
        self.held -= saved.impact.depths.keys()
        if saved.impact.depths:
            self.edited = set(saved.impact.edited)
            self.allowed = False
        return obsolete

    def next_job(
        self, failing: Callable[[CaseName], bool], cost: Callable[[Collection[CaseName], Effect], Estimate]
    ) -> Job | None:
        """Return the next job, or None if there is none, one is running, or its cost must be confirmed (`waiting`).

        The cheapest effect comes first. Within a job, failing and edited cases come first.
        """
        self.waiting = None
        if self.under_way:
            return None
        for depth in EFFECTS:
            keys = [key for key, found in self.depths.items() if found == depth]
            keys = [key for key in keys if self.armed is None or key in self.armed]
            keys = [key for key in keys if key not in self.blocked and key not in self.held]
            if not keys:
                continue
            if depth != "decide" and self.limit != Limit() and not self.allowed:
                estimate = cost(keys, depth)
                if estimate.above(self.limit):
                    self.waiting = estimate
                    continue
            keys.sort(key=lambda key: key not in self.edited and not failing(key))
            return Job(depth, tuple(keys))
        return None

    def started(self, keys: Iterable[CaseName], depth: Effect) -> None:
        """Mark cases as running. They stay stale until they have their verdicts."""
        self.under_way = dict.fromkeys(keys, depth)

    def decided(self, key: CaseName) -> None:
        """Record that a case has its new verdict. Do nothing if a save has made its execution obsolete."""
        known = self.under_way.pop(key, None)
        if known is None:
            return
        needed = self.depths.get(key)
        if needed is None or EFFECTS.index(known) >= EFFECTS.index(needed):
            self.drop(key)
            self.edited.discard(key)
        self.held.discard(key)

    def put_back(self, keys: Iterable[CaseName]) -> None:
        """Make running cases stale that did not run because a save ended their run, even if no save concerns them."""
        for key in keys:
            if key in self.under_way:
                self.depths[key] = _deeper(self.under_way[key], self.depths.get(key))

    def ended(self) -> None:
        """Record that nothing is running. Unfinished cases stay stale."""
        self.under_way = {}

    def hold(self, keys: Iterable[CaseName] | None = None) -> None:
        """Do not start these cases again before another save. None means the running cases."""
        self.held.update(self.under_way if keys is None else keys)

    def drop(self, key: CaseName) -> None:
        """Remove a case from the stale cases."""
        self.depths.pop(key, None)
        self.changes.pop(key, None)


def _deeper(depth: Effect, other: Effect | None) -> Effect:
    return depth if other is None else max(depth, other, key=EFFECTS.index)
