"""Documents shown in panes: lines, turns, and items that the cursor selects."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar, overload

from rich.text import Text

from workbench.agents.workspace import EvalsetEntry
from workbench.files.evalset import EvalCase
from workbench.files.faults import Fault
from workbench.files.prices import Prices
from workbench.results.changed_verdicts import Change
from workbench.results.lines import Line, has_style
from workbench.results.repeats import CaseRepeats
from workbench.store.execution import CaseRecord

if TYPE_CHECKING:
    from workbench.editing.triage.entry import Entry
    from workbench.results.run_comparison import ComparedCase
    from workbench.store.history.latest import PastRun
    from workbench.store.inputs import Change as InputChange

T = TypeVar("T")


class _Missing(Enum):
    VALUE = "not created yet"


class LazyList(Sequence[T]):
    """A list whose promised values are created on first use and then stored."""

    def __init__(self, values: Iterable[T] = ()) -> None:
        self._values: list[T | Literal[_Missing.VALUE]] = list(values)
        # One function per promise: one per value would give the garbage collector ten thousand objects.
        self._promised: list[int] = []
        self._makers: list[Callable[[int], T]] = []

    def extend(self, values: Iterable[T]) -> None:
        """Append several values."""
        self._values.extend(values)

    def promise(self, count: int, make: Callable[[int], T]) -> None:
        """Append `count` values. `make` creates each of them on first use, from its index among them."""
        self._promised.append(len(self._values))
        self._makers.append(make)
        self._values += [_Missing.VALUE] * count

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self._values)))]
        value = self._values[place]
        if value is _Missing.VALUE:
            place %= len(self._values)
            number = bisect_right(self._promised, place) - 1
            value = self._values[place] = self._makers[number](place - self._promised[number])
        return value


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a pane.

    `record` is an execution of a case, `case` the case in its file, and `entry` the file. `record` is None if the case
    never ran. `case` is None if the subject is a file or an unreadable case.
    """

    record: CaseRecord | None = None
    entry: EvalsetEntry | None = None
    case: EvalCase | None = None
    change: Change | None = None
    """The state before the newest verdict, if the verdict changed."""
    before: CaseRecord | None = field(default=None, compare=False)
    """The previous execution with its details, if the verdict changed."""
    found: tuple[Fault, ...] = ()
    """The problems that `check` found in the case or the file."""
    triage: "tuple[Entry, ...]" = ()
    """The user's triage of the case and its labels, including triage of earlier answers."""
    state: Path | None = field(default=None, compare=False)
    """The state folder with the stored runs and the requests to models."""
    prices: Prices | None = field(default=None, compare=False)
    """The user's price table."""
    earlier: "tuple[PastRun, ...]" = field(default=(), compare=False)
    """The newest runs with a verdict of the case, the newest first."""
    compared: "ComparedCase | None" = field(default=None, compare=False)
    """The comparison of the previous and the newest run of the case, if the verdict changed and both were read."""
    repeats: CaseRepeats | None = None
    """All repeats of the case, if the subject is the case and not a single repeat."""
    stale: "tuple[InputChange, ...]" = ()
    """The inputs of the newest verdict that have changed since."""
    loading: bool = field(default=False, compare=False)
    """Whether verdicts of earlier sessions are still loading."""

    @property
    def root(self) -> str:
        """The root of the project, or "" if it is not known."""
        return "" if self.entry is None else str(self.entry.file).removesuffix(self.entry.relative)

    @property
    def identity(self) -> tuple[object, ...]:
        """A value that is equal for two subjects if they are the same case in any state."""
        ref = None if self.record is None else self.record.ref
        if self.entry is None:
            return ref, self.repeats is not None
        named = self.case or ref
        repeat = 0 if self.repeats is not None else 1 if ref is None else ref.repeat
        return self.entry.file, None if named is None else named.eval_id, repeat

    @property
    def stage(self) -> tuple[object, ...]:
        """A value that changes whenever the content may have changed.

        It contains object IDs, so compare it only while the previous subject exists.
        """
        record = self.record
        if record is None:
            return id(self.entry), id(self.case), self.found, self.triage, self.loading
        acted = sum(len(turn.acted) + (turn.actual is not None) + (turn.spans is not None) for turn in record.turns)
        printed = tuple((len(text), text[-20:]) for text in record.output.values())
        # The results themselves: they never change, and a new scoring may differ only in its reasons.
        scored = [*record.metrics.values(), *(result for turn in record.turns for result in turn.metrics.values())]
        made = id(record), id(self.entry), id(self.case), id(self.repeats)
        numbers = len(record.turns), len(record.simulated), acted
        change = None if self.change is None else (id(self.change.before), self.change.rates)
        ending = record.state, scored, printed, record.error is None
        return made, numbers, ending, change, self.found, self.triage, self.stale


class Target(NamedTuple):
    """A place in another pane.

    `pane` is the title of the pane. `places` are keys of `Document.places`. The first one that exists is used.
    """

    pane: str
    places: tuple[str, ...]


Aside: TypeAlias = Callable[[int], Iterable[Line]]
"""A function that returns more details of an item as lines of the given width in cells."""


@dataclass(frozen=True, slots=True)
class Item:
    """Lines `start` to `end` (exclusive) that the cursor selects as one.

    `key` identifies the item in every layout of the document. `opens` says whether the item can be unfolded, by adding
    its key to `View.opened`. `targets` are its places in other panes. `heads` says whether the item is the heading of
    all items whose keys begin with its own. The first cell of each line is blank, for the cursor's mark.
    """

    key: str
    start: int
    end: int
    opens: bool = False
    targets: tuple[Target, ...] = ()
    aside: Aside | None = None
    heads: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """One-line items that are created by number on first use.

    `line` returns the line of a row. `item` returns the row as an item at a given line. `names` returns further names
    by which other panes can refer to the row. If several rows have a name in common, the name refers to the first one.
    """

    keys: Sequence[str]
    line: Callable[[int], Line]
    item: Callable[[int, int], Item]
    names: Callable[[int], Iterable[str]] = lambda number: ()


class Document:
    """Lines laid out for one width.

    `turns` has the first line of each turn. `opening` is the index of the turn to open at, or None for the top. If
    there are `items`, a cursor moves between them and starts at `opening_item`.
    """

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.lines: LazyList[Line] = LazyList(lines)
        self.items: LazyList[Item] = LazyList()
        self.turns: list[int] = []
        self.opening: int | None = None
        self.opening_item = 0
        self._keys: list[str] = []
        self._starts: list[int] = []
        self._places: dict[str, range] = {}
        self._named: list[tuple[Rows, range, int]] = []
        """Rows that are not in `_places` yet: the rows, their numbers, and the line of the first one."""

    def add(self, lines: Iterable[Line]) -> None:
        """Add lines that the cursor cannot select."""
        self.lines.extend(lines)

    def add_item(
        self,
        key: str,
        lines: Iterable[Line],
        *,
        opens: bool = False,
        targets: tuple[Target, ...] = (),
        aside: Aside | None = None,
        heads: bool = False,
    ) -> None:
        """Add lines that the cursor selects as one, and to which other panes can refer by `key`."""
        start = len(self.lines)
        self.lines.extend(lines)
        self.items.extend([Item(key, start, len(self.lines), opens, targets, aside, heads)])
        self._keys.append(key)
        self._starts.append(start)
        self._places[key] = range(start, len(self.lines))

    def add_rows(self, rows: Rows, numbers: range) -> None:
        """Add one-line items that are created on first use, because hidden items must take no time."""
        start = len(self.lines)
        lines = range(start, start + len(numbers))
        self.lines.promise(len(numbers), lambda place: rows.line(numbers[place]))
        self.items.promise(len(numbers), lambda place: rows.item(numbers[place], lines[place]))
        self._keys.extend(rows.keys[numbers.start : numbers.stop])
        self._starts.extend(lines)
        self._named.append((rows, numbers, start))

    def add_place(self, names: Iterable[str], lines: Iterable[Line]) -> None:
        """Add lines to which other panes can refer by any of these names."""
        start = len(self.lines)
        self.lines.extend(lines)
        for name in names:
            self._places.setdefault(name, range(start, len(self.lines)))

    @property
    def places(self) -> dict[str, range]:
        """The lines to which other panes can refer, by name."""
        while self._named:
            rows, numbers, start = self._named.pop(0)
            for place, number in enumerate(numbers, start):
                for name in (rows.keys[number], *rows.names(number)):
                    self._places.setdefault(name, range(place, place + 1))
        return self._places

    def link_from(self, line: int, pane: str) -> Item | None:
        """Return an item that links the first place at or below `line` to `pane`, or None if there is no such place."""
        below = [lines for lines in self.places.values() if lines.stop > line]
        if not below:
            return None
        first = min(below, key=lambda lines: lines.start)
        names = tuple(name for name, lines in self.places.items() if lines == first)
        return Item("", first.start, first.stop, targets=(Target(pane, names),))

    def item_named(self, key: str) -> int | None:
        """Return the number of the item with this key, or None."""
        try:
            return self._keys.index(key)
        except ValueError:
            return None

    def item_at(self, line: int) -> int:
        """Return the number of the item at or above `line`, or 0 if there is none."""
        return max(bisect_right(self._starts, line) - 1, 0)

    def whole(self, number: int) -> list[Line]:
        """Return the lines of an item. The lines of a heading include all items below the heading."""
        item = self.items[number]
        if not item.heads:
            return self.lines[item.start : item.end]
        others = range(number + 1, len(self._keys))
        after = (self._starts[other] for other in others if not self._keys[other].startswith(f"{item.key}/"))
        turns = (turn for turn in self.turns if turn > item.start)
        return self.lines[item.start : min(next(after, len(self.lines)), next(turns, len(self.lines)))]

    def gap(self) -> None:
        """Add a blank line, unless the document is empty or ends with one."""
        if self.lines and self.lines[-1]:
            self.lines.extend([Text()])

    @property
    def folded(self) -> bool:
        """Whether something is cut or folded that a full view would show."""
        return any(has_style(line, "fold") for line in self.lines)

    def begin_turn(self, heading: Iterable[Line] = (), *, spaced: bool = True) -> None:
        """Start a turn, after a blank line if `spaced`."""
        if spaced:
            self.gap()
        self.turns.append(len(self.lines))
        self.add(heading)

    def turn_at(self, line: int) -> int | None:
        """Return the index of the turn at `line`, or None without turns. Lines above the first turn belong to it."""
        if not self.turns:
            return None
        return max(bisect_right(self.turns, line) - 1, 0)
