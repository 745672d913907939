"""Agents, evalsets and cases as rows."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry


Pair: TypeAlias = tuple[int, int]
"""A case as (evalset, case)."""
WHOLE_EVALSET = -1
"""The case index of a pair for a whole evalset, such as one that cannot be read."""
Part: TypeAlias = tuple[int, Sequence[int]]
"""An evalset, and some of its cases."""
Kind: TypeAlias = Literal["all", "agent", "evalset", "passed", "case", "repeat"]


class Row(NamedTuple):
    """One row of the tree. The row of the kind `passed` has the folded cases of an evalset.

    `agent` is an index into the outline's groups, `evalset` into the workspace's evalsets, `case` into the cases of its
    file, all from 0. `repeat` counts from 1. -1 means not applicable.
    """

    kind: Kind
    agent: int = -1
    evalset: int = -1
    case: int = -1
    repeat: int = -1

    @property
    def parent(self) -> "Row | None":
        """The parent row in the tree, or None for the first row. Folds are ignored, unlike in `Outline.parent`."""
        match self.kind:
            case "repeat":
                return Row("case", self.agent, self.evalset, self.case)
            case "case" | "passed":
                return Row("evalset", self.agent, self.evalset)
            case "evalset":
                return Row("agent", self.agent)
            case "agent":
                return ALL
        return None


ALL = Row("all")
"""The first row, which has all cases and cannot be collapsed."""


class Fold(NamedTuple):
    """The cases of an evalset in two groups, both in file order: `shown` have their own rows, `folded` share one."""

    shown: Sequence[int]
    folded: Sequence[int]

    def has(self, case: int) -> bool:
        """Return whether a case is folded."""
        place = bisect_left(self.folded, case)
        return place < len(self.folded) and self.folded[place] == case


@dataclass
class Outline:
    """The rows of a tree and their positions.

    `evalsets[g]` has the evalsets of group g, and `sizes[e]` is the number of cases of evalset e. `repeats(e, c)`
    returns the number of executions of a case in its newest run. Call `rebuild` after a change of `orders`, `folds`,
    `closed` or `opened`.
    """

    evalsets: Sequence[Sequence[int]]
    sizes: Sequence[int]
    repeats: Callable[[int, int], int]

    def __post_init__(self) -> None:
        self.orders: Mapping[int, Sequence[int]] | None = None
        """The filtered and sorted cases by evalset, or None for all cases in file order."""
        self.folds: dict[int, Fold] = {}
        """Folds by evalset, ignored while the cases are filtered or sorted."""
        self.closed: set[Row] = set()
        """Agents and evalsets that are collapsed."""
        self.opened: set[Row] = set()
        """Expanded cases, which show their repeats, and expanded rows of folded cases."""
        self.group_of = {evalset: group for group, members in enumerate(self.evalsets) for evalset in members}
        self.rebuild()

    def __len__(self) -> int:
        return len(self._rows)

    def rebuild(self) -> None:
        """Compute the rows again."""
        self._rows: list[Row] = []
        if self.orders is None or any(self.orders.values()):
            self._rows.append(ALL)
        for group, members in enumerate(self.evalsets):
            visible = [evalset for evalset in members if self.orders is None or self.order(evalset)]
            if self.orders is None or visible:
                head = Row("agent", group)
                self._rows.append(head)
                for evalset in visible if head not in self.closed else ():
                    self._add_evalset(Row("evalset", group, evalset))
        self._positions = dict(zip(self._rows, range(len(self._rows)), strict=True))

    def _add_evalset(self, head: Row) -> None:
        self._rows.append(head)
        if head in self.closed:
            return
        fold = self.fold(head.evalset)
        self._add_cases(head, self.order(head.evalset) if fold is None else fold.shown)
        if fold is not None:
            passed = Row("passed", head.agent, head.evalset)
            self._rows.append(passed)
            if passed in self.opened:
                self._add_cases(head, fold.folded)

    def _add_cases(self, head: Row, cases: Sequence[int]) -> None:
        """Add the rows of cases, with the repeats of those that are expanded."""
        rows = [Row("case", head.agent, head.evalset, case) for case in cases]
        for row in self.opened.intersection(rows):
            if (repeats := self.repeats(row.evalset, row.case)) > 1:
                place = rows.index(row) + 1
                rows[place:place] = [row._replace(kind="repeat", repeat=number) for number in range(1, repeats + 1)]
        self._rows += rows

    def order(self, evalset: int) -> Sequence[int]:
        """Return the filtered cases of an evalset, even if it is collapsed."""
        return range(self.sizes[evalset]) if self.orders is None else self.orders.get(evalset, ())

    def around(self, row: Row, count: int) -> list[int]:
        """Return a case and its neighbours in the rows of its evalset, at most `count` before it and fewer after it."""
        position = self._positions.get(row, -1)
        near = self._rows[max(position - count, 0) : position + count] if position >= 0 else [row]
        return [one.case for one in near if one.kind == "case" and one.evalset == row.evalset]

    def fold(self, evalset: int) -> Fold | None:
        """Return the fold of an evalset, or None if no cases are folded."""
        return self.folds.get(evalset) if self.orders is None else None

    def is_folded(self, row: Row) -> bool:
        """Return whether the row is a folded case or one of its repeats, even if the fold is expanded."""
        fold = self.fold(row.evalset)
        return fold is not None and fold.has(row.case)

    def parent(self, row: Row) -> Row | None:
        """Return the parent row in the tree, or None for the first row."""
        if row.kind == "case" and self.is_folded(row):
            return Row("passed", row.agent, row.evalset)
        return row.parent

    def row(self, position: int) -> Row:
        """Return the row at a position from 0.

        Raises:
            IndexError: There is no such position.
        """
        if position < 0:
            raise IndexError(position)
        return self._rows[position]

    def find(self, row: Row) -> int | None:
        """Return the position of a row, or None if it is not visible."""
        return self._positions.get(row)

    def nearest(self, row: Row) -> int:
        """Return the position of a row, else of its nearest visible ancestor, else 0."""
        candidate: Row | None = row
        while candidate is not None:
            if (position := self.find(candidate)) is not None:
                return position
            candidate = self.parent(candidate)
        return 0

    def is_open(self, row: Row) -> bool:
        """Return whether the row counts as expanded, even if it has no children."""
        if row.kind in ("case", "passed"):
            return row in self.opened
        return row.kind != "repeat" and row not in self.closed

    def has_children(self, row: Row) -> bool:
        """Return whether there is anything to expand in the row."""
        match row.kind:
            case "all":
                return len(self) > 1
            case "agent":
                return bool(self.evalsets[row.agent])
            case "evalset":
                return bool(self.order(row.evalset))
            case "case":
                return self.repeats(row.evalset, row.case) > 1
            case "passed":
                return True
        return False

    def reveal(self, row: Row) -> None:
        """Expand all ancestors of a row. The caller must call `rebuild`."""
        parent = self.parent(row)
        while parent is not None:
            (self.opened.add if parent.kind in ("case", "passed") else self.closed.discard)(parent)
            parent = self.parent(parent)

    def parts(self, row: Row) -> tuple[Part, ...]:
        """Return the filtered cases at and below a row by evalset, including those in collapsed rows.

        Evalsets are in row order, their cases in file or sort order.
        """
        match row.kind:
            case "all":
                return tuple((evalset, self.order(evalset)) for evalset in self.group_of)
            case "agent":
                return tuple((evalset, self.order(evalset)) for evalset in self.evalsets[row.agent])
            case "evalset":
                return ((row.evalset, self.order(row.evalset)),)
            case "passed":
                return ((row.evalset, fold.folded if (fold := self.fold(row.evalset)) is not None else ()),)
        return ((row.evalset, (row.case,)),)

    def cases(self, row: Row) -> list[Pair]:
        """Return the filtered cases at and below a row as (evalset, case)."""
        return [(evalset, case) for evalset, cases in self.parts(row) for case in cases]

    def count(self, row: Row) -> int:
        """Return the number of filtered cases at and below a row."""
        return sum(len(cases) for _, cases in self.parts(row))

    def all_cases(self) -> list[Pair]:
        """Return all filtered cases, in the order of `parts`."""
        return self.cases(ALL)


def parts_of(pairs: Iterable[Pair]) -> tuple[Part, ...]:
    """Return cases by evalset, in file order."""
    found: dict[int, list[int]] = {}
    for evalset, case in sorted(pairs):
        found.setdefault(evalset, []).append(case)
    return tuple(found.items())


Name: TypeAlias = tuple[str, ...]
"""The name of a row: (), (agent,), (agent, file), (agent, file, eval ID) or (agent, file, eval ID, repeat).

The row of folded cases has the name (agent, file, "", "passed").
"""
_PASSED = ("", "passed")


class Names:
    """A mapping between the rows of one workspace and their names, which stay valid when the folder is read again."""

    def __init__(self, entries: "Sequence[EvalsetEntry]", groups: Sequence[str]) -> None:
        self.entries, self._groups = entries, groups
        self._evalsets = {entry.relative: number for number, entry in enumerate(entries)}
        self._cases: dict[int, dict[str, int]] = {}

    def name_of(self, row: Row) -> Name:
        """Return the name of a row."""
        if row.kind == "all":
            return ()
        if row.kind == "agent":
            return (self._groups[row.agent],)
        entry = self.entries[row.evalset]
        agent = self._groups[row.agent] if row.agent >= 0 else ""
        if row.kind == "evalset":
            return (agent, entry.relative)
        if row.kind == "passed":
            return (agent, entry.relative, *_PASSED)
        eval_id = entry.document.cases[row.case].eval_id
        return (agent, entry.relative, eval_id, *([str(row.repeat)] if row.kind == "repeat" else []))

    def cases(self, pairs: Iterable[tuple[int, int]]) -> set[Name]:
        """Return the names of cases, and of evalsets whose case is `WHOLE_EVALSET`."""
        return {self.name_of(Row("evalset" if pair[1] == WHOLE_EVALSET else "case", -1, *pair)) for pair in pairs}

    def row(self, name: Name, outline: Outline) -> Row:
        """Return the row with this name, or its nearest ancestor that still exists."""
        if len(name) > 1 and name[1] in self._evalsets:
            evalset = self._evalsets[name[1]]
            group = outline.group_of[evalset]
            if name[2:] == _PASSED:
                return Row("passed", group, evalset)
            if len(name) > 2 and (case := self._case(evalset, name[2])) is not None:
                repeat = int(name[3]) if len(name) > 3 else -1
                return Row("repeat" if repeat > 0 else "case", group, evalset, case, repeat)
            return Row("evalset", group, evalset)
        return Row("agent", self._groups.index(name[0])) if name and name[0] in self._groups else ALL

    def rows(self, names: Iterable[Name], outline: Outline) -> set[Row]:
        """Return the rows of the names that still exist."""
        depth = {"all": 0, "agent": 1, "evalset": 2, "case": 3, "repeat": 4, "passed": 4}
        found = ((name, self.row(name, outline)) for name in names)
        return {row for name, row in found if depth[row.kind] == len(name)}

    def _case(self, evalset: int, eval_id: str) -> int | None:
        if evalset not in self._cases:
            summaries = self.entries[evalset].document.cases
            self._cases[evalset] = {summary.eval_id: number for number, summary in enumerate(summaries)}
        return self._cases[evalset].get(eval_id)
