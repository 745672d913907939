"""What a pane shows: lines, and where in them the turns begin."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from workbench.agents.workspace import EvalsetEntry
from workbench.model.evalset import EvalCase
from workbench.model.faults import Fault
from workbench.prices import Prices
from workbench.repeats.account import CaseRepeats
from workbench.store import CaseRecord
from workbench.ui.changed import Change
from workbench.ui.render.lines import Line

if TYPE_CHECKING:
    from workbench.authoring.triage.entry import Entry
    from workbench.history.case_rows import EarlierRun


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
    earlier: "tuple[EarlierRun, ...]" = field(default=(), compare=False)
    """The newest runs in which the case has a verdict, the newest first."""

    repeats: CaseRepeats | None = None
    """The repeats of the case together, where the case itself is looked at and not one of them."""

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
            return id(self.entry), id(self.case), self.found, self.triage
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
    came from, the first that is there. The first cell of its lines is blank: the cursor's mark stands there."""

    key: str
    start: int
    end: int
    opens: bool = False
    targets: tuple[Target, ...] = ()
    aside: Aside | None = None


@dataclass(slots=True)
class Document:
    """Lines laid out for one width. `turns` holds the line at which each turn begins, `opening` the index of the
    turn to open at (None: at the top). Where there are `items`, a cursor goes from one to the next, and
    `opening_item` is where it begins. `places` are the lines that another pane can point at."""

    lines: list[Line] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    opening: int | None = None
    items: list[Item] = field(default_factory=list)
    opening_item: int = 0
    places: dict[str, range] = field(default_factory=dict)

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
    ) -> None:
        """Lines that the cursor takes as one; they are also a place that can be pointed at."""
        start = len(self.lines)
        self.lines.extend(lines)
        self.items.append(Item(key, start, len(self.lines), opens, targets, aside))
        self.places[key] = range(start, len(self.lines))

    def add_place(self, names: Iterable[str], lines: Iterable[Line]) -> None:
        """Lines that another pane can point at by any of these names."""
        start = len(self.lines)
        self.lines.extend(lines)
        for name in names:
            self.places.setdefault(name, range(start, len(self.lines)))

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
        return next((number for number, item in enumerate(self.items) if item.key == key), None)

    def item_at(self, line: int) -> int:
        """The number of the item that holds `line`, else of the last one above it; 0 for what is above all."""
        return max(bisect_right(self.items, line, key=lambda item: item.start) - 1, 0)

    def gap(self) -> None:
        """A blank line, unless there is one or nothing above."""
        if self.lines and self.lines[-1]:
            self.lines.append(())

    @property
    def folded(self) -> bool:
        """Whether something is cut or folded that a full view would show."""
        return any(segment.style == "fold" for line in self.lines for segment in line)

    def turn_at(self, line: int) -> int | None:
        """The turn that `line` belongs to; the first one for what stands above it."""
        if not self.turns:
            return None
        return max(bisect_right(self.turns, line) - 1, 0)
