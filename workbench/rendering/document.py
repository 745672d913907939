"""What a pane shows: lines, and where in them the turns begin."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from workbench.agents.workspace import EvalsetEntry
from workbench.model.evalset import EvalCase
from workbench.model.faults import Fault
from workbench.prices import Prices
from workbench.rendering.changed import Change
from workbench.rendering.late import Late
from workbench.rendering.lines import Line
from workbench.repeats.summary import CaseRepeats
from workbench.store import CaseRecord

if TYPE_CHECKING:
    from workbench.authoring.triage.entry import Entry
    from workbench.dependencies.change import Change as InputChange
    from workbench.history.case_rows import PastRun


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at. `record`: an execution of a case; `case`: the case as it stands in its file; `entry`: that
    file. A case that never ran has no record, a row that stands for a file (or a case that cannot be read) no case."""

    record: CaseRecord | None = None
    entry: EvalsetEntry | None = None
    case: EvalCase | None = None
    change: Change | None = None
    """What it was before its newest verdict, where that was another one."""
    found: tuple[Fault, ...] = ()
    """What `check` found wrong with the case or the file."""
    triage: "tuple[Entry, ...]" = ()
    """What the user said of the case and its labels, for whatever answer; `answer` is the digest of the one shown."""
    answer: str = ""
    runs: Path | None = field(default=None, compare=False)
    """The folder of what is kept of runs: there stands what models were asked."""
    prices: Prices | None = field(default=None, compare=False)
    """The user's."""
    earlier: "tuple[PastRun, ...]" = field(default=(), compare=False)
    """The newest runs in which the case has a verdict, the newest first."""

    repeats: CaseRepeats | None = None
    """The repeats of the case together, where the case itself is looked at and not one of them."""
    stale: "tuple[InputChange, ...]" = ()
    """The inputs of its newest verdict that changed since."""
    loading: bool = field(default=False, compare=False)
    """Whether verdicts of earlier sessions are still being read."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for two subjects that are the same case to a reader, in whatever state it is."""
        repeat = self.record.ref.repeat if self.record is not None else 1
        if self.entry is not None:
            name = (
                self.case.eval_id
                if self.case is not None
                else self.record.ref.eval_id
                if self.record is not None
                else None
            )
            return self.entry.file, name, 0 if self.repeats is not None else repeat
        return self.record.ref if self.record is not None else None, self.repeats is not None

    @property
    def stage(self) -> tuple[object, ...]:
        """Another value whenever there may be something else to show, as long as the subject before is kept."""
        record = self.record
        if record is None:
            return id(self.entry), id(self.case), self.found, self.triage, self.loading
        acted = sum(len(turn.acted) + (turn.actual is not None) + (turn.spans is not None) for turn in record.turns)
        printed = tuple((len(text), text[-20:]) for text in record.output.values())
        # The results themselves: they never change, and what is scored again may differ in its reasons only.
        scored = [*record.metrics.values(), *(result for turn in record.turns for result in turn.metrics.values())]
        return (
            id(record),
            id(self.entry),
            id(self.case),
            id(self.repeats),
            record.state,
            len(record.turns),
            len(record.simulated),
            acted,
            scored,
            printed,
            record.error is None,
            self.found,
            self.triage,
            self.stale,
            None if self.change is None else (id(self.change.before), self.change.rates),
        )


class Target(NamedTuple):
    """A place in another pane: the pane's title, and places (the first that is there) as `Document.places` names
    them."""

    pane: str
    places: tuple[str, ...]


AsideWhen: TypeAlias = Literal["never", "beside", "always"]
Aside: TypeAlias = Callable[[int], Iterable[Line]]
"""What is to be told of an item beside it, on lines of so many cells."""


@dataclass(frozen=True, slots=True)
class Item:
    """Lines `start` to `end` (exclusive) that the cursor takes as one. `key` names the item in every layout of the
    document; `opens`: there is more of it, shown where the view has its key among those opened; `targets`: where it
    came from, the first that is there; `heads`: what stands below it up to the next one that is not in it is a part of
    it. The first cell of its lines is blank: the cursor's mark stands there."""

    key: str
    start: int
    end: int
    opens: bool = False
    targets: tuple[Target, ...] = ()
    aside: Aside | None = None
    heads: bool = False


class Rows(Protocol):
    """Items of one line each, by number."""

    @property
    def keys(self) -> Sequence[str]:
        """Of the items."""

    def line(self, number: int) -> Line:
        """What the row looks like."""

    def item(self, number: int, start: int) -> Item:
        """The row as an item that stands at line `start`."""

    def names(self, number: int) -> Iterable[str]:
        """The places that the row is besides, of which the first one that is called so is meant."""


class Document:
    """Lines laid out for one width. `turns` holds the line at which each turn begins, `opening` the index of the
    turn to open at (None: at the top). Where there are `items`, a cursor goes from one to the next, and
    `opening_item` is where it begins."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.lines: Late[Line] = Late(lines)
        self.items: Late[Item] = Late()
        self.turns: list[int] = []
        self.opening: int | None = None
        self.opening_item = 0
        self._keys: list[str] = []
        self._starts: list[int] = []
        self._places: dict[str, range] = {}
        self._named: list[tuple[Rows, range, int]] = []
        """Rows whose places nobody has asked for yet: their numbers, and the line of the first."""

    def add(self, lines: Iterable[Line]) -> None:
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
        """Lines that the cursor takes as one; they are also a place that can be pointed at."""
        start = len(self.lines)
        self.lines.extend(lines)
        self.items.append(Item(key, start, len(self.lines), opens, targets, aside, heads))
        self._keys.append(key)
        self._starts.append(start)
        self._places[key] = range(start, len(self.lines))

    def add_rows(self, rows: Rows, numbers: range) -> None:
        """Items of one line each that are made when they are looked at, so that ten thousand cost what is in sight."""
        start = len(self.lines)
        lines = range(start, start + len(numbers))
        self.lines.promise(len(numbers), lambda place: rows.line(numbers[place]))
        self.items.promise(len(numbers), lambda place: rows.item(numbers[place], lines[place]))
        self._keys.extend(rows.keys[numbers.start : numbers.stop])
        self._starts.extend(lines)
        self._named.append((rows, numbers, start))

    def add_place(self, names: Iterable[str], lines: Iterable[Line]) -> None:
        """Lines that another pane can point at by any of these names."""
        start = len(self.lines)
        self.lines.extend(lines)
        for name in names:
            self._places.setdefault(name, range(start, len(self.lines)))

    @property
    def places(self) -> dict[str, range]:
        """The lines that another pane can point at, by name."""
        while self._named:
            rows, numbers, start = self._named.pop(0)
            for place, number in enumerate(numbers, start):
                for name in (rows.keys[number], *rows.names(number)):
                    self._places.setdefault(name, range(place, place + 1))
        return self._places

    def known_from(self, line: int, pane: str) -> Item | None:
        """The first place that holds `line` or stands below it, as something that leads to `pane`; None where other
        panes know nothing of what follows."""
        below = [lines for lines in self.places.values() if lines.stop > line]
        if not below:
            return None
        first = min(below, key=lambda lines: lines.start)
        names = tuple(name for name, lines in self.places.items() if lines == first)
        return Item("", first.start, first.stop, targets=(Target(pane, names),))

    def item_named(self, key: str) -> int | None:
        """The number of the item with this key."""
        try:
            return self._keys.index(key)
        except ValueError:
            return None

    def item_at(self, line: int) -> int:
        """The number of the item that holds `line`, else of the last one above it; 0 for what is above all."""
        return max(bisect_right(self._starts, line) - 1, 0)

    def whole(self, number: int) -> list[Line]:
        """The lines of an item with those that it heads."""
        item = self.items[number]
        if not item.heads:
            return self.lines[item.start : item.end]
        others = range(number + 1, len(self._keys))
        after = (self._starts[other] for other in others if not self._keys[other].startswith(f"{item.key}/"))
        turns = (turn for turn in self.turns if turn > item.start)
        return self.lines[item.start : min(next(after, len(self.lines)), next(turns, len(self.lines)))]

    def gap(self) -> None:
        """A blank line, unless there is one or nothing above."""
        if self.lines and self.lines[-1]:
            self.lines.append(())

    @property
    def folded(self) -> bool:
        """Whether something is cut or folded that a full view would show."""
        return any(segment.style == "fold" for line in self.lines for segment in line)

    def begin_turn(self, heading: Iterable[Line] = ()) -> None:
        """A turn begins here, behind a blank line."""
        self.gap()
        self.turns.append(len(self.lines))
        self.add(heading)

    def turn_at(self, line: int) -> int | None:
        """The turn that `line` belongs to; the first one for what stands above it."""
        if not self.turns:
            return None
        return max(bisect_right(self.turns, line) - 1, 0)
