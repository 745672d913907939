"""The queue of stale cases and the next job of the watch. It runs nothing itself."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from workbench.counting import counted
from workbench.dependencies.change import EFFECTS, Change, Effect
from workbench.engine.watch.watcher import Saved
from workbench.events import CaseName


@dataclass(frozen=True)
class Job:
    """Cases to process together, in order and with the same depth."""

    depth: Effect
    keys: tuple[CaseName, ...]


@dataclass(frozen=True)
class Limit:
    """Limits for a save without confirmation: calls, and money in the currency of the price table. None: no limit."""

    calls: int | None = None
    money: float | None = None


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of `cases` stale cases.

    `calls` to models and judges is None if it is not known yet. `money` is the cost as a text, and `amount` as a
    number, or None if it is not known.
    """

    cases: int
    calls: int | None
    money: str = ""
    amount: float | None = None

    def words(self, total: int) -> str:
        """Return a text such as `7 of 40 stale, about 35 calls, about $0.06`."""
        return ", ".join(filter(None, (f"{self.cases:,} of {total:,} stale", self.cost_words)))

    @property
    def cost_words(self) -> str:
        """The cost as text, such as `about 35 calls, about $0.06`, or "" if nothing is called."""
        if self.calls is None:
            return "cost unknown until they have run"
        calls = f"about {counted(self.calls, 'call')}" if self.calls else ""
        return ", ".join(filter(None, (calls, self.money)))

    def above(self, limit: Limit) -> bool:
        """Return whether the cost is or may be above the limit.

        If the amount is unknown, the limit of calls decides. Without such a limit, the cost may be too high.
        """
        if self.calls == 0:
            return False
        calls = limit.calls is not None and (self.calls is None or self.calls > limit.calls)
        if limit.money is None or calls:
            return calls
        return limit.calls is None if self.amount is None else self.amount > limit.money


@dataclass
class JobQueue:
    """Stale cases and the work they need.

    `armed` are the cases that a save may run, or None for all. Above the cost `limit`, a job waits for confirmation.
    """

    armed: frozenset[CaseName] | None = None
    limit: Limit = Limit()
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
    """The cost that must be confirmed first, or None."""
    _allowed: bool = False

    def watches(self, key: CaseName) -> bool:
        """Return whether a save may run this case."""
        return self.armed is None or key in self.armed

    def take(self, saved: Saved) -> set[CaseName]:
        """Add a save, and return the cases whose current execution is obsolete because of it."""
        obsolete = set()
        for key in saved.impact.gone:
            self.depths.pop(key, None)
            self.changes.pop(key, None)
            if self.under_way.pop(key, None) is not None:
                obsolete.add(key)
        for key, depth in saved.impact.depths.items():
            if self.under_way.get(key) is not None:
                obsolete.add(key)
                depth = _deeper(depth, self.under_way.pop(key))
            self.depths[key] = _deeper(depth, self.depths.get(key))
            self.changes[key] = tuple(dict.fromkeys((*self.changes.get(key, ()), *saved.impact.changes[key])))
        self.blocked = saved.blocked
        self.held -= saved.impact.depths.keys()
        if saved.impact.depths:
            self.edited = set(saved.impact.edited)
            self._allowed = False
        return obsolete

    def allow(self) -> None:
        """Confirm the cost."""
        self._allowed = True

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
            keys = [key for key, found in self.depths.items() if found == depth and self.watches(key)]
            keys = [key for key in keys if key not in self.blocked and key not in self.held]
            if not keys:
                continue
            if depth != "decide" and self.limit != Limit() and not self._allowed:
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

    def decided(self, key: CaseName) -> bool:
        """Record the new verdict of a case, and return whether it is valid, because no save made it obsolete."""
        known = self.under_way.pop(key, None)
        if known is None:
            return False
        needed = self.depths.get(key)
        if needed is None or EFFECTS.index(known) >= EFFECTS.index(needed):
            self.depths.pop(key, None)
            self.changes.pop(key, None)
            self.edited.discard(key)
        self.held.discard(key)
        return True

    def ended(self) -> None:
        """Record that nothing is running. Unfinished cases stay stale."""
        self.under_way = {}

    def hold(self, keys: Iterable[CaseName] | None = None) -> None:
        """Let these cases (None: the running ones) wait for another save, because they would fail again."""
        self.held.update(self.under_way if keys is None else keys)

    def drop(self, keys: Iterable[CaseName]) -> None:
        """Remove cases that have no transcript to score again."""
        for key in keys:
            self.depths.pop(key, None)
            self.changes.pop(key, None)

    def fresh(self, covered: Mapping[CaseName, Effect]) -> None:
        """Mark cases as running because a run of the user includes them."""
        self.under_way |= covered


def _deeper(depth: Effect, other: Effect | None) -> Effect:
    return depth if other is None else max(depth, other, key=EFFECTS.index)
