"""What is stale, and what is to be done about it next. Changes nothing but itself: whoever drives it runs things."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from workbench.counting import counted
from workbench.dependencies.change import EFFECTS, Change, Effect
from workbench.engine.watch.watcher import Saved
from workbench.events import CaseName


@dataclass(frozen=True)
class Job:
    """Cases to be done in one go, in order, all to the same depth."""

    depth: Effect
    keys: tuple[CaseName, ...]


@dataclass(frozen=True)
class Limit:
    """What a save may cost unasked: calls, and money in the currency of the price table; None: no limit."""

    calls: int | None = None
    money: float | None = None


@dataclass(frozen=True)
class Estimate:
    """What doing `cases` stale cases costs: `calls` to models and judges, None where nobody knows yet; `money` says in
    words what that is, `amount` in figures, None where nobody knows."""

    cases: int
    calls: int | None
    money: str = ""
    amount: float | None = None

    def words(self, total: int) -> str:
        """`7 of 40 stale, about 35 calls, about $0.06`."""
        said = f"{self.cases:,} of {total:,} stale"
        if self.calls is None:
            return f"{said}, cost not known before they have run"
        if self.calls:
            said += f", about {counted(self.calls, 'call')}"
        return f"{said}, {self.money}" if self.money else said

    def above(self, limit: Limit) -> bool:
        """Whether it is more than the user wants to spend unasked, or may be. Money that nobody knows is limited by the
        calls, and where these are not, it may be too much."""
        if self.calls == 0:
            return False
        calls = limit.calls is not None and (self.calls is None or self.calls > limit.calls)
        if limit.money is None or calls:
            return calls
        return limit.calls is None if self.amount is None else self.amount > limit.money


@dataclass
class Board:
    """`armed`: the cases that a save may run, None for all. `limit`: the cost above which it waits for a key."""

    armed: frozenset[CaseName] | None = None
    limit: Limit = Limit()
    depths: dict[CaseName, Effect] = field(default_factory=dict)
    """The stale cases and what each needs."""
    changes: dict[CaseName, tuple[Change, ...]] = field(default_factory=dict)
    """Why they are stale."""
    blocked: frozenset[CaseName] = frozenset()
    held: set[CaseName] = field(default_factory=set)
    """Stale cases that are not started unasked until a save concerns them again: the user cancelled them, or they could
    not be started."""
    edited: set[CaseName] = field(default_factory=set)
    under_way: dict[CaseName, Effect] = field(default_factory=dict)
    waiting: Estimate | None = None
    """What would have to be allowed first."""
    _allowed: bool = False

    def watches(self, key: CaseName) -> bool:
        """Whether a save may run this case."""
        return self.armed is None or key in self.armed

    def take(self, saved: Saved) -> set[CaseName]:
        """Takes in a save; gives the cases whose execution under way it made obsolete."""
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
        """The user has seen the cost."""
        self._allowed = True

    def next_job(
        self, failing: Callable[[CaseName], bool], cost: Callable[[Collection[CaseName], Effect], Estimate]
    ) -> Job | None:
        """What to do now; None if there is nothing, or something is under way, or (then `waiting` says so) it costs
        too much to be done unasked. The cheapest first; failing and just edited cases before others."""
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
        """These are under way. Stale they stay until they have their verdicts."""
        self.under_way = dict.fromkeys(keys, depth)

    def decided(self, key: CaseName) -> bool:
        """A case has a new verdict; whether it still counts. One that was made obsolete in the meantime does not."""
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
        """Nothing is under way any more: what was left undone is stale as before."""
        self.under_way = {}

    def hold(self, keys: Iterable[CaseName] | None = None) -> None:
        """These (None: what is under way) came to nothing, and would again."""
        self.held.update(self.under_way if keys is None else keys)

    def drop(self, keys: Iterable[CaseName]) -> None:
        """These need nothing: there is no transcript that could be scored again."""
        for key in keys:
            self.depths.pop(key, None)
            self.changes.pop(key, None)

    def fresh(self, covered: Mapping[CaseName, Effect]) -> None:
        """A run that the user started takes these along."""
        self.under_way |= covered


def _deeper(depth: Effect, other: Effect | None) -> Effect:
    return depth if other is None else max(depth, other, key=EFFECTS.index)
